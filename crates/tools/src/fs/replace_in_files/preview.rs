//! What a plan would do, as the model and programs read it.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use haft_contract::ToolOutput;
use haft_journal::{ContentHash, Patch};
use haft_search::SkipReason;
use serde_json::json;

use super::{
    super::patch,
    plans::{Plan, PlannedFile},
    rewrite::Rewritten,
};
use crate::{paths::shown, words::counted};

/// How much of all diffs together is shown.
const DIFF_CHARS: usize = 12_000;
/// How many files are named without their diff.
const NAMED: usize = 200;

/// A file that would change.
#[derive(Debug)]
pub(super) struct Change {
    path: PathBuf,
    hash: ContentHash,
    places: usize,
    /// For people; none where the change is made at once.
    patch: Option<Patch>,
}

/// A file that is left alone, and why.
#[derive(Debug)]
pub(super) struct Skipped {
    pub(super) path: PathBuf,
    pub(super) reason: String,
}

/// Everything a plan would do.
#[derive(Debug, Default)]
pub(super) struct Preview {
    pub(super) files: Vec<Change>,
    pub(super) skipped: Vec<Skipped>,
    /// In how many files the search found the pattern.
    pub(super) matching: usize,
}

impl Change {
    /// One that is shown before it is made, or not.
    pub(super) fn new(path: PathBuf, old: &[u8], new: &Rewritten, is_shown: bool) -> Self {
        Self {
            path,
            hash: ContentHash::of(old),
            places: new.places,
            // Making the change computes its own: twice is once too often.
            patch: is_shown.then(|| Patch::between(old, &new.bytes)),
        }
    }
}

impl Preview {
    pub(super) fn planned(&self) -> Vec<PlannedFile> {
        let planned = |file: &Change| PlannedFile {
            path: file.path.clone(),
            hash: file.hash,
            content: None,
        };
        self.files.iter().map(planned).collect()
    }

    /// What the search passed over is passed over here too.
    pub(super) fn skipped_by_search(&mut self, skipped: &haft_search::Skipped) {
        for skip in &skipped.samples {
            if let (Some(path), SkipReason::Binary { .. } | SkipReason::Unreadable { .. }) =
                (&skip.path, &skip.reason)
            {
                let reason = skip.reason.to_string();
                self.skipped.push(Skipped {
                    path: path.clone(),
                    reason,
                });
            }
        }
    }

    pub(super) fn output(&self, plan_id: &str, cwd: &Path) -> ToolOutput {
        // Writing to a string cannot fail.
        let mut text = String::new();
        let places: usize = self.files.iter().map(|file| file.places).sum();
        if self.files.is_empty() {
            text += match self.matching {
                0 => "Nothing to replace: the pattern matches in no file.",
                _ if self.skipped.is_empty() => {
                    "Nothing to replace: the pattern matches, but what would be written is already \
                     there."
                }
                _ => "Nothing to replace: every file in which the pattern matches is left alone.",
            };
        } else {
            let _ = write!(
                text,
                "Would change {} in {}. Nothing is changed yet; to do it call ReplaceInFiles with \
                 only plan_id {plan_id}.",
                counted(places as u64, "place"),
                counted(self.files.len() as u64, "file"),
            );
        }
        let mut room = DIFF_CHARS;
        for (number, file) in self.files.iter().enumerate() {
            if number == NAMED {
                let _ = write!(text, "\n\n… and {} more files", self.files.len() - NAMED);
                break;
            }
            let name = shown(&file.path, cwd);
            let _ = write!(text, "\n\n{name}: {}", counted(file.places as u64, "place"));
            let diff = file.patch.as_ref();
            let diff = diff.map(|patch| patch.render(room.min(2_000)));
            let diff = diff.unwrap_or_default();
            if room > 0 && !diff.is_empty() {
                room = room.saturating_sub(diff.len());
                let _ = write!(text, "\n{}", diff.trim_end());
            }
        }
        if !self.skipped.is_empty() {
            let _ = write!(text, "\n\nLeft alone:");
            for skipped in self.skipped.iter().take(20) {
                let _ = write!(text, "\n{}: {}", shown(&skipped.path, cwd), skipped.reason);
            }
            if self.skipped.len() > 20 {
                let _ = write!(text, "\n… and {} more", self.skipped.len() - 20);
            }
        }
        let plan_id = (!self.files.is_empty()).then_some(plan_id);
        let mut hunks = patch::HUNK_BYTES;
        ToolOutput::text(text).with_structured(json!({
            "applied": false,
            "planId": plan_id,
            "numPlaces": places,
            "files": self.files.iter().map(|file| json!({
                "filePath": file.path,
                "places": file.places,
                "structuredPatch": file
                    .patch
                    .as_ref()
                    .map(|patch| patch::hunks_within(patch, &mut hunks)),
            })).collect::<Vec<_>>(),
            "skipped": self.skipped.iter().map(|skipped| json!({
                "filePath": skipped.path,
                "reason": skipped.reason,
            })).collect::<Vec<_>>(),
        }))
    }
}

/// What was done.
pub(super) fn applied(
    plan: &Plan,
    places: usize,
    files: usize,
    undo_id: &str,
    cwd: &Path,
) -> ToolOutput {
    let names: Vec<String> = plan
        .files
        .iter()
        .take(NAMED)
        .map(|file| shown(&file.path, cwd))
        .collect();
    let text = format!(
        "Changed {} in {}:\n{}\n[undo_id {undo_id}]",
        counted(places as u64, "place"),
        counted(files as u64, "file"),
        names.join("\n"),
    );
    ToolOutput::text(text).with_structured(json!({
        "applied": true,
        "planId": plan.id,
        "undoId": undo_id,
        "numPlaces": places,
        "files": plan.files.iter().map(|file| json!({"filePath": file.path})).collect::<Vec<_>>(),
    }))
}
