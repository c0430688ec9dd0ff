//! The stored conversations and their contents.

use std::{
    borrow::Cow,
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use haft_agent::ProjectSessions;
use haft_contract::{Content, SessionId};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{Environment, SessionInput, conversations, utc_time};

/// The type of the block with the result of a call.
const RESULT: &str = "tool_result";

/// A conversation that can be resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEntry {
    /// Its id.
    pub id: SessionId,
    /// Its title, if the user has set one.
    pub title: Option<String>,
    /// The first prompt.
    pub first_prompt: Option<String>,
    /// The time of the last change.
    pub changed: SystemTime,
    /// The path of the transcript.
    pub path: PathBuf,
    /// The directory of the session, if known.
    pub cwd: Option<PathBuf>,
}

/// The last exchanges of a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecentExchanges {
    /// The number of earlier exchanges that are left out.
    pub earlier: usize,
    /// The last exchanges, the oldest first.
    pub shown: Vec<PromptExchange>,
}

/// A prompt of the user, and the reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptExchange {
    /// The id of the message.
    pub uuid: Option<Uuid>,
    /// The text of the prompt.
    pub prompt: String,
    /// The images in the prompt.
    pub images: Vec<Content>,
    /// The parts of the reply.
    pub parts: Vec<ExchangePart>,
}

/// A part of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ExchangePart {
    /// A text by the model.
    Text(String),
    /// A call.
    Call {
        /// The tool.
        name: String,
        /// Its arguments.
        input: Value,
        /// Whether it failed. `None`: it has no result.
        is_error: Option<bool>,
    },
    /// An image in the result of a call.
    Image(Content),
}

/// A prompt of the user, with its position.
#[derive(Debug, Clone)]
pub(crate) struct TranscriptPrompt {
    pub(crate) uuid: Uuid,
    /// The message before it.
    pub(crate) parent: Option<String>,
    pub(crate) time: Option<SystemTime>,
    pub(crate) text: String,
}

/// Returns the conversations of a directory, or of all directories, the newest first.
pub fn session_entries(
    environment: &Environment,
    cwd: &Path,
    all: bool,
) -> io::Result<Vec<SessionEntry>> {
    let here = conversations(environment, cwd);
    let folder = environment.project_folder(cwd);
    let projects = folder.as_deref().and_then(Path::parent);
    let sessions = match projects.filter(|_| all) {
        Some(projects) => ProjectSessions::all_projects(projects)?,
        None => vec![here],
    };
    let mut entries = Vec::new();
    for sessions in sessions {
        for listed in sessions.list()? {
            let path = sessions.path(listed.id);
            entries.push(SessionEntry {
                cwd: if all {
                    place(&path)
                } else {
                    Some(cwd.to_path_buf())
                },
                id: listed.id,
                title: listed.title,
                first_prompt: listed.first_prompt,
                changed: listed.changed,
                path,
            });
        }
    }
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.changed));
    Ok(entries)
}

/// Returns the directory of a conversation, which its first lines contain.
fn place(path: &Path) -> Option<PathBuf> {
    use std::io::BufRead;
    let file = fs::File::open(path).ok()?;
    let lines = io::BufReader::new(file).lines().take(20);
    lines
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
        .find_map(|line| Some(PathBuf::from(line["cwd"].as_str()?)))
}

/// Returns the last `most` exchanges of a conversation, without abandoned branches.
pub fn exchanges(transcript: &Path, most: usize) -> io::Result<RecentExchanges> {
    let text = fs::read_to_string(transcript)?;
    let lines = chain(&text, None);
    let mut all: Vec<PromptExchange> = Vec::new();
    let mut answers: HashMap<String, bool> = HashMap::new();
    let with_answers = lines.iter().filter(|line| line.contains(RESULT));
    for line in with_answers.filter_map(|line| parsed(line)) {
        for block in blocks(&line).filter(|block| block["type"] == RESULT) {
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            answers.insert(id.to_owned(), block["is_error"] == true);
        }
    }
    for line in lines.into_iter().filter_map(parsed) {
        let line = &line;
        if let Some(prompt) = prompt_text(line) {
            all.push(PromptExchange {
                uuid: line["uuid"].as_str().and_then(|uuid| uuid.parse().ok()),
                prompt,
                images: images(&line["message"]["content"]),
                parts: Vec::new(),
            });
            // Only the last ones are needed, and images are large.
            if let Some(before) = all.len().checked_sub(most + 1) {
                all[before] = PromptExchange::default();
            }
        } else if line["type"] == "user"
            && let Some(exchange) = all.last_mut()
        {
            let results = blocks(line).filter(|block| block["type"] == RESULT);
            let shown = results.flat_map(|block| images(&block["content"]));
            exchange.parts.extend(shown.map(ExchangePart::Image));
        } else if line["type"] == "assistant"
            && let Some(exchange) = all.last_mut()
        {
            for block in blocks(line) {
                match block["type"].as_str() {
                    Some("text") => {
                        let text = block["text"].as_str().unwrap_or_default().to_owned();
                        exchange.parts.push(ExchangePart::Text(text));
                    }
                    Some("tool_use") => exchange.parts.push(ExchangePart::Call {
                        name: block["name"].as_str().unwrap_or_default().to_owned(),
                        input: block["input"].clone(),
                        is_error: answers
                            .get(block["id"].as_str().unwrap_or_default())
                            .copied(),
                    }),
                    _ => {}
                }
            }
        }
    }
    let earlier = all.len().saturating_sub(most);
    Ok(RecentExchanges {
        earlier,
        shown: all.split_off(earlier),
    })
}

/// Returns the user's prompts in a conversation up to a message, the oldest first; `None`: up to
/// the last message.
pub(crate) fn prompts(transcript: &Path, leaf: Option<Uuid>) -> Vec<TranscriptPrompt> {
    let text = fs::read_to_string(transcript).unwrap_or_default();
    let now = SystemTime::now();
    let said = chain(&text, leaf).into_iter().filter_map(|line| {
        let line = parsed(line)?;
        Some(TranscriptPrompt {
            text: prompt_text(&line)?,
            uuid: line["uuid"].as_str()?.parse().ok()?,
            parent: line["parentUuid"].as_str().map(str::to_owned),
            time: line["timestamp"]
                .as_str()
                .and_then(|time| utc_time::parse(time, now)),
        })
    });
    said.collect()
}

/// The fields of a line that determine its position in the conversation. The rest, which may be
/// long, is skipped.
#[derive(Deserialize)]
struct LineHead<'t> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'t, str>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'t, str>>,
    #[serde(borrow, default)]
    uuid: Option<Cow<'t, str>>,
    #[serde(borrow, default, rename = "parentUuid")]
    parent: Option<Cow<'t, str>>,
    #[serde(borrow, default, rename = "logicalParentUuid")]
    logical_parent: Option<Cow<'t, str>>,
    #[serde(default, rename = "isSidechain")]
    is_sidechain: Option<bool>,
}

impl LineHead<'_> {
    fn is_of_conversation(&self) -> bool {
        let is_boundary =
            self.kind == "system" && self.subtype.as_deref() == Some("compact_boundary");
        (self.kind == "user" || self.kind == "assistant" || is_boundary)
            && self.is_sidechain != Some(true)
    }
}

/// Returns the lines of the current conversation, from its last message back to the first. They are
/// not parsed as a whole, because that would need several times as much memory.
fn chain(text: &str, leaf: Option<Uuid>) -> Vec<&str> {
    let lines = text
        .lines()
        .filter_map(|line| Some((line, serde_json::from_str::<LineHead<'_>>(line).ok()?)));
    let lines: Vec<(&str, LineHead<'_>)> = lines
        .filter(|(_, head)| head.is_of_conversation())
        .collect();
    let by_id: HashMap<&str, usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(at, (_, head))| Some((head.uuid.as_deref()?, at)))
        .collect();
    let mut taken = vec![false; lines.len()];
    let leaf = leaf.map(|leaf| leaf.to_string());
    let leaf = leaf.and_then(|leaf| by_id.get(leaf.as_str()).copied());
    let mut at = leaf.or(lines.len().checked_sub(1));
    while let Some(index) = at {
        if std::mem::replace(&mut taken[index], true) {
            break;
        }
        let (_, head) = &lines[index];
        let parent = head.parent.as_deref().or(head.logical_parent.as_deref());
        at = parent.and_then(|parent| by_id.get(parent).copied());
    }
    // Results that are not on the chain belong to the message before them.
    for (index, (line, head)) in lines.iter().enumerate() {
        let parent = head.parent.as_deref();
        let parent = parent.and_then(|parent| by_id.get(parent).copied());
        if !taken[index] && parent.is_some_and(|parent| taken[parent]) && has_answer(line) {
            taken[index] = true;
        }
    }
    let chosen = lines.into_iter().zip(taken).filter(|(_, taken)| *taken);
    chosen.map(|((line, _), _)| line).collect()
}

fn has_answer(line: &str) -> bool {
    // Rules out most lines without parsing them.
    line.contains(RESULT)
        && parsed(line).is_some_and(|line| blocks(&line).any(|block| block["type"] == RESULT))
}

fn parsed(line: &str) -> Option<Value> {
    serde_json::from_str(line).ok()
}

/// Returns the images in a content.
fn images(content: &Value) -> Vec<Content> {
    let blocks = content.as_array().into_iter().flatten();
    let images = blocks.filter(|block| block["type"] == "image");
    images
        .filter_map(|image| serde_json::from_value(image.clone()).ok())
        .collect()
}

fn blocks(line: &Value) -> impl Iterator<Item = &Value> {
    line["message"]["content"].as_array().into_iter().flatten()
}

/// Returns the user's prompt in a line, if it is one.
fn prompt_text(line: &Value) -> Option<String> {
    let is_users = line["type"] == "user" && line["isMeta"] != true;
    if !is_users || line["isCompactSummary"] == true {
        return None;
    }
    let content = &line["message"]["content"];
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(all) => {
            if all.iter().any(|block| block["type"] == "tool_result") {
                return None;
            }
            // The typed text comes last, after the context that was added to it.
            let mut texts = all.iter().filter_map(|block| block["text"].as_str());
            texts.next_back()?.to_owned()
        }
        _ => return None,
    };
    if text.starts_with("[Request interrupted by user") {
        return None;
    }
    Some(match text.strip_prefix("<bash-input>") {
        Some(rest) => format!("!{}", rest.split("</bash-input>").next().unwrap_or(rest)),
        None => text,
    })
}

impl SessionInput {
    /// Returns the conversations of this directory, or of all directories, the newest first.
    pub fn session_entries(&self, all: bool) -> io::Result<Vec<SessionEntry>> {
        session_entries(&self.0.environment, &self.0.config.cwd, all)
    }

    /// Returns the path of the transcript; `None` before the first message, or if it is not stored.
    pub fn transcript_path(&self) -> Option<PathBuf> {
        self.0.access.transcript_path()
    }

    /// Returns the id of the conversation; `None` before the first message.
    pub fn session_id(&self) -> Option<SessionId> {
        self.0.access.session_id()
    }
}
