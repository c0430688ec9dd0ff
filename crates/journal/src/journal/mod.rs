//! The door to files for one session: read, write, edit.
//!
//! Each mutation is lock → look → judge → commit → record, on a ticket that says
//! for which call and where. The checks that are made before permission is asked
//! run the same look and judge, without the rest.

mod applying;
mod bytes;
mod editing;
mod notebooks;
mod writing;

pub use applying::{Applied, AppliedFile, FileChange, PlannedChange};
pub use bytes::{Extent, Raw};
pub use editing::{CheckedEdit, Edited};
pub use notebooks::{NOTEBOOK_LIMIT, NotebookEdited};
pub(crate) use writing::keep_form;
pub use writing::{WriteOutcome, WriteReport};

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use crate::error::JournalError;
use crate::ledger::{ReadLedger, SeenBy, Sight};
use crate::nearby::nearby;
use crate::open::Snapshot;
use crate::page::{self, HASH_LIMIT, PageRequest, TextPage};
use crate::patch::Patch;
use crate::snapshot::{KeptLook, SweepLimits, preimages::Shelf};
use crate::stamp::{ContentHash, Stamp};
use crate::target::FileTarget;
use crate::undo::{Recovered, Step, UndoHistory, UndoLimits, perform};
use crate::write_grant::WriteGrant;

/// Larger files are not loaded to be written or edited.
const LOAD_LIMIT: u64 = 512 << 20;
/// How much of a diff an error message carries.
const DIFF_CHARS: usize = 4_000;

/// What one session knows of the file system, and its only way to change it.
#[derive(Debug, Default)]
pub struct Journal {
    ledger: ReadLedger,
    root: Option<PathBuf>,
    history: Option<Arc<UndoHistory>>,
    recovered: Vec<Recovered>,
    /// What commands could destroy.
    pub(crate) shelf: Arc<Mutex<Shelf>>,
    /// The last look at where commands may write.
    pub(crate) look: Arc<Mutex<Option<KeptLook>>>,
    pub(crate) sweep_limits: SweepLimits,
    /// Of files whose editor's text was shown: what was on disk then.
    pub(crate) bases: Mutex<HashMap<PathBuf, ContentHash>>,
    /// Commands that run now.
    pub(crate) commands: Arc<AtomicUsize>,
}

impl Journal {
    /// `root`: where to look for a file whose path is wrong but whose name is right.
    pub fn new(root: Option<PathBuf>) -> Self {
        Self {
            root,
            ..Self::default()
        }
    }

    /// The same with an undo journal in `folder` (`SESSION/undo`). Changes that a crash
    /// interrupted there are settled first; if that is not possible now, it is at the next start.
    #[must_use]
    pub fn with_undo(mut self, folder: impl Into<PathBuf>) -> Self {
        let history = UndoHistory::open(folder);
        self.recovered = history.recover().unwrap_or_default();
        self.history = Some(Arc::new(history));
        self
    }

    /// The same with other limits for the undo journal.
    #[must_use]
    pub fn with_undo_limits(mut self, limits: UndoLimits) -> Self {
        let again =
            |history: Arc<UndoHistory>| UndoHistory::open(history.folder()).with_limits(limits);
        self.history = self.history.map(|history| Arc::new(again(history)));
        self
    }

    /// The same with other limits on what is done before and after a command.
    #[must_use]
    pub fn with_sweep_limits(mut self, limits: SweepLimits) -> Self {
        self.sweep_limits = limits;
        self
    }

    /// One for another reader of the same session: what it changes is undone with the rest, but what it
    /// has seen of files is its own.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self {
            ledger: ReadLedger::default(),
            root: self.root.clone(),
            history: self.history.clone(),
            recovered: Vec::new(),
            shelf: Arc::clone(&self.shelf),
            look: Arc::clone(&self.look),
            sweep_limits: self.sweep_limits,
            bases: Mutex::default(),
            commands: Arc::clone(&self.commands),
        }
    }

    /// The undo journal, if there is one.
    pub fn history(&self) -> Option<&UndoHistory> {
        self.history.as_deref()
    }

    /// What was found interrupted when the journal was opened.
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    /// What this session has seen.
    pub fn ledger(&self) -> &ReadLedger {
        &self.ledger
    }

    /// Shows a page of a text file and records that it was seen.
    pub fn read(
        &self,
        target: impl Into<FileTarget>,
        request: &PageRequest,
    ) -> Result<TextPage, JournalError> {
        let target = target.into();
        if let Some(unsaved) = target.unsaved_text() {
            let Snapshot { stamp, bytes } = unsaved.snapshot();
            let page = page::read_given(&unsaved.real, request, stamp, bytes.clone())?;
            self.noted_base(unsaved);
            self.ledger
                .record(&unsaved.real, page.sight.clone(), Some(bytes));
            return Ok(page);
        }
        // A path that led to itself needs no second look: it is opened without following any link, so that it either
        // still does or is not opened.
        let real = match target.led_to_itself() {
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
        self.ledger.record(&real, page.sight.clone(), content);
        Ok(page)
    }

    /// The same for a text file that the caller has just seen where it is named, and that has at most so many bytes: that
    /// takes one look. `None`: it is another one, or cannot be read; [`read`](Self::read) says what it is.
    pub fn read_small(
        &self,
        target: &FileTarget,
        request: &PageRequest,
        longest: u64,
    ) -> Option<TextPage> {
        let real = target.led_to_itself()?;
        let (page, content) = page::read_small_page(real, request, longest)?;
        self.ledger.record(real, page.sight.clone(), Some(content));
        Some(page)
    }

    fn missing(&self, path: &Path) -> JournalError {
        let near = nearby(path, self.root.as_deref());
        JournalError::DoesNotExist {
            path: path.to_path_buf(),
            near,
        }
    }

    /// Puts new content into one file whose lock is held and whose state was judged: pre-image,
    /// intent, commit, outcome. Whatever changes a single file comes through here.
    pub(crate) fn put(
        &self,
        ticket: &WriteGrant,
        given: &Path,
        real: &Path,
        before: Option<Snapshot>,
        after: Vec<u8>,
        patch: &Patch,
    ) -> Result<Put, JournalError> {
        let step = Step {
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
        let mut performed = perform(self.history(), ticket, steps, Vec::new())?;
        let stamp = performed.stamps.pop().flatten();
        let meant = step.after.unwrap_or_default();
        let was: &[u8] = step.before.as_ref().map_or(&[], |before| &before.bytes);
        let became = performed.became.map(|content| EditorForm {
            patch: Patch::between(was, &content),
            formatted: Patch::between(&meant, &content),
            content,
        });
        Ok(Put {
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

    /// Own writes count as seen, so that the next one needs no read.
    fn record_write(
        &self,
        real: &Path,
        stamp: Stamp,
        content: Vec<u8>,
        partial: bool,
    ) -> ContentHash {
        let hash = ContentHash::of(&content);
        let sight = Sight {
            hash: (stamp.size <= HASH_LIMIT).then_some(hash),
            settled: stamp.is_settled(),
            stamp,
            shown: None,
            partial,
            by: SeenBy::Write,
        };
        self.ledger.forget(real);
        self.ledger.record(real, sight, Some(content));
        hash
    }
}

/// What [`Journal::put`] did.
pub(crate) struct Put {
    pub(crate) before: Option<Snapshot>,
    pub(crate) after: Vec<u8>,
    /// What an editor made of it, where that is not what was meant.
    pub(crate) became: Option<EditorForm>,
    pub(crate) stamp: Stamp,
    /// The unit it is undone by, if the session keeps an undo journal.
    pub(crate) unit: Option<String>,
}

/// A file as an editor wrote it.
pub(crate) struct EditorForm {
    content: Vec<u8>,
    /// From the old content to this one.
    pub(crate) patch: Patch,
    /// From what was meant to this one.
    pub(crate) formatted: Patch,
}

impl Put {
    /// The change that was made in the end, and what of it is the editor's.
    fn changes(&mut self, meant: Patch) -> (Patch, Option<Patch>) {
        match self.became.take() {
            Some(became) => (became.patch, Some(became.formatted)),
            None => (meant, None),
        }
    }
}
