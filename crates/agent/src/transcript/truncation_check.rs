//! Checks that truncating a conversation after a message drops only the intended turn.

use super::load::{StoredLine, chain_after};

/// Returns an error if anything else would be dropped. `until` is the last message that stays, and
/// `prompt` is the message whose turn is dropped.
pub(super) fn check(lines: &[String], until: &str, prompt: &str) -> Result<(), String> {
    let lines: Vec<StoredLine> = lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let Some(dropped) = chain_after(&lines, until) else {
        return Err(format!("message {until} is not part of the conversation"));
    };
    let mut dropped = dropped.into_iter().filter(|line| line.is_message());
    let Some(first) = dropped.next() else {
        return Ok(());
    };
    if first.uuid.as_deref() != Some(prompt) {
        return Err(format!(
            "the message after {until} is {}, not {prompt}",
            first.uuid.as_deref().unwrap_or("without an id")
        ));
    }
    match dropped.find(|line| line.is_of_another_turn()) {
        Some(other) => Err(format!(
            "message {} came in while {prompt} was answered, and would be lost with it",
            other.uuid.as_deref().unwrap_or("without an id")
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(uuid: &str, parent: Option<&str>, kind: &str, content: Value) -> String {
        let role = json!({"role": kind, "content": content});
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "message": role}).to_string()
    }

    fn two_turns() -> Vec<String> {
        vec![
            line("u1", None, "user", json!("one")),
            line(
                "a1",
                Some("u1"),
                "assistant",
                json!([{"type": "text", "text": "1"}]),
            ),
            line("u2", Some("a1"), "user", json!("two")),
            line(
                "a2",
                Some("u2"),
                "assistant",
                json!([{"type": "text", "text": "2"}]),
            ),
        ]
    }

    #[test]
    fn only_the_turn_that_is_meant_may_fall_away() {
        let lines = two_turns();
        assert_eq!(check(&lines, "a1", "u2"), Ok(()));
        assert_eq!(check(&lines, "a2", "u2"), Ok(()), "nothing falls away");
        let said = |until, prompt| check(&lines, until, prompt).unwrap_err();
        assert!(said("a1", "u3").contains("is u2, not u3"));
        assert!(said("u1", "u2").contains("is a1, not u2"));
        assert!(said("x", "u2").contains("not part"));
    }

    #[test]
    fn what_came_in_meanwhile_is_not_lost() {
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "x"}]);
        let mut lines = two_turns();
        lines.push(line("r2", Some("a2"), "user", result));
        assert_eq!(
            check(&lines, "a1", "u2"),
            Ok(()),
            "results belong to the turn"
        );
        let mut steered = lines.clone();
        steered.push(line("u3", Some("r2"), "user", json!("and this")));
        let news = json!("<task_notification>\n</task_notification>");
        lines.push(line("n3", Some("r2"), "user", news));
        for lines in [steered, lines] {
            let said = check(&lines, "a1", "u2").unwrap_err();
            assert!(said.contains("would be lost"), "{said}");
        }
    }

    #[test]
    fn a_branch_that_was_left_does_not_count() {
        let mut lines = two_turns();
        lines.push(line("u4", Some("a1"), "user", json!("four")));
        assert_eq!(check(&lines, "a1", "u4"), Ok(()));
        assert!(check(&lines, "a1", "u2").is_err());
    }
}
