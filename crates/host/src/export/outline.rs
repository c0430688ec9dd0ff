//! What an export shows of a session: its entries in order, with their times, for the session and each subagent.
//!
//! The fields are those that the page's script reads (`page/nodes.js`). Left out are proofs and ciphers of
//! providers, contents of files as they were before a change, and lines that are about the session and not of it.

use std::{
    collections::{HashMap, VecDeque},
    time::UNIX_EPOCH,
};

use haft_agent::transcript::history::{
    History, HistoryRecord, MessageAuthor, Recorded, SubagentHistory,
};
use haft_contract::{Content, output::MediaSource};
use haft_models::{Block, Prices, ToolResult, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::visible::{visible, visible_value};
use crate::moment;

/// How much of the first prompt is a title.
const TITLE: usize = 90;

/// Pictures that are shown; others are named. A drawing (SVG) is a program.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

#[derive(Debug, Serialize)]
pub(super) struct Outline {
    pub(super) session: OutlineSession,
    /// The first is the session's own.
    pub(super) agents: Vec<OutlineAgent>,
    /// Subagents whose call is not in any transcript.
    pub(super) loose: Vec<usize>,
    pub(super) spent: Vec<OutlineSpent>,
    pub(super) repairs: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct OutlineSession {
    pub(super) id: String,
    pub(super) title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) branch: Option<String>,
    /// Milliseconds since 1970, as all times here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct OutlineAgent {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) description: String,
    pub(super) replies: Vec<OutlineReply>,
    pub(super) items: Vec<OutlineItem>,
}

/// One answer of the model.
#[derive(Debug, Serialize)]
pub(super) struct OutlineReply {
    pub(super) model: String,
    pub(super) usage: OutlineUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<f64>,
    /// When it was asked for: the moment of what it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutlineUsage {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
}

/// What one model was paid.
#[derive(Debug, Serialize)]
pub(super) struct OutlineSpent {
    pub(super) model: String,
    #[serde(flatten)]
    pub(super) usage: OutlineUsage,
    /// USD. None: its price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct OutlineItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<u64>,
    /// Which reply it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reply: Option<usize>,
    #[serde(flatten)]
    pub(super) what: ItemKind,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum ItemKind {
    User {
        author: &'static str,
        text: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        media: Vec<OutlineMedia>,
    },
    Text {
        text: String,
    },
    Thinking {
        text: String,
    },
    Call(Box<OutlineCall>),
    Compacted {
        trigger: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
    },
    Failed {
        text: String,
    },
    /// A block that is only named.
    Other {
        text: String,
    },
}

#[derive(Debug, Default, Serialize)]
pub(super) struct OutlineCall {
    pub(super) name: String,
    pub(super) input: Value,
    /// When its tool began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) started: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<u64>,
    /// How long a person was waited for, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) waited: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) error: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) answered: bool,
    pub(super) text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) media: Vec<OutlineMedia>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) patches: Vec<OutlinePatch>,
    /// The subagents that it launched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<usize>,
    #[serde(skip)]
    id: String,
}

#[derive(Debug, Serialize)]
pub(super) struct OutlineMedia {
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// In base 64; none of what is only named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<String>,
}

/// How a call changed a file.
#[derive(Debug, Serialize)]
pub(super) struct OutlinePatch {
    pub(super) file: String,
    pub(super) hunks: Vec<OutlineHunk>,
}

/// Lines of a change, as results of file tools say them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutlineHunk {
    #[serde(default)]
    pub(super) old_start: u64,
    #[serde(default)]
    pub(super) new_start: u64,
    /// Each begins with a space, `+` or `-`.
    pub(super) lines: Vec<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Outline {
    pub(super) fn of(
        id: &str,
        history: History,
        subagents: Vec<SubagentHistory>,
        prices: &Prices,
    ) -> Self {
        let mut repairs: Vec<String> = history.repairs.iter().map(|one| visible(one)).collect();
        let said = |text: Option<&String>| text.map(|text| visible(text));
        let mut session = OutlineSession {
            id: visible(id),
            title: said(history.title.as_ref()).unwrap_or_default(),
            cwd: said(history.cwd.as_ref()),
            branch: said(history.branch.as_ref()),
            from: None,
            to: None,
        };
        let mut agents = vec![OutlineAgent::of(
            String::new(),
            String::new(),
            history,
            prices,
        )];
        let mut launched_by = vec![String::new()];
        for one in subagents {
            launched_by.push(one.tool_use_id);
            repairs.extend(one.history.repairs.iter().map(|what| visible(what)));
            let description = visible(&one.description);
            agents.push(OutlineAgent::of(
                visible(&one.kind),
                description,
                one.history,
                prices,
            ));
        }
        let loose = link(&mut agents, &launched_by);
        let times = || agents.iter().flat_map(OutlineAgent::times);
        (session.from, session.to) = (times().min(), times().max());
        if session.title.is_empty() {
            session.title = agents[0].first_prompt().unwrap_or_else(|| id.to_owned());
        }
        Self {
            spent: spent(&agents, prices),
            session,
            agents,
            loose,
            repairs,
        }
    }
}

/// Puts subagents to the calls that launched them, and says which have none. An id may come again, in a hostile
/// transcript even inside the subagent that it launches: each subagent is put somewhere once.
fn link(agents: &mut [OutlineAgent], launched_by: &[String]) -> Vec<usize> {
    let mut by_call: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (agent, id) in launched_by.iter().enumerate().skip(1) {
        by_call.entry(id).or_default().push_back(agent);
    }
    let mut is_placed = vec![false; agents.len()];
    let mut loose = Vec::new();
    for root in 0..agents.len() {
        if is_placed[root] {
            continue;
        }
        is_placed[root] = true;
        if root > 0 {
            loose.push(root);
        }
        let mut waiting = VecDeque::from([root]);
        while let Some(agent) = waiting.pop_front() {
            for item in &mut agents[agent].items {
                let ItemKind::Call(call) = &mut item.what else {
                    continue;
                };
                for child in by_call.remove(call.id.as_str()).unwrap_or_default() {
                    if !std::mem::replace(&mut is_placed[child], true) {
                        call.agents.push(child);
                        waiting.push_back(child);
                    }
                }
            }
        }
    }
    loose
}

fn spent(agents: &[OutlineAgent], prices: &Prices) -> Vec<OutlineSpent> {
    let mut spent: Vec<OutlineSpent> = Vec::new();
    for reply in agents.iter().flat_map(|agent| &agent.replies) {
        let at = spent.iter().position(|one| one.model == reply.model);
        let at = at.unwrap_or_else(|| {
            spent.push(OutlineSpent {
                model: reply.model.clone(),
                usage: OutlineUsage::default(),
                cost: prices.of(&reply.model).map(|_| 0.0),
            });
            spent.len() - 1
        });
        let one = &mut spent[at];
        one.usage.input += reply.usage.input;
        one.usage.output += reply.usage.output;
        one.usage.cache_read += reply.usage.cache_read;
        one.usage.cache_write += reply.usage.cache_write;
        if let (Some(sum), Some(cost)) = (&mut one.cost, reply.cost) {
            *sum += cost;
        }
    }
    spent
}

impl OutlineAgent {
    fn of(kind: String, description: String, history: History, prices: &Prices) -> Self {
        let mut reading = AgentReader {
            prices,
            agent: Self {
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

    fn times(&self) -> impl Iterator<Item = u64> {
        let ends = self.items.iter().filter_map(|item| match &item.what {
            ItemKind::Call(call) => call.ended,
            _ => None,
        });
        self.items.iter().filter_map(|item| item.time).chain(ends)
    }

    fn first_prompt(&self) -> Option<String> {
        self.items.iter().find_map(|item| match &item.what {
            ItemKind::User { author, text, .. } if *author == "person" => {
                let words: Vec<&str> = text.split_whitespace().collect();
                let words = words.join(" ");
                let short: String = words.chars().take(TITLE).collect();
                let rest = if short.len() < words.len() { "…" } else { "" };
                Some(short + rest).filter(|title| !title.is_empty())
            }
            _ => None,
        })
    }
}

/// From records to items.
struct AgentReader<'a> {
    prices: &'a Prices,
    agent: OutlineAgent,
    /// Where each reply is.
    replies: HashMap<String, usize>,
    /// Where the last call of each id is.
    calls: HashMap<String, usize>,
    /// When what came before was written.
    before: Option<u64>,
}

impl AgentReader<'_> {
    fn read(&mut self, record: HistoryRecord) {
        let time = record.time.as_deref().and_then(milliseconds);
        match record.what {
            Recorded::User { author, content } => self.user(time, author, &content),
            Recorded::Reply {
                reply,
                model,
                usage,
                block,
            } => {
                let at = self.reply(&reply, &model, &usage, time);
                self.block(time, at, block);
            }
            Recorded::ReplyEnded { reply, usage } => {
                if let Some(&at) = self.replies.get(&reply) {
                    self.spend(at, &usage);
                    let ends = &mut self.agent.replies[at].to;
                    *ends = (*ends).max(time);
                }
            }
            Recorded::Started { tool_use_id } => {
                if let Some(call) = self.call(&tool_use_id) {
                    call.started = time;
                }
            }
            Recorded::Answer {
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
            Recorded::Compacted { trigger, tokens } => {
                let trigger = visible(&trigger);
                self.push(time, None, ItemKind::Compacted { trigger, tokens });
            }
            Recorded::Failed { text } => {
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
                    media.push(OutlineMedia::of(source));
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

    /// The place of a reply.
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

    /// What a reply has cost so far: the last word on it counts.
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
                    self.media.push(OutlineMedia::of(source));
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

/// What a result says of changed files: of one, or of several.
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

/// A file that was not there before has no difference to show: all its lines are new.
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
    fn of(source: &MediaSource) -> Self {
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

/// A line's time.
fn milliseconds(time: &str) -> Option<u64> {
    let time = moment::parse(time, UNIX_EPOCH)?;
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
