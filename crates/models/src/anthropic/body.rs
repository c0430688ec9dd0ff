//! Builds the body of a request from parts that are already serialized.
//!
//! At most four cache markers are set: on the stable part of the system prompt (or, without one, on
//! the last tool), on the end of the system prompt, on the last message and on the last user
//! message before it. The previous request ended with that user message. So the provider finds that
//! prefix in its cache, even if more blocks were added than it searches backwards.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use haft_contract::{Content, Role, output::MediaSource};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    Block, Message, ModelRequest, ThinkingMode, ToolChoice, ToolResult,
    conversation::ConversationEntry,
    fragments::{BodyDialect, Fragment},
    model_listing::split_window,
};

const WITH_THINKING: BodyDialect = BodyDialect(0);
const WITHOUT_THINKING: BodyDialect = BodyDialect(1);

const FIVE_MINUTES: &str = r#","cache_control":{"type":"ephemeral"}"#;
const AN_HOUR: &str = r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;

/// The content of an empty tool result: providers reject empty results.
const NO_OUTPUT: &str = "(no output)";

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireBlock<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: &'a MediaSource,
    },
    Document {
        source: &'a MediaSource,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: WireContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    #[serde(untagged)]
    Other(&'a Value),
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireContent<'a> {
    Text(&'a str),
    Blocks(Vec<&'a Content>),
}

/// Returns the body of a request for a reply.
pub(super) fn body(request: &ModelRequest, an_hour: bool) -> Bytes {
    let mut parameters = json!({"model": split_window(&request.model).0, "max_tokens": request.max_tokens, "stream": true});
    settings(request, &mut parameters);
    with_parts(request, &parameters, an_hour)
}

/// Returns the body of a request that counts the tokens of `request`.
pub(super) fn counting(request: &ModelRequest) -> Bytes {
    let mut parameters = json!({"model": split_window(&request.model).0});
    settings(request, &mut parameters);
    with_parts(request, &parameters, false)
}

fn with_parts(request: &ModelRequest, parameters: &Value, an_hour: bool) -> Bytes {
    let mark = if an_hour { AN_HOUR } else { FIVE_MINUTES };
    let mut out = Vec::with_capacity(4096);
    // The object stays open: the large parts are appended.
    write(&mut out, parameters);
    out.pop();
    write_tools(request, mark, &mut out);
    write_system(request, mark, &mut out);
    write_messages(request, mark, &mut out);
    out.push(b'}');
    out.into()
}

fn settings(request: &ModelRequest, body: &mut Value) {
    let thinking = thinking(request);
    if let Some(thinking) = &thinking {
        body["thinking"] = thinking.clone();
    } else if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    if !request.prefix.tools().is_empty()
        && let Some(choice) = tool_choice(request)
    {
        body["tool_choice"] = choice;
    }
    if !request.stop_sequences.is_empty() {
        body["stop_sequences"] = json!(request.stop_sequences);
    }
    if let Some(effort) = &request.effort {
        body["output_config"]["effort"] = json!(effort);
    }
    if let Some(schema) = &request.output_schema {
        body["output_config"]["format"] = json!({"type": "json_schema", "schema": schema});
    }
}

/// Returns the `thinking` parameter. Thinking and a forced tool exclude each other; the tool takes
/// priority because the caller needs it.
fn thinking(request: &ModelRequest) -> Option<Value> {
    if matches!(request.tool_choice, ToolChoice::Any | ToolChoice::Tool(_)) {
        return None;
    }
    match request.thinking {
        ThinkingMode::Off => None,
        ThinkingMode::Adaptive => Some(json!({"type": "adaptive"})),
        ThinkingMode::Budget(budget) => {
            // The provider requires at least 1024 tokens, and fewer than the limit of the reply.
            let budget = budget.max(1024).min(request.max_tokens.saturating_sub(1));
            (budget >= 1024).then(|| json!({"type": "enabled", "budget_tokens": budget}))
        }
    }
}

fn tool_choice(request: &ModelRequest) -> Option<Value> {
    let mut choice = match &request.tool_choice {
        ToolChoice::Auto if request.parallel_calls => return None,
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::Any => json!({"type": "any"}),
        ToolChoice::None => return Some(json!({"type": "none"})),
        ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
    };
    if !request.parallel_calls {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    Some(choice)
}

fn write_tools(request: &ModelRequest, mark: &str, out: &mut Vec<u8>) {
    let prefix = &request.prefix;
    if prefix.tools().is_empty() {
        return;
    }
    let fragment = prefix.tools_fragments.get(WITH_THINKING, || {
        let mut bytes = Vec::from(br#","tools":["#);
        list(&mut bytes, prefix.tools());
        let mark_at = Some(bytes.len() - 1);
        bytes.push(b']');
        Fragment {
            bytes: bytes.into(),
            mark_at,
        }
    });
    let marked = !prefix.system().first().is_some_and(|block| block.stable);
    fragment.write(out, marked.then_some(mark));
}

/// Writes the system prompt. The marker inside it is a part of the fragment, because it depends
/// only on the prefix and the cache lifetime.
fn write_system(request: &ModelRequest, mark: &str, out: &mut Vec<u8>) {
    let prefix = &request.prefix;
    let system = prefix.system();
    if system.is_empty() {
        return;
    }
    let stable = system.iter().take_while(|block| block.stable).count();
    let dialect = BodyDialect(u32::from(mark == AN_HOUR));
    let fragment = prefix.system_fragments.get(dialect, || {
        let mut bytes = Vec::from(br#","system":["#);
        for (index, block) in system.iter().enumerate() {
            if index > 0 {
                bytes.push(b',');
            }
            write(&mut bytes, &WireBlock::Text { text: &block.text });
            if index + 1 == stable && index + 1 < system.len() {
                bytes.pop();
                bytes.extend_from_slice(mark.as_bytes());
                bytes.push(b'}');
            }
        }
        let mark_at = Some(bytes.len() - 1);
        bytes.push(b']');
        Fragment {
            bytes: bytes.into(),
            mark_at,
        }
    });
    fragment.write(out, Some(mark));
}

fn write_messages(request: &ModelRequest, mark: &str, out: &mut Vec<u8>) {
    let entries = request.history.entries();
    let last = entries.len().saturating_sub(1);
    let before = entries[..last]
        .iter()
        .rposition(|entry| entry.message.role == Role::User);
    let fragment = |(index, entry): (usize, &Arc<ConversationEntry>)| {
        let is_prefill = index == last && entry.message.role == Role::Assistant;
        match is_prefill {
            true => message(&trimmed(&entry.message), keeps_thinking(entry, request)),
            false => fragment(entry, request),
        }
    };
    let fragments: Vec<Fragment> = entries.iter().enumerate().map(fragment).collect();
    let length: usize = fragments
        .iter()
        .map(|fragment| fragment.bytes.len() + 1)
        .sum();
    out.reserve_exact(length + 200);
    out.extend_from_slice(br#","messages":["#);
    for (index, fragment) in fragments.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let marked = index == last || Some(index) == before;
        fragment.write(out, marked.then_some(mark));
    }
    out.push(b']');
}

/// Returns whether the thinking of a message may be sent: signatures are valid only for the model
/// that wrote the message.
fn keeps_thinking(entry: &ConversationEntry, request: &ModelRequest) -> bool {
    let by = entry.message.model.as_deref();
    by.is_none_or(|by| by == request.model)
}

fn fragment(entry: &ConversationEntry, request: &ModelRequest) -> Fragment {
    let keeps = keeps_thinking(entry, request);
    let dialect = if keeps {
        WITH_THINKING
    } else {
        WITHOUT_THINKING
    };
    entry
        .fragments
        .get(dialect, || message(&entry.message, keeps))
}

/// Returns the message without white space at its end: the provider rejects a last assistant
/// message that ends in white space.
fn trimmed(message: &Message) -> Message {
    let mut message = message.clone();
    if let Some(Block::Text { text }) = message.content.last_mut() {
        text.truncate(text.trim_end().len());
    }
    message
}

fn message(message: &Message, keeps_thinking: bool) -> Fragment {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let mut bytes = format!(r#"{{"role":"{role}","content":["#).into_bytes();
    let mut mark_at = None;
    let mut first = true;
    // The provider rejects a message that ends in thinking, so thinking without a block after it is
    // left out.
    let said = message
        .content
        .iter()
        .rposition(|block| !block.is_thinking());
    for block in &message.content[..said.map_or(0, |last| last + 1)] {
        let Some(wire) = wire(block, keeps_thinking) else {
            continue;
        };
        if !std::mem::take(&mut first) {
            bytes.push(b',');
        }
        write(&mut bytes, &wire);
        if !block.is_thinking() {
            mark_at = Some(bytes.len() - 1);
        }
    }
    if first {
        // The message contains only thinking, and the provider rejects empty messages.
        write(&mut bytes, &WireBlock::Text { text: "(thinking)" });
        mark_at = Some(bytes.len() - 1);
    }
    bytes.extend_from_slice(b"]}");
    Fragment {
        bytes: bytes.into(),
        mark_at,
    }
}

fn wire(block: &Block, keeps_thinking: bool) -> Option<WireBlock<'_>> {
    Some(match block {
        Block::Text { text } => WireBlock::Text { text },
        Block::Image { source } => WireBlock::Image { source },
        Block::Document { source } => WireBlock::Document { source },
        Block::Thinking {
            thinking,
            signature,
            ..
        } => {
            // Thinking without a signature comes from another provider.
            if !keeps_thinking || signature.is_empty() {
                return None;
            }
            WireBlock::Thinking {
                thinking,
                signature,
            }
        }
        Block::RedactedThinking { data } if keeps_thinking => WireBlock::RedactedThinking { data },
        Block::RedactedThinking { .. } => return None,
        Block::ToolUse {
            id, name, input, ..
        } => WireBlock::ToolUse {
            id: allowed_id(id),
            name,
            input,
        },
        Block::ToolResult(result) => WireBlock::ToolResult {
            tool_use_id: allowed_id(&result.tool_use_id),
            content: content(result),
            is_error: result.is_error,
        },
        Block::Other(value) => WireBlock::Other(value),
    })
}

fn content(result: &ToolResult) -> WireContent<'_> {
    let said = |content: &&Content| content.as_text().is_none_or(|text| !text.trim().is_empty());
    let blocks: Vec<&Content> = result.content.iter().filter(said).collect();
    match blocks[..] {
        [] => WireContent::Text(NO_OUTPUT),
        [Content::Text { text }] => WireContent::Text(text),
        _ => WireContent::Blocks(blocks),
    }
}

/// Returns an id that the API accepts: ids of other providers may contain forbidden characters.
fn allowed_id(id: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !id.is_empty() && id.chars().all(allowed) {
        return Cow::Borrowed(id);
    }
    let mut hex = String::from("id_");
    for byte in id.bytes() {
        hex.push_str(&format!("{byte:02x}"));
    }
    Cow::Owned(hex)
}

fn list<T: Serialize>(out: &mut Vec<u8>, items: &[T]) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
}

fn write<T: Serialize>(out: &mut Vec<u8>, item: &T) {
    // Serializing strings, numbers and values with string keys cannot fail.
    if let Err(error) = serde_json::to_writer(out, item) {
        tracing::error!(%error, "a part of a request was not written");
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
