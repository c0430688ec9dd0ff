//! Decides whether a tool call may run.
//!
//! [`facts`] collects facts from the file system: the target of each path, the effects of a command
//! line. [`decide`](mod@decide) is a pure function of policy and facts, so that every decision can
//! be explained and tested. A call that is not provably safe needs the user's permission.
//! [`sandbox`] determines how a command that may run is confined.
//!
//! # How it decides
//! [`CallFacts`] contain each path as given and with links resolved, and the parts of a command
//! line with their effects. The line analysis reads only the line. The meaning of its names (PATH,
//! toolchain pins, repositories in git's index, git's configuration, the character set, files that
//! match a glob) is in the facts, too. Rules are parsed before tools are known; the tool's profile
//! determines the meaning of their content.
//!
//! - Trust applies to a workspace's toolchain pins, never to a program of the workspace on PATH or
//!   to git's settings.
//! - A function that the line defines explains a call only if the definition certainly ran before
//!   the call, in the same shell.
//! - In plan mode only the plan file is written, unless the user or a hook allows more.
//! - Control files are protected twice: existing ones by read-only mounts, and all of them,
//!   existing or not, by the guard of the sandbox, which checks each use of a guarded name
//!   ([`sandbox`]).

#![warn(missing_docs)]

mod accepted_edits;
mod accepted_formatters;
mod allow;
pub mod approval_parts;
mod command_spelling;
mod control_tables;
mod credential_stores;
mod credentials;
pub mod decide;
pub mod decision;
pub mod facts;
mod from_settings;
mod git_audit;
mod globs;
mod home_control;
mod installed_tools;
mod look_alikes;
mod named_operands;
mod offline;
mod offline_offers;
pub mod policy;
mod private_tmp;
mod program_audit;
pub mod protected_files;
mod read_domains;
mod read_file;
mod removed_trees;
mod repository_paths;
mod restore_confinement;
mod reversible;
pub mod rule_audit;
mod rule_matching;
mod rule_offers;
pub mod rules;
pub mod sandbox;
mod sandbox_rules;
pub mod shell_facts;
pub mod suggest;
mod system_files;
pub mod tables;
mod tree_writes;
mod wrapper_offers;

pub use allow::PartCoverage;
pub use credentials::StorePlaces;
pub use decide::{decide, uncovered_parts};
pub use decision::{Decision, DecisionBehavior, DecisionReason};
pub use facts::{CallFacts, HookPermission, MAX_PATH, PathContext, TouchedPath};
pub use from_settings::PermissionSettings;
pub use haft_settings as settings;
pub use look_alikes::find_look_alikes;
pub use offline::OfflineReason;
pub use policy::Policy;
pub use private_tmp::{PRIVATE_DIRECTORIES, PrivateTmp};
pub use protected_files::{is_protected, is_systems_own, stores};
pub use restore_confinement::{control_names, restore_hidden, restore_rules};
pub use rules::{List, PatternBases, RuleSet, RuleSource, SettingsScope};
pub use sandbox::{HostsByPolicy, SandboxSettings, confine, confine_program, profile};
pub use suggest::{RuleStore, suggest};
