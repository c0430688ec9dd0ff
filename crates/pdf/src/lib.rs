//! The text of PDFs, read in a process of its own.
//!
//! PDFs come from anywhere and readers of PDFs are large, so nothing is trusted: a damaged or
//! hostile file may hang, crash or eat memory, and all of that happens to a child process with
//! limits, whose end is an error and nothing more.
//!
//! - [`child`]: both ends of the child process: [`child::main`] in it, [`child::ask`] outside
//! - `read`: what the child does, the only place that knows the PDF library
//!
//! Knows nothing of tools.

pub mod child;
mod read;

use serde::{Deserialize, Serialize};

/// What to read of a PDF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// These pages, from 1. `None`: all, if there are not more than `whole_up_to`.
    pub pages: Option<Vec<u32>>,
    pub whole_up_to: u32,
    /// Longer pages are cut.
    pub max_page_bytes: usize,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub page_count: u32,
    /// In the order of the document; not complete if it is very long.
    pub outline: Vec<Heading>,
    /// The pages that were asked for, as far as they exist.
    pub pages: Vec<Page>,
}

/// An entry of the outline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    pub title: String,
    /// 0 for the outermost.
    pub level: u32,
    /// From 1.
    pub page: Option<u32>,
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// From 1.
    pub number: u32,
    /// Empty if the page has no text layer, as in a scan.
    pub text: String,
    /// There was more text.
    pub is_cut: bool,
    /// Why there is no text, if that was a failure.
    pub failure: Option<String>,
}
