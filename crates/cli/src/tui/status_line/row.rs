//! Our own status row.

use haft_terminal::TextLine;

use crate::tui::look::Look;

/// What the status row says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StatusRow {
    /// How much runs without asking.
    pub(crate) mode: String,
    /// The name of the folder, and its branch.
    pub(crate) folder: String,
    pub(crate) branch: Option<String>,
    pub(crate) model: String,
    /// How full the model's window is, in percent.
    pub(crate) context: Option<u64>,
    pub(crate) cost_usd: f64,
    /// vi's mode.
    pub(crate) vi: Option<String>,
}

/// The row; where there is little room, the mode and how full the window is.
pub(crate) fn status_row(row: &StatusRow, look: &Look) -> TextLine {
    let mut parts = vec![row.mode.clone()];
    if look.is_narrow() {
        parts.extend(row.vi.clone());
        parts.extend(row.context.map(|percent| format!("{percent}%")));
    } else {
        parts.extend(row.vi.clone());
        parts.push(match &row.branch {
            Some(branch) => format!("{} ({branch})", row.folder),
            None => row.folder.clone(),
        });
        parts.push(row.model.clone());
        parts.extend(row.context.map(|percent| format!("context {percent}%")));
        if row.cost_usd > 0.0 {
            parts.push(format!("${:.2}", row.cost_usd));
        }
    }
    parts.retain(|part| !part.is_empty());
    let text = format!(" {}", parts.join(&format!(" {} ", look.dot())));
    TextLine::styled(&text, look.theme.faint).truncated(look.size.row_width())
}
