//! Changes of several files as one unit, and undo.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::{Journal, LOAD_LIMIT};
use crate::commit::{self, FileAttributes, TargetDirectory};
use crate::error::JournalError;
use crate::lock::FileLock;
use crate::patch::Patch;
use crate::stamp::ContentHash;
use crate::target::FileTarget;
use crate::undo::{
    MutationStep, UndoError, UndoHistory, UndoMode, UndoOutcome, UndoSelection, perform,
    read_snapshot,
};
use crate::write_grant::WriteGrant;

/// One file of a prepared change.
#[derive(Debug, Clone)]
pub struct FileChange {
    /// The path as the caller named it.
    pub path: PathBuf,
    /// The file that the path must resolve to, if the permission check resolved it.
    pub authorized_path: Option<PathBuf>,
    /// The hash of the content when the change was prepared.
    pub expected: ContentHash,
    /// The new content.
    pub content: Vec<u8>,
}

/// One file of a prepared change that may also create, move or remove files.
#[derive(Debug, Clone)]
pub struct PlannedChange {
    /// The file.
    pub target: FileTarget,
    /// The hash of the content when the change was prepared; `None` if the file did not exist.
    pub expected: Option<ContentHash>,
    /// The new content; `None` removes the file.
    pub content: Option<Vec<u8>>,
    /// A file of this change whose mode and owner a new file gets.
    pub like: Option<PathBuf>,
}

impl From<FileChange> for PlannedChange {
    fn from(change: FileChange) -> Self {
        Self {
            target: match &change.authorized_path {
                Some(real) => FileTarget::authorized(&change.path, real),
                None => FileTarget::unrestricted(&change.path),
            },
            expected: Some(change.expected),
            content: Some(change.content),
            like: None,
        }
    }
}

/// The result of [`Journal::apply_all`].
#[derive(Debug)]
pub struct AppliedChanges {
    /// The id of the undo unit of all files, if the session has an undo journal.
    pub unit: Option<String>,
    /// In the order of the call; files that already had their new content are missing.
    pub files: Vec<AppliedFile>,
}

/// One file that was written.
#[derive(Debug)]
pub struct AppliedFile {
    /// The path as the caller named it.
    pub given: PathBuf,
    /// The path with all links resolved.
    pub real: PathBuf,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// The hash of the new content.
    pub hash: ContentHash,
}

impl Journal {
    /// Writes all files or none, as one unit. Fails without writing if any file changed since the
    /// change was prepared. If writing fails in the middle, the files written so far are restored.
    pub fn apply_all(
        &self,
        ticket: &WriteGrant,
        changes: Vec<FileChange>,
    ) -> Result<AppliedChanges, JournalError> {
        self.apply_plan(ticket, changes.into_iter().map(Into::into).collect())
    }

    /// Like [`Self::apply_all`], but for changes that may also create, move or remove files.
    pub fn apply_plan(
        &self,
        ticket: &WriteGrant,
        changes: Vec<PlannedChange>,
    ) -> Result<AppliedChanges, JournalError> {
        let mut reals = Vec::new();
        for change in &changes {
            reals.push(ticket.resolve(&change.target)?);
        }
        let unresolved: Vec<&Path> = reals.iter().map(PathBuf::as_path).collect();
        let _lock = FileLock::hold_all(&unresolved)?;
        let models = models(&changes, &reals)?;
        let (mut steps, mut drifted) = (Vec::<MutationStep>::new(), Vec::new());
        for (change, real) in changes.into_iter().zip(&reals) {
            let path = change.target.path();
            let before = read_snapshot(real, LOAD_LIMIT)?;
            // Two names of one file: the second would overwrite the change of the first.
            let twice = steps
                .iter()
                .any(|step| step.is_same_object(real, before.as_ref()));
            let hash = before
                .as_ref()
                .map(|before| ContentHash::compute(&before.bytes));
            if hash != change.expected || twice {
                drifted.push(path.to_path_buf());
                continue;
            }
            if let Some(before) = &before {
                commit::check_writable(real, &before.stamp)?;
            }
            let was = before.as_ref().map(|before| before.bytes.as_slice());
            if was == change.content.as_deref() {
                continue;
            }
            let patch = Patch::between(
                was.unwrap_or_default(),
                change.content.as_deref().unwrap_or_default(),
            );
            let model = change.like.as_deref().and_then(|like| models.get(like));
            let attributes = match (&before, &change.content) {
                (Some(_), None) => models.get(path),
                (None, Some(_)) => model,
                _ => None,
            };
            steps.push(MutationStep {
                given: path.to_path_buf(),
                real: real.clone(),
                before,
                after: change.content,
                attributes: attributes.cloned(),
                unmake: Vec::new(),
                added: patch.added,
                removed: patch.removed,
            });
        }
        if !drifted.is_empty() {
            return Err(JournalError::Drift { paths: drifted });
        }
        if steps.is_empty() {
            return Ok(AppliedChanges {
                unit: None,
                files: Vec::new(),
            });
        }
        let performed = perform(self.history_for(&steps), ticket, &steps, Vec::new())?;
        let mut files = Vec::new();
        for (step, stamp) in steps.into_iter().zip(performed.stamps) {
            let (Some(stamp), Some(content)) = (stamp, step.after) else {
                self.ledger.remove(&step.real);
                continue;
            };
            let partial = self.is_partly_seen(&step.real);
            files.push(AppliedFile {
                given: step.given,
                added: step.added,
                removed: step.removed,
                hash: self.record_write(&step.real, stamp, content, partial),
                real: step.real,
            });
        }
        Ok(AppliedChanges {
            unit: performed.unit,
            files,
        })
    }

    /// Undoes a change of this session; see [`UndoHistory::undo`].
    pub fn undo(
        &self,
        ticket: &WriteGrant,
        which: &UndoSelection,
        mode: UndoMode,
    ) -> Result<UndoOutcome, JournalError> {
        let mut undone = self.required_history()?.undo(ticket, which, mode)?;
        for (file, result) in undone.files.iter().zip(undone.results.drain(..)) {
            match result {
                Some((stamp, content)) => {
                    let partial = self.is_partly_seen(&file.real);
                    self.record_write(&file.real, stamp, content, partial);
                }
                None => self.ledger.remove(&file.real),
            }
        }
        Ok(undone)
    }

    /// Returns the undo journal, or an error if the session has none.
    pub fn required_history(&self) -> Result<&UndoHistory, JournalError> {
        self.history()
            .ok_or(JournalError::Undo(UndoError::NoJournal))
    }

    /// Returns whether the session never saw all of this file; changing a file does not alter that.
    /// Unknown files are treated as partly seen, so that Write still requires a Read.
    fn is_partly_seen(&self, real: &Path) -> bool {
        let seen = self.ledger.lookup(real);
        seen.is_none_or(|sight| sight.partial)
    }
}

/// Returns the attributes of files that are removed or serve as a model for new ones, by the path
/// the caller named.
fn models(
    changes: &[PlannedChange],
    reals: &[PathBuf],
) -> Result<HashMap<PathBuf, FileAttributes>, JournalError> {
    let mut found = HashMap::new();
    for (change, real) in changes.iter().zip(reals) {
        let path = change.target.path();
        let is_model = changes
            .iter()
            .any(|other| other.like.as_deref() == Some(path));
        let is_removed = change.expected.is_some() && change.content.is_none();
        if !is_model && !is_removed {
            continue;
        }
        // A missing file has changed since, which the caller detects.
        let Some(snapshot) = read_snapshot(real, LOAD_LIMIT)? else {
            continue;
        };
        let failed = |error| commit::open_failed("read", real, error);
        let file = TargetDirectory::open(real)
            .and_then(|directory| directory.open_target(Access::READ_OK))
            .map_err(failed)?;
        let attributes = FileAttributes::from_file(&file, &snapshot.stamp).map_err(failed)?;
        found.insert(path.to_path_buf(), attributes);
    }
    Ok(found)
}
