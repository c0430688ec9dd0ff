//! Handlers that call a tool of an MCP server.

use haft_contract::BoxFuture;
use serde_json::Value;

use super::config::ServerToolCall;

/// Calls tools of MCP servers. The program that sets up a session supplies it, because this crate
/// has no MCP client.
pub trait McpToolCaller: Send + Sync {
    /// Returns the texts of the result. The error is a message for users: unknown server, not
    /// connected, or the call failed.
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Result<String, String>>;
}

impl ServerToolCall {
    /// Returns the input of the tool for this event: `${a.b}` in a text is replaced by that field
    /// of the event.
    pub(super) fn input_at(&self, event: &Value) -> Value {
        filled(&self.input, event)
    }
}

fn filled(value: &Value, event: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(filled_text(text, event)),
        Value::Array(items) => items.iter().map(|item| filled(item, event)).collect(),
        Value::Object(map) => {
            let filled = map
                .iter()
                .map(|(name, value)| (name.clone(), filled(value, event)));
            filled.collect()
        }
        other => other.clone(),
    }
}

fn filled_text(text: &str, event: &Value) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        let Some((path, behind)) = after.split_once('}') else {
            filled.push_str("${");
            rest = after;
            continue;
        };
        let found = path
            .split('.')
            .try_fold(event, |value, name| value.get(name));
        match found {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => filled.push_str(text),
            Some(other) => filled.push_str(&other.to_string()),
        }
        rest = behind;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_filled_from_the_event() {
        let tool = ServerToolCall {
            server: "s".to_owned(),
            tool: "t".to_owned(),
            input: json!({"file": "at ${tool_input.file_path}!", "all": ["${tool_input}", 1], "no": "${x.y}", "odd": "${"}),
        };
        let event = json!({"tool_input": {"file_path": "/a"}});
        let expected =
            json!({"file": "at /a!", "all": ["{\"file_path\":\"/a\"}", 1], "no": "", "odd": "${"});
        assert_eq!(tool.input_at(&event), expected);
    }
}
