//! Finds rules that have no effect, allow more than users expect, or can be merged.
//!
//! A rule is *shadowed* only if it provably never changes a decision: otherwise it is not reported.
//! The text of a rule that looks like it contains a key is never returned, only a masked one.

mod key_text;
mod shadowing;

use std::path::PathBuf;

use haft_contract::ToolSpec;
use haft_shell::{
    LineLocation, LinePart, analyze,
    commands::rule_families::{FamilyKind, command_family, starts_other_programs},
    is_builtin,
};

use super::{
    List, RuleSet, RuleSource, rule_matching,
    rules::{Rule, RuleContent, ToolSelector, collapse, is_known},
};

pub use key_text::mask_keys;
use shadowing::shadowing_rule;

/// The minimum number of rules that are worth merging.
const MIN_MERGED: usize = 3;

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// The rule never matches.
    Dead,
    /// Another rule always decides instead.
    Shadowed,
    /// The rule may allow more than it seems, or contains a key.
    Risky,
    /// One rule can replace several.
    Mergeable,
}

impl FindingKind {
    /// Returns its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Shadowed => "shadowed",
            Self::Risky => "risky",
            Self::Mergeable => "mergeable",
        }
    }
}

/// A finding about a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFinding {
    /// The kind.
    pub kind: FindingKind,
    /// The list that contains the rule.
    pub list: List,
    /// The rule as written, with keys masked.
    pub rule: String,
    /// The source of the rule.
    pub source: RuleSource,
    /// The problem.
    pub reason: String,
    /// The next step for the user.
    pub advice: String,
    /// A change of the rule's file that resolves the finding.
    pub fix: Option<RuleFix>,
}

/// A change of the file of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFix {
    /// The rules to remove, as written.
    pub removed: Vec<String>,
    /// The rule to add.
    pub added: Option<String>,
}

/// The facts that an audit needs besides the rules.
pub struct AuditFacts<'a> {
    /// The tools that rules may name.
    pub tools: &'a [ToolSpec],
    /// Returns whether a program of this name or path exists.
    pub has_program: &'a dyn Fn(&str) -> bool,
    /// All command lines of the last 90 days, if they are known.
    pub recent_commands: Option<&'a [String]>,
    /// The directory of the session.
    pub cwd: PathBuf,
    /// The home directory.
    pub home: Option<PathBuf>,
}

impl AuditFacts<'_> {
    fn place(&self) -> LineLocation {
        LineLocation {
            cwd: self.cwd.clone(),
            home: self.home.clone(),
        }
    }
}

/// Returns the findings about a set of rules, in its order.
pub fn audit_rules(rules: &RuleSet, facts: &AuditFacts<'_>) -> Vec<RuleFinding> {
    let mut findings = Vec::new();
    let used = facts
        .recent_commands
        .map(|lines| recent_texts(lines, facts));
    for rule in rules.iter() {
        let found = [
            dead(rule, facts).or_else(|| unused(rule, used.as_ref()?)),
            shadowed(rules, rule, facts),
            risky(rule, facts),
        ];
        findings.extend(found.into_iter().flatten());
        findings.extend(key(rule));
    }
    let shadowed: Vec<String> = findings
        .iter()
        .filter(|one| one.kind == FindingKind::Shadowed)
        .map(|one| one.rule.clone())
        .collect();
    findings.extend(mergeable(rules, &shadowed, facts));
    findings
}

/// Creates a finding about a rule.
fn finding(kind: FindingKind, rule: &Rule, reason: String, advice: &str) -> RuleFinding {
    RuleFinding {
        kind,
        list: rule.list,
        rule: mask_keys(&rule.text).unwrap_or_else(|| rule.text.clone()),
        source: rule.source.clone(),
        reason,
        advice: advice.to_owned(),
        fix: None,
    }
}

/// Returns the change that removes a rule.
fn removal(rule: &Rule) -> Option<RuleFix> {
    Some(RuleFix {
        removed: vec![rule.text.clone()],
        added: None,
    })
}

fn dead(rule: &Rule, facts: &AuditFacts<'_>) -> Option<RuleFinding> {
    if let ToolSelector::One(name) = &rule.tool {
        let mut tools = facts.tools.iter();
        let exists = tools.any(|spec| spec.profile.is_called(&spec.name, name));
        if !exists && !is_known(name) && !name.starts_with("mcp__") {
            let reason = format!("no tool is called {name}");
            let advice = "correct the name, or remove the rule";
            return Some(RuleFinding {
                fix: removal(rule),
                ..finding(FindingKind::Dead, rule, reason, advice)
            });
        }
    }
    // A deny or ask rule is also compared with whole lines and with programs that others start.
    let (text, is_exact) = command_of(rule).filter(|_| rule.list == List::Allow)?;
    let parts = parts(text, facts)?;
    let own: Vec<&LinePart> = parts.iter().filter(|part| part.outer.is_none()).collect();
    if own.len() > 1 {
        let last = own
            .last()
            .map(|part| part.words.as_str())
            .unwrap_or_default();
        let advice = format!("allow the parts instead, such as Bash({last})").replace(STAR, "*");
        return Some(match is_exact {
            false => RuleFinding {
                fix: removal(rule),
                ..finding(
                    FindingKind::Dead,
                    rule,
                    "each part of a line is compared alone, and no part can equal this text"
                        .to_owned(),
                    &advice,
                )
            },
            true => finding(
                FindingKind::Dead,
                rule,
                "no part of a line can equal this text; only the line with exactly this text matches"
                    .to_owned(),
                &advice,
            ),
        });
    }
    let name = own.first()?.command_name()?;
    if name.contains(STAR) || is_builtin(name) || (facts.has_program)(name) {
        return None;
    }
    let reason = format!("no program {name} is found");
    let advice = "install the program, or remove the rule";
    Some(finding(FindingKind::Dead, rule, reason, advice))
}

/// Returns the texts that rules are compared with for these lines: the lines and their parts.
fn recent_texts(lines: &[String], facts: &AuditFacts<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    for line in lines {
        let analysis = analyze(line, &facts.place());
        for part in &analysis.parts {
            texts.extend(rule_matching::spellings(part));
        }
        texts.push(collapse(line));
    }
    texts
}

fn unused(rule: &Rule, recent: &[String]) -> Option<RuleFinding> {
    if rule.list != List::Allow {
        return None;
    }
    let RuleContent::Command { pattern, .. } = &rule.content else {
        return None;
    };
    if recent.iter().any(|text| pattern.matches(&collapse(text))) {
        return None;
    }
    let reason = "no command of the last 90 days matches it".to_owned();
    let advice = "remove it, unless you still need it";
    Some(finding(FindingKind::Dead, rule, reason, advice))
}

fn shadowed(rules: &RuleSet, rule: &Rule, facts: &AuditFacts<'_>) -> Option<RuleFinding> {
    let is_plain = |text: &str| is_plain_command(text, facts);
    let other = shadowing_rule(rules, rule, &is_plain)?;
    let other_text = mask_keys(&other.text).unwrap_or_else(|| other.text.clone());
    let reason = match (rule.list, other.list) {
        (List::Allow, List::Allow) | (List::Deny, List::Deny) | (List::Ask, List::Ask) => {
            format!("{other_text} ({}) covers it", other.source)
        }
        (_, list) => format!(
            "the {} rule {other_text} ({}) always decides first",
            list.name(),
            other.source
        ),
    };
    Some(RuleFinding {
        fix: removal(rule),
        ..finding(
            FindingKind::Shadowed,
            rule,
            reason,
            "remove it: no decision changes",
        )
    })
}

fn risky(rule: &Rule, facts: &AuditFacts<'_>) -> Option<RuleFinding> {
    if rule.list != List::Allow {
        return None;
    }
    let risk =
        |reason: String, advice: &str| Some(finding(FindingKind::Risky, rule, reason, advice));
    if rule.is_bare() && rule.class == super::rules::RuleClass::Commands {
        return risk(
            "every command runs without asking".to_owned(),
            "allow programs, such as Bash(cargo test *), or use the mode auto",
        );
    }
    let (text, is_exact) = command_of(rule)?;
    if text.starts_with('*') {
        return risk(
            "the leading star matches any program".to_owned(),
            "begin the rule with a program",
        );
    }
    if let Some(before) = text.strip_suffix('*')
        && !before.ends_with([' ', ':', '\\'])
    {
        return risk(
            format!(
                "without a space before the star, it also matches longer names that begin with `{before}`"
            ),
            "write a space before the star",
        );
    }
    let parts = parts(text, facts)?;
    let part = parts.first()?;
    let name = part.base_name()?;
    let name = name.trim_end_matches(|next: char| next.is_ascii_digit() || next == '.');
    if !is_exact && starts_other_programs(name) && command_family(part).is_none() {
        return risk(
            format!("{name} runs any code that its arguments contain"),
            "allow the exact commands that you need",
        );
    }
    let sends = parts.iter().find_map(LinePart::irreversible_reason)?;
    (!is_exact).then_some(())?;
    risk(
        format!("{sends}, with any arguments"),
        "allow the exact command, or let haft ask",
    )
}

fn key(rule: &Rule) -> Option<RuleFinding> {
    mask_keys(&rule.text)?;
    Some(finding(
        FindingKind::Risky,
        rule,
        "it contains text that looks like a key".to_owned(),
        "remove the rule from the file, and replace the key if others can read the file",
    ))
}

fn mergeable(rules: &RuleSet, shadowed: &[String], facts: &AuditFacts<'_>) -> Vec<RuleFinding> {
    let mut groups: Vec<(String, Vec<&Rule>)> = Vec::new();
    for rule in rules.in_list(List::Allow) {
        if shadowed.contains(&rule.text) || mask_keys(&rule.text).is_some() {
            continue;
        }
        let Some(family) = family_of(rule, facts) else {
            continue;
        };
        let merged = format!("Bash({family} *)");
        if rule.text == merged {
            continue;
        }
        let same = groups.iter_mut().find(|(words, members)| {
            *words == merged
                && members
                    .iter()
                    .all(|one| one.source.file == rule.source.file)
        });
        match same {
            Some((_, members)) => members.push(rule),
            None => groups.push((merged, vec![rule])),
        }
    }
    let groups = groups.into_iter();
    let groups = groups.filter(|(_, members)| members.len() >= MIN_MERGED);
    groups
        .filter_map(|(merged, members)| {
            let first = members.first()?;
            let reason = format!("{} rules can be one: {merged}", members.len());
            let removed = members.iter().map(|rule| rule.text.clone()).collect();
            Some(RuleFinding {
                fix: Some(RuleFix {
                    removed,
                    added: Some(merged.clone()),
                }),
                ..finding(
                    FindingKind::Mergeable,
                    first,
                    reason,
                    &format!("replace them by {merged}, which also allows other arguments"),
                )
            })
        })
        .collect()
}

/// Returns the family of a rule, if the table of commands has one for all operands.
fn family_of(rule: &Rule, facts: &AuditFacts<'_>) -> Option<String> {
    let (text, _) = command_of(rule)?;
    let parts = parts(text, facts)?;
    let [part] = parts.as_slice() else {
        return None;
    };
    let family = command_family(part)?;
    let is_listed = matches!(family.kind, FamilyKind::Listed | FamilyKind::LocalGit(_));
    (is_listed && !family.words.contains(STAR)).then_some(family.words)
}

/// The character in place of a star of a rule in an analyzed line.
const STAR: char = '\u{F8FF}';

/// Returns the pattern of a rule for commands, and whether it matches only one text.
fn command_of(rule: &Rule) -> Option<(&str, bool)> {
    match &rule.content {
        RuleContent::Command { pattern, text } => Some((text, pattern.is_exact())),
        _ => None,
    }
}

/// Returns the parts of a rule's text as a command line; `None` if bash would reject it.
fn parts(text: &str, facts: &AuditFacts<'_>) -> Option<Vec<LinePart>> {
    let text = text.strip_suffix(":*").unwrap_or(text);
    let line = text.replace('*', &STAR.to_string());
    let analysis = analyze(&line, &facts.place());
    analysis.unreadable.is_none().then_some(analysis.parts)
}

/// Returns whether a prefix rule applies to this exact command wherever its own rule does.
fn is_plain_command(text: &str, facts: &AuditFacts<'_>) -> bool {
    let Some(parts) = parts(text, facts) else {
        return false;
    };
    let [part] = parts.as_slice() else {
        return false;
    };
    shadowing::is_plain_part(part, text)
}

#[cfg(test)]
#[path = "rule_audit_tests.rs"]
mod tests;
