//! The built-in status row.

use haft_terminal::TextLine;

use crate::tui::ui_style::UiStyle;

/// The contents of the status row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StatusRow {
    /// The permission mode.
    pub(crate) mode: String,
    /// The name of the working directory.
    pub(crate) folder: String,
    pub(crate) branch: Option<String>,
    pub(crate) model: String,
    /// The used part of the model's context window in percent.
    pub(crate) context: Option<u64>,
    pub(crate) cost_usd: f64,
    /// The vi mode.
    pub(crate) vi: Option<String>,
}

/// Returns the row. In a narrow window it contains only the permission mode, the vi mode and the
/// window usage.
pub(crate) fn status_row(row: &StatusRow, look: &UiStyle) -> TextLine {
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
