//! What handlers answer an MCP server in the place of a person.

use serde_json::{Map, Value};

use crate::Heard;

/// What a server is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct HookFormAnswer {
    /// Yes, no, or neither.
    pub action: HookFormAction,
    /// The values of a form that is accepted.
    pub content: Option<Map<String, Value>>,
}

/// What a server is answered, in a word. The stricter, the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookFormAction {
    /// Yes.
    Accept,
    /// Neither.
    Cancel,
    /// No.
    Decline,
}

impl HookFormAction {
    /// Its name, as it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Cancel => "cancel",
            Self::Decline => "decline",
        }
    }
}

impl HookFormAnswer {
    /// What all handlers together answer: an objection declines, and the strictest answer counts; of several
    /// that are as strict the last. `None`: none of them answers.
    pub fn of(heard: &[Heard]) -> Option<Self> {
        if heard.iter().any(|heard| heard.said.block.is_some()) {
            return Some(Self {
                action: HookFormAction::Decline,
                content: None,
            });
        }
        let answers = heard.iter().filter_map(|heard| heard.said.form.as_ref());
        answers.max_by_key(|answer| answer.action).cloned()
    }

    /// Reads what is specific to the event.
    pub(super) fn read(specific: &Value) -> Result<Option<Self>, String> {
        let action = match &specific["action"] {
            Value::Null => return Ok(None),
            Value::String(word) => match word.as_str() {
                "accept" => HookFormAction::Accept,
                "decline" => HookFormAction::Decline,
                "cancel" => HookFormAction::Cancel,
                other => return Err(format!("action {other:?} is not known")),
            },
            _ => return Err("action is no text".to_owned()),
        };
        let content = match &specific["content"] {
            Value::Null => None,
            Value::Object(content) => Some(content.clone()),
            _ => return Err("content is no object".to_owned()),
        };
        Ok(Some(Self { action, content }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{HookMoment, HookOutput, output::HookExit};

    fn heard(code: i32, output: &Value) -> Heard {
        let ended = HookExit {
            code: Some(code),
            stdout: output.to_string(),
            stderr: "no".to_owned(),
        };
        Heard {
            label: "h".to_owned(),
            owner: "User",
            said: HookOutput::read(HookMoment::ELICITATION, &ended),
        }
    }

    fn answer(action: &str, content: &Value) -> Value {
        json!({"hookSpecificOutput": {"hookEventName": "Elicitation", "action": action, "content": content}})
    }

    #[test]
    fn the_strictest_answer_counts_and_of_several_the_last() {
        let yes = |name: &str| heard(0, &answer("accept", &json!({"name": name})));
        let silent = || heard(0, &json!({}));
        let action = |all: &[Heard]| HookFormAnswer::of(all).map(|answer| answer.action.as_str());
        assert_eq!(HookFormAnswer::of(&[silent()]), None);
        let both = HookFormAnswer::of(&[yes("a"), silent(), yes("b")]).unwrap();
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
        assert_eq!(objects.said.form, None);
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
            assert!(heard.said.failure.is_some(), "{wrong}");
            assert_eq!(HookFormAnswer::of(&[heard]), None);
        }
    }
}
