//! The additions to results in the permission mode `auto`: why the call ran, and that undo restores its
//! changes.

use std::sync::atomic::{AtomicBool, Ordering};

use haft_contract::{CardSection, PermissionMode};
use serde_json::{Value, json};

use super::CallResult;
use crate::permissions::DecisionReason;

/// The field of a structured result with the number of files that a command changed.
const CHANGED_FILES: &str = "changedFiles";

/// The permission of a call that ran.
#[derive(Debug, Clone)]
pub(crate) struct CallPermission {
    pub(crate) mode: PermissionMode,
    /// The reason, as its name if it has one.
    pub(crate) because: String,
    /// Whether the call ran only because undo covers it.
    pub(crate) is_reversible: bool,
    /// The number of files that a call of a file tool writes.
    pub(crate) written_files: usize,
}

impl CallPermission {
    pub(crate) fn new(mode: PermissionMode, reason: &DecisionReason, written_files: usize) -> Self {
        Self {
            mode,
            because: reason.headline(),
            is_reversible: *reason == DecisionReason::Reversible,
            written_files,
        }
    }

    /// Adds the permission to the structured result, and the line about undo to the card.
    /// `was_explained` is set by the first such line of a session.
    pub(crate) fn add_to(&self, result: &mut CallResult, was_explained: &AtomicBool) {
        if self.mode != PermissionMode::Auto {
            return;
        }
        let changed = result.structured.as_ref().and_then(|structured| {
            let count = structured.get(CHANGED_FILES)?.as_u64()?;
            usize::try_from(count).ok()
        });
        if let Some(Value::Object(fields)) = &mut result.structured {
            let mut permission = json!({"mode": self.mode.name(), "because": self.because});
            if let (Some(undo), Some(permission)) = (fields.get("undo"), permission.as_object_mut())
            {
                permission.insert("undo".to_owned(), undo.clone());
            }
            fields.insert("permission".to_owned(), permission);
        }
        let written = match result.is_error {
            true => 0,
            false => self.written_files,
        };
        let changed = changed.unwrap_or(written);
        if !self.is_reversible || changed == 0 {
            return;
        }
        let noun = if changed == 1 { "file" } else { "files" };
        let mut line = format!("↺ {changed} {noun} · /undo");
        if !was_explained.swap(true, Ordering::Relaxed) {
            let undo = result
                .structured
                .as_ref()
                .and_then(|fields| fields.get("undo"));
            // Undo of file tools is always exact.
            let exactly = undo.is_none_or(|undo| undo == "exact");
            line += match exactly {
                true => " (haft undo restores them exactly)",
                false => " (haft undo restores them)",
            };
        }
        result.card.body.push(CardSection::Muted(line));
    }
}

#[cfg(test)]
mod tests {
    use haft_contract::{CallId, Card};

    use super::*;
    use crate::pipeline::Metadata;

    fn result(structured: Value) -> CallResult {
        CallResult {
            call: CallId::new(),
            id: String::new(),
            name: "Bash".to_owned(),
            is_error: false,
            content: Vec::new(),
            structured: Some(structured),
            messages: Vec::new(),
            patches: Vec::new(),
            metadata: Metadata::default(),
            card: Card::new("Bash", ""),
        }
    }

    #[test]
    fn only_reversible_calls_that_changed_files_end_with_the_line() {
        let auto = PermissionMode::Auto;
        let explained = AtomicBool::new(false);
        let reversible = CallPermission::new(auto, &DecisionReason::Reversible, 0);
        let lines = |permission: &CallPermission, structured: Value| {
            let mut result = result(structured);
            permission.add_to(&mut result, &explained);
            (result.card.body, result.structured)
        };
        let (sections, structured) =
            lines(&reversible, json!({"changedFiles": 12, "undo": "exact"}));
        let first = "↺ 12 files · /undo (haft undo restores them exactly)";
        assert_eq!(sections, [CardSection::Muted(first.to_owned())]);
        let permission = json!({"mode": "auto", "because": "reversible", "undo": "exact"});
        assert_eq!(structured.unwrap()["permission"], permission);
        let (sections, _) = lines(&reversible, json!({"changedFiles": 1}));
        assert_eq!(
            sections,
            [CardSection::Muted("↺ 1 file · /undo".to_owned())]
        );
        assert_eq!(lines(&reversible, json!({"changedFiles": 0})).0, []);
        assert_eq!(lines(&reversible, json!({})).0, []);
        let edit = CallPermission::new(auto, &DecisionReason::Reversible, 1);
        assert_eq!(lines(&edit, json!({})).0.len(), 1);
        let asked = CallPermission::new(auto, &DecisionReason::Hook, 1);
        assert_eq!(lines(&asked, json!({"changedFiles": 3})).0, []);
        let other = CallPermission::new(PermissionMode::Default, &DecisionReason::Hook, 1);
        assert_eq!(lines(&other, json!({})).1, Some(json!({})));
    }
}
