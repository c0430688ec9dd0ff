//! Builds a conversation from the lines of a transcript in any state.
//!
//! Messages form a chain by `parentUuid`. Abandoned branches (after a rewind or a summary) are
//! ignored. A reply consists of several lines with the same message id, possibly with results
//! between them; both are reassembled. Unreadable lines are skipped and reported.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
};

use haft_contract::{Role, session_state::StateEntry};
use haft_models::{Block, Conversation, Message, ToolResult};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    SessionGrants, TouchedFiles,
    line_format::{KEPT, STARTED, TERMS},
};

/// The data in the lines of a session.
#[derive(Debug, Default)]
pub struct LoadedTranscript {
    /// The conversation.
    pub conversation: Conversation,
    /// Human-readable descriptions of errors and their repairs.
    pub repairs: Vec<String>,
    /// Results that were synthesized for open calls of the last reply. They must be recorded.
    pub synthesized_results: Vec<ToolResult>,
    /// The last message of the chain.
    pub last: Option<Uuid>,
    /// The files that were read and changed.
    pub files: TouchedFiles,
    /// The entries of the session state, by name.
    pub state_entries: BTreeMap<String, StateEntry>,
    /// The most recent working directory.
    pub cwd: Option<PathBuf>,
    /// The permissions and tools that the session was granted.
    pub terms: SessionGrants,
    /// The number of lines.
    pub lines: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StoredLine {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) uuid: Option<String>,
    pub(super) parent_uuid: Option<String>,
    /// The message before a summary; `parent_uuid` is null there.
    pub(super) logical_parent_uuid: Option<String>,
    is_sidechain: bool,
    pub(super) is_meta: bool,
    pub(super) is_api_error_message: bool,
    pub(super) message: Option<Value>,
    pub(super) request_id: Option<String>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) tool_use_id: Option<String>,
    repeat: Option<String>,
    block_index: Option<usize>,
    /// Missing in the first line of a subagent without a name.
    name: Option<String>,
    kept: StateEntry,
    files: TouchedFiles,
    terms: Option<SessionGrants>,
    pub(super) timestamp: Option<String>,
    pub(super) version: Option<String>,
    pub(super) git_branch: Option<String>,
    pub(super) custom_title: Option<String>,
    pub(super) subtype: Option<String>,
    pub(super) compact_metadata: Option<Value>,
    pub(super) is_compact_summary: bool,
    pub(super) tool_use_result: Option<Value>,
    #[serde(rename = "haftWaitedMs")]
    pub(super) waited_ms: Option<u64>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Value>,
}

impl StoredLine {
    pub(super) fn is_message(&self) -> bool {
        !self.is_sidechain && ["user", "assistant"].contains(&self.kind.as_str())
    }

    /// Returns whether the message came in during a turn without being a result: a prompt of the
    /// user or a task notice.
    pub(super) fn is_of_another_turn(&self) -> bool {
        if self.kind != "user" || self.answers().next().is_some() {
            return false;
        }
        let text = match self.message.as_ref().map(|message| &message["content"]) {
            Some(Value::String(text)) => Some(text.as_str()),
            Some(Value::Array(blocks)) => blocks.iter().find_map(|block| block["text"].as_str()),
            _ => None,
        };
        match text {
            Some(text) if text.starts_with("[Request interrupted by user") => false,
            Some(text) => !self.is_meta || text.contains("<task_notification>"),
            None => !self.is_meta,
        }
    }

    /// Returns the id that the lines of one reply share. The id of a message may occur again in
    /// another reply.
    pub(super) fn reply_id(&self) -> Option<&str> {
        let message = self.message.as_ref().filter(|_| self.kind == "assistant")?;
        let request = self.request_id.as_deref();
        request.or_else(|| message.get("id")?.as_str())
    }

    fn blocks(&self, kind: &str, id: &'static str) -> impl Iterator<Item = &str> {
        let content = self
            .message
            .as_ref()
            .and_then(|message| message.get("content"));
        let blocks = content.and_then(Value::as_array).into_iter().flatten();
        let blocks = blocks.filter(move |block| block["type"] == kind);
        blocks.filter_map(move |block| block[id].as_str())
    }

    fn calls(&self) -> impl Iterator<Item = &str> {
        self.blocks("tool_use", "id")
    }

    fn answers(&self) -> impl Iterator<Item = &str> {
        self.blocks("tool_result", "tool_use_id")
    }
}

/// Builds a conversation from the lines of a session. With `until` the conversation ends with that
/// message. Returns `None` if `until` is unknown.
pub fn load(lines: &[String], until: Option<&str>) -> Option<LoadedTranscript> {
    let mut loaded = LoadedTranscript {
        lines: lines.len() as u64,
        ..LoadedTranscript::default()
    };
    let lines = parse(lines, &mut loaded.repairs);
    let leaf = match until {
        Some(until) => Some(
            lines
                .iter()
                .position(|line| line.is_message() && line.uuid.as_deref() == Some(until))?,
        ),
        None => lines
            .iter()
            .rposition(|line| line.is_message() && line.uuid.is_some()),
    };
    for line in lines.iter().filter(|line| line.kind == STARTED) {
        loaded.files.add(line.files.clone());
    }
    // Later state and grants belong to the abandoned branch.
    let heard = match until.and(leaf) {
        Some(leaf) => &lines[..=leaf],
        None => &lines[..],
    };
    for line in heard.iter().filter(|line| line.kind == KEPT) {
        let name = line.name.clone().unwrap_or_default();
        loaded.state_entries.insert(name, line.kept.clone());
    }
    let Some(leaf) = leaf else {
        return Some(loaded);
    };
    let taken = chain(&lines, leaf, &mut loaded.repairs);
    // New lines are appended to the last line in use, which may be a result outside the chain.
    let end = match until.is_some() {
        true => leaf,
        false => taken.iter().copied().max().unwrap_or(leaf),
    };
    loaded.last = lines[end]
        .uuid
        .as_deref()
        .and_then(|uuid| uuid.parse().ok());
    loaded.cwd.clone_from(&lines[end].cwd);
    let mut terms = heard.iter().rev().filter(|line| line.kind == TERMS);
    loaded.terms = terms
        .find_map(|line| line.terms.clone())
        .unwrap_or_default();
    let mut messages = messages(&lines, &taken, &mut loaded.repairs);
    add_missing_results(&mut messages, &started_calls(&lines), &mut loaded);
    let (conversation, repairs) = Conversation::load(messages);
    loaded.conversation = conversation;
    loaded
        .repairs
        .extend(repairs.iter().map(ToString::to_string));
    Some(loaded)
}

/// Parses the lines and skips unreadable ones.
pub(super) fn parse(lines: &[String], repairs: &mut Vec<String>) -> Vec<StoredLine> {
    let mut lines: Vec<StoredLine> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .filter_map(|(number, line)| match serde_json::from_str(line) {
            Ok(line) => Some(line),
            Err(error) => {
                let what = format!("line {} cannot be read ({error}); left out", number + 1);
                repairs.push(what);
                None
            }
        })
        .collect();
    // All lines in a subagent's transcript are marked as sidechain.
    let is_said = |line: &&StoredLine| ["user", "assistant"].contains(&line.kind.as_str());
    if lines.iter().filter(is_said).all(|line| line.is_sidechain) {
        lines.iter_mut().for_each(|line| line.is_sidechain = false);
    }
    lines
}

/// Returns the lines of the conversation after this message, or `None` if the conversation does not
/// contain it.
pub(super) fn chain_after<'a>(
    lines: &'a [StoredLine],
    message: &str,
) -> Option<Vec<&'a StoredLine>> {
    let leaf = lines
        .iter()
        .rposition(|line| line.is_message() && line.uuid.is_some())?;
    let mut taken: Vec<usize> = chain(lines, leaf, &mut Vec::new()).into_iter().collect();
    taken.sort_unstable();
    let at = taken
        .iter()
        .position(|number| lines[*number].uuid.as_deref() == Some(message))?;
    Some(taken[at + 1..].iter().map(|n| &lines[*n]).collect())
}

/// Returns the numbers of the lines that belong to the conversation.
pub(super) fn chain(
    lines: &[StoredLine],
    leaf: usize,
    repairs: &mut Vec<String>,
) -> HashSet<usize> {
    let by_uuid: HashMap<&str, usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(number, line)| Some((line.uuid.as_deref()?, number)))
        .collect();
    let mut taken = HashSet::new();
    let mut current = Some(leaf);
    while let Some(number) = current.filter(|number| taken.insert(*number)) {
        current = match &lines[number].parent_uuid {
            None => None,
            Some(parent) => by_uuid.get(parent.as_str()).copied().or_else(|| {
                repairs.push(format!(
                    "message {parent} is missing; the message before it in the file is used"
                ));
                lines[..number].iter().rposition(StoredLine::is_message)
            }),
        };
    }
    // Adds the other lines of these replies and the results of their calls: some programs write
    // them on separate branches.
    let replies: HashSet<&str> = taken.iter().filter_map(|n| lines[*n].reply_id()).collect();
    let rest = lines.iter().enumerate().filter(|(_, line)| {
        !line.is_sidechain && line.reply_id().is_some_and(|id| replies.contains(id))
    });
    taken.extend(rest.map(|(number, _)| number));
    let mut in_order: Vec<usize> = taken.iter().copied().collect();
    in_order.sort_unstable();
    // The calls without a result, with the number of their line. Ids may occur again in another
    // reply.
    let mut open: HashMap<&str, usize> = HashMap::new();
    for number in in_order {
        open.extend(lines[number].calls().map(|id| (id, number)));
        for id in lines[number].answers() {
            open.remove(id);
        }
    }
    for (id, number) in open {
        let after = lines.iter().enumerate().skip(number + 1);
        let mut answers = after.filter(|(_, line)| line.is_message());
        taken.extend(
            answers
                .find(|(_, line)| line.answers().any(|answered| answered == id))
                .map(|(number, _)| number),
        );
    }
    taken
}

/// Returns the messages in these lines, with each reply reassembled.
fn messages(
    lines: &[StoredLine],
    taken: &HashSet<usize>,
    repairs: &mut Vec<String>,
) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    // The position of each reply, and the positions of its blocks.
    let mut replies: HashMap<&str, (usize, Vec<usize>)> = HashMap::new();
    let taken = lines
        .iter()
        .enumerate()
        .filter(|(number, _)| taken.contains(number));
    for (number, line) in taken {
        if !line.is_message() || line.is_api_error_message {
            continue;
        }
        let message = line.message.clone().unwrap_or_default();
        let message: Message = match serde_json::from_value(message) {
            Ok(message) => message,
            Err(error) => {
                let what = format!("message {} makes no sense ({error}); left out", number + 1);
                repairs.push(what);
                continue;
            }
        };
        if let Some(id) = line.reply_id() {
            if let Some((reply, places)) = replies.get_mut(id) {
                // Blocks are written when they end, possibly in a different order than in the
                // reply.
                let place = line.block_index.unwrap_or(places.len());
                let at = places.partition_point(|before| *before <= place);
                let content = &mut messages[*reply].content;
                places.splice(at..at, message.content.iter().map(|_| place));
                content.splice(at..at, message.content);
                continue;
            }
            let place = line.block_index.unwrap_or_default();
            let places = message.content.iter().map(|_| place).collect();
            replies.insert(id, (messages.len(), places));
        }
        messages.push(message);
    }
    messages
}

/// Returns the started calls with their repeatability.
fn started_calls(lines: &[StoredLine]) -> HashMap<&str, Option<&str>> {
    let mut started: HashMap<&str, Option<&str>> = HashMap::new();
    for line in lines {
        if line.kind == STARTED {
            if let Some(id) = &line.tool_use_id {
                started.insert(id, line.repeat.as_deref());
            }
        } else {
            // Some servers reuse the ids of calls: the earlier call is a different one.
            for id in line.calls() {
                started.remove(id);
            }
        }
    }
    started
}

/// Adds a result to each call without one. Its text says whether the call was started.
fn add_missing_results(
    messages: &mut Vec<Message>,
    started: &HashMap<&str, Option<&str>>,
    loaded: &mut LoadedTranscript,
) {
    let answered = |reply: usize, id: &str| {
        let after = messages[reply + 1..].iter();
        let mut answers = after.take_while(|message| message.role == Role::User);
        answers.any(|message| {
            let mut blocks = message.content.iter();
            blocks
                .any(|block| matches!(block, Block::ToolResult(result) if result.tool_use_id == id))
        })
    };
    let last_reply = messages
        .iter()
        .rposition(|message| message.role == Role::Assistant);
    // Only results of the last reply can be recorded at the right position.
    let at_the_end = |reply: usize| {
        Some(reply) == last_reply
            && messages[reply + 1..].iter().all(|message| {
                let mut blocks = message.content.iter();
                blocks.all(|block| matches!(block, Block::ToolResult(_)))
            })
    };
    let mut made_up: Vec<(usize, bool, Vec<ToolResult>)> = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        let open = message.calls().filter(|(id, _)| !answered(number, id));
        let results: Vec<ToolResult> = open
            .map(|(id, name)| {
                let (short, text) = match started.get(id) {
                    None => ("was not begun", NOT_BEGUN),
                    Some(Some("harmless")) => ("was begun; it only reads", ONLY_READS),
                    Some(Some("checkable")) => ("was begun; its outcome is not known", LOOK_FIRST),
                    Some(_) => ("was begun; its outcome is not known", UNKNOWN),
                };
                loaded
                    .repairs
                    .push(format!("call {id} of {name} has no result: it {short}"));
                ToolResult::error(id, text)
            })
            .collect();
        if !results.is_empty() {
            made_up.push((number, at_the_end(number), results));
        }
    }
    for (reply, at_the_end, results) in made_up.into_iter().rev() {
        let blocks = results.iter().cloned().map(Block::ToolResult).collect();
        messages.insert(reply + 1, Message::user(blocks));
        if at_the_end {
            loaded.synthesized_results = results;
        }
    }
}

const NOT_BEGUN: &str = "No result: the session ended before this call was started. It did \
                         nothing. Repeat it if you still need it.";
const ONLY_READS: &str = "No result: the session ended while this call ran. It only reads, so nothing \
                          was changed. Repeat it if you still need it.";
const LOOK_FIRST: &str = "No result: the session ended while this call ran, so it may or may not have \
                          taken effect. Check what it was to change before you repeat it.";
const UNKNOWN: &str = "No result: the session ended while this call ran. It was started, and how far \
                       it got is unknown. Do not repeat it without checking what it would have \
                       done. Ask the user if in doubt.";

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
