//! `POST /v1/chat/completions`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{is_name, list, only, text};

const FIELDS: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "stop",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "response_format",
    "seed",
    "user",
];

/// Checks a request and returns the error message of a rejection.
pub(super) fn check(body: &Value) -> Result<(), String> {
    only(body, FIELDS, "body")?;
    text(body, "model", "body")?;
    if !body["stream_options"].is_null() && body["stream"] != true {
        return Err(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.".to_owned(),
        );
    }
    tools(body)?;
    messages(list(&body["messages"], "messages")?)
}

fn tools(body: &Value) -> Result<(), String> {
    let tools = &body["tools"];
    if tools.is_null() {
        let alone = ["tool_choice", "parallel_tool_calls"];
        return match alone.into_iter().find(|key| !body[*key].is_null()) {
            Some(key) => Err(format!(
                "'{key}' is only allowed when 'tools' are specified."
            )),
            None => Ok(()),
        };
    }
    let tools = list(tools, "tools")?;
    if tools.is_empty() {
        return Err("[] is too short - 'tools'".to_owned());
    }
    let mut names = BTreeSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("tools.{index}");
        only(tool, &["type", "function"], &place)?;
        let function = &tool["function"];
        only(
            function,
            &["name", "description", "parameters", "strict"],
            &place,
        )?;
        let name = text(function, "name", &place)?;
        if !is_name(name, 64) {
            return Err(format!(
                "{place}.function.name: string does not match '^[a-zA-Z0-9_-]+$'"
            ));
        }
        if !names.insert(name) {
            return Err(format!("{place}.function.name: {name} occurs twice"));
        }
    }
    Ok(())
}

fn messages(messages: &[Value]) -> Result<(), String> {
    if messages.is_empty() {
        return Err("[] is too short - 'messages'".to_owned());
    }
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages.{index}");
        let role = text(message, "role", &place)?;
        if role != "tool"
            && let Some(id) = open.first()
        {
            return Err(unanswered(id));
        }
        match role {
            "system" | "developer" | "user" => {
                only(message, &["role", "content", "name"], &place)?;
                content(&message["content"], &place)?;
            }
            "assistant" => open = assistant(message, &place)?,
            "tool" => {
                only(message, &["role", "content", "tool_call_id"], &place)?;
                content(&message["content"], &place)?;
                if !open.remove(text(message, "tool_call_id", &place)?) {
                    return Err(format!(
                        "{place}: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                    ));
                }
            }
            other => return Err(format!("{place}.role: '{other}' is not one of the roles")),
        }
    }
    match open.first() {
        Some(id) => Err(unanswered(id)),
        None => Ok(()),
    }
}

fn unanswered(id: &str) -> String {
    format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
         'tool_call_id': {id} did not have one."
    )
}

fn assistant<'a>(message: &'a Value, place: &str) -> Result<BTreeSet<&'a str>, String> {
    let fields = [
        "role",
        "content",
        "tool_calls",
        "refusal",
        "reasoning_content",
        "reasoning_details",
    ];
    only(message, &fields, place)?;
    let mut ids = BTreeSet::new();
    if message["tool_calls"].is_null() {
        content(&message["content"], place)?;
        return Ok(ids);
    }
    let calls = list(&message["tool_calls"], place)?;
    if calls.is_empty() {
        return Err(format!("{place}.tool_calls: [] is too short"));
    }
    for call in calls {
        let function = &call["function"];
        text(function, "name", place)?;
        let arguments = text(function, "arguments", place)?;
        if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
            return Err(format!(
                "{place}: the arguments of a call are not a JSON object"
            ));
        }
        if call["type"] != "function" || !ids.insert(text(call, "id", place)?) {
            return Err(format!("{place}: a call has no type, or the id of another"));
        }
    }
    Ok(ids)
}

fn content(content: &Value, place: &str) -> Result<(), String> {
    if content.is_string() {
        return Ok(());
    }
    let parts = list(content, &format!("{place}.content"))?;
    if parts.is_empty() {
        return Err(format!("{place}.content: [] is too short"));
    }
    for part in parts {
        match part["type"].as_str() {
            Some("text") => text(part, "text", place).map(drop)?,
            Some("image_url" | "file" | "input_audio") => {}
            other => {
                return Err(format!(
                    "{place}.content: {other:?} is not a content part type"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_refuses_is_refused() {
        let body = |messages: Value| json!({"model": "m", "messages": messages});
        let hi = json!({"role": "user", "content": "hi"});
        let function = json!({"name": "f", "arguments": "{}"});
        let call = json!({"id": "c", "type": "function", "function": function});
        let calls = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let answer = json!({"role": "tool", "tool_call_id": "c", "content": "x"});
        assert_eq!(check(&body(json!([hi, calls, answer]))), Ok(()));
        let cases = [
            (json!([]), "too short"),
            (json!([hi, calls]), "must be followed"),
            (json!([hi, calls, hi]), "must be followed"),
            (json!([hi, answer]), "preceeding"),
            (json!([{"role": "user", "content": null}]), "valid list"),
            (
                json!([{"role": "assistant", "content": null}]),
                "valid list",
            ),
        ];
        for (messages, why) in cases {
            let refused = check(&body(messages.clone())).unwrap_err();
            assert!(refused.contains(why), "{messages}: {refused}");
        }
    }
}
