//! Converts transcript entries to displayed lines.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The role of a displayed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineRole {
    /// The author and the time.
    Heading,
    Prompt,
    Text,
    Failure,
    /// Thinking, hooks, and messages that the agent loop added.
    Muted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TranscriptLine {
    pub(super) role: LineRole,
    pub(super) text: String,
}

/// The lines of an entry, and the file that contains the rest of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RenderedEntry {
    pub(super) lines: Vec<TranscriptLine>,
    /// The file of a result that was too long for the conversation. Its lines follow.
    pub(super) output: Option<PathBuf>,
    pub(super) is_prompt: bool,
}

impl RenderedEntry {
    fn push(&mut self, role: LineRole, text: impl Into<String>) {
        let text = text.into();
        self.lines.push(TranscriptLine { role, text });
    }

    fn push_lines(&mut self, role: LineRole, text: &str) {
        for line in text.lines() {
            self.push(role, format!("  {line}"));
        }
    }
}

/// Renders an entry of the transcript file. Internal entries have no lines. `outputs` is the folder
/// of results that were too long.
pub(super) fn render(value: &Value, outputs: &Path) -> RenderedEntry {
    let mut entry = RenderedEntry::default();
    let time = clock(value);
    match value["type"].as_str().unwrap_or_default() {
        "user" => user(value, &time, outputs, &mut entry),
        "assistant" => {
            for block in blocks(&value["message"]["content"]) {
                assistant(block, &time, &mut entry);
            }
        }
        "system" => {
            let what = value["content"].as_str().unwrap_or_default();
            entry.push(LineRole::Muted, format!("{time} - {what}"));
        }
        "haft-started" => {
            let name = value["toolName"].as_str().unwrap_or_default();
            entry.push(
                LineRole::Muted,
                format!("{time} {name} was allowed and starts"),
            );
            if let Some(because) = value["because"].as_str() {
                entry.push_lines(LineRole::Muted, &format!("why: {because}"));
            }
        }
        "haft-hook" => hook(value, &time, &mut entry),
        "haft-terms" => {
            entry.push(LineRole::Muted, format!("{time} permissions changed"));
            entry.push_lines(LineRole::Muted, &entry_payload(value));
        }
        _ => {}
    }
    entry
}

/// Returns the payload of an entry, without its type, session id and timestamp.
fn entry_payload(value: &Value) -> String {
    let fields = value.as_object().into_iter().flatten();
    let fields =
        fields.filter(|(name, _)| !["type", "sessionId", "timestamp"].contains(&name.as_str()));
    let fields: Vec<String> = fields
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    fields.join("\n")
}

/// Returns the time of day: `12:00:01` for `2026-01-31T12:00:01.234Z`.
fn clock(value: &Value) -> String {
    let time = value["timestamp"].as_str().unwrap_or_default();
    time.get(11..19).unwrap_or_default().to_owned()
}

/// Returns the blocks of a content, which is a text or a list of blocks.
fn blocks(content: &Value) -> Vec<&Value> {
    match content {
        Value::Array(blocks) => blocks.iter().collect(),
        Value::Null => Vec::new(),
        text => vec![text],
    }
}

fn user(value: &Value, time: &str, outputs: &Path, entry: &mut RenderedEntry) {
    for block in blocks(&value["message"]["content"]) {
        let text = block.as_str().or_else(|| block["text"].as_str());
        match (text, block["type"].as_str()) {
            (_, Some("tool_result")) => {
                result(block, time, outputs, entry);
                if let Some(because) = value["haftRefusedBecause"].as_str() {
                    entry.push_lines(LineRole::Muted, &format!("refused because {because}"));
                }
                for notice in value["haftNotices"].as_array().into_iter().flatten() {
                    let notice = notice.as_str().unwrap_or_default();
                    entry.push_lines(LineRole::Muted, &format!("hook: {notice}"));
                }
            }
            (Some(text), _) if value["isCompactSummary"] == true => {
                entry.push(
                    LineRole::Heading,
                    format!("{time} summary of what came before"),
                );
                entry.push_lines(LineRole::Muted, text);
            }
            (Some(text), _) if value["isMeta"] == true => {
                entry.push(LineRole::Heading, format!("{time} added by haft"));
                entry.push_lines(LineRole::Muted, text);
            }
            (Some(text), _) => {
                entry.is_prompt = true;
                entry.push(LineRole::Heading, format!("{time} you"));
                entry.push_lines(LineRole::Prompt, text);
            }
            (None, kind) => {
                let kind = kind.unwrap_or("something");
                entry.push(LineRole::Muted, format!("{time} [{kind}]"));
            }
        }
    }
}

fn hook(value: &Value, time: &str, entry: &mut RenderedEntry) {
    let name = value["name"].as_str().unwrap_or_default();
    let (outcome, role) = match (value["outcome"].as_str(), value["code"].as_i64()) {
        (Some("success"), _) => (String::new(), LineRole::Muted),
        (_, Some(code)) => (format!("  exit {code}"), LineRole::Failure),
        (outcome, None) => {
            let outcome = outcome.unwrap_or_default();
            (format!("  {outcome}"), LineRole::Failure)
        }
    };
    entry.push(role, format!("{time} hook {name}{outcome}"));
    for printed in ["stdout", "stderr"] {
        entry.push_lines(
            LineRole::Muted,
            value[printed].as_str().unwrap_or_default().trim_end(),
        );
    }
}

fn result(block: &Value, time: &str, outputs: &Path, entry: &mut RenderedEntry) {
    let is_error = block["is_error"] == true;
    let (what, role) = match is_error {
        true => ("error", LineRole::Failure),
        false => ("result", LineRole::Text),
    };
    entry.push(LineRole::Heading, format!("{time} {what}"));
    for part in blocks(&block["content"]) {
        let Some(text) = part.as_str().or_else(|| part["text"].as_str()) else {
            let kind = part["type"].as_str().unwrap_or("something");
            entry.push(LineRole::Muted, format!("  [{kind}]"));
            continue;
        };
        match stored_output_path(text, outputs) {
            Some(path) => {
                let name = path.file_name().unwrap_or_default();
                let text = format!("  whole, from tool-results/{}", name.display());
                entry.push(LineRole::Muted, text);
                entry.output = Some(path);
            }
            None => entry.push_lines(role, text),
        }
    }
}

/// Returns the file of a result that was too long. Only files in the session's own folder are
/// accepted, because any tool output could contain such a text.
fn stored_output_path(text: &str, outputs: &Path) -> Option<PathBuf> {
    let first = text.lines().next()?;
    let named = first.split_once("The whole text is in ")?.1;
    let named = Path::new(named.split(" (Read it in parts)").next()?);
    let path = outputs.join(named.file_name()?);
    (named.parent() == Some(outputs) && path.is_file()).then_some(path)
}

fn assistant(block: &Value, time: &str, entry: &mut RenderedEntry) {
    match block["type"].as_str().unwrap_or_default() {
        "text" => {
            entry.push(LineRole::Heading, format!("{time} agent"));
            let text = block["text"].as_str().unwrap_or_default();
            entry.push_lines(LineRole::Text, text);
        }
        "thinking" => {
            entry.push(LineRole::Heading, format!("{time} thinking"));
            let text = block["thinking"].as_str().unwrap_or_default();
            entry.push_lines(LineRole::Muted, text);
        }
        "tool_use" => {
            let name = block["name"].as_str().unwrap_or_default();
            entry.push(LineRole::Heading, format!("{time} call {name}"));
            for (name, value) in block["input"].as_object().into_iter().flatten() {
                match value.as_str() {
                    Some(text) if text.contains('\n') => {
                        entry.push(LineRole::Text, format!("  {name}:"));
                        for line in text.lines() {
                            entry.push(LineRole::Text, format!("    {line}"));
                        }
                    }
                    Some(text) => entry.push(LineRole::Text, format!("  {name}: {text}")),
                    None => entry.push(LineRole::Text, format!("  {name}: {value}")),
                }
            }
        }
        kind => entry.push(LineRole::Muted, format!("{time} [{kind}]")),
    }
}
