//! Safe file access: the file tools read and write through this crate.
//!
//! Three promises, in this order: a call that reports success changed exactly what was requested; a
//! call that reports failure changed nothing; every failure says what to do next.
//!
//! # Layout
//!
//! - [`Journal`]: one per session; `read`, `write`, `edit` and their checks.
//! - `ledger`: what this session has read of each file; `freshness` detects changes since then.
//! - `open`, `special_files`, `lock`, `commit`: access to the file system that never blocks and
//!   never leaves a file half written.
//! - [`FileTarget`], [`WriteGrant`], [`UndoHistory`]: which file a call may open, where it may
//!   write, and how that is undone.
//! - [`SnapshotScope`], [`CommandBaseline`]: the changes of a shell command, found by a scan before
//!   and after it, and undone like the changes of file tools.
//! - [`WitnessUnit`]: the same for a command whose changes the sandbox witnesses; no scan is needed.
//! - `editor_buffers`: unsaved text in an editor.
//! - `text`, `encoding`, `lines`, `page`: bytes shown as numbered lines.
//! - [`edit`]: pure functions from bytes and a change to the spliced bytes.
//! - [`notebook`]: pure functions that change one cell of a notebook.
//! - `diff`, `patch`: the difference of two contents; `path_suggestions`,
//!   `unicode_spelling`: similar file names. `step_counter`: the cost of searches in tests.
//!
//! All functions are synchronous. The crate does not depend on tools.

#![warn(missing_docs)]

mod commit;
mod diff;
pub mod edit;
mod editor_buffers;
mod encoding;
mod error;
mod freshness;
mod journal;
mod ledger;
mod lines;
mod lock;
mod magic;
pub mod notebook;
mod open;
mod page;
mod patch;
mod path_suggestions;
mod snapshot;
mod special_files;
mod stamp;
mod step_counter;
mod target;
mod text;
mod undo;
mod unicode_spelling;
mod witness;
mod write_grant;

pub use editor_buffers::{BUFFER_LIMIT, UnsavedText, WriteThrough};
pub use encoding::CodePage;
pub use error::JournalError;
pub use journal::{
    AppliedChanges, AppliedFile, CheckedEdit, EditReport, FileChange, Journal, NOTEBOOK_LIMIT,
    NotebookEditReport, PlannedChange, RawFile, ShownExtent, WriteOutcome, WriteReport,
};
pub use ledger::{ReadLedger, ReadRecord, ReadSource, ShownLines};
pub use lines::BreakStyle;
pub use open::{ResolvedPath, resolve};
pub use page::{PageLine, PageRequest, TextPage, estimate_tokens};
pub use patch::{Patch, PatchHunk};
pub use path_suggestions::nearby;
pub use snapshot::{CommandBaseline, CommandChanges, SnapshotLimits, SnapshotScope};
pub use stamp::{ContentHash, Stamp};
pub use target::FileTarget;
pub use text::{DecodedText, Encoding, TextFacts, readable_text};
pub use undo::{
    ChangeKind, FileSummary, HistoryMark, RecordedChange, RecoveredUnit, RecoveryVerdict,
    StoredBytes, UndoError, UndoHistory, UndoLimits, UndoMode, UndoOutcome, UndoSelection,
    UndoneFile, UnitState, UnitSummary, settle_crashed,
};
pub use unicode_spelling::{looks_like, respelt};
pub use witness::WitnessUnit;
pub use write_grant::WriteGrant;
