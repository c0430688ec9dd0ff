//! Grep and glob as an engine that lives as long as the session.
//!
//! The engine is exact: `Grep` finds what `rg --hidden` finds (without version control
//! directories), in an order that is the same on every run, and the report names everything that
//! was not searched. The first call in a tree is answered by one parallel walk that searches as it
//! goes. Then the tree is cached, updated from the kernel's change events and indexed in the
//! background (`index`, on Linux), and later calls search only the files that can match. If the
//! cached state may be incomplete or stale, a call walks the tree.
//!
//! Everything is synchronous: the caller chooses the thread and passes a [`StopCondition`]. A stop
//! takes effect within milliseconds and leaves a partial result that is marked as partial.
//!
//! - [`engine`](SearchEngine): the handle that a session owns.
//! - `grep`: the query, the regex, the search of one file, and the collected results.
//! - `glob`: the pattern, and the list of matching files.
//! - `root` and `walk`: the start of a search, and the files that exist for it by ripgrep's rules.
//! - `index`: trees that are cached between calls, and their index in memory and on disk.
//! - `handle`: directories and files opened relative to one another.
//! - `exclusions`: paths that must not be read.
//! - `stop`, `skip`, `error`: ending early, what was not searched, and invalid queries.

#![warn(missing_docs)]

mod engine;
mod error;
mod exclusions;
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
mod root;
mod settings;
mod skip;
mod stop;
mod walk;

pub use engine::{FileIdentity, SearchEngine, SharedEngine};
pub use error::SearchError;
pub use exclusions::Exclusions;
pub use glob::{GlobQuery, GlobReport, split_pattern};
pub use grep::{
    FileCount, GrepCounts, GrepMatches, GrepMode, GrepQuery, GrepReport, GrepRow, MAX_COLUMNS,
    MatchGroups, RowKind, TemplatePart, TextMatcher, split_globs,
};
pub use handle::EntryKind;
pub use settings::{IndexFile, IndexSettings, IndexStatus};
pub use skip::{Skip, SkipReason, SkipSummary};
pub use stop::{SearchCompletion, SearchStop, StopCondition};
pub use walk::{DirectoryList, ListedEntry, list_directory};
