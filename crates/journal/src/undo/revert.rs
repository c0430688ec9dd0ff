//! Undo: restores the files of one unit, or of all units since a time.
//!
//! All or nothing, and only if every file still has the content that the journal wrote; otherwise
//! no file is changed, and the error shows the content before the change, after it, and now. An
//! undo is a unit like any other, so it can be undone.
//!
//! Contents are restored exactly. A file that still exists keeps its present attributes: changes
//! never alter them, so different ones are intended. A file that is created again gets its previous
//! attributes. Times are not restored: a build must see that the file changed.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::Access;

use super::error::UndoError;
use super::mutation::{MutationStep, millis, perform, read_snapshot};
use super::preview::{UndoConflict, patch_of};
use super::record::{RecordState, UnitEnding};
use super::units::{UndoUnit, UndoUnits};
use super::{ChangeKind, UndoHistory};
use crate::commit::{FileAttributes, TargetDirectory, open_failed};
use crate::error::JournalError;
use crate::lock::FileLock;
use crate::open::FileSnapshot;
use crate::patch::Patch;
use crate::stamp::{ContentHash, Stamp};
use crate::write_grant::WriteGrant;

/// The selection of the changes to undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoSelection {
    /// The last change that is still in effect and not an undo; if repeated, the one before it.
    Last,
    /// A unit by its id (a call's id), or by an unambiguous prefix of at least 8 characters.
    Unit(String),
    /// Everything since this time, as one unit: files get the state that they had then.
    Since(SystemTime),
}

/// Whether to apply the undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoMode {
    /// Applies it.
    Apply,
    /// Only reports what would be done.
    Preview,
}

/// The result of an undo or of its preview.
#[derive(Debug)]
pub struct UndoOutcome {
    /// The id of the undo's own unit, for undoing it; `None` for a preview.
    pub unit: Option<String>,
    /// The reverted units, newest first, with their tools.
    pub undid: Vec<(String, String)>,
    /// The files that it changes.
    pub files: Vec<UndoneFile>,
    /// Only in a preview: the reason why the undo would fail.
    pub conflict: Option<String>,
    /// Paths that are not or will not be restored, with the reason: commands can make changes that
    /// cannot be reverted.
    pub left: Vec<(PathBuf, String)>,
    /// The new stamp and content of each file.
    pub(crate) results: Vec<Option<(Stamp, Vec<u8>)>>,
}

/// One file of an undo.
#[derive(Debug)]
pub struct UndoneFile {
    /// The path as the call named it.
    pub given: PathBuf,
    /// The path with all links resolved.
    pub real: PathBuf,
    /// The kind of change.
    pub change: ChangeKind,
    /// The diff from the present content to the restored one.
    pub patch: Patch,
}

/// The expected present state of a file, and its target state.
struct FileUndo<'u> {
    unit: &'u UndoUnit,
    given: &'u Path,
    expected: Option<&'u str>,
    before: &'u RecordState,
    made: &'u [PathBuf],
}

impl UndoHistory {
    /// Reverts the changes that `which` selects, on behalf of the grant's call.
    pub fn undo(
        &self,
        ticket: &WriteGrant,
        which: &UndoSelection,
        mode: UndoMode,
    ) -> Result<UndoOutcome, JournalError> {
        if !self.store().is_of_this_user() {
            return Err(UndoError::OtherUser {
                folder: self.folder().to_path_buf(),
            }
            .into());
        }
        self.record_abandoned();
        let mut units = self.units()?;
        if units.all.iter().any(|unit| unit.ending.is_none()) {
            self.recover()?;
            units = self.units()?;
        }
        let chosen = match choose(&units, which) {
            Err(UndoError::Unknown { id, .. }) if self.is_running(&id) => {
                return Err(UndoError::StillRunning { id }.into());
            }
            chosen => chosen?,
        };
        self.check_overlaps_ended(&chosen)?;
        if chosen.iter().any(|unit| unit.is_swept()) {
            let is_chosen = |unit: &UndoUnit| chosen.iter().any(|one| one.id() == unit.id());
            let oldest = units.all.iter().position(is_chosen).unwrap_or_default();
            let mut later = units.all[oldest..].iter();
            let set_times =
                later.all(|unit| is_chosen(unit) || unit.is_undo() || !unit.is_in_effect());
            return self.undo_swept(ticket, &chosen, mode, None, set_times);
        }
        for file in chosen.iter().flat_map(|unit| &unit.intent.files) {
            ticket.admit(&file.given, &file.real)?;
        }
        let wanted = compose(&chosen)?;
        let reals: Vec<&Path> = wanted.keys().copied().collect();
        let _lock = FileLock::hold_all(&reals)?;
        let mut steps = Vec::new();
        let mut conflicts = Vec::new();
        for (real, wanted) in wanted {
            let now = read_snapshot(real, u64::MAX)?;
            let hash = now
                .as_ref()
                .map(|now| ContentHash::compute(&now.bytes).to_string());
            if hash.as_deref() != wanted.expected {
                conflicts.push(self.conflict(real, &wanted, now));
            } else if hash.as_deref() != wanted.before.hash() {
                steps.push(self.step(real, &wanted, now)?);
            }
        }
        let undid: Vec<(String, String)> = chosen
            .iter()
            .map(|unit| (unit.id().to_owned(), unit.intent.tool.clone()))
            .collect();
        let conflict = (!conflicts.is_empty()).then(|| UndoConflict::describe(&conflicts));
        if let (Some(text), UndoMode::Apply) = (&conflict, mode) {
            return Err(UndoError::Conflict(text.clone()).into());
        }
        if conflict.is_none() && steps.is_empty() {
            return Err(UndoError::NothingSince.into());
        }
        let files = steps.iter().map(describe).collect();
        let (mut unit, mut results) = (None, Vec::new());
        if mode == UndoMode::Apply {
            let ids = undid.iter().map(|(id, _)| id.clone()).collect();
            let performed = perform(Some(self), ticket, &steps, ids)?;
            unit = performed.unit;
            let contents = steps.into_iter().map(|step| step.after);
            results = performed
                .stamps
                .into_iter()
                .zip(contents)
                .map(|(stamp, content)| Some((stamp?, content?)))
                .collect();
        }
        Ok(UndoOutcome {
            unit,
            undid,
            files,
            conflict,
            left: Vec::new(),
            results,
        })
    }

    fn step(
        &self,
        real: &Path,
        wanted: &FileUndo<'_>,
        now: Option<FileSnapshot>,
    ) -> Result<MutationStep, JournalError> {
        let after = match wanted.before.hash() {
            None => None,
            Some(hash) => match self.store().get(hash)? {
                Some(content) => Some(content),
                None => {
                    return Err(JournalError::Undo(UndoError::Damaged {
                        id: wanted.unit.id().to_owned(),
                        path: real.to_path_buf(),
                    }));
                }
            },
        };
        let attributes = match &now {
            // Removed files must get their attributes back if the unit has to be reverted.
            Some(now) => TargetDirectory::open(real)
                .and_then(|directory| directory.open_target(Access::READ_OK))
                .and_then(|file| FileAttributes::from_file(&file, &now.stamp))
                .map(Some)
                .map_err(|error| open_failed("read", real, error))?,
            None => wanted.before.attributes(),
        };
        let bytes = |side: Option<&Vec<u8>>| side.cloned().unwrap_or_default();
        let (old, new) = (now.as_ref().map(|now| &now.bytes), after.as_ref());
        let patch = patch_of(&bytes(old), &bytes(new));
        Ok(MutationStep {
            given: wanted.given.to_path_buf(),
            real: real.to_path_buf(),
            before: now,
            after,
            attributes,
            unmake: wanted.made.to_vec(),
            added: patch.added,
            removed: patch.removed,
        })
    }

    fn conflict(
        &self,
        real: &Path,
        wanted: &FileUndo<'_>,
        now: Option<FileSnapshot>,
    ) -> UndoConflict {
        let kept = |hash: Option<&str>| hash.map(|hash| self.store().get(hash).ok().flatten());
        UndoConflict {
            unit: wanted.unit.id().to_owned(),
            path: real.to_path_buf(),
            was: kept(wanted.before.hash()),
            made: kept(wanted.expected),
            now: now.map(|now| now.bytes),
        }
    }
}

pub(super) fn choose<'u>(
    units: &'u UndoUnits,
    which: &UndoSelection,
) -> Result<Vec<&'u UndoUnit>, UndoError> {
    let unit = match which {
        UndoSelection::Last => units.last()?,
        UndoSelection::Unit(id) => units.find(id)?,
        UndoSelection::Since(time) => {
            let since = units.since(millis(*time));
            return if since.is_empty() {
                Err(UndoError::NothingSince)
            } else {
                let all = since.iter().flat_map(|unit| units.together(unit));
                Ok(units.newest_first(&all.collect::<Vec<_>>()))
            };
        }
    };
    let id = unit.id().to_owned();
    match (&unit.ending, &unit.undone_by) {
        (Some(UnitEnding::Made), None) => Ok(units.together(unit)),
        (Some(UnitEnding::Made), Some(by)) => Err(UndoError::AlreadyUndone { id, by: by.clone() }),
        (Some(UnitEnding::NotMade), _) => {
            let why = unit.note.as_deref().unwrap_or("it failed");
            let why = format!("{}.", why.trim_end_matches('.'));
            Err(UndoError::NeverMade { id, why })
        }
        (Some(UnitEnding::Unclear) | None, _) => Err(UndoError::Unclear { id }),
    }
}

/// Combines several units, newest first, into one change for each file. They must be consistent:
/// the content after one is the content before the next.
fn compose<'u>(units: &[&'u UndoUnit]) -> Result<BTreeMap<&'u Path, FileUndo<'u>>, UndoError> {
    let names = one_name_each(units);
    let mut all: BTreeMap<&Path, FileUndo<'u>> = BTreeMap::new();
    for &unit in units {
        for file in &unit.intent.files {
            let real = names[file.real.as_path()];
            let Some(later) = all.get_mut(real) else {
                let wanted = FileUndo {
                    unit,
                    given: &file.given,
                    expected: file.after_hash(),
                    before: &file.before,
                    made: &file.made,
                };
                all.insert(real, wanted);
                continue;
            };
            if later.before.hash() != file.after_hash() {
                return Err(UndoError::Conflict(format!(
                    "{} was changed outside this session between {} and {}: its earlier state cannot be \
                     restored without losing that change. Nothing was undone. Undo single calls \
                     instead, newest first.",
                    real.display(),
                    unit.id(),
                    later.unit.id()
                )));
            }
            later.before = &file.before;
            later.made = &file.made;
        }
    }
    Ok(all)
}

/// Maps each path to one name of its file: a change through one hard link changes all of them.
fn one_name_each<'u>(units: &[&'u UndoUnit]) -> HashMap<&'u Path, &'u Path> {
    let mut objects = HashMap::new();
    let files = units.iter().flat_map(|unit| &unit.intent.files);
    files
        .map(|file| {
            let real = file.real.as_path();
            let object = match fs::symlink_metadata(real) {
                Ok(found) if found.is_file() => Some((found.dev(), found.ino())),
                _ => None,
            };
            let name = object.map_or(real, |object| *objects.entry(object).or_insert(real));
            (real, name)
        })
        .collect()
}

fn describe(step: &MutationStep) -> UndoneFile {
    let (old, new) = (step.before.as_ref(), step.after.as_ref());
    UndoneFile {
        given: step.given.clone(),
        real: step.real.clone(),
        change: ChangeKind::from_existence(old.is_some(), new.is_some()),
        patch: patch_of(
            old.map_or(&[], |old| &old.bytes),
            new.map_or(&[], Vec::as_slice),
        ),
    }
}
