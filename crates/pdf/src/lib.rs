//! Reads the text of PDFs in a separate process.
//!
//! PDFs come from untrusted sources and PDF parsers are large, so the file is never parsed in this
//! process. A damaged or hostile file may hang, crash or exhaust memory. All of that happens in a
//! child process with limits, and its failure is only an error. The child's output is validated as
//! well.
//!
//! - [`child`]: both ends of the child process: [`child::main`] runs in it, [`child::read_in_child`]
//!   in the parent
//! - [`child_answer`]: the child's output and its validation
//! - [`PageSelection`]: the requested pages
//! - `read`: the work of the child; `tree`, `outline`: the structure of a document; `text`: the
//!   text of a page; `damage`: distinguishes a lost page from a page without text
//!
//! A library (`hayro-syntax`) handles objects, filters and encryption, and another (`hayro-cmap`)
//! the tables of East Asian encodings. This crate interprets the content of pages and determines
//! the reading order.
//!
//! The crate does not depend on the tools.

#![warn(missing_docs)]

pub mod child;
pub mod child_answer;
mod damage;
mod outline;
mod pages;
mod read;
mod text;
mod tree;

use serde::{Deserialize, Serialize};

pub use pages::{PageSelection, PageSelectionError};
#[doc(hidden)]
// the child's work without its limits, for the fuzzer and its seeds
pub use read::read;

/// The parts of a PDF to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfRequest {
    /// The pages to read. `None` reads all pages, if there are at most `whole_up_to`.
    pub pages: Option<PageSelection>,
    /// The maximum number of pages of a document that is read as a whole. For a longer one only the
    /// outline is returned.
    pub whole_up_to: u32,
    /// The maximum length of a page's text in bytes; longer text is cut.
    pub max_page_bytes: usize,
}

/// The result of reading a PDF.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfReading {
    /// The number of pages that the document declares.
    pub page_count: u32,
    /// The outline, in the order of the document; truncated if it is very long. It is set only if
    /// no page was read.
    pub outline: Vec<OutlineEntry>,
    /// The requested pages that exist.
    pub pages: Vec<PdfPage>,
    /// Evidence that a part of the file is lost, worded to follow "it is damaged:".
    pub damage: Option<String>,
}

/// An entry of the outline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutlineEntry {
    /// The title, one line.
    pub title: String,
    /// The nesting level; 0 is the outermost.
    pub level: u32,
    /// The page that the entry points to, from 1.
    pub page: Option<u32>,
}

/// The text of one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfPage {
    /// The page number, from 1.
    pub number: u32,
    /// The text. It is empty if the page has no text layer, as in a scan, or if reading failed.
    pub text: String,
    /// Whether the text was cut.
    pub is_cut: bool,
    /// The failure, if any. A page with a failure may have text too.
    pub failure: Option<PageFailure>,
}

/// The reason why the text of a page is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PageFailure {
    /// A part of the page is lost. Worded to follow "the page is damaged:".
    Damaged(String),
    /// The library could not read the page. Another program might.
    Unreadable(String),
}
