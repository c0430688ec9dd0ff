//! The text about a PDF for the model.

use std::fmt::Write;

use haft_contract::Content;
use haft_journal::estimate_tokens;
use haft_pdf::{PageFailure, PageSelection, PdfPage, PdfReading};

use super::read_pages::{PAGES_AT_ONCE, PdfContent, RenderedPage};
use crate::{fs::read::picture, plural::counted};

/// The approximate cost of a drawn page, in tokens.
pub(super) const PICTURE_TOKENS: u64 = 1_600;
/// The approximate cost of the marks around a page, in tokens.
const MARK_TOKENS: u64 = 10;

/// Returns the pages as text with marks, as many as fit, and images of those without text.
pub(super) fn pages(
    found: &PdfContent,
    asked: Option<&PageSelection>,
    max_tokens: u64,
    name: &str,
) -> Vec<Content> {
    let count = found.document.page_count;
    let mut blocks = Vec::new();
    let mut text = head(&found.document, name);
    let mut left = max_tokens;
    let mut rest = found.document.pages.iter().peekable();
    let mut is_first = true;
    while let Some(page) = rest.peek() {
        let drawing = found
            .drawings
            .iter()
            .find(|drawing| drawing.page == page.number);
        let cost = match drawing {
            Some(RenderedPage { result: Ok(_), .. }) => PICTURE_TOKENS,
            _ => estimate_tokens(page.text.len() as u64) + MARK_TOKENS,
        };
        if cost > left && !is_first {
            break;
        }
        left = left.saturating_sub(cost);
        is_first = false;
        let _ = write!(text, "\n\n--- page {} of {count} ---\n", page.number);
        match drawing.map(|drawing| &drawing.result) {
            Some(Ok(ready)) => {
                let _ = write!(
                    text,
                    "[{}, so the page follows as an image]",
                    why_bare(page)
                );
                blocks.push(Content::text(std::mem::take(&mut text).trim_start()));
                blocks.push(picture(ready.media_type, ready.base64.clone()));
            }
            Some(Err(error)) => {
                let why = why_bare(page);
                let _ = write!(text, "[{why}, and the page could not be drawn: {error}]");
            }
            None => text.push_str(&describe_page(page, !found.drawings.is_empty())),
        }
        rest.next();
    }
    let missing: Vec<u32> = rest.map(|page| page.number).collect();
    if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
        let _ = write!(
            text,
            "\n\n[pages {first} to {last} do not fit into one result; request them with pages \
             \"{first}-{last}\"]"
        );
    }
    let beyond = asked.and_then(|asked| asked.numbers().iter().find(|page| **page > count));
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

fn head(document: &PdfReading, name: &str) -> String {
    let count = counted(document.page_count.into(), "page");
    let mut text = format!("{name}: PDF document, {count}");
    if let Some(damage) = &document.damage {
        let _ = write!(
            text,
            "\n[it is damaged: {damage}. What could be read follows; pages and text may be missing, \
             and pages may be miscounted]"
        );
    }
    text
}

/// Returns the reason why a page has no text.
fn why_bare(page: &PdfPage) -> String {
    match &page.failure {
        None => "no text layer".to_owned(),
        Some(PageFailure::Unreadable(why) | PageFailure::Damaged(why)) => {
            format!("its text cannot be read ({why})")
        }
    }
}

/// Returns the text of a page that was not drawn.
fn describe_page(page: &PdfPage, can_draw: bool) -> String {
    let mut text = page.text.clone();
    if page.is_cut {
        text.push_str("\n[cut: the page has more text than fits into one result]");
    }
    match (&page.failure, text.is_empty()) {
        (None, false) => {}
        (Some(PageFailure::Damaged(why) | PageFailure::Unreadable(why)), false) => {
            let _ = write!(text, "\n[the page is damaged: {why}; text may be missing]");
        }
        (Some(PageFailure::Damaged(why)), true) => {
            let _ = write!(text, "[the page is damaged: {why}]");
        }
        (_, true) if can_draw => {
            let why = why_bare(page);
            let _ = write!(
                text,
                "[{why}, and the limit of drawn pages in one result is reached: request it with pages \"{}\"]",
                page.number
            );
        }
        (_, true) => {
            let why = match &page.failure {
                None => "no text layer: the page is empty, or a scan or drawing".to_owned(),
                Some(_) => why_bare(page),
            };
            let _ = write!(
                text,
                "[{why}. It could be shown as an image if pdftoppm (poppler-utils) were installed]"
            );
        }
    }
    text
}

/// Returns the outline of a long document, and asks which pages to read.
pub(super) fn outline(document: &PdfReading, name: &str) -> String {
    let count = document.page_count;
    if count == 0 {
        return format!("{name}: PDF document without pages.");
    }
    let mut text = head(document, name);
    let _ = write!(
        text,
        "{} That is too much for one result: choose at most {PAGES_AT_ONCE} pages, such as \
         pages \"1-{}\".",
        match document.damage {
            None => ".",
            Some(_) => "\n",
        },
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
