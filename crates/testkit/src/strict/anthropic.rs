//! `POST /v1/messages`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{is_name, list, only, text};

const FIELDS: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "system",
    "stream",
    "stop_sequences",
    "temperature",
    "top_p",
    "top_k",
    "tools",
    "tool_choice",
    "metadata",
    "thinking",
    "service_tier",
    "output_config",
    "context_management",
];

/// Checks a request and returns the error message of a rejection.
pub(super) fn check(body: &Value) -> Result<(), String> {
    only(body, FIELDS, "body")?;
    text(body, "model", "body")?;
    if body["max_tokens"].as_u64().is_none_or(|most| most == 0) {
        return Err("max_tokens: Input should be greater than or equal to 1".to_owned());
    }
    let mut marks = 0;
    system(&body["system"], &mut marks)?;
    tools(&body["tools"], &mut marks)?;
    let thinks = thinking(body)?;
    choice(body, thinks)?;
    messages(list(&body["messages"], "messages")?, &mut marks)?;
    if marks > 4 {
        return Err(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        ));
    }
    Ok(())
}

fn system(system: &Value, marks: &mut usize) -> Result<(), String> {
    if system.is_null() || system.is_string() {
        return Ok(());
    }
    for (index, block) in list(system, "system")?.iter().enumerate() {
        let place = format!("system.{index}");
        only(
            block,
            &["type", "text", "cache_control", "citations"],
            &place,
        )?;
        check_text(block, &place)?;
        mark(block, marks, &place)?;
    }
    Ok(())
}

fn tools(tools: &Value, marks: &mut usize) -> Result<(), String> {
    if tools.is_null() {
        return Ok(());
    }
    let mut names = BTreeSet::new();
    for (index, tool) in list(tools, "tools")?.iter().enumerate() {
        let place = format!("tools.{index}");
        let fields = [
            "name",
            "description",
            "input_schema",
            "cache_control",
            "type",
            "strict",
            "defer_loading",
            "input_examples",
        ];
        only(tool, &fields, &place)?;
        let name = text(tool, "name", &place)?;
        if !is_name(name, 128) {
            return Err(format!(
                "{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if !names.insert(name) {
            return Err("tools: Tool names must be unique.".to_owned());
        }
        let schema = &tool["input_schema"];
        if schema["type"] != "object" {
            return Err(format!(
                "{place}.input_schema.type: Input should be 'object'"
            ));
        }
        if ["oneOf", "allOf", "anyOf"]
            .iter()
            .any(|key| !schema[key].is_null())
        {
            return Err(format!(
                "{place}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
            ));
        }
        mark(tool, marks, &place)?;
    }
    Ok(())
}

fn thinking(body: &Value) -> Result<bool, String> {
    let thinking = &body["thinking"];
    if thinking.is_null() {
        return Ok(false);
    }
    only(thinking, &["type", "budget_tokens", "display"], "thinking")?;
    match thinking["type"].as_str() {
        Some("disabled") => return Ok(false),
        Some("adaptive") => {}
        Some("enabled") => {
            let budget = thinking["budget_tokens"].as_u64().unwrap_or(0);
            if budget < 1024 {
                return Err(
                    "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
                        .to_owned(),
                );
            }
            if Some(budget) >= body["max_tokens"].as_u64() {
                return Err(
                    "`max_tokens` must be greater than `thinking.budget_tokens`.".to_owned(),
                );
            }
        }
        _ => return Err("thinking.type: Input tag is not among the expected ones".to_owned()),
    }
    let temperature = body["temperature"].as_f64();
    if temperature.is_some_and(|one| (one - 1.0).abs() > f64::EPSILON) {
        return Err("`temperature` may only be set to 1 when thinking is enabled.".to_owned());
    }
    Ok(true)
}

fn choice(body: &Value, thinks: bool) -> Result<(), String> {
    let choice = &body["tool_choice"];
    if choice.is_null() {
        return Ok(());
    }
    only(
        choice,
        &["type", "name", "disable_parallel_tool_use"],
        "tool_choice",
    )?;
    if body["tools"].as_array().is_none_or(Vec::is_empty) {
        return Err(
            "tool_choice: tool_choice may only be specified while providing tools.".to_owned(),
        );
    }
    match choice["type"].as_str() {
        Some("auto" | "none") => Ok(()),
        Some("any" | "tool") if !thinks => Ok(()),
        Some("any" | "tool") => {
            Err("Thinking may not be enabled when tool_choice forces tool use.".to_owned())
        }
        _ => Err("tool_choice.type: Input tag is not among the expected ones".to_owned()),
    }
}

fn messages(messages: &[Value], marks: &mut usize) -> Result<(), String> {
    let Some(first) = messages.first() else {
        return Err("messages: at least one message is required".to_owned());
    };
    if first["role"] != "user" {
        return Err("messages: first message must use the \"user\" role".to_owned());
    }
    let mut ids = BTreeSet::new();
    let mut open: BTreeSet<String> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages.{index}");
        only(message, &["role", "content"], &place)?;
        let calls = std::mem::take(&mut open);
        let is_last = index + 1 == messages.len();
        let blocks = match &message["content"] {
            Value::String(text) if text.trim().is_empty() => {
                return Err(format!("{place}: all messages must have non-empty content"));
            }
            Value::String(_) => &[],
            content => list(content, &place)?,
        };
        if message["content"].is_array() && blocks.is_empty() {
            return Err(format!("{place}: all messages must have non-empty content"));
        }
        match message["role"].as_str() {
            Some("user") => user(blocks, &calls, &place, marks)?,
            Some("assistant") => {
                if let Some(id) = calls.first() {
                    return Err(unanswered(&place, id));
                }
                open = assistant(blocks, is_last, &mut ids, &place, marks)?;
            }
            _ => {
                return Err(format!(
                    "{place}.role: Input should be 'user' or 'assistant'"
                ));
            }
        }
    }
    match open.first() {
        Some(id) => Err(unanswered("messages", id)),
        None => Ok(()),
    }
}

fn unanswered(place: &str, id: &str) -> String {
    format!(
        "{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each \
         `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
}

fn user(
    blocks: &[Value],
    calls: &BTreeSet<String>,
    place: &str,
    marks: &mut usize,
) -> Result<(), String> {
    let mut answered = BTreeSet::new();
    let mut others = false;
    for (index, block) in blocks.iter().enumerate() {
        let place = format!("{place}.content.{index}");
        mark(block, marks, &place)?;
        if block["type"] != "tool_result" {
            others = true;
            content(block, &place)?;
            continue;
        }
        only(
            block,
            &[
                "type",
                "tool_use_id",
                "content",
                "is_error",
                "cache_control",
            ],
            &place,
        )?;
        let id = text(block, "tool_use_id", &place)?;
        if others {
            return Err(format!(
                "{place}: `tool_result` blocks must come before other content"
            ));
        }
        if !calls.contains(id) {
            return Err(format!(
                "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block \
                 must have a corresponding `tool_use` block in the previous message."
            ));
        }
        if !answered.insert(id.to_owned()) {
            return Err(format!(
                "{place}: each tool_use must have a single result. Found multiple for {id}"
            ));
        }
        result(block, &place)?;
    }
    match calls.difference(&answered).next() {
        Some(id) => Err(unanswered(place, id)),
        None => Ok(()),
    }
}

fn result(block: &Value, place: &str) -> Result<(), String> {
    let inner = match &block["content"] {
        Value::Null | Value::String(_) => return Ok(()),
        inner => list(inner, &format!("{place}.content"))?,
    };
    for (index, part) in inner.iter().enumerate() {
        let place = format!("{place}.content.{index}");
        content(part, &place)?;
        if block["is_error"] == true && part["type"] != "text" {
            return Err(format!(
                "{place}: all content must be type \"text\" if `is_error` is true"
            ));
        }
    }
    Ok(())
}

/// Checks an assistant message and returns the ids of its calls.
fn assistant(
    blocks: &[Value],
    is_last: bool,
    ids: &mut BTreeSet<String>,
    place: &str,
    marks: &mut usize,
) -> Result<BTreeSet<String>, String> {
    let mut calls = BTreeSet::new();
    for (index, block) in blocks.iter().enumerate() {
        let place = format!("{place}.content.{index}");
        mark(block, marks, &place)?;
        match block["type"].as_str() {
            Some("text") => {
                only(
                    block,
                    &["type", "text", "cache_control", "citations"],
                    &place,
                )?;
                check_text(block, &place)?;
            }
            Some("thinking") => {
                only(block, &["type", "thinking", "signature"], &place)?;
                text(block, "thinking", &place)?;
                if text(block, "signature", &place)?.is_empty() {
                    return Err(format!("{place}: Invalid `signature` in `thinking` block"));
                }
            }
            Some("redacted_thinking") => only(block, &["type", "data"], &place)?,
            Some("tool_use") => {
                only(
                    block,
                    &["type", "id", "name", "input", "cache_control", "caller"],
                    &place,
                )?;
                let id = text(block, "id", &place)?;
                if !is_name(id, 512) {
                    return Err(format!(
                        "{place}.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
                    ));
                }
                if !ids.insert(id.to_owned()) {
                    return Err(format!("{place}: `tool_use` ids must be unique"));
                }
                if !is_name(text(block, "name", &place)?, 200) {
                    return Err(format!(
                        "{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'"
                    ));
                }
                if !block["input"].is_object() {
                    return Err(format!("{place}.input: Input should be a valid dictionary"));
                }
                calls.insert(id.to_owned());
            }
            Some("server_tool_use" | "web_search_tool_result") => {}
            other => {
                return Err(format!(
                    "{place}: Input tag {other:?} is not among the expected ones"
                ));
            }
        }
    }
    let last = blocks.last();
    if last.is_some_and(|block| block["type"] == "thinking" || block["type"] == "redacted_thinking")
    {
        return Err(format!(
            "{place}: The final block in an assistant message cannot be `thinking`."
        ));
    }
    let ends_blank = |text: &str| text.ends_with(char::is_whitespace);
    if is_last
        && last
            .and_then(|block| block["text"].as_str())
            .is_some_and(ends_blank)
    {
        return Err(
            "messages: final assistant content cannot end with trailing whitespace".to_owned(),
        );
    }
    Ok(calls)
}

fn content(block: &Value, place: &str) -> Result<(), String> {
    match block["type"].as_str() {
        Some("text") => {
            only(
                block,
                &["type", "text", "cache_control", "citations"],
                place,
            )?;
            check_text(block, place)
        }
        Some("image") => {
            only(block, &["type", "source", "cache_control"], place)?;
            source(
                block,
                place,
                &["image/jpeg", "image/png", "image/gif", "image/webp"],
            )
        }
        Some("document") => {
            let fields = [
                "type",
                "source",
                "title",
                "context",
                "citations",
                "cache_control",
            ];
            only(block, &fields, place)?;
            source(block, place, &["application/pdf", "text/plain"])
        }
        other => Err(format!(
            "{place}: Input tag {other:?} is not among the expected ones"
        )),
    }
}

fn source(block: &Value, place: &str, kinds: &[&str]) -> Result<(), String> {
    let source = &block["source"];
    match source["type"].as_str() {
        Some("base64" | "text") => {
            only(source, &["type", "media_type", "data"], place)?;
            let kind = text(source, "media_type", place)?;
            if !kinds.contains(&kind) {
                return Err(format!(
                    "{place}.source.media_type: Input should be one of {kinds:?}"
                ));
            }
            match text(source, "data", place)?.is_empty() {
                true => Err(format!("{place}.source.data: cannot be empty")),
                false => Ok(()),
            }
        }
        Some("url" | "file" | "content") => Ok(()),
        other => Err(format!(
            "{place}.source: Input tag {other:?} is not among the expected ones"
        )),
    }
}

fn check_text(block: &Value, place: &str) -> Result<(), String> {
    let text = text(block, "text", place)?;
    if text.is_empty() {
        return Err(format!("{place}: text content blocks must be non-empty"));
    }
    match text.trim().is_empty() {
        true => Err(format!(
            "{place}: text content blocks must contain non-whitespace text"
        )),
        false => Ok(()),
    }
}

fn mark(block: &Value, marks: &mut usize, place: &str) -> Result<(), String> {
    let mark = &block["cache_control"];
    if mark.is_null() {
        return Ok(());
    }
    *marks += 1;
    only(mark, &["type", "ttl"], &format!("{place}.cache_control"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(messages: &Value) -> Value {
        json!({"model": "m", "max_tokens": 10, "messages": messages})
    }

    #[test]
    fn what_is_right_passes() {
        let call = json!({"type": "tool_use", "id": "t_1", "name": "Read", "input": {}});
        let result = json!({"type": "tool_result", "tool_use_id": "t_1", "content": "x"});
        let text = json!({"type": "text", "text": "and on"});
        let messages = json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "text", "text": "yes"}, call]},
            {"role": "user", "content": [result, text]},
        ]);
        assert_eq!(check(&body(&messages)), Ok(()));
    }

    #[test]
    fn what_a_server_refuses_is_refused() {
        let call = json!({"type": "tool_use", "id": "t_1", "name": "Read", "input": {}});
        let result = json!({"type": "tool_result", "tool_use_id": "t_1", "content": "x"});
        let text = json!({"type": "text", "text": "and"});
        let user = |content: Value| json!({"role": "user", "content": content});
        let model = |content: Value| json!({"role": "assistant", "content": content});
        let hi = user(json!("hi"));
        let cases = [
            (json!([]), "at least one"),
            (json!([model(json!("a"))]), "first message"),
            (json!([user(json!(""))]), "non-empty content"),
            (json!([user(json!([]))]), "non-empty content"),
            (
                json!([user(json!([{"type": "text", "text": ""}]))]),
                "must be non-empty",
            ),
            (
                json!([user(json!([{"type": "text", "text": " \n"}]))]),
                "non-whitespace",
            ),
            (json!([hi, model(json!([call]))]), "without `tool_result`"),
            (
                json!([hi, model(json!([call])), user(json!([text]))]),
                "without `tool_result`",
            ),
            (
                json!([hi, model(json!([call])), user(json!([text, result]))]),
                "must come before",
            ),
            (
                json!([hi, model(json!([call])), user(json!([result, result]))]),
                "single result",
            ),
            (json!([user(json!([result]))]), "unexpected `tool_use_id`"),
            (
                json!([
                    hi,
                    model(json!([{"type": "thinking", "thinking": "", "signature": "s"}]))
                ]),
                "final block",
            ),
            (
                json!([hi, {"role": "user", "content": "a", "uuid": "x"}]),
                "Extra inputs",
            ),
        ];
        for (messages, why) in cases {
            let refused = check(&body(&messages)).unwrap_err();
            assert!(refused.contains(why), "{messages}: {refused}");
        }
    }
}
