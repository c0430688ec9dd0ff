//! Settings files: finding, reading and merging them, and the settings that need trust.
//!
//! Ranks, the highest first: managed, command line, local, project, user. Rules of all ranks are
//! collected in one list; of other values the highest rank wins. A broken file or entry is omitted
//! and reported. Settings in the workspace may make permissions stricter immediately; those that
//! loosen permissions or run code need trust in the directory. The same holds for the local file,
//! unless haft itself wrote it.

#![warn(missing_docs)]

mod agent_trust_items;
mod settings_tool;
pub mod document;
mod env;
pub mod files;
pub mod git_index;
pub mod git_repository;
mod rule_writer;
mod keys;
mod unknown_keys;
mod load;
pub mod suggestions;
pub mod reference;
pub mod real_path;
pub mod sandbox;
mod source;
pub mod trust;
pub mod watch;
mod own_writes;

pub use settings_tool::SettingsFiles;
pub use document::{SettingsProblem, SettingsDocument};
pub use files::{SettingsFlags, SettingsFile, SettingsPlaces};
pub use rule_writer::LocalRules;
pub use keys::AutoMemory;
pub use load::{HttpHookLimits, Settings, extend_unique};
pub use source::{PatternBases, RuleSource, SettingsScope};
pub use trust::{TrustState, TrustFile};
pub use watch::SettingsWatch;
pub use own_writes::{OwnWritesFile, OwnWrites};
