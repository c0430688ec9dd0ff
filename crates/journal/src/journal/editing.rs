//! Edit: replaces one text of a file by another.

use std::path::{Path, PathBuf};

use super::{DIFF_CHARS, Journal, LOAD_LIMIT};
use crate::commit;
use crate::edit::{self, EditError, EditPlan, EditRequest, MatchTier, SplicePlace};
use crate::error::JournalError;
use crate::freshness::{self, Freshness};
use crate::lock::FileLock;
use crate::magic;
use crate::open::FileSnapshot;
use crate::patch::Patch;
use crate::stamp::ContentHash;
use crate::target::FileTarget;
use crate::text;
use crate::undo::read_snapshot;
use crate::write_grant::WriteGrant;

/// The number of other files that the error for a missing text names.
const OTHER_FILES: usize = 3;

/// The result of an edit.
#[derive(Debug)]
pub struct EditReport {
    /// The file that was changed, with all links resolved.
    pub real: PathBuf,
    /// The file did not exist before.
    pub created: bool,
    /// The rule that found the places.
    pub tier: MatchTier,
    /// The places, in ascending order.
    pub places: Vec<SplicePlace>,
    /// The diff from the old to the new content.
    pub patch: Patch,
    /// The content before; empty for a created file.
    pub old: Vec<u8>,
    /// Changes by others since the last read, if the edit was made nevertheless.
    pub outside: Option<Patch>,
    /// Changes that an editor added when it wrote the file.
    pub formatted: Option<Patch>,
    /// The hash of the new content.
    pub hash: ContentHash,
    /// The id of its undo unit, if the session has an undo journal.
    pub unit: Option<String>,
}

/// An edit that passed all checks.
#[derive(Debug)]
pub struct CheckedEdit {
    /// The state before; `None` if the file is to be created.
    before: Option<FileSnapshot>,
    plan: EditPlan,
    after: Vec<u8>,
    outside: Option<Patch>,
    /// The session has not seen all of the file.
    partial: bool,
}

impl CheckedEdit {
    /// Computes the diff that the edit would make.
    pub fn patch(&self) -> Patch {
        match &self.before {
            Some(before) => Patch::between(&before.bytes, &self.after),
            None => Patch::default(),
        }
    }
}

impl Journal {
    /// Checks whether this edit would fail. Changes nothing.
    pub fn check_edit(
        &self,
        target: impl Into<FileTarget>,
        change: &EditRequest<'_>,
    ) -> Result<CheckedEdit, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), target.resolve()?.real);
        let before = target.snapshot(&real, LOAD_LIMIT)?;
        self.prepare_edit(path, &real, before, change)
    }

    /// Makes the change if its place is certain and the file is unchanged since the session saw it.
    pub fn edit(
        &self,
        ticket: &WriteGrant,
        target: impl Into<FileTarget>,
        change: &EditRequest<'_>,
    ) -> Result<EditReport, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), ticket.resolve(&target)?);
        let _lock = FileLock::hold(&real)?;
        let before = read_snapshot(&real, LOAD_LIMIT)?;
        let prepared = self.prepare_edit(path, &real, before, change)?;
        let patch = prepared.patch();
        let CheckedEdit {
            before,
            plan,
            after,
            outside,
            partial,
        } = prepared;
        let mut put = self.put(ticket, path, &real, before, after, &patch)?;
        let (patch, formatted) = put.changes(patch);
        Ok(EditReport {
            created: put.before.is_none(),
            tier: plan.tier,
            places: plan.places,
            patch,
            old: put.before.map(|before| before.bytes).unwrap_or_default(),
            outside,
            formatted,
            hash: self.record_write(&real, put.stamp, put.after, partial),
            unit: put.unit,
            real,
        })
    }

    fn prepare_edit(
        &self,
        path: &Path,
        real: &Path,
        before: Option<FileSnapshot>,
        change: &EditRequest<'_>,
    ) -> Result<CheckedEdit, JournalError> {
        let refused = |error| JournalError::Edit {
            path: path.to_path_buf(),
            error,
        };
        if change.old == change.new {
            return Err(refused(EditError::Identical));
        }
        let Some(before) = before else {
            if !change.old.is_empty() {
                return Err(self.missing(path));
            }
            let plan = edit::plan(&[], change).map_err(refused)?;
            let after = edit::apply(&[], &plan);
            return Ok(CheckedEdit {
                before: None,
                plan,
                after,
                outside: None,
                partial: false,
            });
        };
        commit::check_writable(real, &before.stamp)?;
        if text::is_binary(&before.bytes) {
            let kind = magic::guess_type(&before.bytes);
            let path = path.to_path_buf();
            return Err(JournalError::Binary {
                path,
                kind,
                size: before.stamp.size,
            });
        }
        // An empty file has nothing to lose, and an edit with an empty old_string fails for any
        // other file.
        let (outside, partial) = if before.bytes.is_empty() || change.old.is_empty() {
            (None, false)
        } else {
            self.judge_edit(path, real, &before, change)?
        };
        let plan = edit::plan(&before.bytes, change)
            .map_err(|error| refused(self.name_other_files(error, real, change.old)))?;
        let after = edit::apply(&before.bytes, &plan);
        Ok(CheckedEdit {
            before: Some(before),
            plan,
            after,
            outside,
            partial,
        })
    }

    /// Checks that the session knows the file and that changes from outside do not affect the edit.
    /// Returns these changes and whether the session saw only a part of the file.
    fn judge_edit(
        &self,
        path: &Path,
        real: &Path,
        before: &FileSnapshot,
        change: &EditRequest<'_>,
    ) -> Result<(Option<Patch>, bool), JournalError> {
        let path = || path.to_path_buf();
        let seen = self.ledger.seen(real);
        let was_partial = seen.as_ref().is_some_and(|seen| seen.read_record.partial);
        match freshness::evaluate(seen, before) {
            Freshness::Unseen => Err(JournalError::NotRead { path: path() }),
            Freshness::Fresh { partial } => Ok((None, partial)),
            Freshness::Changed { seen: None } => Err(JournalError::ModifiedSince {
                path: path(),
                diff: None,
            }),
            Freshness::Changed { seen: Some(seen) } => {
                let outside = Patch::between(&seen, &before.bytes);
                let clean = edit::find(&before.bytes, change).is_ok_and(|plan| {
                    freshness::merges_cleanly(&seen, &before.bytes, change, &plan)
                });
                if clean {
                    return Ok((Some(outside), was_partial));
                }
                let diff = Some(outside.render(DIFF_CHARS));
                Err(JournalError::ModifiedSince { path: path(), diff })
            }
        }
    }

    /// Adds a hint if the text occurs in another file that the session has read.
    fn name_other_files(&self, error: EditError, real: &Path, old: &str) -> EditError {
        let EditError::NotFound { mut help } = error else {
            return error;
        };
        let others = self.ledger.containing(old, real, OTHER_FILES);
        if !others.is_empty() {
            let names: Vec<String> = others
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            if !help.is_empty() {
                help.push('\n');
            }
            help.push_str(&format!(
                "old_string occurs in other files read before: {}.",
                names.join(", ")
            ));
        }
        EditError::NotFound { help }
    }
}
