//! The result of a finished command, as the model and programs read it.

use std::path::Path;

use data_encoding::BASE64;
use haft_contract::{Content, ToolOutput, output::MediaSource};
use serde_json::{Map, Value, json};

use super::{
    capture::{CaptureSnapshot, FILE_LIMIT, OutputCapture},
    text::{ShownOutput, TerminalText, excerpt},
};
use crate::{blocking::blocking, plural::counted};

/// The length of the preview of a long output, in characters.
const PREVIEW: usize = 2_000;

/// A result under construction: the output, and the notes around it.
#[derive(Debug, Default)]
pub(crate) struct CommandResult {
    /// The line before the output, such as `Exit code 1`.
    pub(crate) first: Option<String>,
    /// The lines after the output.
    pub(crate) notes: Vec<String>,
    /// The command did not succeed.
    pub(crate) failed: bool,
    /// The user interrupted the command.
    pub(crate) interrupted: bool,
    /// Further fields of the structured result.
    pub(crate) fields: Map<String, Value>,
}

/// The part of an output that the result shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutputBody {
    /// The text.
    pub(crate) text: String,
    /// An image instead of the text: its type and its bytes.
    pub(crate) image: Option<(String, Vec<u8>)>,
    /// The file with the whole output and the number of bytes in it, if the text is only a part.
    pub(crate) stored_file: Option<(String, u64)>,
}

impl CommandResult {
    pub(crate) fn add_note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub(crate) fn field(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    /// Returns the tool output, with this body.
    pub(crate) fn with(self, body: OutputBody) -> ToolOutput {
        let mut parts: Vec<&str> = Vec::new();
        parts.extend(self.first.as_deref());
        if body.image.is_none() && !body.text.is_empty() {
            parts.push(&body.text);
        }
        parts.extend(self.notes.iter().map(String::as_str));
        let mut content = Vec::new();
        let text = parts.join("\n");
        if !text.is_empty() {
            content.push(Content::text(text));
        }
        let is_image = body.image.is_some();
        let mut stdout = body.text;
        if let Some((media_type, bytes)) = body.image {
            let data = BASE64.encode(&bytes);
            stdout = format!("data:{media_type};base64,{data}");
            content.insert(
                0,
                Content::Image {
                    source: MediaSource::Base64 { media_type, data },
                },
            );
        }
        let mut structured = json!({
            "stdout": stdout,
            "stderr": "",
            "interrupted": self.interrupted,
            "isImage": is_image,
        });
        if let (Some(object), Some((path, bytes))) = (structured.as_object_mut(), body.stored_file)
        {
            object.insert("persistedOutputPath".to_owned(), path.into());
            object.insert("persistedOutputSize".to_owned(), bytes.into());
        }
        if let Some(object) = structured.as_object_mut() {
            object.extend(self.fields);
        }
        ToolOutput {
            content,
            structured: Some(structured),
            failed: self.failed,
            ..ToolOutput::default()
        }
    }
}

/// Returns the shown part of a successful command's output: all of it up to `limit` characters,
/// otherwise the path of the stored output and a preview.
pub(crate) async fn success_body(capture: &OutputCapture, limit: usize) -> OutputBody {
    let captured = capture.snapshot();
    let shown = match captured.tail {
        None => Some(cleaned(&captured.head)),
        Some(_) => None,
    };
    match shown {
        Some(ShownOutput::Image { mime, bytes }) => OutputBody {
            text: String::new(),
            image: Some((mime, bytes)),
            stored_file: None,
        },
        Some(ShownOutput::Text(text)) if text.len() <= limit || text.chars().count() <= limit => {
            inline(text)
        }
        Some(ShownOutput::Text(text)) => {
            let lines = text.lines().count() as u64;
            let size = format!(
                "{} characters, {}",
                text.chars().count(),
                counted(lines, "line")
            );
            stored_body(capture, &size, &excerpt(&text, PREVIEW)).await
        }
        Some(ShownOutput::Binary(_)) => {
            let size = format!("{}, not text", counted(captured.total, "byte"));
            stored_body(capture, &size, "").await
        }
        None => {
            let size = counted(captured.total, "byte");
            let preview = match ends(&captured) {
                Some((head, tail)) => joined(&head, &tail, &captured, PREVIEW),
                None => String::new(),
            };
            stored_body(capture, &size, &preview).await
        }
    }
}

/// Returns the shown part of a failed command's output: its beginning and its end. No file is
/// stored.
pub(crate) fn failure_body(capture: &OutputCapture, limit: usize) -> OutputBody {
    let captured = capture.snapshot();
    let binary = || format!("({}, not text)", counted(captured.total, "byte"));
    let text = match captured.tail {
        None => match cleaned(&captured.head) {
            ShownOutput::Text(text) => excerpt(&text, limit),
            ShownOutput::Image { .. } | ShownOutput::Binary(_) => binary(),
        },
        Some(_) => match ends(&captured) {
            Some((head, tail)) => joined(&head, &tail, &captured, limit),
            None => binary(),
        },
    };
    inline(text)
}

fn inline(text: String) -> OutputBody {
    OutputBody {
        text,
        ..OutputBody::default()
    }
}

/// Stores an output that is too long or not text. Returns its path and a preview.
async fn stored_body(capture: &OutputCapture, size: &str, preview: &str) -> OutputBody {
    let keeper = capture.clone();
    let made = blocking(move || keeper.ensure_file()).await;
    let captured = capture.snapshot();
    let (place, kept) = match (made, captured.file, captured.file_error) {
        (Ok(Ok(_)), Some((path, bytes)), None) => {
            let path = path.display().to_string();
            let place = if captured.total > FILE_LIMIT {
                format!("The first {} MiB are in {path}", FILE_LIMIT >> 20)
            } else {
                format!("All of it is in {path}")
            };
            (
                format!("{place} (read it in parts, or search it with Grep)."),
                Some((path, bytes)),
            )
        }
        (_, _, trouble) => {
            let why = trouble.unwrap_or_else(|| "the session is ending".to_owned());
            (format!("It could not be saved: {why}."), None)
        }
    };
    let text = match preview {
        "" => format!("Output too long to show: {size}. {place}"),
        preview => {
            format!("Output too long to show: {size}. {place}\nBeginning and end:\n\n{preview}")
        }
    };
    OutputBody {
        text,
        image: None,
        stored_file: kept,
    }
}

/// Returns the cleaned beginning and end of an output that is not in memory as a whole, or `None`
/// if it is not text.
fn ends(captured: &CaptureSnapshot) -> Option<(String, String)> {
    let text = |bytes: &[u8]| match cleaned(bytes) {
        ShownOutput::Text(text) => Some(text),
        ShownOutput::Image { .. } | ShownOutput::Binary(_) => None,
    };
    let tail = captured.tail.as_deref().unwrap_or_default();
    Some((text(&captured.head)?, text(whole_characters(tail))?))
}

/// Joins the beginning and the end into at most `limit` characters, cut at nearby line ends.
fn joined(head: &str, tail: &str, captured: &CaptureSnapshot, limit: usize) -> String {
    let each = limit / 2;
    let head_end = head
        .char_indices()
        .nth(each)
        .map_or(head.len(), |(at, _)| at);
    let head = &head[..head_end];
    let head = match head.rfind('\n') {
        Some(at) if head.len() - at <= each / 5 => &head[..at],
        _ => head,
    };
    let tail_start = tail
        .char_indices()
        .rev()
        .nth(each.saturating_sub(1))
        .map_or(0, |(at, _)| at);
    let tail = &tail[tail_start..];
    let tail = match tail.find('\n') {
        Some(at) if at <= each / 5 => &tail[at + 1..],
        _ => tail,
    };
    let between = captured
        .total
        .saturating_sub((head.len() + tail.len()) as u64);
    // `between` counts bytes, although the text says characters: the characters of output that is
    // only in the file are not counted.
    format!("{head}\n\n... [{between} characters truncated] ...\n\n{tail}")
}

/// Removes the rest of a character that was split at the start.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let start = bytes
        .iter()
        .take(4)
        .take_while(|byte| **byte & 0xc0 == 0x80);
    &bytes[start.count()..]
}

/// Returns a whole output as text.
pub(crate) fn cleaned(bytes: &[u8]) -> ShownOutput {
    let mut text = TerminalText::default();
    text.push(bytes);
    text.finish()
}

/// Returns a part of an output as text, even if it is binary.
pub(crate) fn plain(bytes: &[u8]) -> String {
    match cleaned(whole_characters(bytes)) {
        ShownOutput::Text(text) => text,
        ShownOutput::Image { mime, bytes } => format!("(an image, {mime}, {} bytes)", bytes.len()),
        ShownOutput::Binary(bytes) => format!("({}, not text)", counted(bytes, "byte")),
    }
}

/// Like [`plain`], but line ends at the edges remain, so that consecutive parts do not run
/// together.
pub(crate) fn part(bytes: &[u8]) -> String {
    let mut text = plain(bytes);
    if bytes.starts_with(b"\n") && !text.starts_with('\n') {
        text.insert(0, '\n');
    }
    if bytes.ends_with(b"\n") && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Returns a directory's path with special characters escaped.
pub(crate) fn directory(path: &Path) -> String {
    crate::paths::escaped(path.as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_output_do_not_run_together() {
        let parts: [&[u8]; 4] = [b"first\n", b"sec", b"ond", b"\nthird\n"];
        let joined: String = parts.into_iter().map(part).collect();
        assert_eq!(joined, "first\nsecond\nthird\n");
    }
}
