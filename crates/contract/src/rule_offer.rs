//! The rules in the choices of a permission question other than allow rules, and their texts.

use crate::approval::RuleOffer;

/// The name of rules for commands that run in the sandbox without network: `OfflineCommand(go test
/// *)`. In settings files they are entries of `sandbox.offlineCommands`.
pub const OFFLINE_COMMAND: &str = "OfflineCommand";

/// The name of rules for hosts that commands may read from: `ReadDomain(github.com)`. In settings files
/// they are entries of `sandbox.network.readDomains`.
pub const READ_DOMAIN: &str = "ReadDomain";

/// The name of rules that declare a wrapper: `CommandWrapper(rtk)`. In settings files they are entries
/// of `permissions.wrappers`.
pub const COMMAND_WRAPPER: &str = "CommandWrapper";

/// The number of commands that a choice lists. Users do not read longer lists.
const MAX_LISTED: usize = 6;

/// The effect of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferKind {
    /// Allow rules.
    AllowRules,
    /// The call and similar commands run in the sandbox without network.
    Offline,
    /// Commands that only read from some hosts run.
    ReadDomains,
    /// A program is declared as a wrapper.
    Wrapper,
}

impl RuleOffer {
    /// Returns the effect of the choice.
    pub fn kind(&self) -> OfferKind {
        let has = |name: &str| {
            self.rules
                .iter()
                .any(|rule| rule_content(rule, name).is_some())
        };
        if has(OFFLINE_COMMAND) {
            OfferKind::Offline
        } else if has(READ_DOMAIN) {
            OfferKind::ReadDomains
        } else if has(COMMAND_WRAPPER) {
            OfferKind::Wrapper
        } else {
            OfferKind::AllowRules
        }
    }

    /// Returns the rules as text for the user, or their effect. The text follows "always".
    pub(crate) fn rules_text(&self) -> String {
        let contents = |name: &str| {
            let rules = self.rules.iter();
            rules
                .filter_map(|rule| rule_content(rule, name))
                .collect::<Vec<&str>>()
        };
        let effect = match self.kind() {
            OfferKind::AllowRules => String::new(),
            OfferKind::Offline => {
                let all = contents(OFFLINE_COMMAND);
                let mut names: Vec<&str> = all
                    .iter()
                    .map(|words| words.trim_end_matches(" *"))
                    .take(MAX_LISTED)
                    .collect();
                let more = format!("{} more", all.len().saturating_sub(MAX_LISTED));
                if all.len() > MAX_LISTED {
                    names.push(&more);
                }
                format!(
                    "this and similar commands in the sandbox without network ({})",
                    names.join(", ")
                )
            }
            OfferKind::ReadDomains => format!("reads at {}", contents(READ_DOMAIN).join(", ")),
            OfferKind::Wrapper => {
                let names = contents(COMMAND_WRAPPER).join(", ");
                format!("rules for the command after {names} (declares {names} as a wrapper)")
            }
        };
        let plain = self.rules.iter().filter(|rule| !is_special(rule));
        let mut all: Vec<String> = plain.cloned().collect();
        if !effect.is_empty() {
            all.insert(0, effect);
        }
        all.join(", ")
    }
}

/// Returns the text in parentheses of a rule with this name: `go test *` for `OfflineCommand(go test
/// *)`.
pub fn rule_content<'a>(rule: &'a str, name: &str) -> Option<&'a str> {
    let rest = rule.trim().strip_prefix(name)?;
    rest.strip_prefix('(')?.strip_suffix(')')
}

/// Returns whether a rule is not an allow rule.
fn is_special(rule: &str) -> bool {
    [OFFLINE_COMMAND, READ_DOMAIN, COMMAND_WRAPPER]
        .iter()
        .any(|name| rule_content(rule, name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_says_what_it_permits() {
        let text = |rules: &[&str], asks_again: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            RuleOffer {
                rules: owned(rules),
                asks_again: owned(asks_again),
            }
            .to_text()
        };
        assert_eq!(
            text(&["Bash(a *)", "Bash(b *)"], &["c"]),
            "Bash(a *), Bash(b *) (asks again for c)"
        );
        assert_eq!(
            text(
                &[
                    "OfflineCommand(go test *)",
                    "OfflineCommand(gofmt *)",
                    "Bash(git add *)"
                ],
                &[]
            ),
            "this and similar commands in the sandbox without network (go test, gofmt), Bash(git add *)"
        );
        assert_eq!(
            text(
                &["ReadDomain(github.com)", "ReadDomain(api.github.com)"],
                &[]
            ),
            "reads at github.com, api.github.com"
        );
        let many: Vec<String> = (0..9)
            .map(|at| format!("OfflineCommand(x{at} *)"))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(text(&many, &[]).ends_with("(x0, x1, x2, x3, x4, x5, 3 more)"));
    }
}
