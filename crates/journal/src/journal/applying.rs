//! Several files at once, and taking changes back.

use std::path::{Path, PathBuf};

use super::{Journal, LOAD_LIMIT};
use crate::commit;
use crate::error::JournalError;
use crate::lock::FileLock;
use crate::patch::Patch;
use crate::stamp::ContentHash;
use crate::target::FileTarget;
use crate::undo::{Mode, Step, UndoError, UndoHistory, Undone, Which, look, perform};
use crate::write_grant::WriteGrant;

/// One file of a prepared change.
#[derive(Debug, Clone)]
pub struct FileChange {
    /// The file, as it was named.
    pub path: PathBuf,
    /// Where it must lead, if that was judged.
    pub judged: Option<PathBuf>,
    /// What the file held when the change was prepared.
    pub expected: ContentHash,
    /// What it shall hold.
    pub content: Vec<u8>,
}

/// What [`Journal::apply_all`] did.
#[derive(Debug)]
pub struct Applied {
    /// The unit all of it is undone by, if the session keeps an undo journal.
    pub unit: Option<String>,
    /// In the order given; files that already had their new content are missing.
    pub files: Vec<AppliedFile>,
}

/// One file that was written.
#[derive(Debug)]
pub struct AppliedFile {
    /// As it was named.
    pub given: PathBuf,
    /// After all links.
    pub real: PathBuf,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// Of the new content.
    pub hash: ContentHash,
}

impl Journal {
    /// Writes all files or none, as one unit: if any is no longer what was expected, nothing is
    /// written; if writing fails in the middle, what was written is put back.
    pub fn apply_all(
        &self,
        ticket: &WriteGrant,
        changes: Vec<FileChange>,
    ) -> Result<Applied, JournalError> {
        let mut reals = Vec::new();
        for change in &changes {
            let target = match &change.judged {
                Some(real) => FileTarget::judged(&change.path, real),
                None => FileTarget::anywhere(&change.path),
            };
            reals.push(ticket.resolve(&target)?);
        }
        let unresolved: Vec<&Path> = reals.iter().map(PathBuf::as_path).collect();
        let _lock = FileLock::hold_all(&unresolved)?;
        let (mut steps, mut drifted) = (Vec::<Step>::new(), Vec::new());
        for (change, real) in changes.into_iter().zip(&reals) {
            let before = look(real, LOAD_LIMIT)?;
            // Two names of one file: the second would overwrite what the first wrote.
            let twice = steps
                .iter()
                .any(|step| step.is_same_object(real, before.as_ref()));
            let Some(before) =
                before.filter(|before| ContentHash::of(&before.bytes) == change.expected && !twice)
            else {
                drifted.push(change.path);
                continue;
            };
            commit::check_writable(real, &before.stamp)?;
            if before.bytes == change.content {
                continue;
            }
            let patch = Patch::between(&before.bytes, &change.content);
            steps.push(Step {
                given: change.path,
                real: real.clone(),
                before: Some(before),
                after: Some(change.content),
                attributes: None,
                unmake: Vec::new(),
                added: patch.added,
                removed: patch.removed,
            });
        }
        if !drifted.is_empty() {
            return Err(JournalError::Drift { paths: drifted });
        }
        if steps.is_empty() {
            return Ok(Applied {
                unit: None,
                files: Vec::new(),
            });
        }
        let performed = perform(self.history(), ticket, &steps, Vec::new())?;
        let mut files = Vec::new();
        for (step, stamp) in steps.into_iter().zip(performed.stamps) {
            let (Some(stamp), Some(content)) = (stamp, step.after) else {
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
        Ok(Applied {
            unit: performed.unit,
            files,
        })
    }

    /// Takes back a change of this session; see [`UndoHistory::undo`].
    pub fn undo(
        &self,
        ticket: &WriteGrant,
        which: &Which,
        mode: Mode,
    ) -> Result<Undone, JournalError> {
        let mut undone = self.required_history()?.undo(ticket, which, mode)?;
        for (file, result) in undone.files.iter().zip(undone.results.drain(..)) {
            match result {
                Some((stamp, content)) => {
                    let partial = self.is_partly_seen(&file.real);
                    self.record_write(&file.real, stamp, content, partial);
                }
                None => self.ledger.forget(&file.real),
            }
        }
        Ok(undone)
    }

    /// The undo journal, or the error that there is none.
    pub fn required_history(&self) -> Result<&UndoHistory, JournalError> {
        self.history()
            .ok_or(JournalError::Undo(UndoError::NoJournal))
    }

    /// What the session never saw in full it has not seen in full by changing it. Unknown files
    /// count as seen in part, so that Write still wants a Read.
    fn is_partly_seen(&self, real: &Path) -> bool {
        let seen = self.ledger.lookup(real);
        seen.is_none_or(|sight| sight.partial)
    }
}
