//! A session's lines as a person reads them afterwards: in order, with their times, with what a summary took
//! the place of, and with the subagents beside it.
//!
//! Where [`load`](super::load) makes what a model is to read, this leaves things as they happened. Chains that
//! were left (a prompt said anew) do not count here either.

use std::{fs, path::Path, time::Duration};

use haft_contract::Role;
use haft_models::{Block, Message, ToolResult, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::{
    StoreError,
    line::{REPLY, STARTED},
    load::{Line, chain, parse},
    look,
};

/// What was said and done in a session.
#[derive(Debug, Default)]
pub struct SessionHistory {
    /// What a person called it.
    pub title: Option<String>,
    /// The directory it was in last.
    pub cwd: Option<String>,
    /// The branch it was on last.
    pub branch: Option<String>,
    /// The version of the program that wrote it last.
    pub version: Option<String>,
    /// In the order of the lines.
    pub records: Vec<HistoryRecord>,
    /// What could not be read; for people.
    pub repairs: Vec<String>,
}

/// One line, or one block of it.
#[derive(Debug)]
pub struct HistoryRecord {
    /// When it was written, as the line says it.
    pub time: Option<String>,
    /// What it says.
    pub what: RecordedEvent,
}

/// What a line says.
#[derive(Debug)]
pub enum RecordedEvent {
    /// Said in the user's name.
    User {
        /// By whom.
        author: MessageAuthor,
        /// What.
        content: Vec<Block>,
    },
    /// A block of a reply.
    Reply {
        /// What the blocks of one reply share.
        reply: String,
        /// Which model was asked.
        model: String,
        /// What the reply had cost when this was written.
        usage: Usage,
        /// The block.
        block: Block,
    },
    /// A reply is over: what it came to, where its blocks were written before.
    ReplyEnded {
        /// The reply.
        reply: String,
        /// What it cost.
        usage: Usage,
    },
    /// A call may run, and its tool begins.
    Started {
        /// The call.
        tool_use_id: String,
    },
    /// The answer to a call.
    Answer {
        /// What the model reads.
        result: ToolResult,
        /// What programs read.
        structured: Option<Value>,
        /// How long a person was waited for.
        waited: Duration,
    },
    /// A summary takes the place of what came before.
    Compacted {
        /// Why: `manual` or `auto`.
        trigger: String,
        /// How many tokens there were.
        tokens: Option<u64>,
    },
    /// The provider failed; said in the place of a reply.
    Failed {
        /// How.
        text: String,
    },
}

/// In the user's name: by whom?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageAuthor {
    /// A person.
    Person,
    /// A program: a reminder, news of a task, what a hook adds.
    Program,
    /// The model that summarized.
    Summary,
}

/// What a subagent said and did.
#[derive(Debug)]
pub struct SubagentHistory {
    /// Its id.
    pub id: String,
    /// What kind of agent it is.
    pub kind: String,
    /// What it was launched to do, in a few words.
    pub description: String,
    /// The call that launched it.
    pub tool_use_id: String,
    /// Its lines.
    pub history: SessionHistory,
}

/// Who a subagent is, beside its transcript or in its first line.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SubagentFacts {
    agent_type: String,
    description: String,
    tool_use_id: String,
}

/// Reads a transcript.
pub fn read(transcript: &Path) -> Result<SessionHistory, StoreError> {
    Ok(of_lines(&look(transcript)?))
}

/// The subagents of a session, as they stand beside its transcript, the one that began first coming first. One that
/// cannot be read is left out.
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
    // Whatever else lies there is none.
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let lines = look(path).ok()?;
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
        history: of_lines(&lines),
    })
}

fn of_lines(lines: &[String]) -> SessionHistory {
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
        history.note_facts(&line);
        if line.kind == STARTED || line.kind == REPLY || taken.contains(&number) {
            history.add(line, number);
        }
    }
    history
}

impl SessionHistory {
    /// What a line says of the session beside what was said.
    fn note_facts(&mut self, line: &Line) {
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

    fn add(&mut self, line: Line, number: usize) {
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
                    let usage = spent(line.usage.as_ref());
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
        let usage = spent(raw.get("usage"));
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

/// Tokens, as replies report them.
fn spent(usage: Option<&Value>) -> Usage {
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
        of_lines(&lines)
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
        let history = of_lines(&lines);
        assert_eq!(history.records.len(), 1);
        assert_eq!(history.repairs.len(), 1);
    }
}
