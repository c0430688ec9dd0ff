//! Answers of handlers to a request of an MCP server (elicitation), instead of the user's answer.

use serde_json::{Map, Value};

use crate::HandlerOutput;

/// The answer to an elicitation.
#[derive(Debug, Clone, PartialEq)]
pub struct HookFormAnswer {
    /// The action: accept, decline or cancel.
    pub action: HookFormAction,
    /// The form values, if the request is accepted.
    pub content: Option<Map<String, Value>>,
}

/// The action of an answer; a stricter one compares as greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookFormAction {
    /// Accepts the request.
    Accept,
    /// Cancels without an answer.
    Cancel,
    /// Declines the request.
    Decline,
}

impl HookFormAction {
    /// Returns its name in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Cancel => "cancel",
            Self::Decline => "decline",
        }
    }
}

impl HookFormAnswer {
    /// Combines the answers of all handlers: an objection declines, otherwise the strictest answer
    /// is used; of equally strict ones the last. `None` if no handler answers.
    pub fn from_outputs(heard: &[HandlerOutput]) -> Option<Self> {
        if heard.iter().any(|heard| heard.output.block.is_some()) {
            return Some(Self {
                action: HookFormAction::Decline,
                content: None,
            });
        }
        let answers = heard.iter().filter_map(|heard| heard.output.form.as_ref());
        answers.max_by_key(|answer| answer.action).cloned()
    }

    /// Reads the answer from `hookSpecificOutput`.
    pub(super) fn read(specific: &Value) -> Result<Option<Self>, String> {
        let action = match &specific["action"] {
            Value::Null => return Ok(None),
            Value::String(word) => match word.as_str() {
                "accept" => HookFormAction::Accept,
                "decline" => HookFormAction::Decline,
                "cancel" => HookFormAction::Cancel,
                other => return Err(format!("action {other:?} is not known")),
            },
            _ => return Err("action is not a string".to_owned()),
        };
        let content = match &specific["content"] {
            Value::Null => None,
            Value::Object(content) => Some(content.clone()),
            _ => return Err("content is not an object".to_owned()),
        };
        Ok(Some(Self { action, content }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{HookEventKind, HookOutput, output::HookExit};

    fn heard(code: i32, output: &Value) -> HandlerOutput {
        let ended = HookExit {
            code: Some(code),
            stdout: output.to_string(),
            stderr: "no".to_owned(),
        };
        HandlerOutput {
            label: "h".to_owned(),
            owner: "User",
            output: HookOutput::read(HookEventKind::ELICITATION, &ended),
        }
    }

    fn answer(action: &str, content: &Value) -> Value {
        json!({"hookSpecificOutput": {"hookEventName": "Elicitation", "action": action, "content": content}})
    }

    #[test]
    fn the_strictest_answer_counts_and_of_several_the_last() {
        let yes = |name: &str| heard(0, &answer("accept", &json!({"name": name})));
        let silent = || heard(0, &json!({}));
        let action = |all: &[HandlerOutput]| {
            HookFormAnswer::from_outputs(all).map(|answer| answer.action.as_str())
        };
        assert_eq!(HookFormAnswer::from_outputs(&[silent()]), None);
        let both = HookFormAnswer::from_outputs(&[yes("a"), silent(), yes("b")]).unwrap();
        assert_eq!(both.content.unwrap()["name"], "b");
        let no = heard(0, &answer("decline", &Value::Null));
        let neither = heard(0, &answer("cancel", &Value::Null));
        assert_eq!(
            action(&[no.clone(), neither.clone(), yes("a")]),
            Some("decline")
        );
        assert_eq!(action(&[yes("a"), neither]), Some("cancel"));
        // Exit code 2 declines, whatever is printed beside it.
        let objects = heard(2, &answer("accept", &json!({})));
        assert_eq!(objects.output.form, None);
        assert_eq!(action(&[objects, yes("a")]), Some("decline"));
    }

    #[test]
    fn what_makes_no_sense_is_an_error_of_the_handler() {
        for wrong in [
            answer("maybe", &Value::Null),
            answer("accept", &json!(["a"])),
            json!({"hookSpecificOutput": {"hookEventName": "Elicitation", "action": 1}}),
            json!({"hookSpecificOutput": {"hookEventName": "Stop", "action": "accept"}}),
        ] {
            let heard = heard(0, &wrong);
            assert!(heard.output.failure.is_some(), "{wrong}");
            assert_eq!(HookFormAnswer::from_outputs(&[heard]), None);
        }
    }
}
