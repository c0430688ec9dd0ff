//! The reading itself, where the build has a reader.

use std::{fmt::Write, path::Path, sync::Arc};

use haft_contract::{CallContext, Content, ToolError, ToolOutput};
use haft_journal::{Extent, Journal, estimate_tokens};
use haft_pdf::{
    Document, Page, Request,
    child::{self, Limits},
};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{PAGES_AT_ONCE, Pages, PdfReader, Wish, no_reader};
use crate::{
    blocking::blocking,
    fs::{
        explain,
        read::{image, output, picture},
    },
    paths::shown,
    words::counted,
};

/// Larger files are not read.
const FILE_LIMIT: u64 = 100 << 20;
/// Up to so many pages come without being asked for.
const WHOLE_UP_TO: u32 = 10;
/// The longer side of a drawn page.
const PIXELS: u32 = 1_568;
/// What a drawn page costs, about.
const PICTURE_TOKENS: u64 = 1_600;

/// Each reader may use much memory, so few run at once.
static READERS: Semaphore = Semaphore::const_new(2);

/// What was read, and pictures of the pages without text.
struct Found {
    document: Document,
    drawn: Vec<(u32, Result<image::Picture, String>)>,
    size: usize,
}

pub(in crate::fs::read) async fn read(
    wish: &Wish<'_>,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let Ok(reader) = cx.services.get::<PdfReader>() else {
        return Err(no_reader(wish, cx));
    };
    let name = shown(wish.path, &cx.cwd);
    let pages = wish.pages.map(Pages::parse).transpose();
    let pages = pages.map_err(ToolError::Failed)?.map(|pages| pages.0);
    let found = {
        let _place = tokio::select! {
            place = READERS.acquire() => place.map_err(|_| ToolError::Cancelled)?,
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
        };
        look(wish, &reader, pages.clone(), &name, cx).await?
    };
    let count = found.document.page_count;
    if let Some(pages) = &pages
        && found.document.pages.is_empty()
        && let Some(first) = pages.first()
    {
        return Err(ToolError::Failed(format!(
            "{name} has {}: page {first} does not exist.",
            counted(count.into(), "page")
        )));
    }
    let content = match pages.is_none() && found.document.pages.is_empty() {
        true => vec![Content::text(outline(&found.document, &name))],
        false => shown_pages(&found, pages.as_deref(), wish.max_tokens, &name),
    };
    let structured = json!({"type": "parts", "file": {
        "filePath": wish.path.to_string_lossy(),
        "originalSize": found.size,
        "count": count,
        "outputDir": null,
    }, "firstPage": found.document.pages.first().map(|page| page.number)});
    Ok(output(content, structured))
}

/// Reads the file, has it read, and has pages without text drawn.
async fn look(
    wish: &Wish<'_>,
    reader: &PdfReader,
    pages: Option<Vec<u32>>,
    name: &str,
    cx: &CallContext,
) -> Result<Found, ToolError> {
    let journal = cx.services.get::<Journal>()?;
    let (path, cwd) = (wish.path.to_path_buf(), Arc::clone(&cx.cwd));
    let (reader, cancel, name) = (reader.clone(), cx.cancel.clone(), name.to_owned());
    // Bytes to tokens is 7 to 2, see `estimate_tokens`.
    let max_page_bytes = wish.max_tokens.saturating_mul(7) / 2;
    let request = Request {
        pages,
        whole_up_to: WHOLE_UP_TO,
        max_page_bytes: usize::try_from(max_page_bytes).unwrap_or(usize::MAX),
    };
    blocking(move || {
        let raw = journal
            .read_bytes(&path, FILE_LIMIT)
            .map_err(|error| ToolError::Failed(explain(error, &cwd)))?;
        let is_cancelled = || cancel.is_cancelled();
        let limits = Limits::default();
        let document = child::ask(
            &reader.program,
            &raw.bytes,
            &request,
            &limits,
            &is_cancelled,
        )
        .map_err(|error| match error {
            child::AskError::Cancelled => ToolError::Cancelled,
            error => ToolError::Failed(format!(
                "{name} {error}. Try a shell command such as pdftotext or qpdf on it."
            )),
        })?;
        let drawn = draw(&document, &reader, &raw.bytes, &limits, &is_cancelled);
        let size = raw.bytes.len();
        let extent = match document.pages.len() == document.page_count as usize {
            true => Extent::Whole,
            false => Extent::Part,
        };
        journal.saw(raw, extent);
        Ok(Found {
            document,
            drawn,
            size,
        })
    })
    .await?
}

fn draw(
    document: &Document,
    reader: &PdfReader,
    bytes: &[u8],
    limits: &Limits,
    is_cancelled: &dyn Fn() -> bool,
) -> Vec<(u32, Result<image::Picture, String>)> {
    let bare = document.pages.iter().filter(|page| page.text.is_empty());
    let Some(drawer) = &reader.drawer else {
        return Vec::new();
    };
    let mut drawn = Vec::new();
    for page in bare {
        let picture = draw_page(
            &reader.program,
            drawer,
            bytes,
            page.number,
            limits,
            is_cancelled,
        );
        // What failed once, and took its time, is not tried page after page.
        let failed = picture.is_err();
        drawn.push((page.number, picture));
        if failed {
            break;
        }
    }
    drawn
}

fn draw_page(
    program: &Path,
    drawer: &Path,
    bytes: &[u8],
    page: u32,
    limits: &Limits,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<image::Picture, String> {
    let png = child::draw(program, drawer, bytes, page, PIXELS, limits, is_cancelled);
    image::prepare(&png.map_err(|error| format!("it {error}"))?)
}

/// The pages as text with marks, as many as fit; pictures of those without text.
fn shown_pages(found: &Found, asked: Option<&[u32]>, max_tokens: u64, name: &str) -> Vec<Content> {
    let count = found.document.page_count;
    let mut blocks = Vec::new();
    let mut text = format!("{name}: PDF document, {}", counted(count.into(), "page"));
    let mut left = max_tokens;
    let mut rest = found.document.pages.iter().peekable();
    let mut is_first = true;
    while let Some(page) = rest.peek() {
        let drawn = found
            .drawn
            .iter()
            .find(|(number, _)| *number == page.number);
        let cost = match drawn {
            Some((_, Ok(_))) => PICTURE_TOKENS,
            _ => estimate_tokens(page.text.len() as u64) + 10,
        };
        if cost > left && !is_first {
            break;
        }
        left = left.saturating_sub(cost);
        is_first = false;
        let _ = write!(text, "\n\n--- page {} of {count} ---\n", page.number);
        match drawn {
            Some((_, Ok(ready))) => {
                text.push_str("[no text layer, so the page follows as an image]");
                blocks.push(Content::text(std::mem::take(&mut text)));
                blocks.push(picture(ready.media_type, ready.base64.clone()));
            }
            Some((_, Err(error))) => {
                let _ = write!(
                    text,
                    "[no text layer, and the page could not be drawn: {error}]"
                );
            }
            None => text.push_str(&words(page)),
        }
        rest.next();
    }
    let missing: Vec<u32> = rest.map(|page| page.number).collect();
    if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
        let _ = write!(
            text,
            "\n\n[pages {first} to {last} do not fit into one answer; ask for them with pages \
             \"{first}-{last}\"]"
        );
    }
    let beyond = asked.and_then(|asked| asked.iter().find(|page| **page > count));
    if let Some(beyond) = beyond {
        let _ = write!(
            text,
            "\n\n[page {beyond} does not exist: the document ends with page {count}]"
        );
    }
    let text = text.trim_start();
    if !text.is_empty() {
        blocks.push(Content::text(text));
    }
    blocks
}

fn words(page: &Page) -> String {
    if let Some(failure) = &page.failure {
        return format!("[this page cannot be read: {failure}]");
    }
    if page.text.is_empty() {
        return "[no text layer: the page is empty, or a scan or drawing. It could be shown as an \
                image if pdftoppm (poppler-utils) were installed]"
            .to_owned();
    }
    let mut text = page.text.clone();
    if page.is_cut {
        text.push_str("\n[cut: the page has more text than fits into one answer]");
    }
    text
}

/// A long document: what is in it, and a question.
fn outline(document: &Document, name: &str) -> String {
    let count = document.page_count;
    if count == 0 {
        return format!("{name}: PDF document without pages.");
    }
    let mut text = format!(
        "{name}: PDF document, {count} pages. That is too much for one answer: say which pages you \
         want, at most {PAGES_AT_ONCE} at once, such as pages \"1-{}\".",
        count.min(PAGES_AT_ONCE as u32)
    );
    if document.outline.is_empty() {
        text.push_str(" It has no outline.");
        return text;
    }
    text.push_str("\nIts outline:");
    for heading in &document.outline {
        let indent = "  ".repeat(heading.level as usize);
        let _ = write!(text, "\n{indent}- {}", heading.title);
        if let Some(page) = heading.page {
            let _ = write!(text, " (page {page})");
        }
    }
    text
}
