//! The cells of a notebook with what they put out, as many as fit.

use std::{fmt::Write, path::Path};

use data_encoding::BASE64;
use haft_contract::{CallContext, Content, ToolError, ToolOutput};
use haft_journal::{
    Extent, Journal, NOTEBOOK_LIMIT, PageRequest, estimate_tokens,
    notebook::{Cell, Notebook, NotebookError, Output},
};
use serde_json::{Value, json};

use super::{image, output, picture};
use crate::{blocking::blocking, fs::explain};

/// Longer outputs are cut (spec tools.md §1).
const OUTPUT_CHARS: usize = 2_000;
/// What a picture costs, about.
const PICTURE_TOKENS: u64 = 1_600;

pub(super) enum Answer {
    Cells(ToolOutput),
    /// It is no notebook, for this reason, but may still be text.
    ShowAsText(String),
}

pub(super) async fn read(
    path: &Path,
    request: &PageRequest,
    cx: &CallContext,
) -> Result<Answer, ToolError> {
    let journal = cx.services.get::<Journal>()?;
    let (path, cwd) = (path.to_path_buf(), cx.cwd.clone());
    let request = request.clone();
    blocking(move || {
        let failed = |error| ToolError::Failed(explain(error, &cwd));
        let raw = journal.read_bytes(&path, NOTEBOOK_LIMIT).map_err(failed)?;
        let notebook = match Notebook::open(&raw.bytes) {
            Ok(notebook) => notebook,
            Err(error) => return Ok(Answer::ShowAsText(as_text(&error))),
        };
        let shown = Shown::of(&notebook, &request)?;
        let whole = shown.to_the_end && request.offset.unwrap_or(0) <= 1;
        let extent = match whole || request.offset.is_some() || request.limit.is_some() {
            true => Extent::Whole, // as for text: who named a range knows that there is more
            false => Extent::Part,
        };
        let structured = json!({"type": "notebook", "file": {
            "filePath": path.to_string_lossy(),
            "cells": shown.cells,
        }});
        let output = output(shown.content(), structured);
        journal.saw(raw, extent);
        Ok(Answer::Cells(output))
    })
    .await?
}

fn as_text(error: &NotebookError) -> String {
    format!("note: shown as text, because it is {error}")
}

/// What is shown of a notebook.
struct Shown {
    blocks: Vec<Content>,
    /// The text since the last picture.
    text: String,
    cells: Vec<Value>,
    tokens: u64,
    to_the_end: bool,
}

impl Shown {
    fn of(notebook: &Notebook<'_>, request: &PageRequest) -> Result<Self, ToolError> {
        let mut shown = Self {
            blocks: Vec::new(),
            text: String::new(),
            cells: Vec::new(),
            tokens: 0,
            to_the_end: true,
        };
        let total = notebook.len();
        if notebook.is_empty() {
            shown.text = "<system-reminder>The notebook has no cells. NotebookEdit with edit_mode \
                          insert adds the first.</system-reminder>"
                .to_owned();
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
            if !shown.add(&cell, language.as_deref(), request, last + 1 == first) {
                break;
            }
            last += 1;
        }
        shown.to_the_end = last == total;
        if first > 1 || last < total {
            let partial = match request.offset.is_none() && request.limit.is_none() {
                true => "PARTIAL view: ",
                false => "",
            };
            let next = match last < total {
                true => format!("continue with offset {}", last + 1),
                false => "the end of the notebook".to_owned(),
            };
            let cells = match first == last {
                true => format!("cell {first}"),
                false => format!("cells {first}–{last}"),
            };
            let _ = write!(shown.text, "\n[{partial}{cells} of {total}; {next}]");
        }
        Ok(shown)
    }

    /// Adds a cell, unless it would be too much; the first one always comes, cut if need be.
    fn add(
        &mut self,
        cell: &Cell<'_>,
        language: Option<&str>,
        request: &PageRequest,
        is_first: bool,
    ) -> bool {
        let (name, kind, source) = (cell.name(), cell.kind(), cell.source());
        let left = request.max_tokens.saturating_sub(self.tokens);
        let cost = estimate_tokens(source.len() as u64) + 20;
        if cost > left && !is_first {
            return false;
        }
        let mut text = format!("<cell id=\"{name}\"><cell_type>{kind}</cell_type>");
        // Bytes to tokens is 7 to 2, see `estimate_tokens`.
        let room = usize::try_from(left.saturating_mul(7) / 2).unwrap_or(usize::MAX);
        let kept = &source[..source.floor_char_boundary(room)];
        text.push_str(kept);
        if kept.len() < source.len() {
            let _ = write!(
                text,
                "[cut: the source has {} characters, too many for one answer; use a shell command \
                 such as jq for the rest]",
                source.chars().count()
            );
        }
        let _ = write!(text, "</cell id=\"{name}\">");
        let mut cost = cost;
        let mut outputs = Vec::new();
        for output in cell.outputs() {
            let block = match output {
                Output::Text { text } => Content::text(cut(text)),
                Output::Image { media_type, data } => as_picture(&media_type, &data),
            };
            cost += match &block {
                Content::Text { text } => estimate_tokens(text.len() as u64),
                _ => PICTURE_TOKENS,
            };
            outputs.push(block);
            if cost > left {
                break;
            }
        }
        if cost > left && !is_first {
            return false;
        }
        if cost > left && cell.outputs().len() > outputs.len() {
            let more = "[more outputs of this cell do not fit into one answer]";
            outputs.push(Content::text(more));
        }
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

/// A picture in an answer; what is no picture is named.
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

/// The beginning and the end of an output that is too long: errors end with what went wrong.
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
            let haft_contract::output::Source::Base64 { media_type, data } = source;
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
