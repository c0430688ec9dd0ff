//! May this call run?
//!
//! [`facts`] looks at the world (where does this path really lead? what does this line do?);
//! [`decide`](mod@decide) is a pure and total function of policy and facts, so that every decision
//! can be explained and tabled. Whatever cannot be proved harmless asks. [`sandbox`] says how a
//! command that may run is confined.
//!
//! # How it decides
//! [`CallFacts`] hold each path as given and as it really is, links followed, and for a command line its parts with
//! their effects. The judge of lines reads the line alone; what its names lead to (PATH, toolchain pins,
//! repositories in git's index, git's configuration, the character set, what a glob is on disk) are facts too.
//! Rules are read before tools are known; their content means what the tool's profile says.
//!
//! - Trust covers a workspace's pins, never a program of the workspace on PATH nor git's settings.
//! - A function of a line covers a call only where its definition certainly ran before it in the same shell.
//! - In plan mode only the plan file is written, unless a person or a hook allows more.
//! - Control files are protected twice: those that exist by read-only mounts, and all of them, existing or not, by
//!   the guard of the sandbox, which asks what a name may be used for ([`sandbox`]).

#![warn(missing_docs)]

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
mod look_alikes;
mod named_operands;
pub mod policy;
mod program_audit;
pub mod protected_files;
mod read_file;
mod removed_trees;
mod repository_paths;
mod restore_confinement;
mod rule_matching;
pub mod rules;
pub mod sandbox;
pub mod shell_facts;
pub mod suggest;
mod system_files;
pub mod tables;
mod tree_writes;

pub use allow::PartCoverage;
pub use credentials::StorePlaces;
pub use decide::{decide, uncovered_parts};
pub use decision::{Behavior, Decision, DecisionReason};
pub use facts::{CallFacts, HookPermission, MAX_PATH, PathContext, TouchedPath};
pub use from_settings::PermissionSettings;
pub use haft_settings as settings;
pub use look_alikes::find_look_alikes;
pub use policy::Policy;
pub use protected_files::{is_protected, is_systems_own, stores};
pub use restore_confinement::{control_names, restore_rules, revive_hidden};
pub use rules::{List, PatternBases, RuleSource, Rules, SettingsScope};
pub use sandbox::{HostsByPolicy, SandboxSettings, confine, confine_program, profile};
pub use suggest::{RuleStore, suggest};
