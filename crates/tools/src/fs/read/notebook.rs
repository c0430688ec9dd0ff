//! The cells of a notebook with their outputs, as many as fit.

use std::fmt::Write;

use data_encoding::BASE64;
use haft_contract::{CallContext, Content, ToolError};
use haft_journal::{
    FileTarget, Journal, NOTEBOOK_LIMIT, PageRequest, ShownExtent, estimate_tokens,
    notebook::{CellOutput, Notebook, NotebookCell, NotebookError},
};
use serde_json::{Value, json};

use super::{dedupe::ReadResult, image, output, picture};
use crate::{blocking::blocking, fs::explain};

/// The maximum length of an output, in characters.
const OUTPUT_CHARS: usize = 2_000;
/// The approximate cost of an image, in tokens.
const PICTURE_TOKENS: u64 = 1_600;

pub(super) enum NotebookView {
    Cells(ReadResult),
    /// The file is not a notebook, for this reason, but may be text.
    ShowAsText(String),
}

pub(super) async fn read(
    target: &FileTarget,
    request: &PageRequest,
    cx: &CallContext,
) -> Result<NotebookView, ToolError> {
    let journal = cx.services.get::<Journal>()?;
    let (target, cwd) = (target.clone(), cx.cwd.clone());
    let request = request.clone();
    blocking(move || {
        let failed = |error| ToolError::Failed(explain(error, &cwd));
        let path = target.path().to_path_buf();
        let raw = journal.read_bytes(target, NOTEBOOK_LIMIT).map_err(failed)?;
        let notebook = match Notebook::open(&raw.bytes) {
            Ok(notebook) => notebook,
            Err(error) => return Ok(NotebookView::ShowAsText(as_text(&error))),
        };
        let shown = NotebookRenderer::new(&notebook, &request)?;
        let is_named = request.offset.is_some() || request.limit.is_some();
        let extent = match shown.is_whole || is_named {
            true => ShownExtent::Whole, // as for text: the caller knows that there is more
            false => ShownExtent::Part,
        };
        let structured = json!({"type": "notebook", "file": {
            "filePath": path.to_string_lossy(),
            "cells": shown.cells,
        }});
        let part = shown.part.clone().filter(|_| !shown.is_cut);
        let output = output(shown.content(), structured);
        let real = raw.real.clone();
        journal.record_shown(raw, extent);
        Ok(NotebookView::Cells(ReadResult { output, real, part }))
    })
    .await?
}

fn as_text(error: &NotebookError) -> String {
    format!("note: shown as text, because it is {error}")
}

/// The shown part of a notebook.
#[derive(Default)]
struct NotebookRenderer {
    blocks: Vec<Content>,
    /// The text since the last image.
    text: String,
    cells: Vec<Value>,
    tokens: u64,
    /// The shown cells, such as `cells 1–3`; `None` if no cell is shown.
    part: Option<String>,
    /// Not even the first cell fits.
    is_cut: bool,
    is_whole: bool,
}

impl NotebookRenderer {
    fn new(notebook: &Notebook<'_>, request: &PageRequest) -> Result<Self, ToolError> {
        let mut shown = Self::default();
        let total = notebook.len();
        if notebook.is_empty() {
            shown.is_whole = true;
            shown.push(
                "<system-reminder>The notebook has no cells. NotebookEdit with edit_mode insert adds \
                 the first.</system-reminder>",
            );
            return Ok(shown);
        }
        let first = usize::try_from(request.offset.unwrap_or(1).max(1)).unwrap_or(usize::MAX);
        if first > total {
            return Err(ToolError::Failed(format!(
                "offset {first} is past the end: in a notebook it counts cells, and there are \
                 {total}. Use an offset from 1 to {total}."
            )));
        }
        let limit = request.limit.unwrap_or(u64::MAX).max(1);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let language = notebook.language();
        let mut last = first - 1;
        for cell in notebook.cells().skip(first - 1).take(limit) {
            let source = cell.source();
            let from = match last + 1 == first {
                true => skipped(&source, first, request.char_offset)?,
                false => 0,
            };
            let wanted = CellToShow {
                cell: &cell,
                number: last + 1,
                source: &source,
                from,
                is_first: last + 1 == first,
            };
            if !shown.add(&wanted, language.as_deref(), request.max_tokens) {
                break;
            }
            last += 1;
        }
        let from_the_start = first == 1 && request.char_offset == 0;
        shown.is_whole = from_the_start && last == total && !shown.is_cut;
        let from = match request.char_offset {
            0 => String::new(),
            skipped => format!(", the first from character {}", skipped + 1),
        };
        let cells = match first == last {
            true => format!("cell {first}"),
            false => format!("cells {first}–{last}"),
        };
        if !from_the_start || last < total {
            let partial = match request.offset.is_none() && request.limit.is_none() {
                true => "PARTIAL view: ",
                false => "",
            };
            let next = match last < total {
                true => format!("continue with offset {}", last + 1),
                false => "the end of the notebook".to_owned(),
            };
            shown.push(&format!("[{partial}{cells} of {total}{from}; {next}]"));
        }
        shown.part = Some(cells + &from);
        Ok(shown)
    }

    /// Adds a cell, unless it exceeds the limit; the first cell is always added, cut if needed.
    fn add(&mut self, wanted: &CellToShow<'_>, language: Option<&str>, max_tokens: u64) -> bool {
        let CellToShow { cell, source, .. } = wanted;
        let (name, kind, rest) = (cell.name(), cell.kind(), &source[wanted.from..]);
        let left = max_tokens.saturating_sub(self.tokens);
        let mut cost = estimate_tokens(rest.len() as u64) + 20;
        if cost > left && !wanted.is_first {
            return false;
        }
        // 7 bytes are about 2 tokens, see `estimate_tokens`.
        let room = usize::try_from(left.saturating_mul(7) / 2).unwrap_or(usize::MAX);
        let source_part = &rest[..rest.floor_char_boundary(room)];
        let mut text = format!("<cell id=\"{name}\"><cell_type>{kind}</cell_type>{source_part}");
        let mut outputs = Vec::new();
        if source_part.len() < rest.len() {
            self.is_cut = true;
            let next = source[..wanted.from + source_part.len()].chars().count();
            let _ = write!(
                text,
                " [cut: the source has {} characters; read on with offset {}, char_offset {next}]",
                source.chars().count(),
                wanted.number
            );
        } else {
            let all = cell.outputs();
            let count = all.len();
            for output in all {
                let block = match output {
                    CellOutput::Text { text } => Content::text(cut(text)),
                    CellOutput::Image { media_type, data } => as_picture(&media_type, &data),
                };
                cost += match &block {
                    Content::Text { text } => estimate_tokens(text.len() as u64),
                    _ => PICTURE_TOKENS,
                };
                if cost > left && !wanted.is_first {
                    return false;
                }
                if cost > left {
                    self.is_cut = true;
                    outputs.push(Content::text(format!(
                        "[{} of {count} outputs of this cell do not fit into one result: try \
                         allow_large, or a shell command such as jq]",
                        count - outputs.len()
                    )));
                    break;
                }
                outputs.push(block);
            }
        }
        let _ = write!(text, "</cell id=\"{name}\">");
        self.tokens += cost;
        let values: Vec<Value> = outputs.iter().map(value).collect();
        self.push(&text);
        for block in outputs {
            match block {
                Content::Text { text } => self.push(&text),
                block => {
                    self.flush();
                    self.blocks.push(block);
                }
            }
        }
        let mut cell = json!({"cellType": kind, "source": source, "cell_id": name});
        if kind == "code" {
            cell["language"] = json!(language.unwrap_or("python"));
            cell["outputs"] = json!(values);
        }
        self.cells.push(cell);
        true
    }

    fn push(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.blocks.push(Content::text(text));
        }
    }

    fn content(mut self) -> Vec<Content> {
        self.flush();
        self.blocks
    }
}

/// A cell to show.
struct CellToShow<'a> {
    cell: &'a NotebookCell<'a>,
    /// Its position, from 1.
    number: usize,
    source: &'a str,
    /// The offset in the source to start at, in bytes.
    from: usize,
    is_first: bool,
}

/// Returns the offset in a source after `characters` characters.
fn skipped(source: &str, cell: usize, characters: u64) -> Result<usize, ToolError> {
    let count = usize::try_from(characters).unwrap_or(usize::MAX);
    match source.char_indices().nth(count) {
        Some((at, _)) => Ok(at),
        None if count == 0 => Ok(0),
        None => Err(ToolError::Failed(format!(
            "char_offset {characters} is past the end: the source of cell {cell} has {} characters. \
             Use a smaller one, or continue with the next cell.",
            source.chars().count()
        ))),
    }
}

/// Returns an image for a result; invalid images are described as text.
fn as_picture(media_type: &str, data: &str) -> Content {
    let bytes = BASE64.decode(data.as_bytes());
    let prepared = match &bytes {
        Ok(bytes) => image::prepare(bytes),
        Err(_) => Err("it is not valid base 64.".to_owned()),
    };
    match prepared {
        Ok(ready) => picture(ready.media_type, ready.base64),
        Err(error) => Content::text(format!(
            "[{media_type} output that cannot be shown: {error}]"
        )),
    }
}

/// Returns the beginning and the end of an output that is too long: errors have their cause at the
/// end.
fn cut(text: String) -> String {
    let text = text.trim_end_matches('\n');
    let length = text.chars().count();
    if length <= OUTPUT_CHARS {
        return text.to_owned();
    }
    let half = OUTPUT_CHARS / 2;
    let place = |characters: usize| {
        let found = text.char_indices().nth(characters);
        found.map_or(text.len(), |(at, _)| at)
    };
    let (head, tail) = (&text[..place(half)], &text[place(length - half)..]);
    format!(
        "{head}\n[{} of {length} characters left out]\n{tail}",
        length - 2 * half
    )
}

fn value(block: &Content) -> Value {
    match block {
        Content::Text { text } => json!({"output_type": "text", "text": text}),
        Content::Image { source } | Content::Document { source } => {
            let haft_contract::output::MediaSource::Base64 { media_type, data } = source;
            json!({"output_type": "image", "image": {"image_data": data, "media_type": media_type}})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let short = "é".repeat(2_000);
        assert_eq!(cut(format!("{short}\n")), short);
        let long = format!("{}{}", "a".repeat(1_500), "é".repeat(1_500));
        let expected = format!(
            "{}\n[1000 of 3000 characters left out]\n{}",
            "a".repeat(1_000),
            "é".repeat(1_000)
        );
        assert_eq!(cut(long), expected);
    }
}
