//! The rules that a question about a command line offers: for each part that asks, its family first
//! and its exact words second.

use std::{cell::RefCell, collections::HashMap, path::PathBuf, sync::Arc};

use haft_contract::RuleOffer;
use haft_shell::{
    LinePart, RuleCoverage,
    commands::rule_families::{FamilyKind, LOCAL_GIT, command_family, has_exact_rule},
    is_safe_variable,
};

use super::{
    CallFacts, DecisionBehavior, DecisionReason, List, PartCoverage, PatternBases, Policy,
    RuleSource, SettingsScope,
    allow::{is_part_covered, part_coverage},
    approval_parts::part_text,
    decide,
    installed_tools::has_tool,
    rules::RuleClass,
    shell_facts::{MAX_LENGTH, ShellFacts},
    suggest::exact_rule,
};

/// The maximum number of rules in a choice. A line that needs more asks again for some parts.
pub(super) const MAX_COUNT: usize = 5;

/// The maximum length of a proposed rule, in characters. Users do not read longer ones before they
/// agree.
pub(super) const MAX_RULE: usize = 200;

/// The maximum number of parts for which families are tried.
pub(super) const MAX_TRIED: usize = 32;

/// The maximum number of parts that are named as asking again.
const MAX_NAMED_PARTS: usize = 3;

/// A rule that is proposed for a part.
pub(super) struct ProposedRule {
    pub(super) text: String,
    /// For a local git write: the text in front of `git`.
    before_git: Option<String>,
}

/// The proposals for the parts of a line that ask.
pub(super) struct LineProposals<'a> {
    pub(super) policy: &'a Policy,
    pub(super) facts: &'a CallFacts,
    bases: &'a PatternBases,
    pub(super) shell: &'a ShellFacts,
    /// Whether the project has a tool, by directory and name.
    tools: RefCell<HashMap<(PathBuf, String), bool>>,
}

/// Returns the choices of rules for a command line, the best first, after testing what they allow.
pub(super) fn line_offers(
    policy: &Policy,
    facts: &CallFacts,
    bases: &PatternBases,
    shell: &ShellFacts,
) -> Vec<RuleOffer> {
    if shell.analysis.unreadable.is_some() || shell.line.len() > MAX_LENGTH {
        return Vec::new();
    }
    let line = LineProposals {
        policy,
        facts,
        bases,
        shell,
        tools: RefCell::default(),
    };
    let asking: Vec<usize> = line.uncovered(policy);
    if asking.is_empty() {
        return Vec::new();
    }
    let families: Vec<Option<ProposedRule>> = asking
        .iter()
        .enumerate()
        .map(|(count, at)| match count < MAX_TRIED {
            true => line.family_rule(*at),
            false => None,
        })
        .collect();
    let has_family = families.iter().any(Option::is_some);
    let mut offers: Vec<RuleOffer> = Vec::new();
    offers.extend(line.offline_choice(&asking, &families));
    let mut choices = Vec::new();
    if has_family {
        choices.push(line.family_choice(&asking, families));
    }
    choices.extend(line.exact_choices(&asking));
    if !has_family {
        let exact = asking.iter().filter_map(|at| line.exact_part(*at));
        choices.push(exact.collect());
    }
    let first_rules = offers.len();
    for rules in choices {
        let Some(offer) = line.tested(limit_count(rules)) else {
            continue;
        };
        // The exact words are offered if they leave no part open, or if they are all there is.
        let adds = offers.len() == first_rules || offer.asks_again.is_empty();
        if adds && !offers.iter().any(|other| other.rules == offer.rules) {
            offers.push(offer);
        }
    }
    offers.extend(line.wrapper_choice(&asking));
    if let Some(offer) = line.read_domains_choice() {
        // Behind the family, before the exact words.
        let at = if has_family {
            first_rules + 1
        } else {
            first_rules
        };
        offers.insert(at.min(offers.len()), offer);
    }
    offers
}

impl LineProposals<'_> {
    /// Returns the parts that nothing covers, by their index.
    pub(super) fn uncovered(&self, policy: &Policy) -> Vec<usize> {
        let all = part_coverage(policy, self.facts, self.shell).into_iter();
        all.filter(|(_, covered)| matches!(covered, PartCoverage::Uncovered(_)))
            .map(|(at, _)| at)
            .collect()
    }

    /// Returns the rule for the family of a part, if it covers the part.
    fn family_rule(&self, at: usize) -> Option<ProposedRule> {
        let part = self.shell.analysis.parts.get(at)?;
        let family = command_family(part)?;
        if let FamilyKind::LockedTool(tool) = &family.kind {
            let mut tools = self.tools.borrow_mut();
            let mut is_installed = |place: &PathBuf| {
                let key = (place.clone(), tool.clone());
                *tools
                    .entry(key)
                    .or_insert_with(|| has_tool(place, &self.policy.roots, tool))
            };
            if !part.cwd.as_ref()?.iter().all(&mut is_installed) {
                return None;
            }
        }
        let text = format!("{}({} *)", RuleClass::Commands.word(), family.words);
        let tried = self.with_rules(std::slice::from_ref(&text))?;
        is_part_covered(&tried, self.facts, self.shell, at).then_some(ProposedRule {
            text,
            before_git: match family.kind {
                FamilyKind::LocalGit(starter) => Some(starter),
                FamilyKind::Listed | FamilyKind::LockedTool(_) | FamilyKind::UnknownProgram => None,
            },
        })
    }

    /// Returns the families of all parts, and the exact words of parts without a family.
    fn family_choice(&self, asking: &[usize], families: Vec<Option<ProposedRule>>) -> Vec<String> {
        let rules = families.into_iter().zip(asking).filter_map(|(family, at)| {
            family.or_else(|| {
                Some(ProposedRule {
                    text: self.exact_part(*at)?,
                    before_git: None,
                })
            })
        });
        let mut needed: Vec<ProposedRule> = Vec::new();
        for rule in rules {
            if !needed.iter().any(|other| other.text == rule.text) {
                needed.push(rule);
            }
        }
        let before_git = needed.iter().find_map(|rule| rule.before_git.clone());
        let (git, others): (Vec<ProposedRule>, Vec<ProposedRule>) = needed
            .into_iter()
            .partition(|rule| rule.before_git.is_some() && rule.before_git == before_git);
        let mut rules: Vec<String> = match before_git {
            Some(before) if others.len() + LOCAL_GIT.len() <= MAX_COUNT => LOCAL_GIT
                .iter()
                .map(|words| format!("{}({before}{words} *)", RuleClass::Commands.word()))
                .collect(),
            _ => git.into_iter().map(|rule| rule.text).collect(),
        };
        rules.extend(others.into_iter().map(|rule| rule.text));
        rules
    }

    /// Returns the rule with the exact words of one part, if these mean the same in another line.
    pub(super) fn exact_part(&self, at: usize) -> Option<String> {
        let part = self.shell.analysis.parts.get(at)?;
        // After a `cd`, the same words apply to other files; with other input, they do other things.
        let is_joined = self.shell.line.replace("||", "").contains(['<', '>', '|']);
        if is_joined || part.after_cd || part.argv.is_empty() || !may_be_kept(part) {
            return None;
        }
        exact_rule(RuleClass::Commands.word(), &part.text)
    }

    /// Returns the choices with exact words: a rule for each part, and a rule for the line.
    fn exact_choices(&self, asking: &[usize]) -> Vec<Vec<String>> {
        let parts = || {
            let parts = asking.iter();
            parts.filter_map(|at| self.shell.analysis.parts.get(*at))
        };
        if !parts().all(may_be_kept) {
            return Vec::new();
        }
        let mut choices = Vec::new();
        let exact: Option<Vec<String>> = asking.iter().map(|at| self.exact_part(*at)).collect();
        if let Some(mut rules) = exact {
            rules.sort_unstable();
            rules.dedup();
            // Part of the rules would be no choice.
            if rules.len() <= MAX_COUNT {
                choices.push(rules);
            }
        }
        let line = self.shell.line.trim();
        // With substitutions or globs, the line may expand to another command the next time.
        let is_literal = !line.contains(['$', '`', '*', '?', '[']);
        if choices.is_empty() && asking.len() <= MAX_COUNT && is_literal {
            let rule = exact_rule(RuleClass::Commands.word(), line);
            choices.extend(rule.map(|rule| vec![rule]));
        }
        choices
    }

    /// Returns the choice with what it leaves open, or `None` if it does not help.
    fn tested(&self, rules: Vec<String>) -> Option<RuleOffer> {
        if rules.is_empty() {
            return None;
        }
        let tried = self.with_rules(&rules)?;
        let decision = decide(&tried, self.facts);
        if decision.behavior == DecisionBehavior::Allow {
            return RuleOffer::for_call(rules);
        }
        if !matches!(decision.reason, DecisionReason::Command { .. }) {
            return None;
        }
        let open = self.uncovered(&tried);
        self.partial(rules, open)
    }

    /// Returns a choice that leaves these parts open, or `None` if that are as many as before.
    pub(super) fn partial(&self, rules: Vec<String>, open: Vec<usize>) -> Option<RuleOffer> {
        if open.len() >= self.uncovered(self.policy).len() {
            return None;
        }
        let mut asks_again: Vec<String> = Vec::new();
        for at in open {
            let part = self.shell.analysis.parts.get(at)?;
            let text = part_text(part, &self.shell.line).to_owned();
            if !asks_again.contains(&text) {
                asks_again.push(text);
            }
        }
        if asks_again.len() > MAX_NAMED_PARTS {
            let more = asks_again.len() - MAX_NAMED_PARTS;
            asks_again.truncate(MAX_NAMED_PARTS);
            asks_again.push(format!("{more} more"));
        }
        Some(RuleOffer { rules, asks_again })
    }

    /// Returns the policy with further allow rules of the session, or `None` if a text is invalid.
    pub(super) fn with_rules(&self, texts: &[String]) -> Option<Policy> {
        let mut tried = self.policy.clone();
        let rules = Arc::make_mut(&mut tried.rules);
        for text in texts {
            if text.chars().count() > MAX_RULE {
                return None;
            }
            let source = RuleSource::from_scope(SettingsScope::Session);
            rules.add(List::Allow, text, source, self.bases).ok()?;
        }
        Some(tried)
    }
}

fn limit_count(mut rules: Vec<String>) -> Vec<String> {
    rules.truncate(MAX_COUNT);
    rules
}

/// Returns whether the same text means the same command the next time.
fn may_be_kept(part: &LinePart) -> bool {
    if part.base_name().is_none() {
        // A redirection: only a rule for the whole line can match it.
        return part.argv.is_empty() && part.assignments.is_empty();
    }
    has_exact_rule(part)
        && part.finding.coverage != RuleCoverage::Exact
        && part.argv.iter().all(|word| word.text().is_some())
        && part
            .assignments
            .iter()
            .all(|one| one.plain && is_safe_variable(&one.name))
}
