//! Metadata in the transcript of a subagent: a line when it starts, and a line when its task is
//! done.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::event_forwarder::SubagentInfo;
use crate::transcript::{Transcript, read_shared};

/// The type of the first line.
const BEGINS: &str = "haft-agent";
/// The type of the line that is written when the subagent's task is done. The subagent may be
/// resumed afterwards.
const DONE: &str = "haft-agent-done";

/// The identity of a subagent in the first line of its transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubagentRecord {
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
    /// Whether it works in a worktree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) worktree: bool,
}

/// Returns the path of a subagent's transcript.
pub(super) fn transcript_path(folder: &Path, id: &str) -> PathBuf {
    folder.join("subagents").join(format!("agent-{id}.jsonl"))
}

/// Receives each line of a transcript after it was written, with its file.
pub(super) type TranscriptLineSink = dyn Fn(&Path, &str) + Send + Sync;

/// Writes the metadata file that other programs expect next to a subagent's transcript.
pub(super) fn write_sidecar(
    path: &Path,
    tag: &SubagentInfo,
    parent: Option<&str>,
    mirror: Option<&TranscriptLineSink>,
) {
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
    // The subagent works without this file; only readers of the transcript lack the information.
    if let Err(error) = private_file(&path.with_extension("meta.json"), &told.to_string()) {
        tracing::warn!(%error, "the description of a subagent was not written next to its transcript");
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

/// Writes the first line.
pub(super) fn write_start(
    transcript: &Transcript,
    tag: &SubagentInfo,
    model: &str,
    worktree: bool,
) {
    let record = SubagentRecord {
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
        transcript.write_line(&line);
    }
}

/// Writes the line for a finished task. It may be written again after the subagent was resumed.
pub(super) fn write_done(transcript: &Transcript, status: &str) {
    transcript.write_line(&serde_json::json!({"type": DONE, "status": status}));
}

/// Returns the record of the subagent with this id in a session's folder.
pub(super) fn find(folder: &Path, id: &str) -> Option<SubagentRecord> {
    // The id must not contain path components.
    let plain = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric());
    if !plain {
        return None;
    }
    let lines = read_shared(&transcript_path(folder, id)).ok()?;
    serde_json::from_str(lines.first()?).ok()
}

/// Describes the subagents that were running when their session was killed, for the model.
pub(super) fn interrupted_report(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder.join("subagents")).ok()?;
    let mut found: Vec<String> = entries
        .filter_map(|entry| cut_off_one(&entry.ok()?.path()))
        .collect();
    found.sort_unstable();
    if found.is_empty() {
        return None;
    }
    Some(format!(
        "The session was cut off while subagents were running. Their changes so far remain. Their \
         transcripts show how far they got. To continue one, send it a message (SendMessage):\n{}",
        found.join("\n")
    ))
}

fn cut_off_one(path: &Path) -> Option<String> {
    let lines = read_shared(path).ok()?;
    let record: SubagentRecord = serde_json::from_str(lines.first()?).ok()?;
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
