//! What the transcript of a subagent says of it, beside what was said: a line when it begins, a line when
//! it is done.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::event_forwarder::Tag;
use crate::transcript::{Transcript, look};

/// The type of the line with which it begins.
const BEGINS: &str = "haft-agent";
/// The type of the line with which it is done, so far.
const DONE: &str = "haft-agent-done";

/// Who it is, as its first line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    #[serde(rename = "type")]
    line: String,
    pub(super) agent_id: String,
    pub(super) agent_type: String,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) tool_use_id: String,
    #[serde(default)]
    pub(super) model: String,
    /// It works in a copy of the project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) worktree: bool,
}

/// Where the transcript of a subagent is.
pub(super) fn place(folder: &Path, id: &str) -> PathBuf {
    folder.join("subagents").join(format!("agent-{id}.jsonl"))
}

/// Gets lines of transcripts as they are written, with the file they stand in.
pub(super) type Mirror = dyn Fn(&Path, &str) + Send + Sync;

/// What readers of transcripts look for beside one: who launched the subagent.
pub(super) fn describe(path: &Path, tag: &Tag, parent: Option<&str>, mirror: Option<&Mirror>) {
    let mut told = json!({
        "agentType": tag.kind,
        "description": tag.description,
        "toolUseId": &*tag.tool_use_id,
    });
    if let Some(name) = &tag.name {
        told["name"] = json!(name);
    }
    if let Some(parent) = parent {
        told["parentAgentId"] = json!(parent);
    }
    // The subagent works without it; only who reads the transcript knows less.
    if let Err(error) = private_file(&path.with_extension("meta.json"), &told.to_string()) {
        tracing::warn!(%error, "what a subagent is was not written beside its transcript");
    }
    if let Some(mirror) = mirror {
        told["type"] = json!("agent_metadata");
        mirror(path, &told.to_string());
    }
}

fn private_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// It begins.
pub(super) fn begin(transcript: &Transcript, tag: &Tag, model: &str, worktree: bool) {
    let record = Record {
        worktree,
        line: BEGINS.to_owned(),
        agent_id: tag.id.clone(),
        agent_type: tag.kind.clone(),
        name: tag.name.clone(),
        description: tag.description.clone(),
        tool_use_id: tag.tool_use_id.to_string(),
        model: model.to_owned(),
    };
    if let Ok(line) = serde_json::to_value(record) {
        transcript.note(&line);
    }
}

/// It is done; this may come again, when it was taken up again.
pub(super) fn done(transcript: &Transcript, status: &str) {
    transcript.note(&serde_json::json!({"type": DONE, "status": status}));
}

/// The subagent of this id in a session's folder.
pub(super) fn find(folder: &Path, id: &str) -> Option<Record> {
    // An id is no path.
    let plain = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric());
    let lines = look(&place(folder, id)).ok().filter(|_| plain)?;
    serde_json::from_str(lines.first()?).ok()
}

/// Those that were at work when their session was killed, as the model reads it.
pub(super) fn cut_off(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder.join("subagents")).ok()?;
    let mut found: Vec<String> = entries
        .filter_map(|entry| cut_off_one(&entry.ok()?.path()))
        .collect();
    found.sort_unstable();
    if found.is_empty() {
        return None;
    }
    Some(format!(
        "The session was cut off while subagents were at work. What they had done by then stands; how far \
         they got is in their transcripts, and a message to one (SendMessage) lets it go on:\n{}",
        found.join("\n")
    ))
}

fn cut_off_one(path: &Path) -> Option<String> {
    let lines = look(path).ok()?;
    let record: Record = serde_json::from_str(lines.first()?).ok()?;
    let last = lines.last()?;
    if last.contains(DONE) {
        return None;
    }
    Some(format!(
        "- {} ({}): {}; transcript: {}",
        record.agent_id,
        record.agent_type,
        record.description,
        path.display()
    ))
}
