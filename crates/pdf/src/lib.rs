//! The text of PDFs, read in a process of its own.
//!
//! PDFs come from anywhere and readers of PDFs are large, so nothing is trusted: a damaged or
//! hostile file may hang, crash or eat memory, and all of that happens to a child process with
//! limits, whose end is an error and nothing more. What the child answers is checked as well.
//!
//! - [`child`]: both ends of the child process: [`child::main`] in it, [`child::ask`] outside
//! - [`answer`]: what the child says, and whether to believe it
//! - [`Pages`]: which pages are meant
//! - `read`: what the child does; `tree`, `outline`: what a document consists of; `text`: what a
//!   page says; `damage`: how a page that is lost differs from one that has no text
//!
//! Objects, filters and encryption are a library's (`hayro-syntax`), as are the tables of East Asian
//! encodings (`hayro-cmap`); what the content of a page says in which order is found here.
//!
//! Knows nothing of tools.

#![warn(missing_docs)]

pub mod answer;
pub mod child;
mod damage;
mod outline;
mod pages;
mod read;
mod text;
mod tree;

use serde::{Deserialize, Serialize};

pub use pages::{Pages, PagesError};
#[doc(hidden)]
// what the child runs, for the fuzzer and its seeds: without a child nothing limits it
pub use read::read;

/// What to read of a PDF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfRequest {
    /// These pages. `None`: all, if there are not more than `whole_up_to`.
    pub pages: Option<Pages>,
    /// Of a document with more pages only the outline is given.
    pub whole_up_to: u32,
    /// Longer pages are cut.
    pub max_page_bytes: usize,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfReading {
    /// As many as the document says it has.
    pub page_count: u32,
    /// In the order of the document; not complete if it is very long. Only where no page was read.
    pub outline: Vec<Heading>,
    /// The pages that were asked for, as far as they exist.
    pub pages: Vec<PdfPage>,
    /// Evidence that part of the file is lost, worded to follow "it is damaged:".
    pub damage: Option<String>,
}

/// An entry of the outline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// One line.
    pub title: String,
    /// 0 for the outermost.
    pub level: u32,
    /// From 1.
    pub page: Option<u32>,
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfPage {
    /// From 1.
    pub number: u32,
    /// Empty if the page has no text layer, as in a scan, or if there was a failure.
    pub text: String,
    /// There was more text.
    pub is_cut: bool,
    /// What went wrong. A page may have text all the same.
    pub failure: Option<Failure>,
}

/// Why text of a page is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// Part of the page is lost. Worded to follow "the page is damaged:".
    Damaged(String),
    /// The library could not read it, which another program perhaps can.
    Unreadable(String),
}
