//! Grep and glob as an engine that lives as long as the session.
//!
//! The promise is exactness: `Grep` finds what `rg --hidden` finds (version control directories
//! left out), in an order that is the same on every run, and whatever was not searched is named in
//! the report. The first call in a tree is answered by one parallel walk that searches as it goes;
//! then the tree is kept, followed through the kernel's events and indexed behind the calls (`index`,
//! on Linux), and later calls search only what can match. Where anything is in doubt, a call walks.
//!
//! Everything is synchronous: the caller picks the thread and passes a [`Stop`], which is honoured
//! within milliseconds and leaves a partial result marked as such.
//!
//! - [`engine`](SearchEngine): the handle a session keeps.
//! - `grep`: query, regex, one file's search, and what is kept of it.
//! - `glob`: pattern, and the list of files it names.
//! - `root` and `walk`: where a search begins, and which files exist for it by ripgrep's rules.
//! - `index`: trees that are kept between calls, their index in memory and on disk.
//! - `handle`: directories and files opened one inside the other.
//! - `leave_out`: what must not be looked at.
//! - `stop`, `skip`, `error`: ending early, what was left out, what was wrong.

#![warn(missing_docs)]

mod engine;
mod error;
#[cfg(all(feature = "fuzzing", target_os = "linux"))]
pub mod fuzzing;
mod glob;
mod grep;
mod handle;
#[cfg(target_os = "linux")]
mod index;
#[cfg(not(target_os = "linux"))]
#[path = "no_index.rs"]
mod index;
mod leave_out;
mod root;
mod settings;
mod skip;
mod stop;
mod walk;

pub use engine::{FileIdentity, SearchEngine, SharedEngine};
pub use error::SearchError;
pub use glob::{GlobQuery, GlobReport, split_pattern};
pub use grep::{
    FileCount, Found, GrepMode, GrepQuery, GrepReport, MAX_COLUMNS, MatchGroups, Row, RowKind,
    Tally, TemplatePart, TextMatcher, split_globs,
};
pub use handle::EntryKind;
pub use leave_out::LeaveOut;
pub use settings::{IndexFile, IndexSettings, IndexStatus};
pub use skip::{Skip, SkipReason, Skipped};
pub use stop::{Completion, SearchStop, Stop};
pub use walk::{DirectoryList, ListedEntry, list_directory};
