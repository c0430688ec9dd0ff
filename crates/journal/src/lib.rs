//! Files, safely: what the file tools read and write goes through here.
//!
//! Three promises, in this order: a call that reports success changed exactly
//! what was asked; a call that reports failure changed nothing; every failure
//! says what to do next.
//!
//! # Layout
//!
//! - [`Journal`]: one per session; `read`, `write`, `edit` and their checks.
//! - `ledger`: what this session has seen of each file; `freshness` judges by it.
//! - `open`, `special`, `lock`, `commit`: the file system, never blocking, never half done.
//! - [`FileTarget`], [`WriteGrant`], [`UndoHistory`]: which file a call may open, where it may write, and how
//!   that is undone.
//! - [`Sweep`], [`Before`]: what a command changes, found by two looks, and taken back like the rest.
//! - `buffers`: what an editor has of a file and has not saved.
//! - `text`, `encoding`, `lines`, `page`: bytes shown as numbered lines.
//! - [`edit`]: pure functions from bytes and a change to the spliced bytes.
//! - [`notebook`]: the same for one cell of a notebook.
//! - `diff`, `patch`, `nearby`, `spelling`: what changed; which name was meant. `effort`: what tests count.
//!
//! Synchronous, and knows nothing of tools.

#![warn(missing_docs)]

mod buffers;
mod commit;
mod diff;
pub mod edit;
mod effort;
mod encoding;
mod error;
mod freshness;
mod journal;
mod ledger;
mod lines;
mod lock;
mod magic;
mod nearby;
pub mod notebook;
mod open;
mod page;
mod patch;
mod snapshot;
mod special;
mod spelling;
mod stamp;
mod target;
mod text;
mod undo;
mod write_grant;

pub use buffers::{BUFFER_LIMIT, UnsavedText, WriteThrough};
pub use encoding::CodePage;
pub use error::JournalError;
pub use journal::{
    Applied, AppliedFile, CheckedEdit, Edited, Extent, FileChange, Journal, NOTEBOOK_LIMIT,
    NotebookEdited, PlannedChange, Raw, WriteOutcome, WriteReport,
};
pub use ledger::{ReadLedger, SeenBy, Shown, Sight};
pub use lines::BreakStyle;
pub use nearby::nearby;
pub use open::{Resolved, resolve};
pub use page::{PageLine, PageRequest, TextPage, estimate_tokens};
pub use patch::{Patch, PatchHunk};
pub use snapshot::{Before, CommandChanges, Sweep, SweepLimits};
pub use spelling::{looks_like, respelt};
pub use stamp::{ContentHash, Stamp};
pub use target::FileTarget;
pub use text::{DecodedText, Encoding, TextFacts, readable_text};
pub use undo::{
    ChangeKind, FileSummary, HistoryMark, Mode, RecordedChange, Recovered, RecoveryVerdict,
    UndoError, UndoHistory, UndoLimits, Undone, UndoneFile, UnitState, UnitSummary, Which,
    settle_crashed,
};
pub use write_grant::WriteGrant;
