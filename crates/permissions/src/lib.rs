//! May this call run?
//!
//! [`facts`] looks at the world (where does this path really lead? what does this line do?);
//! [`decide`](mod@decide) is a pure and total function of policy and facts, so that every decision
//! can be explained and tabled. Whatever cannot be proved harmless asks. [`sandbox`] says how a
//! command that may run is confined.

mod allow;
mod credentials;
pub mod decide;
pub mod decision;
pub mod facts;
mod filled;
mod from_settings;
mod git_audit;
mod globs;
mod matching;
pub mod policy;
mod program_audit;
pub mod protected;
mod removals;
mod revive;
pub mod rules;
pub mod sandbox;
pub mod shell_facts;
pub mod suggest;
mod words;

pub use allow::Covered;
pub use decide::{decide, uncovered};
pub use decision::{Because, Behavior, Decision};
pub use facts::{Facts, HookWord, PathContext, Touched};
pub use from_settings::PermissionSettings;
pub use haft_settings as settings;
pub use policy::Policy;
pub use protected::{is_protected, is_systems_own, stores};
pub use revive::{control_names, revive, revive_hidden};
pub use rules::{Bases, List, RuleSource, Rules, Scope};
pub use sandbox::{SandboxSettings, confine, profile};
pub use suggest::{RuleStore, suggest};
