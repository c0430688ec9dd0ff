//! Suggests rules that would allow a call from now on, as choices for the user. `line_offers`
//! has those for command lines.

use std::{path::Path, sync::Arc};

use haft_contract::{
    ContextPatch, GrantEnd, PermissionMode, RuleDestination, RuleList, RuleMatch, RuleOffer,
    RuleScope,
    rule_offer::{OFFLINE_COMMAND, OfferKind, rule_content},
};
use serde_json::{Value, json};

use super::{
    CallFacts, DecisionBehavior, List, PatternBases, Policy, RuleSource, SettingsScope, decide,
    protected_files::is_systems_own,
    rule_offers::{MAX_RULE, line_offers},
    rules::{RuleClass, in_url},
};

/// The parameter of tools that run a command line unchanged.
const LINE: &str = "command";

/// Returns the choices of rules for a call, the best first, after testing what they allow.
pub fn suggest(policy: &Policy, facts: &CallFacts, bases: &PatternBases) -> Vec<RuleOffer> {
    let rules: Vec<String> = match (&facts.shell, facts.rules) {
        // The parameter names the program. The code that it runs is in another parameter and
        // differs each time, so the rule applies to every use of the program and says so.
        (Some(shell), RuleMatch::Command(parameter)) if parameter != LINE => {
            exact_rule(&facts.tool, &shell.line).into_iter().collect()
        }
        (Some(shell), _) => return line_offers(policy, facts, bases, shell),
        (None, _) => other(facts),
    };
    let works = would_allow(policy, facts, bases, SettingsScope::Session, &rules);
    let offer = works.then(|| RuleOffer::for_call(rules)).flatten();
    offer.into_iter().collect()
}

/// Returns the narrowest rules that allow the whole call: the last choice that leaves no part open.
pub fn sufficient_rules(offers: &[RuleOffer]) -> &[String] {
    let mut offers = offers.iter().rev();
    let sufficient =
        offers.find(|offer| offer.kind() == OfferKind::AllowRules && offer.asks_again.is_empty());
    sufficient.map_or(&[], |offer| &offer.rules)
}

/// Returns rules for commands that would allow the same commands as these rules, with network.
pub fn command_rules(rules: &[String]) -> Vec<String> {
    let rules = rules
        .iter()
        .map(|rule| match rule_content(rule, OFFLINE_COMMAND) {
            Some(content) => format!("{}({content})", RuleClass::Commands.word()),
            None => rule.clone(),
        });
    rules.collect()
}

/// Returns the user rule that would allow a call with this path, after testing that it does.
/// Returns `None` for kernel files, devices and services, for which no rule should be saved.
pub fn path_rule(
    policy: &Policy,
    facts: &CallFacts,
    bases: &PatternBases,
    path: &Path,
) -> Option<String> {
    let text = path.to_str()?;
    // A rule with pattern characters would match more than this path.
    let is_plain = !text.contains(|next: char| next.is_control() || r"*?[\()".contains(next));
    if !is_plain || is_systems_own(path) {
        return None;
    }
    [RuleClass::Reads, RuleClass::Edits]
        .into_iter()
        .find_map(|class| {
            let rule = [format!("{}(/{text})", class.word())];
            let works = would_allow(policy, facts, bases, SettingsScope::User, &rule);
            works.then(|| rule.concat())
        })
}

/// Returns whether these allow rules of the session would allow the whole call.
pub fn would_allow_call(
    policy: &Policy,
    facts: &CallFacts,
    bases: &PatternBases,
    rules: &[String],
) -> bool {
    would_allow(policy, facts, bases, SettingsScope::Session, rules)
}

fn would_allow(
    policy: &Policy,
    facts: &CallFacts,
    bases: &PatternBases,
    scope: SettingsScope,
    texts: &[String],
) -> bool {
    let short = |text: &String| text.chars().count() <= MAX_RULE;
    if texts.is_empty() || !texts.iter().all(short) {
        return false;
    }
    let mut tried = policy.clone();
    let rules = Arc::make_mut(&mut tried.rules);
    let added = texts.iter().all(|text| {
        let source = RuleSource::from_scope(scope);
        rules.add(List::Allow, text, source, bases).is_ok()
    });
    added && decide(&tried, facts).behavior == DecisionBehavior::Allow
}

/// Returns a rule like `Bash(npm run build)` that matches only this text; `None` if a rule cannot
/// contain the text.
pub(super) fn exact_rule(tool: &str, text: &str) -> Option<String> {
    if text.is_empty() || text.contains(char::is_control) {
        return None;
    }
    let mut content = String::with_capacity(text.len());
    for next in text.chars() {
        match next {
            '(' | ')' | '\\' => content.extend(['\\', next]),
            // The content is unescaped twice: as text in parentheses, and as a pattern.
            '*' => content.push_str("\\\\*"),
            plain => content.push(plain),
        }
    }
    Some(format!("{tool}({content})"))
}

fn other(facts: &CallFacts) -> Vec<String> {
    if let Some(target) = facts.fetches.first() {
        return match target.odd {
            Some(_) => Vec::new(),
            None => vec![format!("{}(domain:{})", facts.tool, in_url(&target.host))],
        };
    }
    if let Some(subject) = &facts.subject {
        return exact_rule(&facts.tool, subject).into_iter().collect();
    }
    if facts.from_server || facts.rules == RuleMatch::NameOnly {
        return vec![facts.tool.clone()];
    }
    Vec::new()
}

/// Returns the choices as permission updates, of which the caller can send one back with its answer.
pub fn updates(offers: &[RuleOffer]) -> Value {
    let update = |(offer, destination): (&RuleOffer, &str)| {
        let rules: Vec<Value> = offer
            .rules
            .iter()
            .map(|rule| match rule.split_once('(') {
                Some((tool, content)) => json!({
                    "toolName": tool,
                    "ruleContent": content.strip_suffix(')').unwrap_or(content),
                }),
                None => json!({"toolName": rule}),
            })
            .collect();
        json!({
            "type": "addRules",
            "rules": rules,
            "behavior": "allow",
            "destination": destination,
        })
    };
    let both = offers.iter().flat_map(|offer| {
        let destinations: &[&str] = match offer.kind() {
            OfferKind::AllowRules => &["localSettings"],
            OfferKind::Offline | OfferKind::ReadDomains | OfferKind::Wrapper => {
                &["session", "localSettings"]
            }
        };
        destinations
            .iter()
            .map(move |destination| (offer, *destination))
    });
    both.map(update).collect()
}

/// Returns the session changes for a permission update, as hooks and programs write it. Empty if
/// the update is invalid or only the user may make it.
pub fn patches(update: &Value) -> Vec<ContextPatch> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    match update.get("type").and_then(Value::as_str) {
        Some("addRules") => {
            let list = match update.get("behavior").and_then(Value::as_str) {
                Some("allow") => RuleList::Allow,
                Some("ask") => RuleList::Ask,
                Some("deny") => RuleList::Deny,
                _ => return Vec::new(),
            };
            let rules = update.get("rules").and_then(Value::as_array);
            let rules = rules.into_iter().flatten().filter_map(|rule| {
                let tool = text(rule, "toolName")?;
                Some(match text(rule, "ruleContent") {
                    Some(content) => format!("{tool}({content})"),
                    None => tool,
                })
            });
            match update.get("until").filter(|until| !until.is_null()) {
                // Rules that make permissions stricter do not end.
                Some(until) if list == RuleList::Allow => timed_patch(rules.collect(), until),
                _ => rules
                    .map(|rule| ContextPatch::AddRule { list, rule })
                    .collect(),
            }
        }
        Some("addDirectories") => {
            let directories = update.get("directories").and_then(Value::as_array);
            let paths = directories.into_iter().flatten().filter_map(Value::as_str);
            paths
                .map(|path| ContextPatch::AddDirectory { path: path.into() })
                .collect()
        }
        Some("setMode") => {
            let mode = update.get("mode").cloned().unwrap_or_default();
            match serde_json::from_value(mode) {
                // Only the user may enable these modes.
                Ok(PermissionMode::Auto | PermissionMode::BypassPermissions) | Err(_) => Vec::new(),
                Ok(mode) => vec![ContextPatch::SetMode { mode }],
            }
        }
        _ => Vec::new(),
    }
}

/// Returns the patch for allow rules that end: `"task"` or `{"seconds": 1800}`. Empty if the end is
/// invalid, so that the rules do not apply at all.
fn timed_patch(rules: Vec<String>, until: &Value) -> Vec<ContextPatch> {
    match serde_json::from_value(until.clone()) {
        Ok(GrantEnd::Seconds(0)) | Err(_) => Vec::new(),
        Ok(_) if rules.is_empty() => Vec::new(),
        Ok(until) => vec![ContextPatch::AddTimedRules { rules, until }],
    }
}

/// Saves allow rules that the user agreed to, beyond the session.
pub trait RuleStore: Send + Sync {
    /// Saves rules in `scope`, which is never [`RuleScope::Session`]. The implementation must
    /// report errors itself: the rules already apply in the session.
    fn save(&self, rules: &[String], scope: RuleScope);

    /// Returns the places in which rules can be saved, the usual one first.
    fn destinations(&self) -> Vec<RuleDestination> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_are_handed_back_mean_what_was_offered() {
        let rules = ["Bash(npm run *)", "Bash(echo (a))", "mcp__calc__add"].map(str::to_owned);
        let offers: Vec<RuleOffer> = RuleOffer::for_call(rules.to_vec()).into_iter().collect();
        let updates = updates(&offers);
        let meant: Vec<ContextPatch> = patches(&updates[0]);
        let expected = rules.map(|rule| ContextPatch::AddRule {
            list: RuleList::Allow,
            rule,
        });
        assert_eq!(meant, expected);
        assert_eq!(super::updates(&[]), json!([]));
    }

    /// An update that adds a rule with an end.
    fn timed(until: Value) -> Value {
        json!({
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "cargo test *"}],
            "behavior": "allow",
            "destination": "session",
            "until": until,
        })
    }

    /// Vector R5.
    #[test]
    fn rules_with_an_end_are_grants() {
        let rules = vec!["Bash(cargo test *)".to_owned()];
        let ends = [
            (json!("task"), GrantEnd::Task),
            (json!({"seconds": 1800}), GrantEnd::HALF_HOUR),
        ];
        for (written, until) in ends {
            let rules = rules.clone();
            let expected = [ContextPatch::AddTimedRules { rules, until }];
            assert_eq!(patches(&timed(written)), expected);
        }
        let mut denied = timed(json!("task"));
        denied["behavior"] = json!("deny");
        let expected = [ContextPatch::AddRule {
            list: RuleList::Deny,
            rule: rules[0].clone(),
        }];
        assert_eq!(patches(&denied), expected);
    }

    #[test]
    fn what_only_a_person_may_want_is_no_patch() {
        let none = [
            json!({"type": "setMode", "mode": "bypassPermissions"}),
            json!({"type": "setMode", "mode": "auto"}),
            json!({"type": "setMode", "mode": "no such"}),
            json!({"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "perhaps"}),
            json!({"type": "unknown"}),
            json!(null),
            timed(json!({"seconds": 0})),
            timed(json!({"seconds": -1})),
            timed(json!({"seconds": "1800"})),
            timed(json!("forever")),
        ];
        for update in none {
            assert_eq!(patches(&update), [], "{update}");
        }
        let mode = json!({"type": "setMode", "mode": "acceptEdits"});
        assert_eq!(
            patches(&mode),
            [ContextPatch::SetMode {
                mode: PermissionMode::AcceptEdits
            }]
        );
    }
}
