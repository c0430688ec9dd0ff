//! `Read`: shows text as numbered lines, images as images, notebooks by cell and PDFs by page.
//!
//! The first bytes of a file determine its type, not its name; only notebooks, which are text, too,
//! are detected by extension. The parts that were shown are recorded as seen, which Edit and Write
//! require.

mod dedupe;
mod image;
mod notebook;
mod pdf;
mod text;

use std::{
    fmt::Write,
    fs::{self, Metadata},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use haft_contract::{
    CallContext, Card, CheckOutcome, Content, Effects, RuleMatch, Services, Tool, ToolAccess,
    ToolError, ToolOutput, ToolProfile, card::plain, output::MediaSource,
};
use haft_journal::{FileTarget, Journal, JournalError, PageRequest, TextPage, resolve, respelt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use dedupe::ReadResult;
#[cfg(feature = "fuzzing")]
pub use image::invariants::check as check_image;
pub use image::{image_content, image_pixels};
pub use pdf::PdfReader;

use super::{editor, explain, is_missing, is_notebook, missing, profile, target, ticket};
use crate::{
    AlwaysFullResults,
    blocking::blocking,
    paths::{escape_json, shown},
    plural::counted,
};

/// The maximum size of files that are read on the calling thread, in bytes. Handing a file to another
/// thread costs 20 µs: more than reading 1 KiB (16 µs), and a third of reading 16 KiB (70 µs).
const READ_DIRECTLY: u64 = 16 << 10;

/// Reads a file: text, an image, a notebook or a PDF.
///
/// - Text comes as lines, each as its number, a tab and the text. Without `offset` and `limit` it
///   starts at line 1 and returns up to 2000 lines or about 25000 tokens. If that is not all, the
///   last line says `PARTIAL view` and the `offset` to continue with.
/// - Lines over 2000 characters are cut; `char_offset` continues inside a cut line.
/// - Line numbers and the notes in square brackets at the end are not part of the file.
/// - Images (PNG, JPEG, GIF, WebP) are shown to you, large ones scaled down.
/// - Notebooks (.ipynb) come cell by cell with ids and outputs; `offset` and `limit` count cells.
/// - PDFs come page by page; if there are more than 10, choose some with `pages`.
/// - Read a file before you change it: Edit, Write and NotebookEdit refuse files that were not read.
/// - For a directory use LS; to find text in many files use Grep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file to read; best as an absolute path.
    file_path: PathBuf,
    /// The first line to return, counted from 1.
    #[serde(default)]
    offset: Option<u64>,
    /// The number of lines to return.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Skip this many characters of the first line or cell; only for reading on in one that was cut.
    #[serde(default)]
    char_offset: Option<u64>,
    /// The pages of a PDF to return, such as "3", "1-5" or "2-5,9"; at most 20 per call.
    #[serde(default)]
    pages: Option<String>,
    /// Return up to four times as much. Only if you really need a long text completely.
    #[serde(default)]
    allow_large: bool,
    /// Whether the path was a file when the effects of the call were computed. If so, the check is
    /// skipped, because the read itself checks the file.
    #[serde(skip)]
    was_file: AtomicBool,
}

impl Input {
    /// Returns the requested pages; models send an empty string or spaces for "none".
    fn pages(&self) -> Option<&str> {
        let pages = self.pages.as_deref().map(str::trim);
        pages.filter(|pages| !pages.is_empty())
    }
}

#[derive(Default)]
pub(crate) struct Read {
    /// Disables references to earlier results, so that the order of calls does not matter.
    whole_answers: bool,
}

impl Tool for Read {
    type Input = Input;
    const NAME: &'static str = "Read";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            aliases: vec!["NotebookRead".into()],
            result_cap: None,
            rules: RuleMatch::Reads,
            basic: true,
            output_schema: Some(output_schema()),
            ..profile(
                ToolAccess::Reads,
                &["file_path"],
                "open view show cat file contents lines image picture notebook ipynb pdf",
            )
        }
    }

    fn for_session(&self, services: &Services) -> Option<Self> {
        let whole_answers = services.get::<AlwaysFullResults>().is_ok();
        Some(Self { whole_answers })
    }

    fn effects(&self, input: &Input) -> Effects {
        let found = fs::metadata(&input.file_path);
        let is_file = found.as_ref().is_ok_and(Metadata::is_file);
        input.was_file.store(is_file, Ordering::Relaxed);
        let effects = match found.is_ok() {
            true => Effects::reading([input.file_path.clone()]),
            // The error text suggests similar files, so it depends on more than the path.
            false => Effects::READS,
        };
        Effects {
            in_order: !self.whole_answers, // a second Read may refer to the first one
            ..effects
        }
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        if let Some(pages) = input.pages() {
            pdf::check(pages).map_err(ToolError::Refused)?;
        }
        if input.was_file.load(Ordering::Relaxed) {
            target(&cx.cwd.join(&input.file_path), cx)?;
            return Ok(CheckOutcome::Pass);
        }
        // Boxed, like everything that few calls need: otherwise the future of every call would be
        // as large as the largest one.
        let ResolvedTarget { target, found } = Box::pin(resolve_target(input, cx)).await?;
        if found.is_some_and(|found| found.is_file()) {
            return Ok(CheckOutcome::Pass);
        }
        let path = target.path().to_path_buf();
        match target.resolve() {
            Ok(found) if found.real.symlink_metadata().is_ok_and(|it| it.is_dir()) => {
                let error = JournalError::IsDirectory { path };
                Err(ToolError::Refused(explain(error, &cx.cwd)))
            }
            // For circular links and directories without access, the read itself gives the best
            // error. A missing file passes, too: hooks may provide or create it.
            _ => Ok(CheckOutcome::Pass),
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        // Unsaved text of an editor has priority over the file on disk.
        let has_editor = editor::has_editor(cx);
        if !has_editor && let Some((found, path)) = read_directly(input, cx)? {
            return match self.whole_answers {
                true => Ok(found.output),
                false => dedupe::deduplicate(found, &path, cx),
            };
        }
        // Boxed, like everything that few calls need.
        Box::pin(read_any(input, cx, has_editor)).await
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let mut subject = input.file_path.display().to_string();
        let noun = if is_notebook(&input.file_path) {
            "cell"
        } else {
            "line"
        };
        if let Some(offset) = input.offset {
            let _ = write!(subject, " from {noun} {offset}");
        }
        if let Some(limit) = input.limit {
            let _ = write!(subject, ", {}", counted(limit, noun));
        }
        if let Some(pages) = input.pages() {
            let _ = write!(subject, ", pages {pages}");
        }
        Some(Card::new(Self::NAME, subject))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let structured = output.structured.as_ref()?;
        let file = &structured["file"];
        let summary = match structured["type"].as_str()? {
            "text" => {
                let (shown, total) = (file["numLines"].as_u64()?, file["totalLines"].as_u64());
                match total {
                    Some(total) if total > shown => {
                        format!("{shown} of {}", counted(total, "line"))
                    }
                    _ => counted(shown, "line"),
                }
            }
            "image" => {
                let size = &file["dimensions"];
                format!(
                    "image, {}×{}",
                    size["originalWidth"], size["originalHeight"]
                )
            }
            "notebook" => counted(file["cells"].as_array()?.len() as u64, "cell"),
            _ => counted(file["count"].as_u64()?, "page"),
        };
        let card = self.render_use(input)?.with_summary(summary);
        Some(plain::result(card, output))
    }
}

/// Reads a file of any type, with the unsaved text of its editor, if any.
async fn read_any(
    input: &Input,
    cx: &CallContext,
    has_editor: bool,
) -> Result<ToolOutput, ToolError> {
    let mut meant = resolve_target(input, cx).await?;
    if has_editor {
        meant.target = editor::with_unsaved(meant.target, cx).await?;
    }
    let is_unsaved = meant.target.unsaved_text().is_some();
    let (target, path) = (&meant.target, meant.target.path());
    if meant.found.is_none() {
        exists(target, cx).await?;
    }
    let found = read_by_type(input, &meant, cx).await?;
    let mut output = dedupe::deduplicate(found, path, cx)?;
    if is_unsaved {
        add_note(
            &mut output,
            "note: this is the text in the user's editor, with unsaved changes; commands and searches see the file on \
             disk, which is older",
        );
    }
    if path != cx.cwd.join(&input.file_path) {
        let name = escape_json(&shown(path, &cx.cwd));
        add_note(
            &mut output,
            &format!("note: the name of this file is {name}; write it so to change the file"),
        );
    }
    Ok(output)
}

/// A file, with its metadata if it was found.
struct ResolvedTarget {
    target: FileTarget,
    found: Option<Metadata>,
}

/// Returns the given file or, if it does not exist, the only file with a name that looks the same.
/// Permission was granted for the given name, so the other file must be inside the permitted
/// directories, and no rule may deny reading it.
async fn resolve_target(input: &Input, cx: &CallContext) -> Result<ResolvedTarget, ToolError> {
    let path = cx.cwd.join(&input.file_path);
    let target = target(&path, cx)?;
    match fs::metadata(&path) {
        Err(error) if is_missing(&error) => {}
        found => {
            let found = found.ok();
            return Ok(ResolvedTarget { target, found });
        }
    }
    let (inside, permissions) = (ticket(Read::NAME, cx), cx.permissions.clone());
    blocking(move || {
        let open = |alike: PathBuf| {
            let real = resolve(&alike).ok().filter(|found| found.exists)?.real;
            let is_kept = [&alike, &real].into_iter().any(|path| {
                let mut stores = permissions.key_stores.iter();
                permissions.hidden.hides(path) || stores.any(|store| path.starts_with(store))
            });
            (inside.covers(&real) && !is_kept).then(|| FileTarget::authorized(alike, real))
        };
        let target = respelt(&path).and_then(open).unwrap_or(target);
        ResolvedTarget {
            target,
            found: None,
        }
    })
    .await
}

/// Adds a note to the text for the model.
fn add_note(output: &mut ToolOutput, note: &str) {
    let mut texts = output
        .content
        .iter_mut()
        .rev()
        .filter_map(|block| match block {
            Content::Text { text } => Some(text),
            _ => None,
        });
    match texts.next() {
        // Writing to a string cannot fail.
        Some(text) => drop(write!(text, "\n[{note}]")),
        None => output.content.push(Content::text(format!("[{note}]"))),
    }
}

/// Fails with suggestions if the file does not exist.
async fn exists(target: &FileTarget, cx: &CallContext) -> Result<(), ToolError> {
    match target.resolve() {
        Ok(found) if found.exists => Ok(()),
        Ok(_) | Err(JournalError::DoesNotExist { .. } | JournalError::ParentIsFile { .. }) => {
            let (path, cwd) = (target.path().to_path_buf(), cx.cwd.clone());
            let text = blocking(move || missing(&path, &cwd)).await?;
            Err(ToolError::Refused(text))
        }
        Err(_) => Ok(()),
    }
}

/// Reads a short text file with exactly the given name, the usual case, without checking it again.
fn read_directly(
    input: &Input,
    cx: &CallContext,
) -> Result<Option<(ReadResult, PathBuf)>, ToolError> {
    let path = cx.cwd.join(&input.file_path);
    let was_file = input.was_file.load(Ordering::Relaxed);
    if !was_file || is_notebook(&path) || input.pages().is_some() {
        return Ok(None);
    }
    let journal = cx.services.get::<Journal>()?;
    let (target, request) = (target(&path, cx)?, text::request(input));
    let page = journal.read_small(&target, &request, READ_DIRECTLY);
    let found = page.map(|page| {
        // The name is needed only for the note about an empty file.
        let name = page.empty.then(|| shown(&path, &cx.cwd));
        text_found(&page, &request, &path, &name.unwrap_or_default(), None)
    });
    Ok(found.map(|found| (found, path)))
}

/// Reads the file according to its type.
async fn read_by_type(
    input: &Input,
    meant: &ResolvedTarget,
    cx: &CallContext,
) -> Result<ReadResult, ToolError> {
    let journal = cx.services.get::<Journal>()?;
    let target = &meant.target;
    let path = target.path();
    let name = shown(path, &cx.cwd);
    let request = text::request(input);
    let mut note = None;
    if is_notebook(path) {
        match notebook::read(target, &request, cx).await? {
            notebook::NotebookView::Cells(found) => return Ok(found),
            notebook::NotebookView::ShowAsText(why) => note = Some(why),
        }
    }
    // A file of size 0 may be in /proc, and reading it may take time.
    let found = meant.found.clone().or_else(|| fs::metadata(path).ok());
    let small = found.is_some_and(|it| it.is_file() && (1..=READ_DIRECTLY).contains(&it.len()));
    let read = {
        let (target, request) = (target.clone(), request.clone());
        move || journal.read(target, &request)
    };
    let page = if small { read() } else { blocking(read).await? };
    let page = match page {
        Err(JournalError::Binary { kind, .. }) if image::is_shown(kind) => {
            let (output, real) = image::read(target, cx).await?;
            return Ok(ReadResult {
                output,
                real,
                part: Some("the image".to_owned()),
            });
        }
        Err(JournalError::Binary { kind, .. }) if kind == Some(pdf::KIND) => {
            let wish = pdf::PdfQuery {
                target,
                pages: input.pages(),
                max_tokens: request.max_tokens,
            };
            let part = match input.pages() {
                Some(pages) => format!("pages {pages}"),
                None => "the document".to_owned(),
            };
            let (output, real) = pdf::read(&wish, cx).await?;
            return Ok(ReadResult {
                output,
                real,
                // With larger limits the same pages may show more content.
                part: (!input.allow_large).then_some(part),
            });
        }
        page => page.map_err(|error| ToolError::Failed(explain(error, &cx.cwd)))?,
    };
    if input.pages().is_some() {
        return Err(ToolError::Failed(format!(
            "{name} is text, and `pages` is only for PDFs: leave it out, or use offset and limit."
        )));
    }
    Ok(text_found(&page, &request, path, &name, note))
}

/// Returns the result for a text.
fn text_found(
    page: &TextPage,
    request: &PageRequest,
    path: &Path,
    name: &str,
    note: Option<String>,
) -> ReadResult {
    let mut text = text::answer(page, request, name);
    if let Some(note) = note.filter(|_| !page.empty) {
        let _ = write!(text, "\n[{note}]");
    }
    ReadResult {
        real: page.real.clone(),
        output: ToolOutput::text(text).with_structured(text::structured(page, path)),
        part: (!page.empty).then(|| text::range(page, request, None)),
    }
}

/// Reads a file that this program has fetched and stored, like Read would.
#[cfg(feature = "web")]
pub(crate) async fn read_kept(path: &Path, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    let real = fs::canonicalize(path).map_err(|source| ToolError::Read {
        path: path.to_path_buf(),
        source,
    })?;
    let input = Input {
        file_path: real.clone(),
        offset: None,
        limit: None,
        char_offset: None,
        pages: None,
        allow_large: false,
        was_file: AtomicBool::default(),
    };
    let meant = ResolvedTarget {
        target: FileTarget::authorized(real.clone(), real),
        found: None,
    };
    Ok(read_by_type(&input, &meant, cx).await?.output)
}

/// Returns the schema of the structured output: a text, an image, a notebook or the pages of a
/// document.
fn output_schema() -> Value {
    let integer = || json!({"type": "integer"});
    json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["text", "image", "notebook", "parts"]},
            "file": {
                "type": "object",
                "properties": {
                    "filePath": {"type": "string"},
                    "content": {"type": "string", "description": "The lines of a text"},
                    "numLines": integer(),
                    "startLine": integer(),
                    "totalLines": {"type": ["integer", "null"], "description": "Null if they were not counted"},
                    "truncatedByTokenCap": {"type": "boolean"},
                    "base64": {"type": "string", "description": "A picture"},
                    "type": {"type": "string", "description": "The type of an image"},
                    "originalSize": integer(),
                    "dimensions": {"type": "object"},
                    "cells": {"type": "array", "description": "Of a notebook"},
                    "count": {"type": "integer", "description": "Pages of a document"},
                },
            },
            "firstPage": {"type": ["integer", "null"]},
        },
        "required": ["type", "file"],
    })
}

/// Returns an image as content.
fn picture(media_type: &str, data: String) -> Content {
    Content::Image {
        source: MediaSource::Base64 {
            media_type: media_type.to_owned(),
            data,
        },
    }
}

fn output(content: Vec<Content>, structured: Value) -> ToolOutput {
    ToolOutput {
        content,
        structured: Some(structured),
        ..ToolOutput::default()
    }
}
