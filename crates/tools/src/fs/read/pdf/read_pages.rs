//! Reading a PDF: one child process reads the file, others draw pages without text.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_contract::{CallContext, Content, ToolError, ToolOutput};
use haft_journal::{Journal, ShownExtent};
use haft_pdf::{
    PageFailure, PageSelection, PageSelectionError, PdfPage, PdfReading, PdfRequest,
    child::{self, PdfLimits, PdfReadError},
    child_answer::UnreadableReason,
};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{PdfQuery, PdfReader, no_reader, render};
use crate::{
    blocking::blocking,
    fs::{
        explain,
        read::{image, output},
    },
    paths::shown,
    plural::counted,
};

/// The maximum number of pages per call.
pub(super) const PAGES_AT_ONCE: usize = 20;
/// The maximum file size, in bytes.
const FILE_LIMIT: u64 = 100 << 20;
/// The maximum number of pages of a document that is returned without `pages`.
const WHOLE_UP_TO: u32 = 10;
/// The length of the longer side of a drawn page, in pixels.
const PIXELS: u32 = 1_568;
/// The time limit for all pages that one call draws.
const DRAWING_TIME: Duration = Duration::from_secs(60);

/// Limits the number of concurrent readers, because each may use much memory.
static READERS: Semaphore = Semaphore::const_new(2);

/// The content that was read of a file.
pub(super) struct PdfContent {
    pub(super) document: PdfReading,
    pub(super) drawings: Vec<RenderedPage>,
    size: usize,
    /// The file, with all links resolved.
    real: PathBuf,
}

/// The drawing of a page without text, or the error.
pub(super) struct RenderedPage {
    pub(super) page: u32,
    pub(super) result: Result<image::EncodedImage, String>,
}

/// Checks the syntax of `pages`.
pub(in crate::fs::read) fn check(pages: &str) -> Result<(), String> {
    parse(pages).map(drop)
}

fn parse(text: &str) -> Result<PageSelection, String> {
    PageSelection::parse(text, PAGES_AT_ONCE).map_err(|error| match error {
        PageSelectionError::Malformed => format!(
            "`pages` is {text:?}, which names no pages. Write a page, a range or several of them, \
             such as \"3\", \"1-5\" or \"2-5,9\"; pages are counted from 1."
        ),
        PageSelectionError::TooMany => format!(
            "`pages` {text:?} names more than {PAGES_AT_ONCE} pages: at most {PAGES_AT_ONCE} are \
             read in one call. Ask for fewer, then for the next ones."
        ),
    })
}

pub(in crate::fs::read) async fn read(
    wish: &PdfQuery<'_>,
    cx: &CallContext,
) -> Result<(ToolOutput, PathBuf), ToolError> {
    let Ok(reader) = cx.services.get::<PdfReader>() else {
        return Err(no_reader(wish, cx));
    };
    let name = shown(wish.target.path(), &cx.cwd);
    let asked = wish.pages.map(parse).transpose();
    let asked = asked.map_err(ToolError::Failed)?;
    let found = {
        let _place = tokio::select! {
            place = READERS.acquire() => place.map_err(|_| ToolError::Cancelled)?,
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
        };
        read_document(wish, &reader, asked.clone(), &name, cx).await?
    };
    let PdfReading {
        page_count, pages, ..
    } = &found.document;
    let first = asked.as_ref().and_then(|asked| asked.numbers().first());
    let content = match (pages.is_empty(), first) {
        (true, Some(first)) => {
            let pages = counted((*page_count).into(), "page");
            let error = format!("{name} has {pages}: page {first} does not exist.");
            return Err(ToolError::Failed(error));
        }
        (true, None) => vec![Content::text(render::outline(&found.document, &name))],
        (false, _) => render::pages(&found, asked.as_ref(), wish.max_tokens, &name),
    };
    let structured = json!({"type": "parts", "file": {
        "filePath": wish.target.path().to_string_lossy(),
        "originalSize": found.size,
        "count": page_count,
        "outputDir": null,
    }, "firstPage": pages.first().map(|page| page.number)});
    Ok((output(content, structured), found.real))
}

/// Reads the file, lets the child process parse it, and draws pages without text.
async fn read_document(
    wish: &PdfQuery<'_>,
    reader: &PdfReader,
    pages: Option<PageSelection>,
    name: &str,
    cx: &CallContext,
) -> Result<PdfContent, ToolError> {
    let journal = cx.services.get::<Journal>()?;
    let (target, cwd) = (wish.target.clone(), Arc::clone(&cx.cwd));
    let (reader, cancel, name) = (reader.clone(), cx.cancel.clone(), name.to_owned());
    // 7 bytes are about 2 tokens, see `estimate_tokens`.
    let max_page_bytes = wish.max_tokens.saturating_mul(7) / 2;
    let max_pictures = wish.max_tokens / render::PICTURE_TOKENS;
    let request = PdfRequest {
        pages,
        whole_up_to: WHOLE_UP_TO,
        max_page_bytes: usize::try_from(max_page_bytes).unwrap_or(usize::MAX),
    };
    blocking(move || {
        let raw = journal
            .read_bytes(target, FILE_LIMIT)
            .map_err(|error| ToolError::Failed(explain(error, &cwd)))?;
        let is_cancelled = || cancel.is_cancelled();
        let asked = child::read_in_child(
            &reader.program,
            &raw.bytes,
            &request,
            &PdfLimits::default(),
            &is_cancelled,
        );
        let document = asked.map_err(|error| match error {
            PdfReadError::Cancelled => ToolError::Cancelled,
            error => ToolError::Failed(format!("{name} {error}. {}", advice(&error))),
        })?;
        if let Some(damage) = lost(&document) {
            let refusal = UnreadableReason::Damaged(damage);
            let error = PdfReadError::Refused(refusal);
            return Err(ToolError::Failed(format!(
                "{name} {error}. None of the requested pages could be read. {}",
                advice(&error)
            )));
        }
        let bare = document.pages.iter().filter(|page| is_to_be_drawn(page));
        let bare = bare.map(|page| page.number);
        let bare = bare.take(usize::try_from(max_pictures.max(1)).unwrap_or(usize::MAX));
        let drawings = draw(bare, &reader, &raw.bytes, &is_cancelled);
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let (size, real) = (raw.bytes.len(), raw.real.clone());
        let extent = match document.pages.len() == document.page_count as usize {
            true => ShownExtent::Whole,
            false => ShownExtent::Part,
        };
        journal.record_shown(raw, extent);
        Ok(PdfContent {
            document,
            drawings,
            size,
            real,
        })
    })
    .await?
}

/// Returns advice for a file that could not be read.
fn advice(error: &PdfReadError) -> &'static str {
    match error {
        PdfReadError::Refused(UnreadableReason::Damaged(_)) => {
            "Get a whole copy of it, or try what shell commands make of it: qpdf damaged.pdf \
             repaired.pdf, then Read the result, or pdftotext."
        }
        PdfReadError::Refused(UnreadableReason::Encrypted) => {
            "With the password, make a copy that is not encrypted and Read that: \
             qpdf --password=PASSWORD --decrypt encrypted.pdf open.pdf."
        }
        PdfReadError::TimedOut(_) | PdfReadError::Crashed(_) | PdfReadError::TooMuch(_) => {
            "Ask for single pages with `pages`, or try a shell command such as pdftotext on it."
        }
        _ => "Try a shell command such as pdftotext on it.",
    }
}

/// Returns the damage, if no page that was read has text because of it. An empty page alone is not
/// damage: it may be a scan.
fn lost(document: &PdfReading) -> Option<String> {
    let pages = &document.pages;
    if pages.iter().any(|page| !page.text.is_empty()) {
        return None;
    }
    let damage_of = |page: &PdfPage| match &page.failure {
        Some(PageFailure::Damaged(why)) => Some(format!("page {}: {why}", page.number)),
        _ => None,
    };
    match &document.damage {
        Some(damage) if !pages.is_empty() || document.page_count == 0 => Some(damage.clone()),
        _ if pages.iter().all(|page| damage_of(page).is_some()) => {
            pages.first().and_then(damage_of)
        }
        _ => None,
    }
}

/// Returns whether a page is drawn: it has no text, and its data is not damaged. A drawing of
/// damaged data would be empty and hide the damage.
fn is_to_be_drawn(page: &PdfPage) -> bool {
    page.text.is_empty() && !matches!(page.failure, Some(PageFailure::Damaged(_)))
}

fn draw(
    pages: impl Iterator<Item = u32>,
    reader: &PdfReader,
    bytes: &[u8],
    is_cancelled: &dyn Fn() -> bool,
) -> Vec<RenderedPage> {
    let Some(drawer) = &reader.drawer else {
        return Vec::new();
    };
    let end = Instant::now() + DRAWING_TIME;
    let mut drawings = Vec::new();
    for page in pages {
        let mut limits = PdfLimits::default();
        limits.time = limits
            .time
            .min(end.saturating_duration_since(Instant::now()));
        let program = &reader.program;
        let png = child::draw_in_child(program, drawer, bytes, page, PIXELS, &limits, is_cancelled);
        let result = png
            .map_err(|error| format!("it {error}"))
            .and_then(|png| image::prepare(&png));
        // If one page fails, which may take long, the others are not tried.
        let has_failed = result.is_err();
        drawings.push(RenderedPage { page, result });
        if has_failed {
            break;
        }
    }
    drawings
}
