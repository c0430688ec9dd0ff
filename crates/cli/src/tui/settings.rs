//! The settings of the user interface.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The settings of the user interface. They are loaded in the background, after the first frame.
#[derive(Debug, Clone, Default)]
pub(crate) struct TuiSettings {
    pub(crate) theme: Option<String>,
    pub(crate) editor_mode: Option<String>,
    /// Key sequences in vi's insert mode, and the keys that replace them.
    pub(crate) vim_insert_mode_remaps: BTreeMap<String, String>,
    pub(crate) verbose: bool,
    pub(crate) prefers_reduced_motion: bool,
    pub(crate) terminal_progress_bar_enabled: Option<bool>,
    pub(crate) preferred_notif_channel: Option<String>,
    pub(crate) status_line: Option<Value>,
    pub(crate) respect_gitignore: Option<bool>,
    pub(crate) file_suggestion: Option<Value>,
    pub(crate) ax_screen_reader: bool,
}

impl TuiSettings {
    /// Reads the merged settings. Invalid values are ignored.
    pub(crate) fn from_json(settings: &Value) -> Self {
        Self {
            theme: read(settings, "theme"),
            editor_mode: read(settings, "editorMode"),
            vim_insert_mode_remaps: read(settings, "vimInsertModeRemaps").unwrap_or_default(),
            verbose: read(settings, "verbose").unwrap_or_default(),
            prefers_reduced_motion: read(settings, "prefersReducedMotion").unwrap_or_default(),
            terminal_progress_bar_enabled: read(settings, "terminalProgressBarEnabled"),
            preferred_notif_channel: read(settings, "preferredNotifChannel"),
            status_line: read(settings, "statusLine"),
            respect_gitignore: read(settings, "respectGitignore"),
            file_suggestion: read(settings, "fileSuggestion"),
            ax_screen_reader: read(settings, "axScreenReader").unwrap_or_default(),
        }
    }

    /// Returns whether vi key bindings are enabled.
    pub(crate) fn is_vi(&self) -> bool {
        self.editor_mode.as_deref() == Some("vim")
    }
}

fn read<T: DeserializeOwned>(settings: &Value, key: &str) -> Option<T> {
    settings
        .get(key)
        .filter(|value| !value.is_null())
        .and_then(|value| serde_json::from_value(value.clone()).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_bad_value_never_loses_the_others() {
        let settings = TuiSettings::from_json(&json!({
            "theme": 3,
            "editorMode": "vim",
            "verbose": true,
            "prefersReducedMotion": "yes",
        }));
        assert_eq!(settings.theme, None);
        assert!(settings.is_vi() && settings.verbose && !settings.prefers_reduced_motion);
    }
}
