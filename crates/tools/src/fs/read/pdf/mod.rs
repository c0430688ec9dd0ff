//! PDFs, page by page: text with page marks, or images of pages without text.
//!
//! PDFs may be malicious, so a separate process parses them, see `haft_pdf`.
//!
//! - `read_pages`: lets child processes read the file and draw pages
//! - `render`: formats the result for the model

#[cfg(feature = "pdf")]
mod read_pages;
#[cfg(feature = "pdf")]
mod render;

use std::{env, path::PathBuf};

#[cfg(not(feature = "pdf"))]
use haft_contract::ToolOutput;
use haft_contract::{CallContext, ToolError};
use haft_journal::FileTarget;

use crate::paths::shown;
#[cfg(feature = "pdf")]
pub(super) use read_pages::{check, read};

/// The journal's name of the file type.
pub(super) const KIND: &str = "PDF document";

/// The program that reads PDFs: called with `__pdf`, it must run `haft_pdf::child::main`.
#[derive(Debug, Clone)]
pub struct PdfReader {
    /// The program; normally the running one.
    pub program: PathBuf,
    /// Poppler's `pdftoppm`, which draws pages that have no text.
    pub drawer: Option<PathBuf>,
}

impl PdfReader {
    /// Creates a reader; it draws pages if `pdftoppm` is on the `PATH`.
    pub fn new(program: PathBuf) -> Self {
        let paths = env::var_os("PATH").unwrap_or_default();
        let mut found = env::split_paths(&paths).map(|directory| directory.join("pdftoppm"));
        Self {
            program,
            drawer: found.find(|path| path.is_absolute() && path.is_file()),
        }
    }
}

/// A request to read a PDF.
pub(super) struct PdfQuery<'a> {
    pub(super) target: &'a FileTarget,
    pub(super) pages: Option<&'a str>,
    pub(super) max_tokens: u64,
}

/// Accepts any `pages`, because this build has no PDF reader.
#[cfg(not(feature = "pdf"))]
pub(super) fn check(_pages: &str) -> Result<(), String> {
    Ok(())
}

/// Fails, because this build has no PDF reader.
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
