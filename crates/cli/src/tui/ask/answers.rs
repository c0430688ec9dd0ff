//! Answers that do more than allow or deny.

use std::path::Path;

use haft::{
    ApprovalAnswer, ApprovalRequest, ContextPatch, GrantEnd, PermissionMode, RuleScope,
    contract::rule_offer::OfferKind,
};

/// Returns an approval that also switches to the mode that accepts edits.
pub(super) fn accept_edits() -> ApprovalAnswer {
    ApprovalAnswer::Updated {
        input: None,
        patches: vec![ContextPatch::SetMode {
            mode: PermissionMode::AcceptEdits,
        }],
        keep: Vec::new(),
        scope: None,
    }
}

/// The time for which the rules of an answer apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleLifetime<'a> {
    /// They are saved in a file.
    Saved(RuleScope, &'a Path),
    Limited(GrantEnd),
    Session,
}

impl RuleLifetime<'_> {
    /// Returns a description that follows the rules.
    pub(super) fn description(self) -> String {
        match self {
            Self::Saved(_, file) => format!("in {}", file.display()),
            Self::Limited(end) => end.description(),
            Self::Session => "for this session".to_owned(),
        }
    }
}

/// Returns the lifetimes that the user can choose for an offer: the files, then those that end. Only
/// allow rules can end before the session.
pub(super) fn lifetimes(request: &ApprovalRequest, offer: usize) -> Vec<RuleLifetime<'_>> {
    let places = request.destinations.iter();
    let files = places.filter_map(|place| {
        let file = place.file.as_deref()?;
        Some(RuleLifetime::Saved(place.scope, file))
    });
    let ends: &[RuleLifetime<'_>] = match are_allow_rules(request, offer) {
        true => &[
            RuleLifetime::Limited(GrantEnd::Task),
            RuleLifetime::Limited(GrantEnd::HALF_HOUR),
            RuleLifetime::Session,
        ],
        false => &[RuleLifetime::Session],
    };
    files.chain(ends.iter().copied()).collect()
}

/// Returns the index of the first lifetime for "always": a file, otherwise the session.
pub(super) fn longest(request: &ApprovalRequest, offer: usize) -> usize {
    match lifetimes(request, offer).as_slice() {
        [RuleLifetime::Saved(..), ..] => 0,
        all => all.len().saturating_sub(1),
    }
}

/// Returns the index of the first lifetime that ends: the current task.
pub(super) fn shortest(request: &ApprovalRequest, offer: usize) -> usize {
    let task = RuleLifetime::Limited(GrantEnd::Task);
    let found = lifetimes(request, offer)
        .iter()
        .position(|one| *one == task);
    found.unwrap_or_default()
}

/// Returns whether an offer consists of allow rules, which the user may edit.
pub(super) fn are_allow_rules(request: &ApprovalRequest, offer: usize) -> bool {
    let offer = request.offers.get(offer);
    offer.is_none_or(|offer| offer.kind() == OfferKind::AllowRules)
}

/// Parses the rules in an edited line.
pub(super) fn parse_rules(text: &str) -> Vec<String> {
    text.split('\n').flat_map(split_rules).collect()
}

/// Returns an approval that adds rules for the chosen lifetime.
pub(super) fn allow_with_rules(
    request: &ApprovalRequest,
    offer: usize,
    rules: Vec<String>,
    lifetime: usize,
) -> ApprovalAnswer {
    match lifetimes(request, offer).get(lifetime) {
        Some(RuleLifetime::Limited(end)) => ApprovalAnswer::allow_until(rules, *end),
        Some(RuleLifetime::Saved(scope, _)) => ApprovalAnswer::Updated {
            input: None,
            patches: Vec::new(),
            keep: rules,
            scope: Some(*scope),
        },
        Some(RuleLifetime::Session) | None => ApprovalAnswer::allow_in_session(rules),
    }
}

/// Splits rules at commas outside of parentheses.
fn split_rules(line: &str) -> Vec<String> {
    let mut rules = vec![String::new()];
    let mut depth = 0_usize;
    for letter in line.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                rules.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(rule) = rules.last_mut() {
            rule.push(letter);
        }
    }
    let rules = rules.into_iter().map(|rule| rule.trim().to_owned());
    rules.filter(|rule| !rule.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_separated_by_commas_outside_of_brackets() {
        assert_eq!(
            split_rules("Bash(a, b *), Edit,, Read(//x)"),
            ["Bash(a, b *)", "Edit", "Read(//x)"]
        );
    }
}
