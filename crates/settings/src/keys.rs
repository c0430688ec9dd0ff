//! Single settings that the session itself uses.

use std::{path::PathBuf, time::Duration};

use serde_json::Value;

use super::{Settings, SettingsFile};

/// The settings for auto memory (notes that outlive a session).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AutoMemory {
    /// Whether any file disables it.
    pub off: bool,
    /// A directory other than the default one.
    pub directory: Option<PathBuf>,
}

impl Settings {
    /// Returns how long haft waits for an answer to the model's question; `None` means
    /// indefinitely.
    pub fn question_timeout(&mut self) -> Option<Duration> {
        self.first("askUserQuestionTimeout", |_, layer, text| {
            if layer.is_in_workspace() {
                return Err("it applies only in the user's own settings; it is left out");
            }
            let seconds = match text {
                "never" => return Ok(None),
                "60s" => 60,
                "5m" => 300,
                "10m" => 600,
                _ => return Err("60s, 5m, 10m or never is expected; it is left out"),
            };
            Ok(Some(Duration::from_secs(seconds)))
        })
        .flatten()
    }

    /// Returns the settings for auto memory. Any file may disable it; only the user's files may set
    /// its directory.
    pub fn auto_memory(&mut self) -> AutoMemory {
        let mut layers = self.layers.iter();
        let off = layers.any(|layer| layer.document.value["autoMemoryEnabled"] == false);
        let directory = self.first("autoMemoryDirectory", |settings, layer, text| {
            if layer.is_in_workspace() {
                return Err("it applies only in the user's own settings; it is left out");
            }
            Ok(settings.path(text))
        });
        AutoMemory { off, directory }
    }

    /// Returns the first valid text value of this setting, by descending rank.
    pub fn first<T>(
        &mut self,
        key: &str,
        read: impl Fn(&Self, &SettingsFile, &str) -> Result<T, &'static str>,
    ) -> Option<T> {
        let pointer = format!("/{key}");
        let mut problems = Vec::new();
        let mut found = None;
        for layer in &self.layers {
            let Some(value) = layer.document.value.get(key) else {
                continue;
            };
            let text = match value {
                Value::String(text) if !text.trim().is_empty() => Ok(text),
                _ => Err("a text is expected; it is left out"),
            };
            match text.and_then(|text| read(self, layer, text)) {
                Ok(value) => {
                    found = Some(value);
                    break;
                }
                Err(what) => problems.push(layer.problem(&pointer, &format!("{key}: {what}"))),
            }
        }
        self.problems.extend(problems);
        found
    }

    /// Resolves a path as written in settings.
    pub fn path(&self, text: &str) -> PathBuf {
        match text.strip_prefix("~/") {
            Some(rest) => self.places.home.join(rest),
            None => self.places.cwd.join(text),
        }
    }
}
