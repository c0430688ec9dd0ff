//! The last row: mode, folder, model, context, money.

use std::path::Path;

use haft::PermissionMode;
use haft_terminal::TextLine;

use super::{look::Look, words};

#[derive(Debug, Clone, Default)]
pub(crate) struct StatusBar {
    pub(crate) mode: PermissionMode,
    pub(crate) folder: String,
    pub(crate) branch: Option<String>,
    pub(crate) model: String,
    /// How much of the model's window is used, and how large it is.
    pub(crate) context: Option<(u64, u64)>,
    pub(crate) cost: f64,
    /// Which session it is.
    pub(crate) session: Option<String>,
}

impl StatusBar {
    pub(crate) fn of(cwd: &Path) -> Self {
        let name = cwd.file_name().unwrap_or(cwd.as_os_str());
        Self {
            folder: name.to_string_lossy().into_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn row(&self, look: &Look) -> TextLine {
        let mut parts = vec![self.mode.name().to_owned()];
        let percent = self
            .context
            .filter(|(_, window)| *window > 0)
            .map(|(used, window)| used * 100 / window);
        if look.is_narrow() {
            parts.extend(percent.map(|percent| format!("{percent}%")));
        } else {
            parts.push(match &self.branch {
                Some(branch) => format!("{} ({branch})", self.folder),
                None => self.folder.clone(),
            });
            if !self.model.is_empty() {
                parts.push(self.model.clone());
            }
            parts.extend(percent.map(|percent| format!("context {percent}%")));
            if self.cost > 0.0 {
                parts.push(words::dollars(self.cost));
            }
        }
        let text = format!(" {}", parts.join(&format!(" {} ", look.dot())));
        TextLine::styled(&text, look.theme.faint)
    }
}
