//! What the child does with the bytes of a PDF.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pdf_oxide::{
    PdfDocument,
    outline::{Destination, OutlineItem},
};

use crate::{Document, Heading, Page, Request};

/// How much of an outline is given.
const HEADINGS: usize = 200;
const TITLE_CHARS: usize = 120;

/// Why a document cannot be read at all, in words.
pub(crate) fn read(bytes: Vec<u8>, request: &Request) -> Result<Document, String> {
    let document = PdfDocument::from_bytes(bytes).map_err(|error| error.to_string())?;
    if document.is_encrypted() && !document.is_authenticated() {
        // Many are encrypted only against changes, with an empty password.
        let is_open = document.authenticate(b"").unwrap_or(false);
        if !is_open {
            return Err("it is encrypted and needs a password".to_owned());
        }
    }
    let count = document.page_count().map_err(|error| error.to_string())?;
    let page_count = u32::try_from(count).map_err(|_| "it claims too many pages".to_owned())?;
    let pages = match &request.pages {
        Some(pages) => pages.clone(),
        None if page_count <= request.whole_up_to => (1..=page_count).collect(),
        None => Vec::new(),
    };
    let mut outline = Vec::new();
    if request.pages.is_none()
        && pages.is_empty()
        && let Ok(Some(items)) = document.get_outline()
    {
        add_headings(&items, 0, &document, &mut outline);
    }
    let pages = pages.into_iter().filter(|page| *page <= page_count);
    let pages = pages.map(|number| read_page(&document, number, request.max_page_bytes));
    Ok(Document {
        page_count,
        outline,
        pages: pages.collect(),
    })
}

fn read_page(document: &PdfDocument, number: u32, max_bytes: usize) -> Page {
    let index = number as usize - 1;
    // One bad page is no reason not to show the others.
    let text = catch_unwind(AssertUnwindSafe(|| document.extract_text(index)));
    let (text, failure) = match text {
        Ok(Ok(text)) => (clean(&text), None),
        Ok(Err(error)) => (String::new(), Some(error.to_string())),
        Err(_) => (
            String::new(),
            Some("its content cannot be understood".to_owned()),
        ),
    };
    let kept = &text[..text.floor_char_boundary(max_bytes)];
    Page {
        number,
        is_cut: kept.len() < text.len(),
        text: kept.to_owned(),
        failure,
    }
}

/// Without control characters, and without blanks nobody sees.
fn clean(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let line: String = line
            .chars()
            .filter(|character| *character == '\t' || !character.is_control())
            .collect();
        let is_blank = line.trim().is_empty();
        if !(is_blank && lines.last().is_none_or(|last| last.is_empty())) {
            lines.push(line.trim_end().to_owned());
        }
    }
    while lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines.join("\n")
}

fn add_headings(
    items: &[OutlineItem],
    level: u32,
    document: &PdfDocument,
    outline: &mut Vec<Heading>,
) {
    for item in items {
        if outline.len() >= HEADINGS || level > 8 {
            return;
        }
        let index = match &item.dest {
            Some(Destination::PageIndex(index)) => Some(*index),
            Some(Destination::Named(name)) => {
                document.resolve_named_destination(name).ok().flatten()
            }
            None => None,
        };
        outline.push(Heading {
            title: clean(&item.title).chars().take(TITLE_CHARS).collect(),
            level,
            page: index.and_then(|index| u32::try_from(index + 1).ok()),
        });
        add_headings(&item.children, level + 1, document, outline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cleaned_of_what_nobody_sees() {
        assert_eq!(clean("\n\na \0b\u{c}\n\n\n\nc\t1  \n \n"), "a b\n\nc\t1");
    }
}
