//! Settings files: finding, reading and merging them, and the settings that need trust.
//!
//! Ranks, the highest first: managed, command line, local, project, user. Rules of all ranks are
//! collected in one list; of other values the highest rank wins. A broken file or entry is omitted
//! and reported. Settings in the workspace may make permissions stricter immediately; those that
//! loosen permissions or run code need trust in the directory. The same holds for the local file,
//! unless haft itself wrote it.

#![warn(missing_docs)]

mod agent_trust_items;
mod auto_mode;
pub mod document;
mod env;
pub mod files;
pub mod git_index;
pub mod git_repository;
mod keys;
mod load;
mod own_writes;
pub mod real_path;
pub mod reference;
mod rule_lists;
mod rule_writer;
pub mod sandbox;
mod settings_tool;
mod source;
pub mod suggestions;
pub mod trust;
mod unknown_keys;
pub mod untrusted;
pub mod watch;

pub use document::{SettingsDocument, SettingsProblem};
pub use files::{SettingsFile, SettingsFlags, SettingsPlaces};
pub use keys::AutoMemory;
pub use load::{HttpHookLimits, Settings, extend_unique};
pub use own_writes::{OwnWrites, OwnWritesFile};
pub use rule_writer::LocalRules;
pub use settings_tool::SettingsFiles;
pub use source::{PatternBases, RuleSource, SettingsScope};
pub use trust::{TrustFile, TrustState};
pub use untrusted::UntrustedDirectories;
pub use watch::SettingsWatch;
