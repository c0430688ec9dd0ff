//! File access for one session: read, write, edit.
//!
//! Each change has the same steps: lock, read the current state, check it, commit, record. A
//! [`WriteGrant`] says which call makes it and where it may write. The checks before the user is
//! asked for permission run only the second and third step.

mod applying;
mod bytes;
mod editing;
mod notebooks;
mod writing;

pub use applying::{AppliedChanges, AppliedFile, FileChange, PlannedChange};
pub use bytes::{RawFile, ShownExtent};
pub use editing::{CheckedEdit, EditReport};
pub use notebooks::{NOTEBOOK_LIMIT, NotebookEditReport};
pub(crate) use writing::preserve_form;
pub use writing::{WriteOutcome, WriteReport};

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock};

use crate::error::JournalError;
use crate::ledger::{ReadLedger, ReadRecord, ReadSource};
use crate::open::FileSnapshot;
use crate::page::{self, HASH_LIMIT, PageRequest, TextPage};
use crate::patch::Patch;
use crate::path_suggestions::nearby;
use crate::snapshot::{CachedTree, SnapshotLimits, preimages::PreimageStore};
use crate::stamp::{ContentHash, Stamp};
use crate::target::FileTarget;
use crate::undo::{MutationStep, RecoveredUnit, UndoHistory, UndoLimits, perform};
use crate::write_grant::WriteGrant;

/// The size limit for loading files to write or edit them.
const LOAD_LIMIT: u64 = 512 << 20;
/// The maximum length of a diff in an error message, in characters.
const DIFF_CHARS: usize = 4_000;

/// The file access of one session: its knowledge of files, and the functions that change them.
#[derive(Debug, Default)]
pub struct Journal {
    ledger: ReadLedger,
    root: Option<PathBuf>,
    history: Option<Arc<UndoHistory>>,
    recovered: Vec<RecoveredUnit>,
    /// Preimages of files that commands could change.
    pub(crate) preimages: Arc<Mutex<PreimageStore>>,
    /// The last scan of the directories that commands may write to.
    pub(crate) cached_tree: Arc<Mutex<Option<CachedTree>>>,
    pub(crate) sweep_limits: SnapshotLimits,
    /// For files whose unsaved text was shown: the hash of the content on disk at that time.
    pub(crate) bases: Mutex<HashMap<PathBuf, ContentHash>>,
    /// The number of running commands.
    pub(crate) commands: Arc<AtomicUsize>,
    /// The folder of the session's temporary files, which undo does not cover.
    temporary: Arc<OnceLock<PathBuf>>,
}

impl Journal {
    /// Creates a journal. If a path does not exist, errors suggest similar names below
    /// `root`.
    pub fn new(root: Option<PathBuf>) -> Self {
        Self {
            root,
            ..Self::default()
        }
    }

    /// Uses an undo journal in `folder` (`SESSION/undo`). Changes that a crash interrupted there
    /// are completed or rolled back first; if that fails, the next start tries again.
    #[must_use]
    pub fn with_undo(mut self, folder: impl Into<PathBuf>) -> Self {
        let history = UndoHistory::open(folder);
        self.recovered = history.recover().unwrap_or_default();
        self.history = Some(Arc::new(history));
        self
    }

    /// Sets other limits for the undo journal.
    #[must_use]
    pub fn with_undo_limits(mut self, limits: UndoLimits) -> Self {
        let again =
            |history: Arc<UndoHistory>| UndoHistory::open(history.folder()).with_limits(limits);
        self.history = self.history.map(|history| Arc::new(again(history)));
        self
    }

    /// Sets other limits for the work before and after a command.
    #[must_use]
    pub fn with_sweep_limits(mut self, limits: SnapshotLimits) -> Self {
        self.sweep_limits = limits;
        self
    }

    /// Returns a journal for another reader of the same session. Undo is shared; the record of what
    /// was read is its own.
    #[must_use]
    pub fn for_other_reader(&self) -> Self {
        Self {
            ledger: ReadLedger::default(),
            root: self.root.clone(),
            history: self.history.clone(),
            recovered: Vec::new(),
            preimages: Arc::clone(&self.preimages),
            cached_tree: Arc::clone(&self.cached_tree),
            sweep_limits: self.sweep_limits,
            bases: Mutex::default(),
            commands: Arc::clone(&self.commands),
            temporary: Arc::clone(&self.temporary),
        }
    }

    /// Returns the undo journal, if any.
    pub fn history(&self) -> Option<&UndoHistory> {
        self.history.as_deref()
    }

    /// Records no change of a file below this folder from now on: it is removed with the session.
    pub fn leave_out_temporary_files(&self, folder: &Path) {
        if let Ok(folder) = folder.canonicalize() {
            let _ = self.temporary.set(folder);
        }
    }

    /// Returns the undo journal for these changes; `None` if they are all in temporary files.
    fn history_for(&self, steps: &[MutationStep]) -> Option<&UndoHistory> {
        let folder = self.temporary.get();
        let is_temporary =
            |step: &MutationStep| folder.is_some_and(|folder| step.real.starts_with(folder));
        self.history().filter(|_| !steps.iter().all(is_temporary))
    }

    /// Returns the interrupted changes that were found when the journal was opened.
    pub fn recovered(&self) -> &[RecoveredUnit] {
        &self.recovered
    }

    /// Returns the ledger of what this session has read.
    pub fn ledger(&self) -> &ReadLedger {
        &self.ledger
    }

    /// Reads a page of a text file and records that it was seen.
    pub fn read(
        &self,
        target: impl Into<FileTarget>,
        request: &PageRequest,
    ) -> Result<TextPage, JournalError> {
        let target = target.into();
        if let Some(unsaved) = target.unsaved_text() {
            let FileSnapshot { stamp, bytes } = unsaved.snapshot();
            let page = page::read_given(&unsaved.real, request, stamp, bytes.clone())?;
            self.record_base(unsaved);
            self.ledger
                .record(&unsaved.real, page.read_record.clone(), Some(bytes));
            return Ok(page);
        }
        // A path that resolved to itself need not be resolved again: it is opened without following
        // any link, so a link in it makes opening fail.
        let real = match target.link_free_path() {
            Some(real) => real.to_path_buf(),
            None => {
                let resolved = target.resolve()?;
                if !resolved.exists {
                    return Err(self.missing(target.path()));
                }
                resolved.real
            }
        };
        let (page, content) = page::read_page(&real, request).map_err(|error| match error {
            JournalError::DoesNotExist { .. } => self.missing(target.path()),
            error => error,
        })?;
        self.ledger.record(&real, page.read_record.clone(), content);
        Ok(page)
    }

    /// Like [`read`](Self::read), but faster: for a text file of at most `longest` bytes whose path
    /// has no links, as the caller has just checked. Returns `None` if the file does not meet these
    /// conditions or cannot be read; then [`read`](Self::read) reports the reason.
    pub fn read_small(
        &self,
        target: &FileTarget,
        request: &PageRequest,
        longest: u64,
    ) -> Option<TextPage> {
        let real = target.link_free_path()?;
        let (page, content) = page::read_small_page(real, request, longest)?;
        self.ledger
            .record(real, page.read_record.clone(), Some(content));
        Some(page)
    }

    fn missing(&self, path: &Path) -> JournalError {
        let near = nearby(path, self.root.as_deref());
        JournalError::DoesNotExist {
            path: path.to_path_buf(),
            near,
        }
    }

    /// Writes new content into one file whose lock is held and whose state was checked: saves the
    /// preimage, records the intent, commits, records the outcome. All changes of a single file go
    /// through this function.
    pub(crate) fn put(
        &self,
        ticket: &WriteGrant,
        given: &Path,
        real: &Path,
        before: Option<FileSnapshot>,
        after: Vec<u8>,
        patch: &Patch,
    ) -> Result<PutResult, JournalError> {
        let step = MutationStep {
            given: given.to_path_buf(),
            real: real.to_path_buf(),
            before,
            after: Some(after),
            attributes: None,
            unmake: Vec::new(),
            added: patch.added,
            removed: patch.removed,
        };
        let steps = std::slice::from_ref(&step);
        let mut performed = perform(self.history_for(steps), ticket, steps, Vec::new())?;
        let stamp = performed.stamps.pop().flatten();
        let meant = step.after.unwrap_or_default();
        let was: &[u8] = step.before.as_ref().map_or(&[], |before| &before.bytes);
        let became = performed.became.map(|content| EditorForm {
            patch: Patch::between(was, &content),
            formatted: Patch::between(&meant, &content),
            content,
        });
        Ok(PutResult {
            before: step.before,
            after: match &became {
                Some(became) => became.content.clone(),
                None => meant,
            },
            became,
            stamp: stamp.ok_or_else(|| JournalError::Drifted {
                path: given.to_path_buf(),
            })?,
            unit: performed.unit,
        })
    }

    /// Records our own write as seen, so that the next write needs no read.
    fn record_write(
        &self,
        real: &Path,
        stamp: Stamp,
        content: Vec<u8>,
        partial: bool,
    ) -> ContentHash {
        let hash = ContentHash::compute(&content);
        let sight = ReadRecord {
            hash: (stamp.size <= HASH_LIMIT).then_some(hash),
            settled: stamp.is_settled(),
            stamp,
            shown: None,
            partial,
            source: ReadSource::Write,
        };
        self.ledger.remove(real);
        self.ledger.record(real, sight, Some(content));
        hash
    }
}

/// The result of [`Journal::put`].
pub(crate) struct PutResult {
    pub(crate) before: Option<FileSnapshot>,
    pub(crate) after: Vec<u8>,
    /// The content after the editor wrote it, if it differs from the intended one.
    pub(crate) became: Option<EditorForm>,
    pub(crate) stamp: Stamp,
    /// The id of its undo unit, if the session has an undo journal.
    pub(crate) unit: Option<String>,
}

/// A file as an editor wrote it.
pub(crate) struct EditorForm {
    content: Vec<u8>,
    /// The diff from the old content to this one.
    pub(crate) patch: Patch,
    /// The diff from the intended content to this one.
    pub(crate) formatted: Patch,
}

impl PutResult {
    /// Returns the diff that was made in the end, and the part of it that the editor added.
    fn changes(&mut self, meant: Patch) -> (Patch, Option<Patch>) {
        match self.became.take() {
            Some(became) => (became.patch, Some(became.formatted)),
            None => (meant, None),
        }
    }
}
