//! NotebookEdit: one cell of a notebook changed.

use std::path::{Path, PathBuf};

use super::{DIFF_CHARS, Journal};
use crate::commit;
use crate::error::JournalError;
use crate::freshness::{self, Freshness};
use crate::lock::FileLock;
use crate::notebook::{self, CellChange, Spliced};
use crate::open::Snapshot;
use crate::patch::Patch;
use crate::stamp::ContentHash;
use crate::target::FileTarget;
use crate::undo::look;
use crate::write_grant::WriteGrant;

/// Larger notebooks are neither shown nor changed.
pub const NOTEBOOK_LIMIT: u64 = 100 << 20;

/// What a change of a notebook did.
#[derive(Debug)]
pub struct NotebookEdited {
    /// The file that was changed, after all links.
    pub real: PathBuf,
    /// Which cell, and what became of it.
    pub spliced: Spliced,
    /// From the old to the new file, as text.
    pub patch: Patch,
    /// The content before.
    pub old: Vec<u8>,
    /// What an editor changed on top when it wrote the file.
    pub formatted: Option<Patch>,
    /// Of the new content.
    pub hash: ContentHash,
    /// The unit it is undone by, if the session keeps an undo journal.
    pub unit: Option<String>,
}

impl Journal {
    /// What this change would do, if it would not be refused. Changes nothing.
    pub fn check_notebook(
        &self,
        target: impl Into<FileTarget>,
        change: &CellChange,
    ) -> Result<Spliced, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), target.resolve()?.real);
        let before = target.snapshot(&real, NOTEBOOK_LIMIT)?;
        let (_, spliced, _) = self.prepare_notebook(path, &real, before, change)?;
        Ok(spliced)
    }

    /// Changes one cell, if the notebook is what the session knows.
    pub fn edit_notebook(
        &self,
        ticket: &WriteGrant,
        target: impl Into<FileTarget>,
        change: &CellChange,
    ) -> Result<NotebookEdited, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), ticket.resolve(&target)?);
        let _lock = FileLock::hold(&real)?;
        let before = look(&real, NOTEBOOK_LIMIT)?;
        let (before, spliced, partial) = self.prepare_notebook(path, &real, before, change)?;
        let patch = Patch::between(&before.bytes, &spliced.content);
        let content = spliced.content.clone();
        let mut put = self.put(ticket, path, &real, Some(before), content, &patch)?;
        let (patch, formatted) = put.changes(patch);
        Ok(NotebookEdited {
            patch,
            formatted,
            old: put.before.map(|before| before.bytes).unwrap_or_default(),
            hash: self.record_write(&real, put.stamp, put.after, partial),
            unit: put.unit,
            spliced,
            real,
        })
    }

    /// The notebook, the change made to it, and whether it was only partly seen.
    fn prepare_notebook(
        &self,
        path: &Path,
        real: &Path,
        before: Option<Snapshot>,
        change: &CellChange,
    ) -> Result<(Snapshot, Spliced, bool), JournalError> {
        let Some(before) = before else {
            return Err(self.missing(path));
        };
        commit::check_writable(real, &before.stamp)?;
        let path = || path.to_path_buf();
        let partial = match freshness::judge(self.ledger.seen(real), &before) {
            Freshness::Unseen => return Err(JournalError::NotRead { path: path() }),
            Freshness::Fresh { partial } => partial,
            // A cell is named by its place: what changed around it may have moved it.
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
