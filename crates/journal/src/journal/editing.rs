//! Edit: one text of a file replaced by another.

use std::path::{Path, PathBuf};

use super::{DIFF_CHARS, Journal, LOAD_LIMIT};
use crate::commit;
use crate::edit::{self, Change, EditError, EditPlan, SplicePlace, Tier};
use crate::error::JournalError;
use crate::freshness::{self, Freshness};
use crate::lock::FileLock;
use crate::magic;
use crate::open::Snapshot;
use crate::patch::Patch;
use crate::stamp::ContentHash;
use crate::target::FileTarget;
use crate::text;
use crate::undo::look;
use crate::write_grant::WriteGrant;

/// How many other files a miss names.
const OTHER_FILES: usize = 3;

/// What an edit did.
#[derive(Debug)]
pub struct Edited {
    /// The file that was changed, after all links.
    pub real: PathBuf,
    /// The file was not there before.
    pub created: bool,
    /// The rule that found the places.
    pub tier: Tier,
    /// The places, in ascending order.
    pub places: Vec<SplicePlace>,
    /// From the old to the new content.
    pub patch: Patch,
    /// The content before; empty for a created file.
    pub old: Vec<u8>,
    /// What others changed since the last read, if the edit went on nevertheless.
    pub outside: Option<Patch>,
    /// What an editor changed on top when it wrote the file.
    pub formatted: Option<Patch>,
    /// Of the new content.
    pub hash: ContentHash,
    /// The unit it is undone by, if the session keeps an undo journal.
    pub unit: Option<String>,
}

/// An edit that may be made: all questions are answered.
#[derive(Debug)]
pub struct CheckedEdit {
    /// `None`: the file is to be created.
    before: Option<Snapshot>,
    plan: EditPlan,
    after: Vec<u8>,
    outside: Option<Patch>,
    /// The session still has not seen all of the file.
    partial: bool,
}

impl CheckedEdit {
    /// The change it would make; worked out when it is asked for.
    pub fn patch(&self) -> Patch {
        match &self.before {
            Some(before) => Patch::between(&before.bytes, &self.after),
            None => Patch::default(),
        }
    }
}

impl Journal {
    /// Would this edit be refused? Changes nothing.
    pub fn check_edit(
        &self,
        target: impl Into<FileTarget>,
        change: &Change<'_>,
    ) -> Result<CheckedEdit, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), target.resolve()?.real);
        let before = target.snapshot(&real, LOAD_LIMIT)?;
        self.prepare_edit(path, &real, before, change)
    }

    /// Makes the change, if its place is certain and the file is what the session knows.
    pub fn edit(
        &self,
        ticket: &WriteGrant,
        target: impl Into<FileTarget>,
        change: &Change<'_>,
    ) -> Result<Edited, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), ticket.resolve(&target)?);
        let _lock = FileLock::hold(&real)?;
        let before = look(&real, LOAD_LIMIT)?;
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
        Ok(Edited {
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
        before: Option<Snapshot>,
        change: &Change<'_>,
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
        // Nothing can be lost where there is nothing, and an empty old_string touches no text.
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

    /// Is the file known, and unchanged or changed harmlessly? Gives the outside
    /// changes and whether the file was only partly seen.
    fn judge_edit(
        &self,
        path: &Path,
        real: &Path,
        before: &Snapshot,
        change: &Change<'_>,
    ) -> Result<(Option<Patch>, bool), JournalError> {
        let path = || path.to_path_buf();
        let seen = self.ledger.seen(real);
        let was_partial = seen.as_ref().is_some_and(|seen| seen.sight.partial);
        match freshness::judge(seen, before) {
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

    /// A text that is not here may be in another file the session has read.
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
