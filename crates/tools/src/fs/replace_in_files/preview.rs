//! The preview of a plan, for the model and for structured output.

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
    plans::{PlannedContent, PlannedFile, ReplacePlan},
    rewrite::ReplacedFile,
};
use crate::{paths::shown, plural::counted};

/// The maximum length of all diffs together, in characters.
const DIFF_CHARS: usize = 12_000;
/// The maximum number of listed files.
const NAMED: usize = 200;

/// A file that would change.
#[derive(Debug)]
pub(super) struct PreviewedFile {
    path: PathBuf,
    fate: FileOutcome,
    hash: Option<ContentHash>,
    places: usize,
    /// The diff for display; `None` if the change is made directly.
    patch: Option<Patch>,
}

/// The kind of change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FileOutcome {
    Changed,
    #[cfg(feature = "code")]
    Created,
    #[cfg(feature = "code")]
    Removed,
    /// It was moved from this path.
    #[cfg(feature = "code")]
    MovedFrom(PathBuf),
}

/// The number of files for each kind of change.
#[derive(Debug, Default)]
struct OutcomeCounts {
    changed: usize,
    created: usize,
    removed: usize,
    moved: usize,
}

impl OutcomeCounts {
    /// Formats the counts, such as `change 2 places in 1 file, create 1 file`; `done` uses the past
    /// tense.
    fn describe(&self, places: usize, done: bool) -> String {
        let verb = |now: &'static str, past: &'static str| if done { past } else { now };
        let files = |count: usize| counted(count as u64, "file");
        let mut parts = Vec::new();
        let others = self.created + self.removed + self.moved;
        if self.changed > 0 || places > 0 || others == 0 {
            let verb = verb("change", "changed");
            let places = counted(places as u64, "place");
            let edited = if self.changed > 0 {
                self.changed
            } else {
                self.moved
            };
            parts.push(format!("{verb} {places} in {}", files(edited)));
        }
        for (count, now, past) in [
            (self.created, "create", "created"),
            (self.moved, "move", "moved"),
            (self.removed, "remove", "removed"),
        ] {
            if count > 0 {
                parts.push(format!("{} {}", verb(now, past), files(count)));
            }
        }
        parts.join(", ")
    }
}

/// A file that is skipped, with the reason.
#[derive(Debug)]
pub(super) struct SkippedFile {
    pub(super) path: PathBuf,
    pub(super) reason: String,
}

/// All changes of a plan.
#[derive(Debug, Default)]
pub(super) struct ReplacePreview {
    pub(super) files: Vec<PreviewedFile>,
    pub(super) skipped: Vec<SkippedFile>,
    /// The number of files that contain the pattern.
    pub(super) matching: usize,
}

impl PreviewedFile {
    /// Creates a change of an existing file; `is_shown` if it is previewed.
    pub(super) fn new(path: PathBuf, old: &[u8], new: &ReplacedFile, is_shown: bool) -> Self {
        Self {
            path,
            fate: FileOutcome::Changed,
            hash: Some(ContentHash::compute(old)),
            places: new.places,
            // Applying the change computes its own diff, so this one is only for previews.
            patch: is_shown.then(|| Patch::between(old, &new.bytes)),
        }
    }

    /// Creates a change that another tool requests. `origins` has the present contents of all files
    /// that the plan changes.
    #[cfg(feature = "code")]
    pub(super) fn from_planned(
        one: &super::PlannedFileChange,
        origins: &std::collections::HashMap<PathBuf, Vec<u8>>,
    ) -> Option<Self> {
        let fate = match (&one.old, &one.new, &one.moved_from) {
            (_, Some(_), Some(from)) => FileOutcome::MovedFrom(from.clone()),
            (None, Some(_), None) => FileOutcome::Created,
            (Some(_), Some(_), None) => FileOutcome::Changed,
            (Some(_), None, _) => FileOutcome::Removed,
            (None, None, _) => return None,
        };
        let old = match &one.moved_from {
            Some(from) => origins.get(from),
            None => one.old.as_ref(),
        };
        let old = old.map_or(&[][..], Vec::as_slice);
        let new = one.new.as_deref().unwrap_or_default();
        let patch = (fate != FileOutcome::Removed).then(|| Patch::between(old, new));
        Some(Self {
            path: one.path.clone(),
            fate,
            hash: one.old.as_deref().map(ContentHash::compute),
            places: one.places,
            patch,
        })
    }

    /// Describes the change for display.
    fn describe(&self, cwd: &Path) -> String {
        let places = counted(self.places as u64, "place");
        #[cfg(not(feature = "code"))]
        let _ = cwd;
        match &self.fate {
            FileOutcome::Changed => places,
            #[cfg(feature = "code")]
            FileOutcome::Created => "a new file".to_owned(),
            #[cfg(feature = "code")]
            FileOutcome::Removed => "removed".to_owned(),
            #[cfg(feature = "code")]
            FileOutcome::MovedFrom(from) => match self.places {
                0 => format!("moved from {}", shown(from, cwd)),
                _ => format!("moved from {}, {places}", shown(from, cwd)),
            },
        }
    }

    /// Returns the name of the change in structured output; `None` for changed files.
    fn fate_name(&self) -> Option<&'static str> {
        match &self.fate {
            FileOutcome::Changed => None,
            #[cfg(feature = "code")]
            FileOutcome::Created => Some("created"),
            #[cfg(feature = "code")]
            FileOutcome::Removed => Some("removed"),
            #[cfg(feature = "code")]
            FileOutcome::MovedFrom(_) => Some("moved"),
        }
    }
}

impl ReplacePreview {
    pub(super) fn planned(&self) -> Vec<PlannedFile> {
        let planned = |file: &PreviewedFile| PlannedFile {
            path: file.path.clone(),
            hash: file.hash,
            content: PlannedContent::Rewritten,
        };
        self.files.iter().map(planned).collect()
    }

    /// Removes files that are only moved: they are shown under their new name.
    #[cfg(feature = "code")]
    pub(super) fn leave_out_moved(&mut self) {
        let moved: Vec<PathBuf> = self
            .files
            .iter()
            .filter_map(|file| match &file.fate {
                FileOutcome::MovedFrom(from) => Some(from.clone()),
                _ => None,
            })
            .collect();
        self.files
            .retain(|file| file.fate != FileOutcome::Removed || !moved.contains(&file.path));
    }

    fn counts(&self) -> OutcomeCounts {
        let mut counts = OutcomeCounts::default();
        for file in &self.files {
            match &file.fate {
                FileOutcome::Changed => counts.changed += 1,
                #[cfg(feature = "code")]
                FileOutcome::Created => counts.created += 1,
                #[cfg(feature = "code")]
                FileOutcome::Removed => counts.removed += 1,
                #[cfg(feature = "code")]
                FileOutcome::MovedFrom(_) => counts.moved += 1,
            }
        }
        counts
    }

    /// Adds the binary and unreadable files that the search skipped to the skipped files.
    pub(super) fn skipped_by_search(&mut self, skipped: &haft_search::SkipSummary) {
        for skip in &skipped.samples {
            if let (Some(path), SkipReason::Binary { .. } | SkipReason::Unreadable { .. }) =
                (&skip.path, &skip.reason)
            {
                let reason = skip.reason.to_string();
                self.skipped.push(SkippedFile {
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
                    "Nothing to replace: the pattern matches, but every match is already equal to its \
                     replacement."
                }
                _ => "Nothing to replace: every file that contains the pattern is skipped.",
            };
        } else {
            let _ = write!(
                text,
                "Would {}. Nothing is changed yet; to apply this, call ReplaceInFiles with only plan_id \
                 {plan_id}.",
                self.counts().describe(places, false),
            );
        }
        let mut room = DIFF_CHARS;
        for (number, file) in self.files.iter().enumerate() {
            if number == NAMED {
                let _ = write!(text, "\n\n… and {} more files", self.files.len() - NAMED);
                break;
            }
            let name = shown(&file.path, cwd);
            let _ = write!(text, "\n\n{name}: {}", file.describe(cwd));
            let diff = file.patch.as_ref();
            let diff = diff.map(|patch| patch.render(room.min(2_000)));
            let diff = diff.unwrap_or_default();
            if room > 0 && !diff.is_empty() {
                room = room.saturating_sub(diff.len());
                let _ = write!(text, "\n{}", diff.trim_end());
            }
        }
        if !self.skipped.is_empty() {
            let _ = write!(text, "\n\nSkipped:");
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
            "files": self.files.iter().map(|file| {
                let mut one = json!({
                    "filePath": file.path,
                    "places": file.places,
                    "structuredPatch": file
                        .patch
                        .as_ref()
                        .map(|patch| patch::hunks_within(patch, &mut hunks)),
                });
                if let Some(fate) = file.fate_name() {
                    one["change"] = json!(fate);
                }
                one
            }).collect::<Vec<_>>(),
            "skipped": self.skipped.iter().map(|skipped| json!({
                "filePath": skipped.path,
                "reason": skipped.reason,
            })).collect::<Vec<_>>(),
        }))
    }
}

/// Returns the result of an applied plan.
pub(super) fn applied(plan: &ReplacePlan, places: usize, undo_id: &str, cwd: &Path) -> ToolOutput {
    let names: Vec<String> = plan
        .files
        .iter()
        .take(NAMED)
        .map(|file| shown(&file.path, cwd))
        .collect();
    let mut counts = OutcomeCounts::default();
    let is_moved = |path: &Path| {
        plan.files.iter().any(|file| {
            matches!(&file.content, PlannedContent::Whole { moved_from: Some(from), .. } if from == path)
        })
    };
    for file in &plan.files {
        match (&file.content, file.hash) {
            (
                PlannedContent::Whole {
                    moved_from: Some(_),
                    ..
                },
                _,
            ) => counts.moved += 1,
            (PlannedContent::Whole { .. }, None) => counts.created += 1,
            (PlannedContent::Nothing, _) if is_moved(&file.path) => {}
            (PlannedContent::Nothing, _) => counts.removed += 1,
            _ => counts.changed += 1,
        }
    }
    let done = counts.describe(places, true);
    // The text starts with a capital letter.
    let done = format!("{}{}", done[..1].to_uppercase(), &done[1..]);
    let text = format!("{done}:\n{}\n[undo_id {undo_id}]", names.join("\n"));
    ToolOutput::text(text).with_structured(json!({
        "applied": true,
        "planId": plan.id,
        "undoId": undo_id,
        "numPlaces": places,
        "files": plan.files.iter().map(|file| json!({"filePath": file.path})).collect::<Vec<_>>(),
    }))
}
