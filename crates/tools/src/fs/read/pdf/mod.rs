//! A PDF, page by page: text with page marks, or pictures of pages that have no text.
//!
//! It is read by a process of its own, see `haft_pdf`: PDFs come from anywhere.
//!
//! - `look`: has the file read, and pages drawn
//! - `show`: what of that the model reads

#[cfg(feature = "pdf")]
mod look;
#[cfg(feature = "pdf")]
mod show;

use std::{env, path::PathBuf};

#[cfg(not(feature = "pdf"))]
use haft_contract::ToolOutput;
use haft_contract::{CallContext, ToolError};
use haft_journal::FileTarget;

use crate::paths::shown;
#[cfg(feature = "pdf")]
pub(super) use look::{check, read};

/// What the journal calls it.
pub(super) const KIND: &str = "PDF document";

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

/// What is asked of a PDF.
pub(super) struct PdfQuery<'a> {
    pub(super) target: &'a FileTarget,
    pub(super) pages: Option<&'a str>,
    pub(super) max_tokens: u64,
}

/// This build has no reader, so it cannot say what pages are.
#[cfg(not(feature = "pdf"))]
pub(super) fn check(_pages: &str) -> Result<(), String> {
    Ok(())
}

/// This build has no reader.
#[cfg(not(feature = "pdf"))]
pub(super) async fn read(
    wish: &PdfQuery<'_>,
    cx: &CallContext,
) -> Result<(ToolOutput, PathBuf), ToolError> {
    let _ = (wish.pages, wish.max_tokens);
    Err(no_reader(wish, cx))
}

fn no_reader(wish: &PdfQuery<'_>, cx: &CallContext) -> ToolError {
    ToolError::Failed(format!(
        "{} is a binary file (PDF document), and PDFs cannot be read here. Extract the text with a \
         shell command such as pdftotext.",
        shown(wish.target.path(), &cx.cwd)
    ))
}
