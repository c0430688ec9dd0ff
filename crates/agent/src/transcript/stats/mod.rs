//! Statistics of sessions: tokens, calls, denials and times, computed from their transcripts.
//!
//! Transcripts are read line by line (`short_lines`), so that memory use does not grow with the
//! length of messages. The reader stores a counter per model and tool, the open replies and calls,
//! and a hash per prompt, reply and call, so that lines copied by a fork are not counted twice.
//! Unreadable lines are counted and skipped.

mod short_lines;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet, VecDeque},
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, BufReader},
    path::Path,
    time::Duration,
};

use haft_contract::CalendarTime;
use haft_models::Usage;
use serde::{Deserialize, de::IgnoredAny};

pub(super) use self::short_lines::{ShortLine, ShortLines};
use super::line_format::{REPLY, STARTED};

/// The maximum number of open calls. Beyond it, the oldest one is counted without a result.
const MAX_OPEN: usize = 1_024;

/// The maximum number of open replies. The lines of a reply are close together.
const MAX_REPLIES: usize = 64;

/// The maximum number of models and of tools with their own counters.
const MAX_NAMES: usize = 1_000;

/// The maximum length of a name in characters.
const MAX_NAME: usize = 100;

/// The name of the counter for all other models or tools.
const OTHERS: &str = "(others)";

/// The beginnings of denials in transcripts that do not mark them, by this program and others.
const REFUSALS: [&str; 4] = [
    "Error: Permission to use ",
    "Error: The user did not permit",
    "Error: The user doesn't want to proceed",
    "Error: The user doesn't want to take this action",
];

/// Statistics of sessions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionStats {
    /// The number of sessions.
    pub sessions: u64,
    /// The number of subagents.
    pub subagents: u64,
    /// The number of the user's prompts.
    pub prompts: u64,
    /// The number of failed requests.
    pub failures: u64,
    /// The number of unreadable lines.
    pub unreadable: u64,
    /// The time of the first line, in milliseconds since 1970.
    pub first: Option<u64>,
    /// The time of the last line, in milliseconds since 1970.
    pub last: Option<u64>,
    /// The statistics by model.
    pub models: BTreeMap<String, ModelStats>,
    /// The statistics by tool.
    pub tools: BTreeMap<String, ToolStats>,
}

/// Statistics of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelStats {
    /// The number of replies.
    pub replies: u64,
    /// The tokens.
    pub usage: Usage,
}

/// Statistics of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolStats {
    /// The number of calls.
    pub calls: u64,
    /// The number of failed calls, without denied ones.
    pub errors: u64,
    /// The number of denied calls.
    pub refusals: u64,
    /// The total run time of its calls, without waiting for the user.
    pub time: Duration,
    /// The total time of waiting for the user.
    pub waited: Duration,
}

/// Computes the statistics of one session after the other.
#[derive(Debug, Default)]
pub struct StatsReader {
    stats: SessionStats,
    /// Hashes of the prompts, replies and calls that were counted.
    seen: HashSet<u64>,
}

impl StatsReader {
    /// Creates a reader with empty statistics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the session of this transcript and its subagents.
    pub fn read(&mut self, transcript: &Path) -> io::Result<()> {
        self.read_file(transcript)?;
        self.stats.sessions += 1;
        let folder = transcript.with_extension("").join("subagents");
        let mut files: Vec<_> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        files.sort_unstable();
        for file in files {
            // A file that disappears in the meantime is not an error.
            if self.read_file(&file).is_ok() {
                self.stats.subagents += 1;
            }
        }
        Ok(())
    }

    /// Returns the statistics.
    pub fn finish(self) -> SessionStats {
        self.stats
    }

    fn read_file(&mut self, path: &Path) -> io::Result<()> {
        // Reading a pipe would never end.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut lines = ShortLines::new(BufReader::with_capacity(1 << 16, File::open(path)?));
        let mut open = OpenParts::default();
        while let Some(line) = lines.next()? {
            let line = match line {
                ShortLine::Cut(line) if line.trim_ascii().is_empty() => continue,
                ShortLine::Cut(line) => serde_json::from_slice::<StatLine<'_>>(line).ok(),
                ShortLine::TooLong => None,
            };
            match line {
                Some(line) => self.add(&line, &mut open),
                None => self.stats.unreadable += 1,
            }
        }
        for reply in open.replies {
            self.count_reply(reply);
        }
        for call in open.calls {
            self.count_call(call, None);
        }
        Ok(())
    }

    fn add(&mut self, line: &StatLine<'_>, open: &mut OpenParts) {
        let time = line.timestamp.as_deref().and_then(milliseconds);
        if let Some(time) = time {
            let stats = &mut self.stats;
            stats.first = Some(stats.first.map_or(time, |first| first.min(time)));
            stats.last = Some(stats.last.map_or(time, |last| last.max(time)));
        }
        match line.kind.as_ref() {
            STARTED => {
                if let Some(call) = open.call(line.tool_use_id.as_deref()) {
                    call.started = time;
                }
            }
            REPLY => {
                let (request, model) = (line.request_id.as_deref(), line.model.as_deref());
                let usage = line.usage.as_ref().map(StatUsage::to_usage);
                self.reply(open, request, model, usage);
            }
            "assistant" => self.assistant(line, time, open),
            "user" => self.user(line, time, open),
            _ => {}
        }
    }

    fn assistant(&mut self, line: &StatLine<'_>, time: Option<u64>, open: &mut OpenParts) {
        let Some(message) = &line.message else { return };
        if line.is_api_error_message {
            self.stats.failures += 1;
            return;
        }
        let id = line.request_id.as_deref().or(message.id.as_deref());
        let usage = message.usage.as_ref().map(StatUsage::to_usage);
        self.reply(open, id, message.model.as_deref(), usage);
        for block in message.blocks() {
            if block.kind.as_deref() == Some("tool_use")
                && let (Some(id), Some(name)) = (&block.id, &block.name)
            {
                let call = UnansweredCall {
                    id: id.to_string(),
                    name: name_of(name),
                    // In a fork the same call is in a line with the same id.
                    number: hash_of(("call", &line.uuid, id)),
                    said: time,
                    started: None,
                };
                open.calls.push_back(call);
                if open.calls.len() > MAX_OPEN
                    && let Some(oldest) = open.calls.pop_front()
                {
                    self.count_call(oldest, None);
                }
            }
        }
    }

    fn user(&mut self, line: &StatLine<'_>, time: Option<u64>, open: &mut OpenParts) {
        let mut answers = false;
        for block in line.message.iter().flat_map(StatMessage::blocks) {
            if block.kind.as_deref() != Some("tool_result") {
                continue;
            }
            answers = true;
            let id = block.tool_use_id.as_deref().unwrap_or_default();
            // Some servers reuse the ids of calls: the last one is meant.
            let found = open.calls.iter().rposition(|call| call.id == id);
            if let Some(call) = found.and_then(|at| open.calls.remove(at)) {
                let is_error = block.is_error.unwrap_or_default();
                let answer = AnsweredCall {
                    time,
                    is_refused: is_error && line.is_refusal(call.started.is_some()),
                    is_error,
                    waited: line.haft_waited_ms.unwrap_or_default(),
                };
                self.count_call(call, Some(&answer));
            }
        }
        let is_said = !line.is_meta && !line.is_compact_summary && !line.is_sidechain;
        if is_said && !answers && line.message.is_some() {
            let number = hash_of(("prompt", &line.uuid));
            if line.uuid.is_none() || self.seen.insert(number) {
                self.stats.prompts += 1;
            }
        }
    }

    /// Updates the usage of a reply: later lines are more accurate.
    fn reply(
        &mut self,
        open: &mut OpenParts,
        id: Option<&str>,
        model: Option<&str>,
        usage: Option<Usage>,
    ) {
        let (Some(id), Some(usage)) = (id, usage) else {
            return;
        };
        // A reply of this model was written by a program, not by a model.
        if model == Some("<synthetic>") {
            return;
        }
        let model = model.map(name_of).unwrap_or_default();
        let number = hash_of(("reply", id));
        let mut latest = open.replies.iter_mut().rev();
        match latest.find(|one| one.number == number) {
            Some(reply) => {
                reply.usage = usage;
                if !model.is_empty() {
                    reply.model = model;
                }
            }
            None => open.replies.push_back(OpenReply {
                number,
                model,
                usage,
            }),
        }
        if open.replies.len() > MAX_REPLIES
            && let Some(oldest) = open.replies.pop_front()
        {
            self.count_reply(oldest);
        }
    }

    fn count_reply(&mut self, reply: OpenReply) {
        if !self.seen.insert(reply.number) {
            return;
        }
        let model = entry(&mut self.stats.models, reply.model);
        model.replies += 1;
        model.usage.add(&reply.usage);
    }

    fn count_call(&mut self, call: UnansweredCall, answer: Option<&AnsweredCall>) {
        if !self.seen.insert(call.number) {
            return;
        }
        let tool = entry(&mut self.stats.tools, call.name);
        tool.calls += 1;
        let Some(answer) = answer else { return };
        tool.refusals += u64::from(answer.is_refused);
        tool.errors += u64::from(answer.is_error && !answer.is_refused);
        let waited = Duration::from_millis(answer.waited);
        tool.waited = tool.waited.saturating_add(waited);
        if answer.is_refused {
            return;
        }
        // The run time begins when the tool starts: before that, hooks run and the user may be
        // asked. Other programs do not record the start.
        let (from, waited) = match call.started {
            Some(started) => (Some(started), Duration::ZERO),
            None => (call.said, waited),
        };
        if let (Some(from), Some(to)) = (from, answer.time) {
            let took = Duration::from_millis(to.saturating_sub(from));
            tool.time = tool.time.saturating_add(took.saturating_sub(waited));
        }
    }
}

/// The replies and calls of a transcript that are not complete.
#[derive(Default)]
struct OpenParts {
    replies: VecDeque<OpenReply>,
    calls: VecDeque<UnansweredCall>,
}

impl OpenParts {
    fn call(&mut self, id: Option<&str>) -> Option<&mut UnansweredCall> {
        let id = id?;
        self.calls.iter_mut().rev().find(|call| call.id == id)
    }
}

struct OpenReply {
    number: u64,
    model: String,
    usage: Usage,
}

struct UnansweredCall {
    id: String,
    name: String,
    number: u64,
    said: Option<u64>,
    started: Option<u64>,
}

struct AnsweredCall {
    time: Option<u64>,
    is_refused: bool,
    is_error: bool,
    waited: u64,
}

fn hash_of(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

fn name_of(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

/// Returns the counter of a name. Names come from transcripts, so their number must be limited.
fn entry<T: Default>(counts: &mut BTreeMap<String, T>, name: String) -> &mut T {
    let name = match counts.len() >= MAX_NAMES && !counts.contains_key(&name) {
        true => OTHERS.to_owned(),
        false => name,
    };
    counts.entry(name).or_default()
}

/// Converts a timestamp to milliseconds since 1970.
fn milliseconds(text: &str) -> Option<u64> {
    let time = CalendarTime::parse(text)?;
    let seconds = u64::try_from(time.to_unix_seconds()?).ok()?;
    Some(seconds * 1_000 + u64::try_from(time.millisecond).ok()?)
}

/// The counted fields of a line.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatLine<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    uuid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    request_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<StatMessage<'a>>,
    #[serde(borrow)]
    tool_use_result: Option<TextOrMore<'a>>,
    usage: Option<StatUsage>,
    #[serde(default)]
    is_api_error_message: bool,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_compact_summary: bool,
    #[serde(default)]
    is_sidechain: bool,
    haft_waited_ms: Option<u64>,
    haft_refused: Option<bool>,
}

impl StatLine<'_> {
    /// Returns whether the call of this result was denied.
    fn is_refusal(&self, has_started: bool) -> bool {
        self.haft_refused.unwrap_or_else(|| {
            let text = match &self.tool_use_result {
                Some(TextOrMore::Text(text)) => text.as_ref(),
                _ => "",
            };
            !has_started && REFUSALS.iter().any(|words| text.starts_with(words))
        })
    }
}

#[derive(Deserialize)]
struct StatMessage<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<BlocksOrText<'a>>,
    usage: Option<StatUsage>,
}

impl StatMessage<'_> {
    fn blocks(&self) -> &[StatBlock<'_>] {
        match &self.content {
            Some(BlocksOrText::Blocks(blocks)) => blocks,
            _ => &[],
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum BlocksOrText<'a> {
    #[serde(borrow)]
    Blocks(Vec<StatBlock<'a>>),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrMore<'a> {
    #[serde(borrow)]
    Text(Cow<'a, str>),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
struct StatBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_use_id: Option<Cow<'a, str>>,
    is_error: Option<bool>,
}

#[derive(Deserialize)]
struct StatUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<StatCache>,
}

#[derive(Deserialize)]
struct StatCache {
    ephemeral_1h_input_tokens: Option<u64>,
}

impl StatUsage {
    fn to_usage(&self) -> Usage {
        let hour = self.cache_creation.as_ref();
        Usage {
            input: self.input_tokens.unwrap_or_default(),
            output: self.output_tokens.unwrap_or_default(),
            cache_read: self.cache_read_input_tokens.unwrap_or_default(),
            cache_write: self.cache_creation_input_tokens.unwrap_or_default(),
            cache_write_1h: hour
                .and_then(|cache| cache.ephemeral_1h_input_tokens)
                .unwrap_or_default(),
            ..Usage::default()
        }
    }
}

#[cfg(test)]
mod tests;
