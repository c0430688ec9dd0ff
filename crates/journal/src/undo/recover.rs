//! Recovery after a crash: finds the outcome of units that have none.
//!
//! Hashes decide. A file has the intended content, its previous content, or a mixture of both if it
//! was half written in place. Any other content was written by another process since, and is left
//! alone. A unit that is partly made is reverted completely. Of other files only the temporary
//! files named in the intent are removed.

use std::path::{Path, PathBuf};

use super::UndoHistory;
use super::mutation::read_snapshot;
use super::record::{FileRecord, UndoRecord, UnitEnding};
use super::store::Durability;
use super::units::{UndoUnit, UndoUnits};
use crate::commit::{self, TargetDirectory};
use crate::error::JournalError;
use crate::lock::FileLock;
use crate::open::FileSnapshot;
use crate::stamp::ContentHash;

/// The result of the recovery of one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredUnit {
    /// The id of the unit that was interrupted.
    pub unit: String,
    /// The tool that made it.
    pub tool: String,
    /// Its files.
    pub files: Vec<PathBuf>,
    /// The outcome.
    pub verdict: RecoveryVerdict,
}

/// The outcome of an interrupted unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryVerdict {
    /// All files have the intended content; the unit can be undone like any other.
    Completed,
    /// All files have their previous content: nothing was changed yet.
    NeverHappened,
    /// The unit was partly made, or a file was half written; it has been reverted.
    Reverted,
    /// A file has neither its previous nor the intended content: another process changed it. It was
    /// left alone.
    Unclear,
}

/// The state of a file of an interrupted unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileState {
    Before,
    After,
    /// Partly old, partly new content.
    Torn,
    Other,
}

impl UndoHistory {
    /// Finds the outcome of every unit that was interrupted, and removes leftover files from the
    /// folder. Other processes may use the folder at the same time: recovery waits for their running
    /// units to end.
    ///
    /// Recovery writes what the records specify, without asking. So it ignores a journal of another
    /// user, for example if a root process uses the home directory of a user.
    pub fn recover(&self) -> Result<Vec<RecoveredUnit>, JournalError> {
        if !self.store().is_of_this_user() {
            return Ok(Vec::new());
        }
        let mut settled = self.recover_witnessed()?;
        let units = self.units()?;
        settled.extend(self.recover_units(&units)?);
        // The recovered units need the same contents as before.
        self.remove_litter(&units);
        Ok(settled)
    }

    /// Records commands that a crash interrupted, if this user's processes ran them. If one cannot
    /// be recorded now, the next call tries again.
    pub(super) fn record_abandoned(&self) {
        if self.store().is_of_this_user() {
            let _ = self.recover_witnessed();
        }
    }

    /// Removes files that a crash left in the folder and no record names. If another process uses
    /// the folder, or if a file cannot be removed, the next start tries again.
    fn remove_litter(&self, units: &UndoUnits) {
        if !self.store().litter(units).is_empty()
            && let Ok(Some(_log)) = self.store().try_open_alone()
            // Other processes may have added records since.
            && let Ok(units) = self.units()
        {
            self.store().keep_only(&units);
        }
    }

    fn recover_units(&self, units: &UndoUnits) -> Result<Vec<RecoveredUnit>, JournalError> {
        let interrupted = |units: &UndoUnits| -> Vec<UndoUnit> {
            let open = units.all.iter().filter(|unit| unit.ending.is_none());
            open.cloned().collect()
        };
        let mut settled = Vec::new();
        for unit in interrupted(units) {
            // Files are locked before the log, as everywhere.
            let reals = reals_of(&unit);
            let reals: Vec<&Path> = reals.iter().map(PathBuf::as_path).collect();
            let lock = FileLock::hold_many(&reals);
            if matches!(lock, Err(JournalError::Locked { .. })) {
                continue; // it can wait for the next start
            }
            let Some(log) = self.store().open_alone()? else {
                break;
            };
            let current = interrupted(&self.units()?);
            let Some(unit) = current.into_iter().find(|found| found.id() == unit.id()) else {
                continue;
            };
            let Ok(verdict) = self.recover_unit(&unit) else {
                continue; // files that cannot be restored now may be restorable later
            };
            let (ending, note) = match verdict {
                RecoveryVerdict::Completed => (UnitEnding::Made, "completed before a crash"),
                RecoveryVerdict::NeverHappened => {
                    (UnitEnding::NotMade, "interrupted before it began")
                }
                RecoveryVerdict::Reverted => (UnitEnding::NotMade, "interrupted and reverted"),
                RecoveryVerdict::Unclear => (
                    UnitEnding::Unclear,
                    "interrupted, and a file was changed outside this session since",
                ),
            };
            let record = UndoRecord::Outcome {
                unit: unit.id().to_owned(),
                ending,
                note: Some(note.to_owned()),
            };
            log.append(&record, Durability::Durable)
                .map_err(|error| self.store().failed(error))?;
            settled.push(RecoveredUnit {
                unit: unit.id().to_owned(),
                tool: unit.intent.tool.clone(),
                files: reals_of(&unit),
                verdict,
            });
        }
        Ok(settled)
    }

    fn recover_unit(&self, unit: &UndoUnit) -> Result<RecoveryVerdict, JournalError> {
        if unit.intent.names_foreign_temporary() {
            return Ok(RecoveryVerdict::Unclear);
        }
        if unit.intent.files.is_empty() {
            return self.settle_swept(unit);
        }
        for file in &unit.intent.files {
            remove_leftover(file)?;
        }
        let mut states = Vec::new();
        for file in &unit.intent.files {
            states.push(match read_snapshot(&file.real, u64::MAX) {
                Ok(now) => (self.compare(file, now.as_ref())?, now),
                Err(error) if is_something_else(&error) => (FileState::Other, None),
                Err(error) => return Err(error),
            });
        }
        let found: Vec<FileState> = states.iter().map(|(found, _)| *found).collect();
        let verdict = decide(&found);
        // Last, because several files may have been in one directory.
        let mut unneeded = Vec::new();
        for (file, (found, now)) in unit.intent.files.iter().zip(states) {
            let back = match found {
                FileState::Torn => true,
                FileState::After => verdict == RecoveryVerdict::Reverted,
                FileState::Before | FileState::Other => false,
            };
            if back {
                self.revert_file(file, found, now)?;
            } else if found == FileState::After && file.after.is_none() {
                // The file was removed; its directories may have been next.
                unneeded.extend(&file.unmade);
            }
            if file.before.hash().is_none() && (back || found == FileState::Before) {
                unneeded.extend(&file.made);
            }
        }
        commit::remove_made(unneeded);
        Ok(verdict)
    }

    fn compare(
        &self,
        file: &FileRecord,
        now: Option<&FileSnapshot>,
    ) -> Result<FileState, JournalError> {
        let hash = now.map(|now| ContentHash::compute(&now.bytes).to_string());
        if hash.as_deref() == file.after_hash() {
            return Ok(FileState::After);
        }
        if hash.as_deref() == file.before.hash() {
            return Ok(FileState::Before);
        }
        let (Some(now), true) = (now, file.in_place) else {
            return Ok(FileState::Other);
        };
        let kept = |hash: Option<&str>| match hash {
            Some(hash) => self.store().get(hash),
            None => Ok(None),
        };
        Ok(
            match (kept(file.before.hash())?, kept(file.after_hash())?) {
                (Some(before), Some(after)) if is_torn(&now.bytes, &before, &after) => {
                    FileState::Torn
                }
                _ => FileState::Other,
            },
        )
    }

    fn revert_file(
        &self,
        file: &FileRecord,
        found: FileState,
        now: Option<FileSnapshot>,
    ) -> Result<(), JournalError> {
        let real = file.real.as_path();
        let before = match file.before.hash() {
            None => None,
            Some(hash) => Some(self.store().get(hash)?.ok_or_else(|| {
                let missing = std::io::Error::other("a stored content is missing");
                self.store().failed(missing)
            })?),
        };
        let name = file.temporary.as_ref();
        match (now, before) {
            (Some(mut now), Some(before)) => {
                if found == FileState::Torn {
                    now.stamp.links = now.stamp.links.max(2); // in place, as before
                    let mode = file.before.attributes().map_or(0, |before| before.mode);
                    now.stamp.mode |= mode & 0o6000; // which writing clears
                }
                commit::replace(real, &now, &before, name, &mut || Ok(())).map(drop)
            }
            (None, Some(before)) => {
                let attributes = file.before.attributes();
                commit::create(real, &before, name, attributes.as_ref()).map(drop)
            }
            (Some(now), None) => commit::remove(real, &now),
            (None, None) => Ok(()),
        }
    }
}

/// Removes the temporary file of a record. Its directory may not exist.
fn remove_leftover(file: &FileRecord) -> Result<(), JournalError> {
    let removed = match TargetDirectory::open(&file.real) {
        Ok(directory) => directory.remove_leftover(file.temporary.as_ref()),
        Err(error) => Err(error),
    };
    match removed.map_err(|error| commit::open_failed("clean up next to", &file.real, error)) {
        Err(error) if !is_something_else(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Returns whether the error means that the path is no longer our regular file. Other errors may be
/// temporary.
fn is_something_else(error: &JournalError) -> bool {
    matches!(
        error,
        JournalError::DoesNotExist { .. }
            | JournalError::IsDirectory { .. }
            | JournalError::NotRegular { .. }
            | JournalError::ParentIsFile { .. }
            | JournalError::LinkAppeared { .. }
            | JournalError::TooManyLinks { .. }
    )
}

fn reals_of(unit: &UndoUnit) -> Vec<PathBuf> {
    let files = unit.intent.files.iter().map(|file| &file.real);
    let swept = unit.intent.swept.iter().map(|one| &one.path);
    files.chain(swept).cloned().collect()
}

pub(super) fn decide(found: &[FileState]) -> RecoveryVerdict {
    let all = |wanted| found.iter().all(|&one| one == wanted);
    if all(FileState::Before) {
        RecoveryVerdict::NeverHappened
    } else if all(FileState::After) {
        RecoveryVerdict::Completed
    } else if found.contains(&FileState::Other) {
        RecoveryVerdict::Unclear
    } else {
        RecoveryVerdict::Reverted
    }
}

/// Returns whether an interrupted overwrite can explain this content: each byte is old or new;
/// bytes beyond the old end may also still be zero.
pub(super) fn is_torn(now: &[u8], before: &[u8], after: &[u8]) -> bool {
    let (short, long) = (before.len().min(after.len()), before.len().max(after.len()));
    (short..=long).contains(&now.len())
        && now.iter().enumerate().all(|(at, byte)| {
            before.get(at) == Some(byte)
                || after.get(at) == Some(byte)
                || (at >= before.len() && *byte == 0)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_decides() {
        use FileState::{After, Before, Other, Torn};
        let cases: [(&[FileState], RecoveryVerdict); 11] = [
            (&[Before], RecoveryVerdict::NeverHappened),
            (&[After], RecoveryVerdict::Completed),
            (&[Torn], RecoveryVerdict::Reverted),
            (&[Other], RecoveryVerdict::Unclear),
            (&[Before, Before], RecoveryVerdict::NeverHappened),
            (&[After, After], RecoveryVerdict::Completed),
            (&[After, Before], RecoveryVerdict::Reverted),
            (&[After, Torn], RecoveryVerdict::Reverted),
            (&[Torn, Before], RecoveryVerdict::Reverted),
            (&[After, Other], RecoveryVerdict::Unclear),
            (&[], RecoveryVerdict::NeverHappened),
        ];
        for (found, verdict) in cases {
            assert_eq!(decide(found), verdict, "{found:?}");
        }
    }

    #[test]
    fn only_a_mixture_of_old_and_new_is_torn() {
        let cases = [
            // (now, before, after, torn)
            ("NEold", "oldold", "NEW", false), // too short a mixture: its third byte is from nowhere
            ("NEdold", "oldold", "NEW", true),
            ("NEWold", "oldold", "NEW", true),
            ("NEW", "old", "NEWER", true),
            ("NEW\0\0", "old", "NEWER", true),
            ("N\0d", "old", "NEWER", false),
            ("NEWERS", "old", "NEWER", false),
            ("ol", "old", "NEWER", false),
            ("mine", "old", "NEWER", false),
        ];
        for (now, before, after, torn) in cases {
            let found = is_torn(now.as_bytes(), before.as_bytes(), after.as_bytes());
            assert_eq!(found, torn, "{now}");
        }
    }
}
