//! The display of tool calls in an editor.

use std::path::{Path, PathBuf};

use haft_contract::{Card, Content, output::MediaSource};
use haft_engine::CallResult;
use serde_json::{Value, json};

use crate::diffs;

/// The maximum number of locations per call. Editors open each of them.
const MAX_LOCATIONS: usize = 8;
const MAX_TITLE: usize = 200;
/// The maximum number of bytes of a text result that an editor receives.
const MAX_TEXT: usize = 64 << 10;

/// Returns ACP's kind of a tool. The editor chooses an icon by this kind.
pub(crate) fn kind(tool: &str) -> &'static str {
    match tool {
        "Read" | "LS" => "read",
        "Grep" | "Glob" | "LSP" | "ToolSearch" => "search",
        "Edit" | "Write" | "NotebookEdit" | "ReplaceInFiles" | "Undo" => "edit",
        "Bash" | "TaskOutput" | "TaskStop" => "execute",
        "Think" => "think",
        "EnterPlanMode" | "ExitPlanMode" => "switch_mode",
        name if name.starts_with("Web") || name == "Browser" => "fetch",
        _ => "other",
    }
}

/// Returns the title of a call: its tool and its subject on one line.
pub(crate) fn title(tool: &str, card: &Card) -> String {
    let name = if card.title.is_empty() {
        tool
    } else {
        &card.title
    };
    let subject = card.subject.lines().next().unwrap_or_default();
    let mut title = format!("{name} {subject}").trim_end().to_owned();
    if title.len() > MAX_TITLE {
        title.truncate(title.floor_char_boundary(MAX_TITLE));
        title.push('…');
    }
    title
}

/// Returns the file that the input of a call names.
pub(crate) fn path(input: &Value, cwd: &Path) -> Option<PathBuf> {
    let named = ["file_path", "notebook_path", "path"]
        .iter()
        .find_map(|key| input[*key].as_str())?;
    Some(real(&cwd.join(named)))
}

/// Returns the location in a file that the input of a call names.
pub(crate) fn locations(input: &Value, cwd: &Path) -> Vec<Value> {
    let Some(path) = path(input, cwd) else {
        return Vec::new();
    };
    let mut location = json!({"path": path});
    if let Some(line) = input["offset"].as_u64().filter(|line| *line > 0) {
        location["line"] = json!(line);
    }
    vec![location]
}

/// Returns the locations of changed files.
fn changed_locations(diffs: &[Value], structured: &Value) -> Vec<Value> {
    let mut locations: Vec<Value> = Vec::new();
    for diff in diffs {
        if locations.iter().any(|seen| seen["path"] == diff["path"]) {
            continue;
        }
        locations.push(json!({"path": diff["path"]}));
    }
    let line = &structured["structuredPatch"][0]["newStart"];
    if let (Some(first), Some(line)) = (locations.first_mut(), line.as_u64()) {
        first["line"] = json!(line.max(1));
    }
    locations.truncate(MAX_LOCATIONS);
    locations
}

/// Returns the path with symlinks resolved, as editors use it. Only the existing part of the path
/// is resolved.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_path_buf(),
    }
}

/// Returns the update of a finished call.
pub(crate) fn answered(id: &str, finished: &CallResult, cwd: &Path) -> Value {
    let structured = finished.structured.as_ref().unwrap_or(&Value::Null);
    let mut update = result(id, finished.is_error, &finished.content, structured, cwd);
    update["title"] = json!(title(&finished.name, &finished.card));
    update
}

/// Like [`answered`], but takes the parts of a result separately and sets no title.
pub(crate) fn result(
    id: &str,
    is_error: bool,
    content: &[Content],
    structured: &Value,
    cwd: &Path,
) -> Value {
    let mut update = json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": id,
        "status": if is_error { "failed" } else { "completed" },
    });
    let diffs = match is_error {
        true => Vec::new(),
        false => diffs::result_diffs(structured, cwd),
    };
    if diffs.is_empty() {
        update["content"] = content.iter().filter_map(shown).collect();
    } else {
        update["locations"] = json!(changed_locations(&diffs, structured));
        update["content"] = json!(diffs);
    }
    update["rawOutput"] = match structured.is_null() {
        true => json!({"text": text(content)}),
        false => structured.clone(),
    };
    update
}

fn text(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
    cut(&texts.join("\n"))
}

fn shown(content: &Content) -> Option<Value> {
    match content {
        Content::Text { text } => Some(text_content(&cut(text))),
        Content::Image {
            source: MediaSource::Base64 { media_type, data },
        } => {
            let block = json!({"type": "image", "mimeType": media_type, "data": data});
            Some(json!({"type": "content", "content": block}))
        }
        Content::Document { .. } => None,
    }
}

/// Returns a text as content of a call.
pub(crate) fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn cut(text: &str) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_TEXT);
    format!("{}\n… {} bytes more", &text[..end], text.len() - end)
}
