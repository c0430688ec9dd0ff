//! The work of the child: reading the bytes of a PDF.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_syntax::{
    DecryptionError, LoadPdfError, Pdf,
    object::{Array, Object, Stream},
};

use crate::{
    PageFailure, PdfPage, PdfReading, PdfRequest,
    child_answer::{REASON_CHARS, UnreadableReason},
    damage, outline,
    text::{self, FontCache},
    tree::{self, ListedPage},
};

/// Reads the requested parts, or returns the reason why the document cannot be read.
pub fn read(bytes: Vec<u8>, request: &PdfRequest) -> Result<PdfReading, UnreadableReason> {
    let damaged_end = damage::find_truncation(&bytes);
    // Many files are encrypted only against changes, with an empty password. The library tries
    // that.
    let document = Pdf::new(bytes).map_err(|error| match (error, &damaged_end) {
        (LoadPdfError::Decryption(DecryptionError::PasswordProtected), _) => {
            UnreadableReason::Encrypted
        }
        (LoadPdfError::Decryption(DecryptionError::UnsupportedAlgorithm), _) => {
            UnreadableReason::Unreadable(
                "it is encrypted in a way that is not supported".to_owned(),
            )
        }
        (_, Some(damage)) => UnreadableReason::Damaged(damage.clone()),
        (LoadPdfError::Decryption(_), None) => {
            UnreadableReason::Damaged("its encryption cannot be read".to_owned())
        }
        (LoadPdfError::Invalid, None) => {
            UnreadableReason::Damaged("its table of objects cannot be read".to_owned())
        }
    })?;
    let listed = tree::pages(&document).map_err(UnreadableReason::Damaged)?;
    let page_count = u32::try_from(listed.len())
        .map_err(|_| UnreadableReason::Damaged("it claims too many pages".to_owned()))?;
    let numbers: Vec<u32> = match &request.pages {
        Some(pages) => pages.numbers().to_vec(),
        None if page_count <= request.whole_up_to => (1..=page_count).collect(),
        None => Vec::new(),
    };
    let outline = match request.pages.is_none() && numbers.is_empty() {
        true => outline::headings(&document, &listed),
        false => Vec::new(),
    };
    let mut fonts = FontCache::default();
    let pages = numbers
        .into_iter()
        .filter_map(|number| {
            let page = listed.get(number as usize - 1)?;
            let limit = request.max_page_bytes;
            Some(read_page(&document, page, number, limit, &mut fonts))
        })
        .collect();
    Ok(PdfReading {
        page_count,
        outline,
        pages,
        damage: damaged_end.or_else(|| damage::find_missing_pages(&listed)),
    })
}

fn read_page(
    document: &Pdf,
    page: &ListedPage<'_>,
    number: u32,
    max_bytes: usize,
    fonts: &mut FontCache,
) -> PdfPage {
    let content = content(page);
    // A page that fails must not prevent reading the others.
    let text = catch_unwind(AssertUnwindSafe(|| text::page_text(page, &content, fonts)));
    let (text, mut failure) = match text {
        Ok(text) => (clean(&text), None),
        Err(_) => {
            let why = "its content cannot be understood".to_owned();
            (String::new(), Some(PageFailure::Unreadable(why)))
        }
    };
    let evidence = || damage::find_page_damage(document, page, &content, !text.is_empty());
    if let Ok(Some(why)) = catch_unwind(AssertUnwindSafe(evidence)) {
        failure = Some(PageFailure::Damaged(one_line(&why, REASON_CHARS)));
    }
    let kept = &text[..text.floor_char_boundary(max_bytes)];
    PdfPage {
        number,
        is_cut: kept.len() < text.len(),
        text: kept.to_owned(),
        failure,
    }
}

/// Returns the decoded content of a page: one stream, or several that are concatenated.
fn content(page: &ListedPage<'_>) -> Vec<u8> {
    let contents = page.dict.as_ref();
    let contents = contents.and_then(|page| page.get::<Object<'_>>("Contents"));
    let streams: Vec<Stream<'_>> = match contents {
        Some(Object::Stream(stream)) => vec![stream],
        Some(Object::Array(parts)) => streams(&parts),
        _ => Vec::new(),
    };
    let mut content = Vec::new();
    for stream in streams {
        if let Ok(bytes) = stream.decoded_data() {
            content.extend_from_slice(&bytes);
            content.push(b'\n');
        }
    }
    content
}

fn streams<'a>(parts: &Array<'a>) -> Vec<Stream<'a>> {
    parts
        .iter::<Object<'_>>()
        .filter_map(Object::into_stream)
        .collect()
}

/// Removes control characters, trailing spaces and repeated empty lines.
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

/// Like [`clean`], but returns one line of at most `chars` characters.
pub(crate) fn one_line(text: &str, chars: usize) -> String {
    clean(text).replace('\n', " ").chars().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cleaned_of_what_nobody_sees() {
        assert_eq!(clean("\n\na \0b\u{c}\n\n\n\nc\t1  \n \n"), "a b\n\nc\t1");
        assert_eq!(one_line("a\n\n b\u{1b}c", 5), "a   b");
    }
}
