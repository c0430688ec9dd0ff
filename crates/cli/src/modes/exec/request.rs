//! Parses the lines of `haft exec`.

use haft::{ProviderMessage, ToolUse};
use serde_json::{Value, json};

/// A valid input line.
#[derive(Debug, PartialEq)]
pub(super) enum ExecRequest {
    /// `{"id"?, "name", "input"}`.
    Call { id: Value, call: ToolUse },
    /// An assistant message of a provider.
    Message(ProviderMessage),
    /// A message with a `type`: not a request, but about one (an answer or a cancellation).
    DialogLine(Value),
}

/// An invalid input line: its id and name as far as they could be read, and the problem.
#[derive(Debug, PartialEq)]
pub(super) struct BadRequest {
    pub(super) id: Value,
    pub(super) name: Value,
    pub(super) text: String,
}

const SHAPES: &str =
    "a line is {\"id\"?, \"name\", \"input\"} or an assistant message with tool calls";

/// Returns the id of a call as text.
pub(super) fn text_id(id: &Value) -> String {
    match id {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

pub(super) fn read(line: &[u8]) -> Result<ExecRequest, Box<BadRequest>> {
    let problem = |id: Value, name: Value, text: String| Box::new(BadRequest { id, name, text });
    let nameless = |text: String| problem(Value::Null, Value::Null, text);
    let line = std::str::from_utf8(line).map_err(|error| {
        nameless(format!(
            "the line is not UTF-8: bad byte at position {}",
            error.valid_up_to()
        ))
    })?;
    let request: Value = serde_json::from_str(line)
        .map_err(|error| nameless(format!("the line is not JSON ({error}); {SHAPES}")))?;
    let is_word = matches!(
        request["type"].as_str(),
        Some("permission_response" | "cancel")
    );
    if is_word {
        return Ok(ExecRequest::DialogLine(request));
    }
    let is_message = |request: &Value| {
        let keys = ["role", "choices", "output"];
        request.get(0).is_some_and(Value::is_object)
            || keys.iter().any(|key| request.get(key).is_some())
            || request["type"] == "function_call"
    };
    if is_message(&request) {
        let messages =
            ProviderMessage::read(&request).map_err(|error| nameless(error.to_string()))?;
        return Ok(ExecRequest::Message(messages));
    }
    let Value::Object(mut object) = request else {
        return Err(nameless(format!("the line is not a JSON object; {SHAPES}")));
    };
    let id = object.shift_remove("id").unwrap_or(Value::Null);
    let name = object.shift_remove("name").unwrap_or(Value::Null);
    let input = object.shift_remove("input").unwrap_or_else(|| json!({}));
    let Value::String(called) = &name else {
        let text = format!("`name` must be a string; {SHAPES}");
        return Err(problem(id, name, text));
    };
    if let Some(odd) = object.keys().next() {
        let text = format!("`{odd}` is not part of a request; {SHAPES}");
        return Err(problem(id, name, text));
    }
    let text = text_id(&id);
    Ok(ExecRequest::Call {
        id,
        call: ToolUse {
            id: text,
            name: called.clone(),
            input,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_be_served_says_why() {
        let cases: [&[u8]; 9] = [
            b"nonsense",
            b"[1]",
            b"{\"id\": 7}",
            b"{\"id\": 7, \"name\": 8}",
            b"{\"name\": \"Read\", \"arguments\": {}}",
            b"{\"role\": \"user\", \"content\": \"hi\"}",
            b"{\"role\": \"assistant\"}",
            b"{\"role\": \"assistant\", \"tool_calls\": [{}]}",
            b"{\"name\": \"\xff\"}",
        ];
        let told: Vec<String> = cases
            .iter()
            .map(|line| {
                let problem = read(line).unwrap_err();
                format!(
                    "{}\n  {} {} {}",
                    String::from_utf8_lossy(line),
                    problem.id,
                    problem.name,
                    problem.text
                )
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn an_id_may_be_anything_and_input_may_be_missing() {
        let line = b"{\"id\": {\"n\": 1}, \"name\": \"LS\"}";
        let Ok(ExecRequest::Call { id, call }) = read(line) else {
            panic!()
        };
        assert_eq!(id, json!({"n": 1}));
        assert_eq!(
            call,
            ToolUse {
                id: "{\"n\":1}".into(),
                name: "LS".into(),
                input: json!({})
            }
        );
    }
}
