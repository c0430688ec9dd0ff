//! Builds the body of a request from parts that are already serialized.

use std::borrow::Cow;

use bytes::Bytes;
use haft_contract::{Content, Role, output::MediaSource};
use serde_json::{Map, Value, json};

use super::{
    quirks::{EchoReasoning, Quirks},
    schema,
};
use crate::{
    Block, ModelRequest, ToolChoice, ToolDefinition, ToolResult,
    conversation::ConversationEntry,
    fragments::{BodyDialect, Fragment},
    model_listing::split_window,
};

/// The content of an empty tool result.
const NO_OUTPUT: &str = "(no output)";

/// The optional fields that a server accepts. They are learned from its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AcceptedFields {
    pub(super) stream_options: bool,
    pub(super) max_completion_tokens: bool,
}

/// Returns the complete body.
pub(super) fn body(request: &ModelRequest, quirks: &Quirks, accepted: AcceptedFields) -> Bytes {
    let mut out = parameters(request, accepted).to_string().into_bytes();
    // The object stays open: the large parts are appended.
    out.pop();
    write_tools(request, quirks, &mut out);
    let mut fragments = Vec::with_capacity(request.history.entries().len() + 1);
    if !request.prefix.system().is_empty() {
        fragments.push(system(request, quirks));
    }
    let dialect = quirks.message_dialect();
    for entry in request.history.entries() {
        // Thinking is sent back only to the model that wrote it, so the dialect includes whether
        // the requested model wrote the message.
        let by = entry.message.model.as_deref();
        let own = by.is_none_or(|by| by == request.model);
        let dialect = BodyDialect(dialect.0 << 1 | u32::from(own));
        let make = || messages(entry, quirks, own);
        fragments.push(entry.fragments.get(dialect, make));
    }
    // A message that contains only thinking is empty in OpenAI's format.
    fragments.retain(|fragment| !fragment.bytes.is_empty());
    let length: usize = fragments
        .iter()
        .map(|fragment| fragment.bytes.len() + 1)
        .sum();
    out.reserve_exact(length + 20);
    out.extend_from_slice(br#","messages":["#);
    for (index, fragment) in fragments.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        fragment.write(&mut out, None);
    }
    out.extend_from_slice(b"]}");
    out.into()
}

fn parameters(request: &ModelRequest, accepted: AcceptedFields) -> Value {
    let mut body = json!({"model": split_window(&request.model).0, "stream": true});
    if accepted.stream_options {
        body["stream_options"] = json!({"include_usage": true});
    }
    let limit = match accepted.max_completion_tokens {
        true => "max_completion_tokens",
        false => "max_tokens",
    };
    body[limit] = json!(request.max_tokens);
    if let Some(effort) = &request.effort {
        body["reasoning_effort"] = json!(effort);
    } else if let Some(temperature) = request.temperature {
        // Reasoning models do not accept a temperature.
        body["temperature"] = json!(temperature);
    }
    if !request.stop_sequences.is_empty() {
        body["stop"] = json!(request.stop_sequences);
    }
    if let Some(schema) = &request.output_schema {
        let format = json!({"name": "answer", "schema": schema, "strict": true});
        body["response_format"] = json!({"type": "json_schema", "json_schema": format});
    }
    if !request.prefix.tools().is_empty() {
        match &request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Any => body["tool_choice"] = json!("required"),
            ToolChoice::None => body["tool_choice"] = json!("none"),
            ToolChoice::Tool(name) => {
                body["tool_choice"] = json!({"type": "function", "function": {"name": name}});
            }
        }
        if !request.parallel_calls {
            body["parallel_tool_calls"] = json!(false);
        }
    }
    body
}

fn write_tools(request: &ModelRequest, quirks: &Quirks, out: &mut Vec<u8>) {
    let prefix = &request.prefix;
    // Some servers reject an empty list.
    if prefix.tools().is_empty() {
        return;
    }
    let fragment = prefix.tools_fragments.get(quirks.tools_dialect(), || {
        let tools = prefix.tools().iter().map(|tool| definition(tool, quirks));
        plain_fragment(format!(r#","tools":{}"#, tools.collect::<Value>()))
    });
    fragment.write(out, None);
}

fn definition(tool: &ToolDefinition, quirks: &Quirks) -> Value {
    let schema = match quirks.plain_schemas {
        true => schema::plain(&tool.input_schema),
        false => tool.input_schema.clone(),
    };
    json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": schema},
    })
}

fn system(request: &ModelRequest, quirks: &Quirks) -> Fragment {
    let prefix = &request.prefix;
    prefix.system_fragments.get(quirks.system_dialect(), || {
        let role = match quirks.developer_role {
            true => "developer",
            false => "system",
        };
        let blocks: Vec<&str> = prefix
            .system()
            .iter()
            .map(|block| block.text.as_str())
            .collect();
        plain_fragment(json!({"role": role, "content": blocks.join("\n\n")}).to_string())
    })
}

fn plain_fragment(json: String) -> Fragment {
    Fragment {
        bytes: json.into(),
        mark_at: None,
    }
}

/// Converts a message into one or more messages of OpenAI's format.
fn messages(entry: &ConversationEntry, quirks: &Quirks, own: bool) -> Fragment {
    let messages = match entry.message.role {
        Role::Assistant => assistant(&entry.message.content, quirks, own)
            .into_iter()
            .collect(),
        Role::User => user(entry, quirks),
    };
    let json: Vec<String> = messages.iter().map(Value::to_string).collect();
    plain_fragment(json.join(","))
}

fn assistant(blocks: &[Block], quirks: &Quirks, own: bool) -> Option<Value> {
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut reasoning_details = Vec::new();
    let mut calls = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text: more } => text.push_str(more),
            Block::Thinking {
                thinking, details, ..
            } => {
                reasoning.push_str(thinking);
                reasoning_details.extend(details.iter().cloned());
            }
            Block::ToolUse {
                id,
                name,
                input,
                extra,
            } => {
                let mut call = Map::new();
                call.insert("id".to_owned(), json!(allowed_id(id, quirks)));
                call.insert("type".to_owned(), json!("function"));
                let arguments = input.to_string();
                call.insert(
                    "function".to_owned(),
                    json!({"name": name, "arguments": arguments}),
                );
                call.extend(extra.clone());
                calls.push(Value::Object(call));
            }
            _ => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let content = match (text.is_empty(), quirks.no_null_content) {
        (true, false) => Value::Null,
        _ => json!(text),
    };
    let mut message = json!({"role": "assistant", "content": content});
    match quirks.echo_reasoning {
        EchoReasoning::Content if own && !calls.is_empty() && !reasoning.is_empty() => {
            message["reasoning_content"] = json!(reasoning);
        }
        EchoReasoning::Details if own => {
            if !reasoning.is_empty() {
                message["reasoning"] = json!(reasoning);
            }
            if !reasoning_details.is_empty() {
                message["reasoning_details"] = json!(reasoning_details);
            }
        }
        _ => {}
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    Some(message)
}

/// Returns one tool message per result, then the content that tool messages cannot contain, then
/// the user's content.
fn user(entry: &ConversationEntry, quirks: &Quirks) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut shown = Vec::new();
    let mut said = Vec::new();
    for block in &entry.message.content {
        match block {
            Block::ToolResult(result) => {
                messages.push(tool(result, entry, quirks));
                let rest = result
                    .content
                    .iter()
                    .filter(|content| content.as_text().is_none());
                shown.extend(rest.filter_map(part));
            }
            Block::Text { text } => said.push(json!({"type": "text", "text": text})),
            Block::Image { source } => said.push(image(source)),
            Block::Document { source } => said.push(document(source)),
            _ => {}
        }
    }
    if quirks.strict_alternation {
        shown.append(&mut said);
    }
    for parts in [shown, said] {
        if !parts.is_empty() {
            messages.push(json!({"role": "user", "content": shortest(parts)}));
        }
    }
    messages
}

fn tool(result: &ToolResult, entry: &ConversationEntry, quirks: &Quirks) -> Value {
    let texts: Vec<&str> = result.content.iter().map(text_or_place).collect();
    let mut text = texts.join("\n");
    if text.trim().is_empty() {
        NO_OUTPUT.clone_into(&mut text);
    }
    // The format has no field for a failure, so the text contains it.
    let failed = if result.is_error { "Error: " } else { "" };
    let id = allowed_id(&result.tool_use_id, quirks);
    let content = format!("{failed}{text}");
    let mut message = json!({"role": "tool", "tool_call_id": id, "content": content});
    if quirks.tool_name_in_result
        && let Some(name) = entry.tools.get(&result.tool_use_id)
    {
        message["name"] = json!(name);
    }
    message
}

fn text_or_place(content: &Content) -> &str {
    match content {
        Content::Text { text } => text,
        Content::Image { .. } => "[image: see the next message]",
        Content::Document { .. } => "[document: see the next message]",
    }
}

fn part(content: &Content) -> Option<Value> {
    match content {
        Content::Text { .. } => None,
        Content::Image { source } => Some(image(source)),
        Content::Document { source } => Some(document(source)),
    }
}

fn image(source: &MediaSource) -> Value {
    json!({"type": "image_url", "image_url": {"url": data_url(source)}})
}

fn document(source: &MediaSource) -> Value {
    let file = json!({"filename": "document.pdf", "file_data": data_url(source)});
    json!({"type": "file", "file": file})
}

fn data_url(MediaSource::Base64 { media_type, data }: &MediaSource) -> String {
    format!("data:{media_type};base64,{data}")
}

/// Returns the parts as a string if all are text: older servers do not accept a list.
fn shortest(parts: Vec<Value>) -> Value {
    let texts: Option<Vec<&str>> = parts.iter().map(|part| part["text"].as_str()).collect();
    match texts {
        Some(texts) => json!(texts.join("\n\n")),
        None => Value::Array(parts),
    }
}

/// Returns the id if the server accepts it, otherwise a deterministic replacement.
fn allowed_id<'a>(id: &'a str, quirks: &Quirks) -> Cow<'a, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if quirks.nine_character_ids {
        if id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Cow::Borrowed(id);
        }
        return Cow::Owned(short_of(id, 9));
    }
    if (1..=40).contains(&id.len()) && id.chars().all(allowed) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(format!("call_{}", short_of(id, 13)))
}

/// Returns letters and digits from an FNV-1a hash of the id. A conversation has few ids, so
/// collisions do not matter.
fn short_of(id: &str, length: usize) -> String {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut short = String::new();
    for _ in 0..length {
        short.push(char::from(LETTERS[usize::try_from(hash % 36).unwrap_or(0)]));
        hash /= 36;
    }
    short
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
