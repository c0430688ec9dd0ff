//! Converts an earlier transcript to updates.

use std::{collections::HashMap, path::Path};

use haft_agent::transcript::history::{self, MessageAuthor, RecordedEvent};
use haft_contract::{Card, output::MediaSource};
use haft_host::TodoBoard;
use haft_models::{Block, ToolResult};
use serde_json::{Value, json};

use crate::{calls, error::AcpError, plan, updates::chunk};

/// Converts a whole transcript to updates in its order. Each call is one update that includes its
/// result.
pub(crate) fn updates(transcript: &Path, cwd: &Path) -> Result<Vec<Value>, AcpError> {
    let history =
        history::read(transcript).map_err(|error| AcpError::failed(&error.to_string()))?;
    let mut replay = TranscriptReplay {
        cwd,
        updates: Vec::new(),
        calls: HashMap::new(),
        seen: HashMap::new(),
        board: TodoBoard::default(),
        has_plan: false,
        messages: 0,
    };
    for record in history.records {
        replay.add(record.what);
    }
    Ok(replay.end())
}

struct TranscriptReplay<'a> {
    cwd: &'a Path,
    updates: Vec<Value>,
    /// The positions of the updates of calls that have no result yet.
    calls: HashMap<String, usize>,
    seen: HashMap<String, u32>,
    board: TodoBoard,
    has_plan: bool,
    messages: u64,
}

impl TranscriptReplay<'_> {
    fn add(&mut self, record: RecordedEvent) {
        match record {
            RecordedEvent::User {
                author: MessageAuthor::Person,
                content,
            } => {
                self.messages += 1;
                let id = format!("earlier-{}", self.messages);
                for block in &content {
                    if let Some(update) = user_chunk(block, &id) {
                        self.updates.push(update);
                    }
                }
            }
            RecordedEvent::Reply { reply, block, .. } => self.block(&reply, block),
            RecordedEvent::Answer {
                result, structured, ..
            } => self.answer(&result, structured.unwrap_or_default()),
            RecordedEvent::Failed { text } => {
                self.messages += 1;
                let id = format!("earlier-{}", self.messages);
                self.updates.push(chunk("agent_message_chunk", &text, &id));
            }
            _ => {}
        }
    }

    fn block(&mut self, reply: &str, block: Block) {
        match block {
            Block::Text { text } => {
                self.updates
                    .push(chunk("agent_message_chunk", &text, reply));
            }
            Block::Thinking { thinking, .. } if !thinking.trim().is_empty() => {
                let id = format!("{reply}-thought");
                self.updates
                    .push(chunk("agent_thought_chunk", &thinking, &id));
            }
            Block::ToolUse {
                id, name, input, ..
            } if !plan::is_of_plan(&name) => {
                let times = self.seen.entry(id.clone()).or_default();
                *times += 1;
                let shown = match *times {
                    1 => id.clone(),
                    times => format!("{id}#{times}"),
                };
                self.calls.insert(id, self.updates.len());
                let subject = [
                    "command",
                    "file_path",
                    "pattern",
                    "path",
                    "url",
                    "description",
                ]
                .iter()
                .find_map(|key| input[*key].as_str());
                let card = Card {
                    subject: subject.unwrap_or_default().to_owned(),
                    ..Card::default()
                };
                self.updates.push(json!({
                    "sessionUpdate": "tool_call",
                    "toolCallId": shown,
                    "title": calls::title(&name, &card),
                    "kind": calls::kind(&name),
                    "status": "failed",
                    "content": [calls::text_content("outcome unknown")],
                    "locations": calls::locations(&input, self.cwd),
                    "rawInput": input,
                }));
            }
            _ => {}
        }
    }

    fn answer(&mut self, result: &ToolResult, structured: Value) {
        if self.board.update_from_result(&structured) {
            self.has_plan = true;
        }
        let Some(at) = self.calls.remove(&result.tool_use_id) else {
            return;
        };
        let call = &mut self.updates[at];
        let id = call["toolCallId"].as_str().unwrap_or_default().to_owned();
        let answer = calls::result(&id, result.is_error, &result.content, &structured, self.cwd);
        if let (Some(call), Value::Object(answer)) = (call.as_object_mut(), answer) {
            let parts = answer.into_iter().filter(|(key, _)| key != "sessionUpdate");
            call.extend(parts);
        }
    }

    fn end(mut self) -> Vec<Value> {
        if self.has_plan {
            self.updates.push(plan::update(&self.board));
        }
        self.updates
    }
}

fn user_chunk(block: &Block, id: &str) -> Option<Value> {
    match block {
        Block::Text { text } => Some(chunk("user_message_chunk", text, id)),
        Block::Image {
            source: MediaSource::Base64 { media_type, data },
        } => Some(json!({
            "sessionUpdate": "user_message_chunk",
            "content": {"type": "image", "mimeType": media_type, "data": data},
            "messageId": id,
        })),
        _ => None,
    }
}
