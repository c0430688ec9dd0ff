//! Rules that never change a decision, because another rule always decides.

use haft_shell::{Arg, Effect, LinePart, RuleCoverage};

use crate::{
    RuleSource, SettingsScope,
    reversible::is_broad,
    rules::{List, Rule, RuleContent, RuleSet, ToolSelector, WildcardPattern},
};

/// Returns the rule that always decides instead of this one. `is_plain` returns whether a prefix
/// rule applies to an exact command wherever a rule with exactly its text does.
pub(super) fn shadowing_rule<'a>(
    rules: &'a RuleSet,
    rule: &Rule,
    is_plain: &dyn Fn(&str) -> bool,
) -> Option<&'a Rule> {
    let position = rules.iter().position(|one| is_same(one, rule))?;
    let mut others = rules.iter().enumerate();
    let found = others.find(|(at, other)| {
        if *at == position || !outlives(&other.source, &rule.source) {
            return false;
        }
        // Of two rules that cover each other, the later one is shadowed.
        let covers = |other: &Rule, rule: &Rule| shadows(other, rule, is_plain);
        covers(other, rule) && (*at < position || !covers(rule, other))
    });
    found.map(|(_, other)| other)
}

fn is_same(one: &Rule, other: &Rule) -> bool {
    one.list == other.list && one.text == other.text && one.source == other.source
}

/// Returns whether a rule of the first source is in force wherever one of the second is.
fn outlives(first: &RuleSource, second: &RuleSource) -> bool {
    use SettingsScope as Scope;
    match second.scope {
        Scope::Managed => first.scope == Scope::Managed,
        Scope::User => matches!(first.scope, Scope::Managed | Scope::User),
        Scope::Project => matches!(first.scope, Scope::Managed | Scope::User | Scope::Project),
        Scope::Local => matches!(
            first.scope,
            Scope::Managed | Scope::User | Scope::Project | Scope::Local
        ),
        Scope::CommandLine | Scope::Session | Scope::Turn => false,
    }
}

fn shadows(other: &Rule, rule: &Rule, is_plain: &dyn Fn(&str) -> bool) -> bool {
    let is_stricter = match (other.list, rule.list) {
        (List::Allow, List::Allow) | (List::Ask, List::Ask) | (List::Deny, List::Deny) => false,
        (List::Deny | List::Ask, List::Allow) | (List::Deny, List::Ask) => true,
        _ => return false,
    };
    match (&other.content, &rule.content) {
        (RuleContent::All, RuleContent::All) => {
            !is_stricter && selects(&other.tool, &rule.tool) && is_server_rule(rule)
        }
        (
            RuleContent::Command {
                pattern: wide,
                text: wide_text,
            },
            RuleContent::Command { pattern, text },
        ) => {
            // Rules are compared with quoted and unquoted spellings.
            if text.contains(['"', '\'', '\\', '$', '`']) || wide_text.contains('\\') {
                return wide_text == text && !is_stricter;
            }
            if !covers(wide, pattern, text) {
                return false;
            }
            match (rule.list, is_stricter) {
                (List::Allow, true) => true,
                // The wider rule must also apply in the mode `auto`, and to the same parts.
                (List::Allow, false) if !pattern.is_exact() => {
                    !wide.is_exact() && !is_broad(wide_text)
                }
                (List::Allow, false) if wide.is_exact() => true,
                (List::Allow, false) => !is_broad(wide_text) && is_plain(text),
                _ => true,
            }
        }
        _ => false,
    }
}

/// Returns whether a selector applies to all tools of another. Only for tools of MCP servers: other
/// names may be aliases.
fn selects(wide: &ToolSelector, narrow: &ToolSelector) -> bool {
    match narrow {
        ToolSelector::One(name) | ToolSelector::Server(name) => match wide {
            ToolSelector::Server(server) => {
                let rest = name.strip_prefix(server.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("__"))
            }
            ToolSelector::One(_) | ToolSelector::Matching(_) => wide == narrow,
        },
        ToolSelector::Matching(_) => wide == narrow,
    }
}

fn is_server_rule(rule: &Rule) -> bool {
    rule.text.starts_with("mcp__")
}

/// The character in place of the stars of a rule, which only a star of another matches.
const STAR: &str = "\u{F8FF}";

/// Returns whether one pattern matches all texts of another.
fn covers(wide: &WildcardPattern, narrow: &WildcardPattern, text: &str) -> bool {
    let text = match text.strip_suffix(":*") {
        Some(prefix) => format!("{prefix} *"),
        None => text.to_owned(),
    };
    let words = text.strip_suffix(" *").filter(|_| !narrow.is_exact());
    wide.matches(&text.replace('*', STAR))
        && words.is_none_or(|words| wide.matches(&words.replace('*', STAR)))
}

/// Returns whether a prefix rule applies to this part in each line and directory in which its exact
/// text does.
pub(super) fn is_plain_part(part: &LinePart, text: &str) -> bool {
    let is_literal = |arg: &Arg| arg.text().is_some();
    let has_other_effects =
        part.finding.effects.iter().any(|effect| {
            matches!(effect, Effect::Write(_)) || matches!(effect, Effect::Opaque(_))
        });
    part.words == text
        && part.text == text
        && part.argv.iter().all(is_literal)
        && part.assignments.is_empty()
        && part.command_name().is_some()
        // Git in another directory is not covered by prefix rules.
        && part.base_name() != Some("git")
        && part.finding.coverage == RuleCoverage::Prefix
        && part.finding.starts.is_empty()
        && !has_other_effects
}
