//! A PDF, page by page: text with page marks, or pictures of pages that have no text.
//!
//! It is read by a process of its own, see `haft_pdf`: PDFs come from anywhere.

use std::{
    env,
    path::{Path, PathBuf},
};

#[cfg(not(feature = "pdf"))]
use haft_contract::ToolOutput;
use haft_contract::{CallContext, ToolError};

use crate::paths::shown;

/// What the journal calls it.
pub(super) const KIND: &str = "PDF document";
/// How many pages one call gives.
const PAGES_AT_ONCE: usize = 20;

/// Where PDFs are read: a program that, called with `__pdf`, is `haft_pdf::child::main`.
#[derive(Debug, Clone)]
pub struct PdfReader {
    /// The program; normally the running one.
    pub program: PathBuf,
    /// Poppler's `pdftoppm`, which draws pages that have no text.
    pub drawer: Option<PathBuf>,
}

impl PdfReader {
    /// A reader that draws if `pdftoppm` is on the `PATH`.
    pub fn new(program: PathBuf) -> Self {
        let paths = env::var_os("PATH").unwrap_or_default();
        let mut found = env::split_paths(&paths).map(|directory| directory.join("pdftoppm"));
        Self {
            program,
            drawer: found.find(|path| path.is_absolute() && path.is_file()),
        }
    }
}

/// Pages that were asked for, from 1, ascending.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pages(pub(super) Vec<u32>);

impl Pages {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let malformed = || {
            format!(
                "`pages` is {text:?}, which names no pages. Write a page, a range or several of \
                 them, such as \"3\", \"1-5\" or \"2-5,9\"; pages are counted from 1."
            )
        };
        let number = |text: &str| {
            let number: Option<u32> = text.trim().parse().ok();
            number.filter(|page| *page > 0).ok_or_else(malformed)
        };
        let mut pages = Vec::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once(['-', '–']) {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(malformed());
            }
            if (last - first) as usize >= PAGES_AT_ONCE {
                return Err(too_many(text));
            }
            pages.extend(first..=last);
        }
        pages.sort_unstable();
        pages.dedup();
        match pages.len() > PAGES_AT_ONCE {
            true => Err(too_many(text)),
            false => Ok(Self(pages)),
        }
    }
}

fn too_many(text: &str) -> String {
    format!(
        "`pages` {text:?} names more than {PAGES_AT_ONCE} pages: at most {PAGES_AT_ONCE} are read \
         in one call. Ask for fewer, then for the next ones."
    )
}

/// What is asked of a PDF.
pub(super) struct Wish<'a> {
    pub(super) path: &'a Path,
    pub(super) pages: Option<&'a str>,
    pub(super) max_tokens: u64,
}

#[cfg(feature = "pdf")]
pub(super) use reading::read;

/// This build has no reader.
#[cfg(not(feature = "pdf"))]
pub(super) async fn read(wish: &Wish<'_>, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    let _ = (wish.pages, wish.max_tokens);
    Err(no_reader(wish, cx))
}

fn no_reader(wish: &Wish<'_>, cx: &CallContext) -> ToolError {
    ToolError::Failed(format!(
        "{} is a binary file (PDF document), and PDFs cannot be read here. Extract the text with a \
         shell command such as pdftotext.",
        shown(wish.path, &cx.cwd)
    ))
}

#[cfg(feature = "pdf")]
#[path = "pdf_reading.rs"]
mod reading;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_numbers_and_ranges() {
        let cases: [(&str, Result<&[u32], &str>); 12] = [
            ("3", Ok(&[3])),
            ("1-5", Ok(&[1, 2, 3, 4, 5])),
            ("2-3, 9", Ok(&[2, 3, 9])),
            ("9,2-3,3", Ok(&[2, 3, 9])),
            (
                "1-20",
                Ok(&[
                    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                ]),
            ),
            ("1-21", Err("more than 20")),
            ("1-15,30-40", Err("more than 20")),
            ("1-4000000000", Err("more than 20")),
            ("0", Err("counted from 1")),
            ("5-3", Err("names no pages")),
            ("3,", Err("names no pages")),
            ("all", Err("names no pages")),
        ];
        for (text, expected) in cases {
            match (Pages::parse(text), expected) {
                (Ok(pages), Ok(expected)) => assert_eq!(pages.0, expected, "{text}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
