//! The lines of a transcript, as they are written.

use std::{path::Path, time::Duration};

use haft_contract::{CallId, Content, Idempotency, SessionId, session_state::StateEntry};
use haft_engine::Denied;
use haft_models::{Block, StopReason, Usage};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::Files;
use crate::{ReplyBlock, Trigger, clock};

/// The type of the line that is written before a tool runs.
pub(super) const STARTED: &str = "haft-started";

/// The type of the line that tells what the session came to be permitted.
pub(super) const TERMS: &str = "haft-terms";
/// The type of the line that is written when something changes that the session keeps beside its
/// conversation.
pub(super) const KEPT: &str = "haft-kept";
/// The type of the line that says what a reply came to, where its own lines were written before that was known.
pub(super) const REPLY: &str = "haft-reply";
/// How long a call waited for a person, in milliseconds; beside its answer.
pub(super) const WAITED: &str = "haftWaitedMs";
/// The call was not permitted; beside its answer.
pub(super) const REFUSED: &str = "haftRefused";
/// Why it was not, where no person said so; beside its answer.
pub(super) const REFUSED_BECAUSE: &str = "haftRefusedBecause";
/// What hooks wanted a person to know of a call; beside its answer.
pub(super) const NOTICES: &str = "haftNotices";
/// The type of the line that says what a hook did. No message.
pub(super) const HOOK: &str = "haft-hook";
/// More of what a hook printed is not kept.
const MOST_PRINTED: usize = 4 << 10;

/// What a message of the user's is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Said by a person.
    Prompt,
    /// Said by a program in their name.
    Meta,
    /// What the conversation came to so far.
    Summary,
}

/// What all lines of a session tell.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) session: SessionId,
    pub(super) cwd: String,
    pub(super) branch: Option<String>,
    pub(super) version: String,
    /// The subagent whose transcript it is.
    pub(super) agent: Option<String>,
}

impl Facts {
    /// A line in the chain of messages.
    pub(super) fn message(
        &self,
        kind: &str,
        uuid: Uuid,
        parent: Option<Uuid>,
        more: Map<String, Value>,
    ) -> Value {
        let mut line = Map::new();
        let mut put = |name: &str, value: Value| line.insert(name.to_owned(), value);
        put("parentUuid", json!(parent));
        put("isSidechain", self.agent.is_some().into());
        if let Some(agent) = &self.agent {
            put("agentId", agent.as_str().into());
        }
        put("cwd", self.cwd.as_str().into());
        put("sessionId", self.session.to_string().into());
        put("version", self.version.as_str().into());
        if let Some(branch) = &self.branch {
            put("gitBranch", branch.as_str().into());
        }
        put("type", kind.into());
        for (name, value) in more {
            put(&name, value);
        }
        put("uuid", json!(uuid));
        put("timestamp", clock::timestamp().into());
        Value::Object(line)
    }

    /// A call whose tool is about to run. No message: it stands outside the chain.
    pub(super) fn started(
        &self,
        call: CallId,
        tool_use_id: &str,
        name: &str,
        because: &str,
        repeat: Idempotency,
        files: &Files,
    ) -> Value {
        json!({
            "type": STARTED,
            "sessionId": self.session,
            "timestamp": clock::timestamp(),
            "callId": call,
            "toolUseId": tool_use_id,
            "toolName": name,
            "because": because,
            "repeat": repeat_name(repeat),
            "files": files,
        })
    }
}

impl Facts {
    /// A value that the session keeps. No message either.
    pub(super) fn kept(&self, name: &str, kept: &StateEntry) -> Value {
        json!({
            "type": KEPT,
            "sessionId": self.session,
            "timestamp": clock::timestamp(),
            "name": name,
            "kept": kept,
        })
    }
}

/// What a hook did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookRun {
    /// The event and what was matched, such as `PreToolUse:Bash`.
    pub name: String,
    /// `success`, `error` or `cancelled`.
    pub outcome: &'static str,
    /// Of a process that ended by itself.
    pub code: Option<i32>,
    /// What it said.
    pub stdout: String,
    /// Its standard error, or why it failed.
    pub stderr: String,
}

impl Facts {
    /// A hook has run. No message either.
    pub(super) fn hook(&self, run: &HookRun) -> Value {
        json!({
            "type": HOOK,
            "sessionId": self.session,
            "timestamp": clock::timestamp(),
            "name": run.name,
            "outcome": run.outcome,
            "code": run.code,
            "stdout": beginning(&run.stdout),
            "stderr": beginning(&run.stderr),
        })
    }
}

/// As much of it as is kept.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_PRINTED)]
}

impl Facts {
    /// A reply is over, and this is what it came to. No message either.
    pub(super) fn reply(&self, request: &str, model: &str, usage: &Usage) -> Value {
        json!({
            "type": REPLY,
            "sessionId": self.session,
            "timestamp": clock::timestamp(),
            "requestId": request,
            "model": model,
            "usage": spent(usage),
        })
    }
}

pub(super) fn repeat_name(repeat: Idempotency) -> &'static str {
    match repeat {
        Idempotency::Harmless => "harmless",
        Idempotency::Checkable => "checkable",
        Idempotency::Never => "never",
    }
}

/// What else a line of the user's tells.
pub(super) fn user(content: &[Content], kind: Kind) -> Map<String, Value> {
    let content = match content {
        [Content::Text { text }] => json!(text),
        blocks => json!(blocks),
    };
    let mut more = Map::new();
    more.insert(
        "message".to_owned(),
        json!({"role": "user", "content": content}),
    );
    match kind {
        Kind::Prompt => {}
        Kind::Meta => {
            more.insert("isMeta".to_owned(), true.into());
        }
        Kind::Summary => {
            more.insert("isCompactSummary".to_owned(), true.into());
        }
    }
    more
}

/// What else a line with a block of a reply tells.
pub(super) fn assistant(
    said: &ReplyBlock,
    asked: &str,
    stop: Option<&StopReason>,
    usage: &Usage,
) -> Map<String, Value> {
    let message = json!({
        "id": said.message_id,
        "type": "message",
        "role": "assistant",
        "model": asked,
        "content": [said.block],
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": spent(usage),
    });
    Map::from_iter([
        ("message".to_owned(), message),
        ("requestId".to_owned(), said.request_id.as_str().into()),
        ("blockIndex".to_owned(), said.position.into()),
    ])
}

fn spent(usage: &Usage) -> Value {
    let mut spent = json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
    });
    // Those for an hour have another price.
    if usage.cache_write_1h > 0 {
        spent["cache_creation"] = json!({
            "ephemeral_5m_input_tokens": usage.cache_write.saturating_sub(usage.cache_write_1h),
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        });
    }
    spent
}

/// What else the line with the answer to a call tells.
pub(super) fn answer(
    result: &haft_models::ToolResult,
    structured: Option<&Value>,
    waited: Duration,
    denied: Option<&Denied>,
) -> Map<String, Value> {
    let block = Block::ToolResult(result.clone());
    let mut more = Map::new();
    more.insert(
        "message".to_owned(),
        json!({"role": "user", "content": [block]}),
    );
    let structured = match structured {
        Some(structured) => structured.clone(),
        None => {
            let texts: Vec<&str> = result.content.iter().filter_map(Content::as_text).collect();
            let text = texts.join("\n");
            json!(if result.is_error {
                format!("Error: {text}")
            } else {
                text
            })
        }
    };
    more.insert("toolUseResult".to_owned(), structured);
    // Only where a person had to answer: what a program says at once takes no time.
    if let Ok(waited @ 1..) = u64::try_from(waited.as_millis()) {
        more.insert(WAITED.to_owned(), waited.into());
    }
    if let Some(denied) = denied {
        more.insert(REFUSED.to_owned(), true.into());
        if let Denied::Unasked { reason, .. } = denied {
            more.insert(REFUSED_BECAUSE.to_owned(), reason.as_str().into());
        }
    }
    more
}

/// What else the line tells where a summary takes the place of what came before.
pub(super) fn boundary(
    trigger: Trigger,
    pre_tokens: u64,
    before: Option<Uuid>,
) -> Map<String, Value> {
    Map::from_iter([
        ("subtype".to_owned(), "compact_boundary".into()),
        ("content".to_owned(), "Conversation compacted".into()),
        ("logicalParentUuid".to_owned(), json!(before)),
        (
            "compactMetadata".to_owned(),
            json!({"trigger": trigger.name(), "preTokens": pre_tokens}),
        ),
    ])
}

/// A path as transcripts write it.
pub(super) fn written(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
