//! What the child does with the bytes of a PDF.

use std::{
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use pdf_oxide::{
    Error, PdfDocument,
    object::Object,
    outline::{Destination, OutlineItem},
};

use crate::{
    Failure, Heading, PdfPage, PdfReading, PdfRequest,
    answer::{HEADINGS, LEVELS, REASON_CHARS, Refusal, TITLE_CHARS},
    damage,
};

/// Reads what was asked for, or says why not.
pub fn read(bytes: Vec<u8>, request: &PdfRequest) -> Result<PdfReading, Refusal> {
    let damaged_end = damage::of_end(&bytes);
    let refuse = |error: Error, what: &str| match (&damaged_end, error) {
        (_, Error::EncryptedPdf) => Refusal::Encrypted,
        (_, Error::Unsupported(feature)) => Refusal::Unreadable(line(&feature, REASON_CHARS)),
        (Some(damage), _) => Refusal::Damaged(damage.clone()),
        // The library's own words quote the file, byte by byte.
        (None, _) => Refusal::Damaged(format!("{what} cannot be read")),
    };
    let document =
        PdfDocument::from_bytes(bytes).map_err(|error| refuse(error, "its table of objects"))?;
    if document.is_encrypted() && !document.is_authenticated() {
        // Many are encrypted only against changes, with an empty password.
        let is_open = document.authenticate(b"").unwrap_or(false);
        if !is_open {
            return Err(Refusal::Encrypted);
        }
    }
    let lost_pages = damage::of_page_tree(&document).map_err(Refusal::Damaged)?;
    let count = document
        .page_count()
        .map_err(|error| refuse(error, "its list of pages"))?;
    let page_count = u32::try_from(count)
        .map_err(|_| Refusal::Damaged("it claims too many pages".to_owned()))?;
    let numbers: Vec<u32> = match &request.pages {
        Some(pages) => pages.numbers().to_vec(),
        None if page_count <= request.whole_up_to => (1..=page_count).collect(),
        None => Vec::new(),
    };
    let mut outline = Vec::new();
    if request.pages.is_none()
        && numbers.is_empty()
        && has_outline(&document)
        && let Ok(Some(items)) = document.get_outline()
    {
        add_headings(&items, 0, &document, &mut outline);
    }
    let numbers = numbers.into_iter().filter(|page| *page <= page_count);
    let pages = numbers
        .map(|number| read_page(&document, number, request.max_page_bytes))
        .collect();
    Ok(PdfReading {
        page_count,
        outline,
        pages,
        damage: damaged_end.or(lost_pages),
    })
}

fn read_page(document: &PdfDocument, number: u32, max_bytes: usize) -> PdfPage {
    let index = number as usize - 1;
    // One bad page is no reason not to show the others.
    let (text, is_partial) =
        damage::listen(|| catch_unwind(AssertUnwindSafe(|| document.extract_text(index))));
    let (text, mut failure) = match text {
        Ok(Ok(text)) => (clean(&text), None),
        Ok(Err(error)) => (String::new(), Some(error.to_string())),
        Err(_) => (
            String::new(),
            Some("its content cannot be understood".to_owned()),
        ),
    };
    let mut failure = failure.take().map(Failure::Unreadable);
    if is_partial {
        let why = "its data can be unpacked only in part";
        failure = Some(Failure::Damaged(why.to_owned()));
    }
    let evidence = || damage::of_page(document, index, !text.is_empty());
    if let Ok(Some(why)) = catch_unwind(AssertUnwindSafe(evidence)) {
        failure = Some(Failure::Damaged(why));
    }
    let kept = &text[..text.floor_char_boundary(max_bytes)];
    PdfPage {
        number,
        is_cut: kept.len() < text.len(),
        text: kept.to_owned(),
        failure: failure.map(|failure| match failure {
            Failure::Damaged(why) => Failure::Damaged(line(&why, REASON_CHARS)),
            Failure::Unreadable(why) => Failure::Unreadable(line(&why, REASON_CHARS)),
        }),
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

/// The same, in one line of at most so many characters.
fn line(text: &str, chars: usize) -> String {
    clean(text).replace('\n', " ").chars().take(chars).collect()
}

/// Is there an outline that ends? The library would follow any, until its stack is full.
fn has_outline(document: &PdfDocument) -> bool {
    const ITEMS: usize = 20_000;
    const DEPTH: usize = 100;
    let next = |item: &Object, key: &str| item.as_dict()?.get(key)?.as_reference();
    let root = document.catalog().ok();
    let root = root.and_then(|catalog| {
        document
            .resolve_object(catalog.as_dict()?.get("Outlines")?)
            .ok()
    });
    let mut open: Vec<_> = root
        .and_then(|root| next(&root, "First"))
        .map(|first| (first, 0))
        .into_iter()
        .collect();
    let mut seen = HashSet::new();
    while let Some((reference, depth)) = open.pop() {
        if !seen.insert(reference) || seen.len() > ITEMS || depth > DEPTH {
            return false;
        }
        let Ok(item) = document.load_object(reference) else {
            continue;
        };
        open.extend(next(&item, "Next").map(|next| (next, depth)));
        open.extend(next(&item, "First").map(|first| (first, depth + 1)));
    }
    !seen.is_empty()
}

fn add_headings(
    items: &[OutlineItem],
    level: u32,
    document: &PdfDocument,
    outline: &mut Vec<Heading>,
) {
    for item in items {
        if outline.len() >= HEADINGS || level > LEVELS {
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
            title: line(&item.title, TITLE_CHARS),
            level,
            page: index.and_then(|index| u32::try_from(index.saturating_add(1)).ok()),
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
        assert_eq!(line("a\n\n b\u{1b}c", 5), "a   b");
    }
}
