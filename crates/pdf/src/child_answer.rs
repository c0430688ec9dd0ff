//! The output of the child: a line that identifies it, then one JSON value.
//!
//! The child has parsed a possibly hostile file, so its output is as untrusted as the file. Output
//! that does not match the request is rejected.

use std::io::{self, Write};

use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::{OutlineEntry, PageFailure, PageSelection, PdfPage, PdfReading, PdfRequest};

/// The line before the answer. Any output before this line comes from other code.
const GREETING: &[u8] = b"%haft-pdf 2\n";

/// The maximum number of entries in an outline.
pub(crate) const HEADINGS: usize = 200;
pub(crate) const TITLE_CHARS: usize = 120;
pub(crate) const LEVELS: u32 = 8;
/// The maximum length of a reason in characters.
pub(crate) const REASON_CHARS: usize = 300;
/// The maximum number of bytes of a character.
const BYTES_A_CHAR: usize = 4;

/// The reason why a document cannot be read at all. Worded to follow the name of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum UnreadableReason {
    /// A part of the file is lost or corrupt.
    #[error("is damaged: {0}")]
    Damaged(String),
    /// The document opens only with a password.
    #[error("is encrypted and needs a password")]
    Encrypted,
    /// The library could not read the document. Another program might.
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

/// The output of a child.
#[derive(Debug)]
pub enum PdfAnswer {
    /// No answer: the program is not a PDF reader, or it failed too early.
    Missing,
    /// An answer that does not match the request.
    Invalid,
    /// A valid answer.
    Answer(Result<PdfReading, UnreadableReason>),
}

/// Writes the answer; called in the child.
pub fn write_answer(
    answer: &Result<PdfReading, UnreadableReason>,
    mut output: impl Write,
) -> io::Result<()> {
    output.write_all(GREETING)?;
    serde_json::to_writer(&mut output, answer)?;
    output.flush()
}

/// Parses and validates the output of a child; called in the parent.
pub fn parse_answer(output: &[u8], request: &PdfRequest) -> PdfAnswer {
    let Some(start) = memmem::find(output, GREETING) else {
        return PdfAnswer::Missing;
    };
    let answer = serde_json::from_slice(&output[start + GREETING.len()..]);
    match answer {
        Ok(Ok(document)) if matches_request(&document, request) => PdfAnswer::Answer(Ok(document)),
        Ok(Err(refusal)) if is_valid_refusal(&refusal) => PdfAnswer::Answer(Err(refusal)),
        _ => PdfAnswer::Invalid,
    }
}

fn is_valid_refusal(refusal: &UnreadableReason) -> bool {
    match refusal {
        UnreadableReason::Damaged(reason) | UnreadableReason::Unreadable(reason) => {
            is_reason(reason)
        }
        UnreadableReason::Encrypted => true,
    }
}

fn matches_request(document: &PdfReading, request: &PdfRequest) -> bool {
    let asked = request.pages.as_ref().map(PageSelection::numbers);
    let is_asked_for = |page: &PdfPage| match asked {
        Some(pages) => pages.contains(&page.number),
        None => page.number <= request.whole_up_to,
    };
    let pages = &document.pages;
    pages.is_sorted_by(|one, next| one.number < next.number)
        && pages.iter().all(|page| {
            (1..=document.page_count).contains(&page.number)
                && is_asked_for(page)
                && page.text.len() <= request.max_page_bytes
                && is_clean(&page.text)
                && page.failure.as_ref().is_none_or(|failure| match failure {
                    PageFailure::Damaged(reason) | PageFailure::Unreadable(reason) => {
                        is_reason(reason)
                    }
                })
        })
        && document.damage.as_deref().is_none_or(is_reason)
        && document.outline.len() <= HEADINGS
        && document.outline.iter().all(is_heading)
}

fn is_heading(heading: &OutlineEntry) -> bool {
    heading.level <= LEVELS && is_line(&heading.title, TITLE_CHARS)
}

fn is_reason(text: &str) -> bool {
    is_line(text, REASON_CHARS)
}

fn is_line(text: &str, chars: usize) -> bool {
    text.len() <= chars * BYTES_A_CHAR && is_clean(text) && !text.contains('\n')
}

/// Returns whether the text has no control characters other than newline and tab.
fn is_clean(text: &str) -> bool {
    !text
        .chars()
        .any(|character| character.is_control() && !matches!(character, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> PdfReading {
        PdfReading {
            page_count: 3,
            pages: vec![page(1), page(3)],
            ..PdfReading::default()
        }
    }

    fn page(number: u32) -> PdfPage {
        PdfPage {
            number,
            text: "text".to_owned(),
            is_cut: false,
            failure: None,
        }
    }

    fn request(pages: Option<&str>) -> PdfRequest {
        PdfRequest {
            pages: pages.map(|pages| PageSelection::parse(pages, 20).unwrap()),
            whole_up_to: 10,
            max_page_bytes: 10,
        }
    }

    fn said(answer: &Result<PdfReading, UnreadableReason>, request: &PdfRequest) -> PdfAnswer {
        let mut output = b"running 1 test\n".to_vec();
        write_answer(answer, &mut output).unwrap();
        parse_answer(&output, request)
    }

    #[test]
    fn an_answer_arrives_as_it_was_given() {
        for answer in [
            Ok(document()),
            Err(UnreadableReason::Damaged("why".to_owned())),
        ] {
            match said(&answer, &request(Some("1,3,9"))) {
                PdfAnswer::Answer(understood) => assert_eq!(understood, answer),
                said => panic!("{said:?}"),
            }
        }
    }

    #[test]
    fn what_was_not_asked_for_is_nonsense() {
        let heading = OutlineEntry {
            title: "title".to_owned(),
            level: 0,
            page: None,
        };
        type Lie = fn(&mut PdfReading, OutlineEntry);
        let lies: [(&str, Lie); 11] = [
            ("order", |document, _| document.pages.reverse()),
            ("twice", |document, _| document.pages.push(page(3))),
            ("page 0", |document, _| document.pages[0].number = 0),
            ("beyond the end", |document, _| document.page_count = 2),
            ("not asked for", |document, _| document.pages[0].number = 2),
            ("long", |document, _| {
                document.pages[0].text = "x".repeat(11)
            }),
            ("escape", |document, _| {
                document.pages[0].text = "\u{1b}[2J".to_owned()
            }),
            ("many headings", |document, heading| {
                document.outline = vec![heading; HEADINGS + 1];
            }),
            ("deep heading", |document, mut heading| {
                heading.level = u32::MAX;
                document.outline = vec![heading];
            }),
            ("long heading", |document, mut heading| {
                heading.title = "x".repeat(1_000);
                document.outline = vec![heading];
            }),
            ("long reason", |document, _| {
                document.damage = Some("x".repeat(10_000))
            }),
        ];
        for (name, lie) in lies {
            let mut document = document();
            lie(&mut document, heading.clone());
            let said = said(&Ok(document), &request(Some("1,3")));
            assert!(matches!(said, PdfAnswer::Invalid), "{name}: {said:?}");
        }
        let mut long = document();
        (long.page_count, long.pages[1].number) = (20, 11);
        assert!(matches!(
            said(&Ok(long), &request(None)),
            PdfAnswer::Invalid
        ));
    }

    #[test]
    fn noise_is_nothing_and_half_an_answer_is_nonsense() {
        let request = request(None);
        assert!(matches!(parse_answer(b"", &request), PdfAnswer::Missing));
        assert!(matches!(
            parse_answer(b"hello", &request),
            PdfAnswer::Missing
        ));
        let nested = [GREETING, &b"[".repeat(1 << 20)].concat();
        for output in [GREETING, b"%haft-pdf 2\n{\"Ok\":{\"page_count\":1", &nested] {
            assert!(matches!(parse_answer(output, &request), PdfAnswer::Invalid));
        }
    }
}
