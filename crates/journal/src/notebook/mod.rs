//! Notebooks: what their cells say, and how one cell is changed without touching the others.
//!
//! A change is a splice of the JSON text. Numbers, key order, indentation, escapes, line breaks,
//! byte order mark and final newline of everything else keep their bytes, because nothing else is
//! ever decoded and written again.
//!
//! - `json`: a text as spans
//! - `view`: cells and outputs for showing
//! - `change`: which cell, and which bytes take its place
//! - `layout`: how this file is written, so that new text looks like the old
//!
//! Pure: bytes in, bytes out.

mod change;
mod json;
mod layout;
mod view;

pub use change::{CellChange, CellType, Spliced, splice};
pub use json::JsonFault;
pub use view::{Cell, CellOutput, Notebook};

/// Why a notebook was not read or not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
#[non_exhaustive]
pub enum NotebookError {
    /// The file is not JSON.
    #[error("not valid JSON at {}:{} (line:column): {}", .fault.line, .fault.column, .fault.what)]
    Json { fault: JsonFault },
    /// JSON, but no notebook of a known format.
    #[error("not a notebook: {why}")]
    NotNotebook { why: &'static str },
    /// The change does not say which cell.
    #[error(
        "a cell must be named: give cell_id. The cells are: {}", named(.ids)
    )]
    NoCellNamed { ids: Vec<String> },
    /// There is no such cell.
    #[error("there is no cell {asked:?}. The cells are: {}", named(.ids))]
    UnknownCell { asked: String, ids: Vec<String> },
    /// Several cells have this id.
    #[error(
        "{} cells have the id {asked:?}. Name the one you mean by its place: {}",
        .places.len(), .places.join(", ")
    )]
    AmbiguousCell { asked: String, places: Vec<String> },
    /// A new cell without a type.
    #[error("a new cell needs a type: give cell_type, \"code\" or \"markdown\"")]
    NoType,
    /// The notebook would stay as it is.
    #[error("the cell already is exactly so: there is nothing to change")]
    Unchanged,
    /// Our own mistake; the check after every splice keeps it out of the file.
    #[error("the change would have damaged the notebook, so it was not made; please report this")]
    WouldDamage,
}

/// How many ids an error lists.
const NAMED_IDS: usize = 50;

fn named(ids: &[String]) -> String {
    if ids.is_empty() {
        return "none, the notebook is empty (edit_mode insert adds the first)".to_owned();
    }
    let mut text = ids[..ids.len().min(NAMED_IDS)].join(", ");
    if ids.len() > NAMED_IDS {
        text.push_str(&format!(" and {} more", ids.len() - NAMED_IDS));
    }
    text
}
