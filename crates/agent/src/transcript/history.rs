//! A session's transcript for human readers: in order, with times, including the messages that a
//! summary replaced, and with its subagents.
//!
//! [`load`](super::load) builds the conversation that a model receives; this module returns what
//! happened in the session. Both ignore abandoned branches (after a rewind).

use std::{fs, path::Path, time::Duration};

use haft_contract::Role;
use haft_models::{Block, Message, ToolResult, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::{
    TranscriptStoreError,
    line_format::{REPLY, STARTED},
    load::{StoredLine, chain, parse},
    read_shared,
};

/// The messages and events of a session.
#[derive(Debug, Default)]
pub struct SessionHistory {
    /// The title that the user set.
    pub title: Option<String>,
    /// The most recent working directory.
    pub cwd: Option<String>,
    /// The most recent git branch.
    pub branch: Option<String>,
    /// The version of the program that wrote the last line.
    pub version: Option<String>,
    /// The records in the order of the lines.
    pub records: Vec<HistoryRecord>,
    /// Human-readable descriptions of lines that could not be read.
    pub repairs: Vec<String>,
}

/// A line, or one block of it.
#[derive(Debug)]
pub struct HistoryRecord {
    /// The timestamp of the line.
    pub time: Option<String>,
    /// The event.
    pub what: RecordedEvent,
}

/// The event in a line.
#[derive(Debug)]
pub enum RecordedEvent {
    /// A message in the user's name.
    User {
        /// The author.
        author: MessageAuthor,
        /// The content.
        content: Vec<Block>,
    },
    /// A block of a reply.
    Reply {
        /// The id that the blocks of one reply share.
        reply: String,
        /// The model of the request.
        model: String,
        /// The tokens that the reply had used when the line was written.
        usage: Usage,
        /// The block.
        block: Block,
    },
    /// The end of a reply, with its total usage, which was unknown when its blocks were written.
    ReplyEnded {
        /// The id of the reply.
        reply: String,
        /// The total usage.
        usage: Usage,
    },
    /// A call was permitted, and its tool starts.
    Started {
        /// The provider's id of the call.
        tool_use_id: String,
    },
    /// The result of a call.
    Answer {
        /// The result that the model receives.
        result: ToolResult,
        /// The machine-readable result.
        structured: Option<Value>,
        /// The time that the call waited for the user's approval.
        waited: Duration,
    },
    /// A summary replaced the earlier messages.
    Compacted {
        /// The trigger: `manual` or `auto`.
        trigger: String,
        /// The number of tokens before.
        tokens: Option<u64>,
    },
    /// A failed request; written instead of a reply.
    Failed {
        /// The error.
        text: String,
    },
}

/// The author of a message in the user's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageAuthor {
    /// The user.
    Person,
    /// A program: a reminder, a task notice, context of a hook.
    Program,
    /// The model, as the author of a summary.
    Summary,
}

/// The transcript of a subagent.
#[derive(Debug)]
pub struct SubagentHistory {
    /// The id.
    pub id: String,
    /// The agent kind.
    pub kind: String,
    /// A short description of its task.
    pub description: String,
    /// The call that launched it.
    pub tool_use_id: String,
    /// The history.
    pub history: SessionHistory,
}

/// The identity of a subagent, from its metadata file or its first line.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SubagentFacts {
    agent_type: String,
    description: String,
    tool_use_id: String,
}

/// Reads a transcript.
pub fn read(transcript: &Path) -> Result<SessionHistory, TranscriptStoreError> {
    Ok(from_lines(&read_shared(transcript)?))
}

/// Reads the subagents of a session from the folder next to its transcript, in the order of their
/// start. Unreadable ones are omitted.
pub fn read_subagents(transcript: &Path) -> Vec<SubagentHistory> {
    let folder = transcript.with_extension("").join("subagents");
    let mut found: Vec<SubagentHistory> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| read_subagent(&entry.ok()?.path()))
        .collect();
    let begun = |one: &SubagentHistory| {
        let first = one.history.records.iter().find_map(|one| one.time.clone());
        (first, one.id.clone())
    };
    found.sort_by_key(begun);
    found
}

fn read_subagent(path: &Path) -> Option<SubagentHistory> {
    let id = path.file_name()?.to_str()?.strip_prefix("agent-")?;
    let id = id.strip_suffix(".jsonl")?.to_owned();
    // Other files in the folder are ignored.
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let lines = read_shared(path).ok()?;
    let beside = fs::read_to_string(path.with_extension("meta.json")).unwrap_or_default();
    let facts: Option<SubagentFacts> = serde_json::from_str(&beside).ok();
    let facts = facts
        .or_else(|| serde_json::from_str(lines.first()?).ok())
        .unwrap_or_default();
    Some(SubagentHistory {
        id,
        kind: facts.agent_type,
        description: facts.description,
        tool_use_id: facts.tool_use_id,
        history: from_lines(&lines),
    })
}

fn from_lines(lines: &[String]) -> SessionHistory {
    let mut history = SessionHistory::default();
    let mut lines = parse(lines, &mut history.repairs);
    for line in &mut lines {
        if line.parent_uuid.is_none() {
            line.parent_uuid = line.logical_parent_uuid.take();
        }
    }
    let leaf = lines
        .iter()
        .rposition(|line| line.is_message() && line.uuid.is_some());
    let taken = match leaf {
        Some(leaf) => chain(&lines, leaf, &mut history.repairs),
        None => return history,
    };
    for (number, line) in lines.into_iter().enumerate() {
        history.set_metadata(&line);
        if line.kind == STARTED || line.kind == REPLY || taken.contains(&number) {
            history.add(line, number);
        }
    }
    history
}

impl SessionHistory {
    /// Updates the session's metadata from a line.
    fn set_metadata(&mut self, line: &StoredLine) {
        let cwd = line.cwd.as_ref();
        let facts = [
            (&mut self.title, &line.custom_title),
            (&mut self.branch, &line.git_branch),
            (&mut self.version, &line.version),
            (
                &mut self.cwd,
                &cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
            ),
        ];
        for (fact, said) in facts {
            if said.is_some() {
                fact.clone_from(said);
            }
        }
    }

    fn add(&mut self, line: StoredLine, number: usize) {
        let time = line.timestamp.clone();
        let mut push = |what| {
            let time = time.clone();
            self.records.push(HistoryRecord { time, what });
        };
        match line.kind.as_str() {
            STARTED => {
                if let Some(tool_use_id) = line.tool_use_id {
                    push(RecordedEvent::Started { tool_use_id });
                }
                return;
            }
            REPLY => {
                if let Some(reply) = line.request_id {
                    let usage = usage_from_json(line.usage.as_ref());
                    push(RecordedEvent::ReplyEnded { reply, usage });
                }
                return;
            }
            "system" => {
                if line.subtype.as_deref() == Some("compact_boundary") {
                    let told = line.compact_metadata.unwrap_or_default();
                    push(RecordedEvent::Compacted {
                        trigger: told["trigger"].as_str().unwrap_or_default().to_owned(),
                        tokens: told["preTokens"].as_u64(),
                    });
                }
                return;
            }
            _ => {}
        }
        let reply = line.reply_id().unwrap_or_default().to_owned();
        let raw = line.message.unwrap_or_default();
        let model = raw["model"].as_str().unwrap_or_default().to_owned();
        let usage = usage_from_json(raw.get("usage"));
        let message: Message = match serde_json::from_value(raw) {
            Ok(message) => message,
            Err(error) => {
                let what = format!("message {} makes no sense ({error}); left out", number + 1);
                self.repairs.push(what);
                return;
            }
        };
        if line.is_api_error_message {
            let texts = message.content.iter().filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            });
            let text = texts.collect::<Vec<_>>().join("\n");
            return push(RecordedEvent::Failed { text });
        }
        if message.role == Role::Assistant {
            for block in message.content {
                push(RecordedEvent::Reply {
                    reply: reply.clone(),
                    model: model.clone(),
                    usage,
                    block,
                });
            }
            return;
        }
        let author = match () {
            () if line.is_compact_summary => MessageAuthor::Summary,
            () if line.is_meta => MessageAuthor::Program,
            () => MessageAuthor::Person,
        };
        let mut content = Vec::new();
        for block in message.content {
            match block {
                Block::ToolResult(result) => push(RecordedEvent::Answer {
                    result,
                    structured: line.tool_use_result.clone(),
                    waited: Duration::from_millis(line.waited_ms.unwrap_or_default()),
                }),
                other => content.push(other),
            }
        }
        if !content.is_empty() {
            push(RecordedEvent::User { author, content });
        }
    }
}

/// Reads the tokens in the format of replies.
fn usage_from_json(usage: Option<&Value>) -> Usage {
    let Some(usage) = usage else {
        return Usage::default();
    };
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    Usage {
        input: count(&usage["input_tokens"]),
        output: count(&usage["output_tokens"]),
        cache_read: count(&usage["cache_read_input_tokens"]),
        cache_write: count(&usage["cache_creation_input_tokens"]),
        cache_write_1h: count(&usage["cache_creation"]["ephemeral_1h_input_tokens"]),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn history(values: &[Value]) -> SessionHistory {
        let lines: Vec<String> = values.iter().map(Value::to_string).collect();
        from_lines(&lines)
    }

    fn user(uuid: &str, parent: Option<&str>, content: Value) -> Value {
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "timestamp": "2026-01-31T12:00:00.000Z",
               "message": {"role": "user", "content": content}})
    }

    fn said(uuid: &str, parent: &str, block: Value) -> Value {
        json!({"type": "assistant", "uuid": uuid, "parentUuid": parent, "requestId": "r",
               "message": {"id": "m", "role": "assistant", "model": "large", "content": [block],
                           "usage": {"input_tokens": 5, "output_tokens": 1}}})
    }

    fn words(block: &Block) -> String {
        match block {
            Block::Text { text } => text.clone(),
            Block::ToolUse { id, name, .. } => format!("calls {name} as {id}"),
            other => format!("{other:?}"),
        }
    }

    fn shown(history: &SessionHistory) -> Vec<String> {
        let records = history.records.iter().map(|record| match &record.what {
            RecordedEvent::User { author, content } => {
                let content: Vec<String> = content.iter().map(words).collect();
                format!("{author:?}: {}", content.join(", "))
            }
            RecordedEvent::Reply { block, usage, .. } => {
                format!("model ({}): {}", usage.output, words(block))
            }
            RecordedEvent::ReplyEnded { reply, usage } => {
                format!("{reply} came to {}", usage.output)
            }
            RecordedEvent::Started { tool_use_id } => format!("{tool_use_id} begins"),
            RecordedEvent::Answer { result, waited, .. } => {
                format!("{} is answered after {waited:?}", result.tool_use_id)
            }
            RecordedEvent::Compacted { trigger, tokens } => {
                format!("compacted: {trigger} {tokens:?}")
            }
            RecordedEvent::Failed { text } => format!("failed: {text}"),
        });
        records.collect()
    }

    #[test]
    fn what_stood_before_a_summary_is_there_and_a_chain_that_was_left_is_not() {
        let call = json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}});
        let answer = json!([{"type": "tool_result", "tool_use_id": "t", "content": "x"}]);
        let mut answered = user("d", Some("c"), answer);
        answered["haftWaitedMs"] = json!(1500);
        let history = history(&[
            user("a", None, json!("said and left")),
            user("b", None, json!("first")),
            said("c", "b", call),
            json!({"type": "haft-started", "toolUseId": "t"}),
            json!({"type": "haft-reply", "requestId": "r", "usage": {"output_tokens": 40}}),
            answered,
            json!({"type": "system", "subtype": "compact_boundary", "uuid": "e", "parentUuid": null,
                   "logicalParentUuid": "d", "compactMetadata": {"trigger": "auto", "preTokens": 9}}),
            json!({"type": "user", "uuid": "f", "parentUuid": "e", "isCompactSummary": true,
                   "cwd": "/work", "gitBranch": "main", "message": {"role": "user", "content": "so far"}}),
            json!({"type": "custom-title", "customTitle": "a title"}),
        ]);
        assert_eq!(
            shown(&history),
            [
                "Person: first",
                "model (1): calls Read as t",
                "t begins",
                "r came to 40",
                "t is answered after 1.5s",
                "compacted: auto Some(9)",
                "Summary: so far",
            ]
        );
        assert_eq!(history.title.as_deref(), Some("a title"));
        assert_eq!(history.cwd.as_deref(), Some("/work"));
        assert_eq!(history.branch.as_deref(), Some("main"));
        assert_eq!(history.repairs, Vec::<String>::new());
    }

    #[test]
    fn lines_that_make_no_sense_are_reported() {
        let lines = ["{".to_owned(), user("a", None, json!("said")).to_string()];
        let history = from_lines(&lines);
        assert_eq!(history.records.len(), 1);
        assert_eq!(history.repairs.len(), 1);
    }
}
