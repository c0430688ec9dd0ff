//! Answers that do more than allow or deny.

use haft::{ApprovalAnswer, ApprovalRequest, ContextPatch, PermissionMode, RuleScope};

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

/// Returns an approval that adds rules and saves them in the chosen place.
pub(super) fn allow_and_save(
    request: &ApprovalRequest,
    rules: &str,
    place: usize,
) -> ApprovalAnswer {
    let rules = rules.split('\n').flat_map(split_rules);
    let scope = request.destinations.get(place).map(|place| place.scope);
    ApprovalAnswer::Updated {
        input: None,
        patches: Vec::new(),
        keep: rules.collect(),
        scope: scope.or(Some(RuleScope::Session)),
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
