//! Converts the records of a history into the entries of an outline.

use std::{collections::HashMap, time::UNIX_EPOCH};

use haft_agent::transcript::history::{
    HistoryRecord, MessageAuthor, RecordedEvent, SessionHistory,
};
use haft_contract::{Content, output::MediaSource};
use haft_models::{Block, Prices, ToolResult, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::{
    outline::{
        ItemKind, OutlineAgent, OutlineCall, OutlineHunk, OutlineItem, OutlineMedia, OutlinePatch,
        OutlineReply, OutlineUsage,
    },
    visible::{visible, visible_value},
};
use crate::utc_time;

/// The image types that are shown; others are only named. SVG is excluded because it can contain
/// scripts.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Converts the history of an agent.
pub(super) fn read(
    kind: String,
    description: String,
    history: SessionHistory,
    prices: &Prices,
) -> OutlineAgent {
    let mut reading = OutlineReader {
        prices,
        agent: OutlineAgent {
            kind,
            description,
            replies: Vec::new(),
            items: Vec::new(),
        },
        replies: HashMap::new(),
        calls: HashMap::new(),
        before: None,
    };
    for record in history.records {
        reading.read(record);
    }
    reading.agent
}

struct OutlineReader<'a> {
    prices: &'a Prices,
    agent: OutlineAgent,
    /// The index of each reply.
    replies: HashMap<String, usize>,
    /// The index of the last call with each id.
    calls: HashMap<String, usize>,
    /// The time of the preceding record.
    before: Option<u64>,
}

impl OutlineReader<'_> {
    fn read(&mut self, record: HistoryRecord) {
        let time = record.time.as_deref().and_then(milliseconds);
        match record.what {
            RecordedEvent::User { author, content } => self.user(time, author, &content),
            RecordedEvent::Reply {
                reply,
                model,
                usage,
                block,
            } => {
                let at = self.reply(&reply, &model, &usage, time);
                self.block(time, at, block);
            }
            RecordedEvent::ReplyEnded { reply, usage } => {
                if let Some(&at) = self.replies.get(&reply) {
                    self.spend(at, &usage);
                    let ends = &mut self.agent.replies[at].to;
                    *ends = (*ends).max(time);
                }
            }
            RecordedEvent::Started { tool_use_id } => {
                if let Some(call) = self.call(&tool_use_id) {
                    call.started = time;
                }
            }
            RecordedEvent::Answer {
                result,
                structured,
                waited,
            } => {
                if let Some(call) = self.call(&result.tool_use_id) {
                    call.answer(&result, structured.as_ref());
                    call.ended = time;
                    call.waited = u64::try_from(waited.as_millis()).unwrap_or_default();
                }
                self.before = time.or(self.before);
                return;
            }
            RecordedEvent::Compacted { trigger, tokens } => {
                let trigger = visible(&trigger);
                self.push(time, None, ItemKind::Compacted { trigger, tokens });
            }
            RecordedEvent::Failed { text } => {
                let text = visible(&text);
                self.push(time, None, ItemKind::Failed { text });
            }
        }
        self.before = time.or(self.before);
    }

    fn push(&mut self, time: Option<u64>, reply: Option<usize>, what: ItemKind) {
        self.agent.items.push(OutlineItem { time, reply, what });
    }

    fn user(&mut self, time: Option<u64>, author: MessageAuthor, content: &[Block]) {
        let (mut texts, mut media) = (Vec::new(), Vec::new());
        for block in content {
            match block {
                Block::Text { text } => texts.push(visible(text)),
                Block::Image { source } | Block::Document { source } => {
                    media.push(OutlineMedia::from_source(source));
                }
                other => texts.push(format!("[{}]", kind_of(other))),
            }
        }
        let author = match author {
            MessageAuthor::Person => "person",
            MessageAuthor::Program => "program",
            MessageAuthor::Summary => "summary",
        };
        let text = texts.join("\n\n");
        self.push(
            time,
            None,
            ItemKind::User {
                author,
                text,
                media,
            },
        );
    }

    /// Returns the index of a reply, which is added if it is new.
    fn reply(&mut self, id: &str, model: &str, usage: &Usage, time: Option<u64>) -> usize {
        let at = self.replies.get(id).copied().unwrap_or_else(|| {
            let at = self.agent.replies.len();
            self.agent.replies.push(OutlineReply {
                model: visible(model),
                usage: OutlineUsage::default(),
                cost: None,
                from: self.before.or(time),
                to: time,
            });
            self.replies.insert(id.to_owned(), at);
            at
        });
        self.spend(at, usage);
        let ends = &mut self.agent.replies[at].to;
        *ends = (*ends).max(time);
        at
    }

    /// Sets the usage and cost of a reply. Later records override earlier ones, unless they have fewer
    /// output tokens.
    fn spend(&mut self, at: usize, usage: &Usage) {
        let reply = &mut self.agent.replies[at];
        if usage.output < reply.usage.output {
            return;
        }
        reply.usage = OutlineUsage {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
        };
        reply.cost = self.prices.cost(&reply.model, usage);
    }

    fn block(&mut self, time: Option<u64>, reply: usize, block: Block) {
        let what = match block {
            Block::Text { text } => ItemKind::Text {
                text: visible(&text),
            },
            Block::Thinking { thinking, .. } if !thinking.trim().is_empty() => ItemKind::Thinking {
                text: visible(&thinking),
            },
            Block::ToolUse {
                id, name, input, ..
            } => {
                self.calls.insert(id.clone(), self.agent.items.len());
                ItemKind::Call(Box::new(OutlineCall {
                    name: visible(&name),
                    input: visible_value(&input),
                    id,
                    ..OutlineCall::default()
                }))
            }
            Block::Thinking { .. } | Block::RedactedThinking { .. } => ItemKind::Other {
                text: "thinking that only its provider can read".to_owned(),
            },
            other => ItemKind::Other {
                text: kind_of(&other),
            },
        };
        self.push(time, Some(reply), what);
    }

    fn call(&mut self, id: &str) -> Option<&mut OutlineCall> {
        let at = *self.calls.get(id)?;
        match &mut self.agent.items[at].what {
            ItemKind::Call(call) => Some(call),
            _ => None,
        }
    }
}

impl OutlineCall {
    fn answer(&mut self, result: &ToolResult, structured: Option<&Value>) {
        self.answered = true;
        self.error = result.is_error;
        let mut texts = Vec::new();
        for content in &result.content {
            match content {
                Content::Text { text } => texts.push(visible(text)),
                Content::Image { source } | Content::Document { source } => {
                    self.media.push(OutlineMedia::from_source(source));
                }
            }
        }
        self.text = texts.join("\n");
        if !result.is_error {
            self.patches = structured.map(patches).unwrap_or_default();
        }
        if self.patches.is_empty() && !result.is_error {
            self.patches.extend(new_file(&self.input, structured));
        }
    }
}

/// Returns the changed files in a structured result, which has one or several.
fn patches(structured: &Value) -> Vec<OutlinePatch> {
    let one = std::iter::once(structured);
    let several = structured["files"].as_array().into_iter().flatten();
    one.chain(several).filter_map(patch).collect()
}

fn patch(file: &Value) -> Option<OutlinePatch> {
    let hunks: Vec<OutlineHunk> = Deserialize::deserialize(&file["structuredPatch"]).ok()?;
    let name = ["filePath", "path", "file", "notebook_path"]
        .iter()
        .find_map(|key| file[*key].as_str());
    let clean = |hunk: OutlineHunk| OutlineHunk {
        lines: hunk.lines.iter().map(|line| visible(line)).collect(),
        ..hunk
    };
    let hunks: Vec<OutlineHunk> = hunks.into_iter().map(clean).collect();
    (!hunks.is_empty()).then(|| OutlinePatch {
        file: visible(name.unwrap_or_default()),
        hunks,
    })
}

/// Returns the patch of a new file, in which all lines are added.
fn new_file(input: &Value, structured: Option<&Value>) -> Option<OutlinePatch> {
    if structured?["type"] != "create" {
        return None;
    }
    let content = input["content"].as_str()?;
    let lines: Vec<String> = content.lines().map(|line| format!("+{line}")).collect();
    (!lines.is_empty()).then(|| OutlinePatch {
        file: input["file_path"].as_str().unwrap_or_default().to_owned(),
        hunks: vec![OutlineHunk {
            old_start: 0,
            new_start: 1,
            lines,
        }],
    })
}

impl OutlineMedia {
    fn from_source(source: &MediaSource) -> Self {
        let MediaSource::Base64 { media_type, data } = source;
        let is_base_64 = |letter: u8| letter.is_ascii_alphanumeric() || b"+/=".contains(&letter);
        let is_shown = PICTURES.contains(&media_type.as_str()) && data.bytes().all(is_base_64);
        Self {
            kind: visible(media_type),
            data: is_shown.then(|| data.clone()),
        }
    }
}

fn kind_of(block: &Block) -> String {
    let value = serde_json::to_value(block).unwrap_or_default();
    visible(value["type"].as_str().unwrap_or("something"))
}

/// Parses the time of a line.
fn milliseconds(time: &str) -> Option<u64> {
    let time = utc_time::parse(time, UNIX_EPOCH)?;
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
