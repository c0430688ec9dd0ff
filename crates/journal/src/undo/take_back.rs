//! Undo: the files of one unit, or of all since a time, become what they were.
//!
//! All or nothing, and only if every file is still what the journal made of it;
//! otherwise nothing is touched and the answer shows what was, what was made and
//! what is now. An undo is a unit like any other, so it can be undone.
//!
//! Bytes are restored exactly. A file that still exists keeps the attributes it
//! has (mutations never change them, so other ones are wanted); a file
//! that is made again gets those it had. Times are not set back: a build must
//! see that the file changed.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::Access;

use super::error::UndoError;
use super::perform::{Step, look, millis, perform};
use super::preview::{Conflict, patch_of};
use super::record::{Ending, RecordState};
use super::units::{Unit, Units};
use super::{ChangeKind, UndoHistory};
use crate::commit::{Attributes, Directory, open_failed};
use crate::error::JournalError;
use crate::lock::FileLock;
use crate::open::Snapshot;
use crate::patch::Patch;
use crate::stamp::{ContentHash, Stamp};
use crate::write_grant::WriteGrant;

/// What is to be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The last change that stands and is not an undo; asked again, the one before it.
    Last,
    /// A unit by its id (a call's id), or a clear beginning of it with at least 8 characters.
    Unit(String),
    /// Everything since then, as one unit: files become what they were at that time.
    Since(SystemTime),
}

/// Whether to do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Do it.
    Apply,
    /// Only say what would be done.
    Preview,
}

/// What an undo did, or would do.
#[derive(Debug)]
pub struct Undone {
    /// The undo's own unit, under which it can be undone; `None` for a preview.
    pub unit: Option<String>,
    /// The units taken back, newest first, with their tools.
    pub undid: Vec<(String, String)>,
    /// What it changes.
    pub files: Vec<UndoneFile>,
    /// Only in a preview: why it would be refused.
    pub conflict: Option<String>,
    /// What is not, or will not be, as it was, and why: only commands do what cannot be restored.
    pub left: Vec<(PathBuf, String)>,
    /// For each file what it holds now, and its stamp.
    pub(crate) results: Vec<Option<(Stamp, Vec<u8>)>>,
}

/// One file of an undo.
#[derive(Debug)]
pub struct UndoneFile {
    /// As the call named it.
    pub given: PathBuf,
    /// After all links.
    pub real: PathBuf,
    /// What the undo does to it.
    pub change: ChangeKind,
    /// From what it holds to what it held before.
    pub patch: Patch,
}

/// What a file must be now, and is to become.
struct WantedFile<'u> {
    unit: &'u Unit,
    given: &'u Path,
    expected: Option<&'u str>,
    before: &'u RecordState,
    made: &'u [PathBuf],
}

impl UndoHistory {
    /// Takes back what `which` names, on behalf of the ticket's call.
    pub fn undo(
        &self,
        ticket: &WriteGrant,
        which: &Which,
        mode: Mode,
    ) -> Result<Undone, JournalError> {
        let mut units = self.units()?;
        if units.all.iter().any(|unit| unit.ending.is_none()) {
            self.recover()?;
            units = self.units()?;
        }
        let chosen = choose(&units, which)?;
        if chosen.iter().any(|unit| unit.is_swept()) {
            let is_chosen = |unit: &Unit| chosen.iter().any(|one| one.id() == unit.id());
            let oldest = units.all.iter().position(is_chosen).unwrap_or_default();
            let mut later = units.all[oldest..].iter();
            let set_times = later.all(|unit| is_chosen(unit) || unit.is_undo() || !unit.stands());
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
            let now = look(real, u64::MAX)?;
            let hash = now
                .as_ref()
                .map(|now| ContentHash::of(&now.bytes).to_string());
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
        let conflict = (!conflicts.is_empty()).then(|| Conflict::describe(&conflicts));
        if let (Some(text), Mode::Apply) = (&conflict, mode) {
            return Err(UndoError::Conflict(text.clone()).into());
        }
        if conflict.is_none() && steps.is_empty() {
            return Err(UndoError::NothingSince.into());
        }
        let files = steps.iter().map(describe).collect();
        let (mut unit, mut results) = (None, Vec::new());
        if mode == Mode::Apply {
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
        Ok(Undone {
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
        wanted: &WantedFile<'_>,
        now: Option<Snapshot>,
    ) -> Result<Step, JournalError> {
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
            // Removed files must be as they were, should the unit have to be put back.
            Some(now) => Directory::of(real)
                .and_then(|directory| directory.open_target(Access::READ_OK))
                .and_then(|file| Attributes::of(&file, &now.stamp))
                .map(Some)
                .map_err(|error| open_failed("read", real, error))?,
            None => wanted.before.attributes(),
        };
        let bytes = |side: Option<&Vec<u8>>| side.cloned().unwrap_or_default();
        let (old, new) = (now.as_ref().map(|now| &now.bytes), after.as_ref());
        let patch = patch_of(&bytes(old), &bytes(new));
        Ok(Step {
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

    fn conflict(&self, real: &Path, wanted: &WantedFile<'_>, now: Option<Snapshot>) -> Conflict {
        let kept = |hash: Option<&str>| hash.map(|hash| self.store().get(hash).ok().flatten());
        Conflict {
            unit: wanted.unit.id().to_owned(),
            path: real.to_path_buf(),
            was: kept(wanted.before.hash()),
            made: kept(wanted.expected),
            now: now.map(|now| now.bytes),
        }
    }
}

pub(super) fn choose<'u>(units: &'u Units, which: &Which) -> Result<Vec<&'u Unit>, UndoError> {
    let unit = match which {
        Which::Last => units.last()?,
        Which::Unit(id) => units.find(id)?,
        Which::Since(time) => {
            let since = units.since(millis(*time));
            return if since.is_empty() {
                Err(UndoError::NothingSince)
            } else {
                Ok(since)
            };
        }
    };
    let id = unit.id().to_owned();
    match (&unit.ending, &unit.undone_by) {
        (Some(Ending::Made), None) => Ok(vec![unit]),
        (Some(Ending::Made), Some(by)) => Err(UndoError::AlreadyUndone { id, by: by.clone() }),
        (Some(Ending::NotMade), _) => {
            let why = unit.note.as_deref().unwrap_or("it failed");
            let why = format!("{}.", why.trim_end_matches('.'));
            Err(UndoError::NeverMade { id, why })
        }
        (Some(Ending::Unclear) | None, _) => Err(UndoError::Unclear { id }),
    }
}

/// What several units, newest first, amount to for each file. They must fit together: what one left
/// is what the next found.
fn compose<'u>(units: &[&'u Unit]) -> Result<BTreeMap<&'u Path, WantedFile<'u>>, UndoError> {
    let names = one_name_each(units);
    let mut all: BTreeMap<&Path, WantedFile<'u>> = BTreeMap::new();
    for &unit in units {
        for file in &unit.intent.files {
            let real = names[file.real.as_path()];
            let Some(later) = all.get_mut(real) else {
                let wanted = WantedFile {
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
                    "{} was changed by someone else between {} and {}: what it was then cannot be \
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

/// For each path the one by which its file is known here: what was changed by one of its hard links
/// was changed by all.
fn one_name_each<'u>(units: &[&'u Unit]) -> HashMap<&'u Path, &'u Path> {
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

fn describe(step: &Step) -> UndoneFile {
    let (old, new) = (step.before.as_ref(), step.after.as_ref());
    UndoneFile {
        given: step.given.clone(),
        real: step.real.clone(),
        change: ChangeKind::of(old.is_some(), new.is_some()),
        patch: patch_of(
            old.map_or(&[], |old| &old.bytes),
            new.map_or(&[], Vec::as_slice),
        ),
    }
}
