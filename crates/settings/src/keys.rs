//! Single settings that the session itself acts on.

use std::{path::PathBuf, time::Duration};

use serde_json::Value;

use super::{Settings, SettingsFile};

/// What the files say of notes that outlive a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AutoMemory {
    /// Someone has switched it off.
    pub off: bool,
    /// Another place than the usual one.
    pub directory: Option<PathBuf>,
}

impl Settings {
    /// How long an answer to a question of the model's is waited for; `None`: for as long as it takes.
    pub fn question_timeout(&mut self) -> Option<Duration> {
        self.first("askUserQuestionTimeout", |_, layer, text| {
            if layer.is_in_workspace() {
                return Err("it only counts in the user's own settings; it is left out");
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

    /// What they say of notes that outlive a session. Anyone may switch it off; where it goes is for
    /// the user alone to say.
    pub fn auto_memory(&mut self) -> AutoMemory {
        let mut layers = self.layers.iter();
        let off = layers.any(|layer| layer.document.value["autoMemoryEnabled"] == false);
        let directory = self.first("autoMemoryDirectory", |settings, layer, text| {
            if layer.is_in_workspace() {
                return Err("it only counts in the user's own settings; it is left out");
            }
            Ok(settings.path(text))
        });
        AutoMemory { off, directory }
    }

    /// The first text of this name that makes sense, the highest rank first.
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

    /// A path as settings write it.
    pub fn path(&self, text: &str) -> PathBuf {
        match text.strip_prefix("~/") {
            Some(rest) => self.places.home.join(rest),
            None => self.places.cwd.join(text),
        }
    }
}
