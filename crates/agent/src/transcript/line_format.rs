//! The format of the lines of a transcript.

use std::{path::Path, time::Duration};

use haft_contract::{CallId, Content, Idempotency, SessionId, session_state::StateEntry};
use haft_engine::DenialSource;
use haft_models::{Block, StopReason, Usage};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::TouchedFiles;
use crate::{CompactionTrigger, ReplyBlock, clock};

/// The type of the line that is written before a tool runs.
pub(super) const STARTED: &str = "haft-started";

/// The type of the line with the session's grants.
pub(super) const TERMS: &str = "haft-terms";
/// The type of the line with a changed entry of the session state.
pub(super) const KEPT: &str = "haft-kept";
/// The type of the line with the total usage of a reply whose lines were written before it was
/// known.
pub(super) const REPLY: &str = "haft-reply";
/// The time in milliseconds that a call waited for the user's approval, in the line of its result.
pub(super) const WAITED: &str = "haftWaitedMs";
/// Whether the call was denied, in the line of its result.
pub(super) const REFUSED: &str = "haftRefused";
/// The reason of a denial without asking the user, in the line of its result.
pub(super) const REFUSED_BECAUSE: &str = "haftRefusedBecause";
/// The notices of hooks about a call, in the line of its result.
pub(super) const NOTICES: &str = "haftNotices";
/// The type of the line about a hook run. It is not a message.
pub(super) const HOOK: &str = "haft-hook";
/// The maximum number of bytes of a hook's output in the transcript.
const MAX_PRINTED: usize = 4 << 10;

/// The kind of a message in the user's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserLineKind {
    /// A prompt of the user.
    Prompt,
    /// A message of a program.
    Meta,
    /// A summary of the conversation.
    Summary,
}

/// The metadata in all lines of a session.
#[derive(Debug, Clone)]
pub(super) struct LineMetadata {
    pub(super) session: SessionId,
    pub(super) cwd: String,
    pub(super) branch: Option<String>,
    pub(super) version: String,
    /// The subagent whose transcript it is, if any.
    pub(super) agent: Option<String>,
}

impl LineMetadata {
    /// Returns a line in the chain of messages.
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

    /// Returns the line for a call whose tool is about to run. It is not a message: it is outside
    /// the chain.
    pub(super) fn started(
        &self,
        call: CallId,
        tool_use_id: &str,
        name: &str,
        because: &str,
        repeat: Idempotency,
        files: &TouchedFiles,
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

impl LineMetadata {
    /// Returns the line for an entry of the session state. It is not a message.
    pub(super) fn state_entry(&self, name: &str, kept: &StateEntry) -> Value {
        json!({
            "type": KEPT,
            "sessionId": self.session,
            "timestamp": clock::timestamp(),
            "name": name,
            "kept": kept,
        })
    }
}

/// A run of a hook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookRun {
    /// The event and the matched value, such as `PreToolUse:Bash`.
    pub name: String,
    /// The outcome: `success`, `error` or `cancelled`.
    pub outcome: &'static str,
    /// The exit code, if the process exited normally.
    pub code: Option<i32>,
    /// The standard output.
    pub stdout: String,
    /// The standard error, or the reason of the failure.
    pub stderr: String,
}

impl LineMetadata {
    /// Returns the line for a hook run. It is not a message.
    pub(super) fn hook(&self, run: &HookRun) -> Value {
        json!({
            "type": HOOK,
            "sessionId": self.session,
            "timestamp": clock::timestamp(),
            "name": run.name,
            "outcome": run.outcome,
            "code": run.code,
            "stdout": truncate_output(&run.stdout),
            "stderr": truncate_output(&run.stderr),
        })
    }
}

/// Truncates the output of a hook.
fn truncate_output(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_PRINTED)]
}

impl LineMetadata {
    /// Returns the line with the total usage of a reply. It is not a message.
    pub(super) fn reply(&self, request: &str, model: &str, usage: &Usage) -> Value {
        json!({
            "type": REPLY,
            "sessionId": self.session,
            "timestamp": clock::timestamp(),
            "requestId": request,
            "model": model,
            "usage": usage_json(usage),
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

/// Returns the further fields of a user message.
pub(super) fn user(content: &[Content], kind: UserLineKind) -> Map<String, Value> {
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
        UserLineKind::Prompt => {}
        UserLineKind::Meta => {
            more.insert("isMeta".to_owned(), true.into());
        }
        UserLineKind::Summary => {
            more.insert("isCompactSummary".to_owned(), true.into());
        }
    }
    more
}

/// Returns the further fields of a block of a reply.
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
        "usage": usage_json(usage),
    });
    Map::from_iter([
        ("message".to_owned(), message),
        ("requestId".to_owned(), said.request_id.as_str().into()),
        ("blockIndex".to_owned(), said.position.into()),
    ])
}

fn usage_json(usage: &Usage) -> Value {
    let mut spent = json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
    });
    // Tokens cached for an hour have a different price.
    if usage.cache_write_1h > 0 {
        spent["cache_creation"] = json!({
            "ephemeral_5m_input_tokens": usage.cache_write.saturating_sub(usage.cache_write_1h),
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        });
    }
    spent
}

/// Returns the further fields of a call's result.
pub(super) fn answer(
    result: &haft_models::ToolResult,
    structured: Option<&Value>,
    waited: Duration,
    denied: Option<&DenialSource>,
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
    // Only set if the user had to answer; programs answer immediately.
    if let Ok(waited @ 1..) = u64::try_from(waited.as_millis()) {
        more.insert(WAITED.to_owned(), waited.into());
    }
    if let Some(denied) = denied {
        more.insert(REFUSED.to_owned(), true.into());
        if let DenialSource::Unasked { reason, .. } = denied {
            more.insert(REFUSED_BECAUSE.to_owned(), reason.as_str().into());
        }
    }
    more
}

/// Returns the further fields of a compaction boundary.
pub(super) fn boundary(
    trigger: CompactionTrigger,
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

/// Returns a path as text.
pub(super) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
