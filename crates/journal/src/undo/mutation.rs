//! A change, in the only safe order: preimage → intent → commit → outcome. Locks and checks come
//! before and are the caller's task.
//!
//! Several files are one unit: after an error, the files that are already written are restored. If
//! even that fails, the unit has no outcome, and the next start tries again.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Access;

use super::UndoHistory;
use super::record::{
    FileRecord, PostImage, RecordState, UndoIntent, UndoRecord, UnitEnding, extended, nanoseconds,
};
use super::store::{Durability, UndoLogFile, UndoStore};
use crate::commit::{self, FileAttributes, TargetDirectory};
use crate::editor_buffers::{WriteThrough, is_same};
use crate::error::JournalError;
use crate::open::FileSnapshot;
use crate::stamp::{ContentHash, Stamp};
use crate::write_grant::WriteGrant;

/// The size limit of contents that are stored only to be shown in a conflict.
const SHOWN: usize = 1 << 20;

/// One file of a change; its lock is held, and `before` was read under it.
#[derive(Debug)]
pub(crate) struct MutationStep {
    pub(crate) given: PathBuf,
    pub(crate) real: PathBuf,
    pub(crate) before: Option<FileSnapshot>,
    /// `None` removes the file.
    pub(crate) after: Option<Vec<u8>>,
    /// The attributes of a file that is created again, or that is removed and may have to be
    /// restored.
    pub(crate) attributes: Option<FileAttributes>,
    /// Directories that are removed with the file, if they are empty then.
    pub(crate) unmake: Vec<PathBuf>,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

#[derive(Debug)]
pub(crate) struct MutationResult {
    /// The unit in the undo journal, if any.
    pub(crate) unit: Option<String>,
    /// One entry for each step; `None` for a file that was removed.
    pub(crate) stamps: Vec<Option<Stamp>>,
    /// The content after an editor wrote the only file, if it differs from the intended one.
    pub(crate) became: Option<Vec<u8>>,
}

/// Reads the file at a resolved path; `None` if it does not exist.
pub(crate) fn read_snapshot(real: &Path, limit: u64) -> Result<Option<FileSnapshot>, JournalError> {
    match TargetDirectory::open(real) {
        Ok(directory) => directory.snapshot(limit),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(commit::open_failed("open", real, error)),
    }
}

/// Makes all steps or none.
pub(crate) fn perform(
    history: Option<&UndoHistory>,
    ticket: &WriteGrant,
    steps: &[MutationStep],
    undoes: Vec<String>,
) -> Result<MutationResult, JournalError> {
    for step in steps {
        ticket.admit(&step.given, &step.real)?;
    }
    let unit = match history {
        Some(history) => Some(OpenUnit::begin(history, ticket, steps, undoes)?),
        None => None,
    };
    let besides: Vec<StepSideFiles> = match &unit {
        Some(unit) => unit.besides.clone(),
        None => steps
            .iter()
            .map(StepSideFiles::for_step)
            .collect::<Result<_, _>>()?,
    };
    let mut stamps = Vec::new();
    let mut became = None;
    let through = ticket.through.as_deref().filter(|_| steps.len() == 1);
    for (at, step) in steps.iter().enumerate() {
        let mut in_place = || match &unit {
            Some(unit) => unit.goes_in_place(at, step),
            None => Ok(()),
        };
        let temporary = &besides[at].temporary;
        let made = match through
            .filter(|editor| is_for_editors(step, &besides[at]) && editor.covers(&step.real))
        {
            None => make(step, temporary, &mut in_place),
            Some(editor) => make_through(editor, step, temporary, &mut in_place).and_then(|made| {
                if let (Some(unit), Some(content)) = (&unit, &made.became) {
                    unit.became(at, content)?;
                }
                became = made.became;
                Ok(Some(made.stamp))
            }),
        };
        match made {
            Ok(stamp) => stamps.push(stamp),
            Err(error) => {
                let failed = roll_back(&steps[..at], &stamps, &besides);
                let is_half = matches!(error, JournalError::HalfWritten { .. });
                if !failed.is_empty() {
                    return Err(JournalError::NotRestored {
                        error: Box::new(error),
                        paths: failed,
                    });
                }
                if let Some(unit) = &unit
                    && !is_half
                {
                    unit.end(UnitEnding::NotMade, Some(error.to_string()));
                }
                return Err(error);
            }
        }
    }
    // Done last, because several files may have been in one directory.
    commit::remove_made(steps.iter().flat_map(|step| &step.unmake));
    let unit = unit.map(|unit| {
        unit.end(UnitEnding::Made, None);
        unit.id
    });
    if let Some(history) = history {
        history.keep_within_limits();
    }
    for (step, stamp) in steps.iter().zip(&stamps) {
        if let (Some(after), Some(stamp)) = (&step.after, stamp) {
            ticket.notify_written(&step.real, became.as_deref().unwrap_or(after), stamp);
        }
    }
    Ok(MutationResult {
        unit,
        stamps,
        became,
    })
}

/// Makes one step completely or not at all, or fails with [`JournalError::HalfWritten`].
fn make(
    step: &MutationStep,
    temporary: &str,
    before_in_place: commit::BeforeInPlace<'_>,
) -> Result<Option<Stamp>, JournalError> {
    let (real, name) = (step.real.as_path(), temporary.as_ref());
    match (&step.before, &step.after) {
        (Some(before), Some(after)) => {
            commit::replace(real, before, after, name, before_in_place).map(Some)
        }
        (None, Some(after)) => {
            commit::create(real, after, name, step.attributes.as_ref()).map(Some)
        }
        (Some(before), None) => {
            commit::remove(real, before)?;
            Ok(None)
        }
        (None, None) => Ok(None),
    }
}

/// The result of a write by an editor.
struct MadeByEditor {
    stamp: Stamp,
    /// The content, if it differs from the intended one.
    became: Option<Vec<u8>>,
}

/// Returns whether an editor can write this file correctly: text without other hard links, in a
/// directory that exists.
fn is_for_editors(step: &MutationStep, beside: &StepSideFiles) -> bool {
    let is_text = |content: &[u8]| std::str::from_utf8(content).is_ok() && !content.contains(&0);
    let after = step.after.as_deref().is_some_and(is_text);
    let before = step.before.as_ref();
    let before = before.is_none_or(|before| before.stamp.links == 1 && is_text(&before.bytes));
    after && before && step.attributes.is_none() && beside.made.is_empty()
}

/// Lets an editor write the file. The content on disk afterwards decides, not the editor's answer.
/// If the editor changed more than intended (for example formatted the file), that is accepted.
fn make_through(
    editor: &dyn WriteThrough,
    step: &MutationStep,
    temporary: &str,
    before_in_place: commit::BeforeInPlace<'_>,
) -> Result<MadeByEditor, JournalError> {
    let meant = step.after.as_deref().unwrap_or_default();
    let answer = editor.write(&step.real, &String::from_utf8_lossy(meant));
    let now = read_snapshot(&step.real, u64::MAX)?;
    let was = step.before.as_ref().map(|before| before.bytes.as_slice());
    let is_unchanged = now.as_ref().map(|now| now.bytes.as_slice()) == was;
    if let Err(why) = answer
        && is_unchanged
    {
        let path = step.given.clone();
        return Err(JournalError::EditorRefused { path, why });
    }
    let stamp = match now {
        Some(now) if now.bytes == meant => now.stamp,
        Some(now) if !is_unchanged && !is_same(&now.bytes, meant) => {
            return Ok(MadeByEditor {
                stamp: now.stamp,
                became: Some(now.bytes),
            });
        }
        Some(now) => commit::replace(&step.real, &now, meant, temporary.as_ref(), before_in_place)?,
        None => commit::create(&step.real, meant, temporary.as_ref(), None)?,
    };
    Ok(MadeByEditor {
        stamp,
        became: None,
    })
}

/// Reverts the steps that were made, newest first; returns the files for which that failed.
fn roll_back(
    steps: &[MutationStep],
    stamps: &[Option<Stamp>],
    besides: &[StepSideFiles],
) -> Vec<PathBuf> {
    let mut failed = Vec::new();
    for ((step, stamp), beside) in steps.iter().zip(stamps).zip(besides).rev() {
        let now = match (stamp, &step.after) {
            (Some(stamp), Some(after)) => Some(FileSnapshot {
                stamp: stamp.clone(),
                bytes: after.clone(),
            }),
            _ => None,
        };
        let back = MutationStep {
            given: step.given.clone(),
            real: step.real.clone(),
            before: now,
            after: step.before.as_ref().map(|before| before.bytes.clone()),
            attributes: step.attributes.clone(),
            unmake: Vec::new(),
            added: 0,
            removed: 0,
        };
        // Writing in place is safe: the intent is enough to recover if this is interrupted, too.
        if make(&back, &beside.temporary, &mut || Ok(())).is_err() {
            failed.push(step.real.clone());
        }
    }
    commit::remove_made(besides.iter().flat_map(|beside| &beside.made));
    failed
}

/// A unit whose intent is on disk.
pub(super) struct OpenUnit<'h> {
    history: &'h UndoHistory,
    log: UndoLogFile,
    id: String,
    pub(super) besides: Vec<StepSideFiles>,
    in_place: Cell<bool>,
}

impl<'h> OpenUnit<'h> {
    pub(super) fn begin(
        history: &'h UndoHistory,
        ticket: &WriteGrant,
        steps: &[MutationStep],
        undoes: Vec<String>,
    ) -> Result<Self, JournalError> {
        let store = history.store();
        let log = store.open()?;
        write_pending_records(history, &log)?;
        let id = history.new_unit(&ticket.call)?;
        let (mut files, mut besides) = (Vec::new(), Vec::new());
        for step in steps {
            let beside = StepSideFiles::for_step(step)?;
            files.push(record(store, step, beside.clone())?);
            besides.push(beside);
        }
        history.count(&files);
        let in_place = files.iter().any(|file| file.in_place);
        let intent = UndoRecord::Intent(Box::new(UndoIntent {
            unit: id.clone(),
            call: ticket.call.clone(),
            tool: ticket.tool.clone(),
            time: now(),
            undoes,
            files,
            ..UndoIntent::default()
        }));
        let unit = Self {
            history,
            log,
            id,
            besides,
            in_place: Cell::new(in_place),
        };
        if let Err(error) = unit.log.append(&intent, Durability::Durable) {
            // The record may be in the log nevertheless.
            let error = store.failed(error);
            unit.end(UnitEnding::NotMade, Some(error.to_string()));
            return Err(error);
        }
        Ok(unit)
    }

    /// Records that the file is overwritten in place. A crash may then leave it half written, so its
    /// new content is stored, too.
    fn goes_in_place(&self, file: usize, step: &MutationStep) -> Result<(), JournalError> {
        if step.is_linked() {
            return Ok(()); // the intent already records this
        }
        self.in_place.set(true);
        let store = self.history.store();
        if let Some(after) = &step.after {
            store.put(after, Durability::Durable)?;
        }
        let unit = self.id.clone();
        self.log
            .append(&UndoRecord::InPlace { unit, file }, Durability::Durable)
            .map_err(|error| store.failed(error))
    }

    /// Records the content that an editor wrote instead of the intended one, for undo.
    fn became(&self, file: usize, content: &[u8]) -> Result<(), JournalError> {
        let store = self.history.store();
        let keep = match content.len() <= SHOWN {
            true => store.put(content, Durability::BestEffort)?,
            false => ContentHash::compute(content).to_string(),
        };
        let after = PostImage {
            hash: keep,
            size: content.len() as u64,
        };
        let unit = self.id.clone();
        self.log
            .append(
                &UndoRecord::Became { unit, file, after },
                Durability::Durable,
            )
            .map_err(|error| store.failed(error))
    }

    /// Writes the outcome. Recovery derives a lost outcome from the hashes again. It cannot do so if
    /// another process changes a file that was written in place, so only then must the outcome be
    /// durable.
    pub(super) fn end(&self, ending: UnitEnding, note: Option<String>) {
        let unit = self.id.clone();
        let keep = if self.in_place.get() {
            Durability::Durable
        } else {
            Durability::BestEffort
        };
        let outcome = UndoRecord::Outcome { unit, ending, note };
        if self.log.append(&outcome, keep).is_err() {
            self.history.lock_unwritten_records().push(outcome);
        }
    }
}

pub(super) fn write_pending_records(
    history: &UndoHistory,
    log: &UndoLogFile,
) -> Result<(), JournalError> {
    let mut unsaid = history.lock_unwritten_records();
    while let Some(outcome) = unsaid.first() {
        log.append(outcome, Durability::Durable)
            .map_err(|error| history.store().failed(error))?;
        unsaid.remove(0);
    }
    Ok(())
}

/// Files and directories that a step creates besides its file, and that are removed if it fails.
#[derive(Debug, Clone)]
pub(super) struct StepSideFiles {
    pub(super) temporary: String,
    /// Missing directories, outermost first.
    made: Vec<PathBuf>,
}

impl StepSideFiles {
    fn for_step(step: &MutationStep) -> Result<Self, JournalError> {
        let failed = |error| JournalError::io("create", &step.real, error);
        let is_new = step.before.is_none() && step.after.is_some();
        Ok(Self {
            temporary: commit::temporary_name(),
            made: match is_new {
                true => commit::missing_parents(&step.real).map_err(failed)?,
                false => Vec::new(),
            },
        })
    }
}

impl MutationStep {
    /// Returns whether this is the file of the step, by path or as another hard link.
    pub(crate) fn is_same_object(&self, real: &Path, found: Option<&FileSnapshot>) -> bool {
        let linked = match (&self.before, found) {
            (Some(own), Some(found)) => own.stamp.same_object(&found.stamp),
            _ => false,
        };
        self.real == real || linked
    }

    /// Returns whether the file has other names. They must see the change, so it is overwritten in
    /// place.
    fn is_linked(&self) -> bool {
        let before = self.before.as_ref();
        self.after.is_some() && before.is_some_and(|before| before.stamp.links > 1)
    }
}

fn record(
    store: &UndoStore,
    step: &MutationStep,
    beside: StepSideFiles,
) -> Result<FileRecord, JournalError> {
    let before = match &step.before {
        None => RecordState::Absent,
        Some(before) => {
            let failed = |error| commit::open_failed("read", &step.real, error);
            let target = TargetDirectory::open(&step.real)
                .and_then(|directory| directory.open_target(Access::READ_OK))
                .map_err(failed)?;
            let attributes = FileAttributes::from_file(&target, &before.stamp).map_err(failed)?;
            RecordState::Regular {
                hash: store.put(&before.bytes, Durability::Durable)?,
                size: before.bytes.len() as u64,
                mode: attributes.mode,
                uid: attributes.uid,
                gid: attributes.gid,
                mtime: nanoseconds(before.stamp.mtime_ns),
                extended: extended(&attributes.extended),
                twin: None,
            }
        }
    };
    let in_place = step.is_linked();
    let after = match &step.after {
        None => None,
        Some(after) => {
            let hash = if in_place {
                store.put(after, Durability::Durable)?
            } else if after.len() <= SHOWN {
                store.put(after, Durability::BestEffort)?
            } else {
                ContentHash::compute(after).to_string()
            };
            let size = after.len() as u64;
            Some(PostImage { hash, size })
        }
    };
    Ok(FileRecord {
        given: step.given.clone(),
        real: step.real.clone(),
        made: beside.made,
        unmade: step.unmake.clone(),
        before,
        after,
        temporary: beside.temporary,
        in_place,
        added: step.added,
        removed: step.removed,
    })
}

pub(crate) fn now() -> u64 {
    millis(SystemTime::now())
}

/// Returns the milliseconds since the epoch.
pub(super) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
