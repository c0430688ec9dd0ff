//! Notebooks: reading their cells, and changing one cell without touching the others.
//!
//! A change is a splice of the JSON text. Everything else keeps its bytes (numbers, key order,
//! indentation, escapes, line breaks, byte order mark, final newline), because it is never decoded
//! and written again.
//!
//! - `json`: the byte spans of a JSON text
//! - `view`: cells and outputs, decoded for display
//! - `change`: the cell to change and its new bytes
//! - `layout`: the formatting of the file, which new text follows
//!
//! All functions are pure.

mod change;
mod json;
mod layout;
mod view;

pub use change::{CellChange, CellType, NotebookSplice, splice};
pub use json::JsonFault;
pub use view::{CellOutput, Notebook, NotebookCell};

/// The reason why a notebook was not read or not changed.
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
    /// The file is JSON, but not a notebook of a known format.
    #[error("not a notebook: {why}")]
    NotNotebook { why: &'static str },
    /// The change does not identify a cell.
    #[error(
        "a cell must be named: give cell_id. The cells are: {}", named(.ids)
    )]
    NoCellNamed { ids: Vec<String> },
    /// No cell has this name.
    #[error("no cell is named {asked:?}. The cells are: {}", named(.ids))]
    UnknownCell { asked: String, ids: Vec<String> },
    /// Several cells have this id.
    #[error(
        "{} cells have the id {asked:?}. Name the one you mean by its place: {}",
        .places.len(), .places.join(", ")
    )]
    AmbiguousCell { asked: String, places: Vec<String> },
    /// A new cell was given without a type.
    #[error("a new cell needs a type: give cell_type, \"code\" or \"markdown\"")]
    NoType,
    /// The notebook would not change.
    #[error("the cell already has this content: there is nothing to change")]
    Unchanged,
    /// An error in our code; the check after every splice prevents that it reaches the file.
    #[error("the change would have damaged the notebook, so it was not made; please report this")]
    WouldDamage,
}

/// The number of ids that an error lists.
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
