//! NotebookEdit: changes one cell of a notebook.

use std::path::{Path, PathBuf};

use super::{DIFF_CHARS, Journal};
use crate::commit;
use crate::error::JournalError;
use crate::freshness::{self, Freshness};
use crate::lock::FileLock;
use crate::notebook::{self, CellChange, NotebookSplice};
use crate::open::FileSnapshot;
use crate::patch::Patch;
use crate::stamp::ContentHash;
use crate::target::FileTarget;
use crate::undo::read_snapshot;
use crate::write_grant::WriteGrant;

/// The size limit of notebooks for showing and changing them.
pub const NOTEBOOK_LIMIT: u64 = 100 << 20;

/// The result of a notebook change.
#[derive(Debug)]
pub struct NotebookEditReport {
    /// The file that was changed, with all links resolved.
    pub real: PathBuf,
    /// The changed cell and the new content.
    pub spliced: NotebookSplice,
    /// The diff from the old to the new file, as text.
    pub patch: Patch,
    /// The content before.
    pub old: Vec<u8>,
    /// Changes that an editor added when it wrote the file.
    pub formatted: Option<Patch>,
    /// The hash of the new content.
    pub hash: ContentHash,
    /// The id of its undo unit, if the session has an undo journal.
    pub unit: Option<String>,
}

impl Journal {
    /// Computes what this change would do, with all checks. Changes nothing.
    pub fn check_notebook(
        &self,
        target: impl Into<FileTarget>,
        change: &CellChange,
    ) -> Result<NotebookSplice, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), target.resolve()?.real);
        let before = target.snapshot(&real, NOTEBOOK_LIMIT)?;
        let (_, spliced, _) = self.prepare_notebook(path, &real, before, change)?;
        Ok(spliced)
    }

    /// Changes one cell if the notebook is unchanged since the session saw it.
    pub fn edit_notebook(
        &self,
        ticket: &WriteGrant,
        target: impl Into<FileTarget>,
        change: &CellChange,
    ) -> Result<NotebookEditReport, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), ticket.resolve(&target)?);
        let _lock = FileLock::hold(&real)?;
        let before = read_snapshot(&real, NOTEBOOK_LIMIT)?;
        let (before, spliced, partial) = self.prepare_notebook(path, &real, before, change)?;
        let patch = Patch::between(&before.bytes, &spliced.content);
        let content = spliced.content.clone();
        let mut put = self.put(ticket, path, &real, Some(before), content, &patch)?;
        let (patch, formatted) = put.changes(patch);
        Ok(NotebookEditReport {
            patch,
            formatted,
            old: put.before.map(|before| before.bytes).unwrap_or_default(),
            hash: self.record_write(&real, put.stamp, put.after, partial),
            unit: put.unit,
            spliced,
            real,
        })
    }

    /// Returns the notebook, the change made to it, and whether the session saw only a part of it.
    fn prepare_notebook(
        &self,
        path: &Path,
        real: &Path,
        before: Option<FileSnapshot>,
        change: &CellChange,
    ) -> Result<(FileSnapshot, NotebookSplice, bool), JournalError> {
        let Some(before) = before else {
            return Err(self.missing(path));
        };
        commit::check_writable(real, &before.stamp)?;
        let path = || path.to_path_buf();
        let partial = match freshness::evaluate(self.ledger.seen(real), &before) {
            Freshness::Unseen => return Err(JournalError::NotRead { path: path() }),
            Freshness::Fresh { partial } => partial,
            // A cell is identified by its position, which a change around it may have moved.
            Freshness::Changed { seen } => {
                let diff = seen.map(|seen| Patch::between(&seen, &before.bytes).render(DIFF_CHARS));
                return Err(JournalError::ModifiedSince { path: path(), diff });
            }
        };
        let spliced =
            notebook::splice(&before.bytes, change).map_err(|error| JournalError::Notebook {
                path: path(),
                error,
            })?;
        Ok((before, spliced, partial))
    }
}
