//! Which profile a command gets.

use std::fmt;

use haft_contract::{Confined, PermissionMode};
use serde_json::Value;

use super::super::{Facts, Policy, allow};

/// Why a command gets its profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileReason {
    /// It is known to change nothing.
    ReadOnly,
    /// It changes nothing, but asks a service of the user's own.
    ReadsNetwork,
    /// It may change something.
    MayChange,
    /// The settings name it as one that runs unconfined: in these words.
    Excluded(String),
    /// It asks for it, which a person must agree to.
    Lifted,
    /// The settings say that nothing is confined.
    Disabled,
    /// They say so of files, and the network is open without a word.
    FilesOpen,
    /// The mode lets everything through, and the settings do not ask for more.
    Bypass,
}

impl fmt::Display for ProfileReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly => f.write_str("it only reads"),
            Self::ReadsNetwork => f.write_str("it only reads, and asks a service of yours"),
            Self::MayChange => f.write_str("it may change something"),
            Self::Excluded(pattern) => write!(f, "sandbox.excludedCommands names `{pattern}`"),
            Self::Lifted => f.write_str("dangerouslyDisableSandbox asks for it"),
            Self::Disabled => f.write_str("sandbox.enabled is false"),
            Self::FilesOpen => f.write_str("sandbox.filesystem.disabled is true"),
            Self::Bypass => {
                f.write_str("permission mode is bypassPermissions, and sandbox.enabled is not true")
            }
        }
    }
}

/// The profile of a call that starts a command, once it may run; and why. Pure.
pub fn profile(policy: &Policy, facts: &Facts) -> Option<(Confined, ProfileReason)> {
    if is_lifted(policy, facts) {
        return Some((Confined::Full, ProfileReason::Lifted));
    }
    without_lifting(policy, facts)
}

fn without_lifting(policy: &Policy, facts: &Facts) -> Option<(Confined, ProfileReason)> {
    let shell = facts.shell.as_ref()?;
    let sandbox = &policy.sandbox;
    if let Some(excluded) = sandbox.excludes(facts) {
        return Some((
            Confined::Full,
            ProfileReason::Excluded(excluded.text.clone()),
        ));
    }
    if allow::is_harmless(policy, shell) {
        return Some((Confined::ReadOnly, ProfileReason::ReadOnly));
    }
    let bypass = policy.mode == PermissionMode::BypassPermissions;
    // Where a sandbox is all that lets a command run, no one agreed to what it may reach.
    let agreed = !(sandbox.enabled == Some(true) && sandbox.lets_through);
    let network = agreed && allow::reads_network(policy, shell);
    Some(match sandbox.enabled {
        Some(true) if network => (Confined::ReadOnly, ProfileReason::ReadsNetwork),
        None if network && !bypass && !sandbox.files_open => {
            (Confined::ReadOnly, ProfileReason::ReadsNetwork)
        }
        Some(true) => (Confined::Workspace, ProfileReason::MayChange),
        Some(false) => (Confined::Full, ProfileReason::Disabled),
        None if bypass => (Confined::Full, ProfileReason::Bypass),
        None if sandbox.files_open => (Confined::Full, ProfileReason::FilesOpen),
        None => (Confined::Workspace, ProfileReason::MayChange),
    })
}

fn wants_lifting(policy: &Policy, facts: &Facts) -> bool {
    let asked = facts.input.get("dangerouslyDisableSandbox") == Some(&Value::Bool(true));
    asked && policy.sandbox.may_be_lifted
}

/// Does the call ask to run unconfined, where it otherwise would not?
pub(crate) fn is_lifted(policy: &Policy, facts: &Facts) -> bool {
    wants_lifting(policy, facts)
        && without_lifting(policy, facts).is_some_and(|(confined, _)| confined != Confined::Full)
}

/// Is the command so confined that it needs no permission? Only where files and network are, and the
/// machine can do it.
pub(crate) fn is_enough(policy: &Policy, facts: &Facts) -> bool {
    let sandbox = &policy.sandbox;
    sandbox.enabled == Some(true)
        && sandbox.lets_through
        && sandbox.available
        && !sandbox.unconfined
        && !sandbox.files_open
        && policy.mode != PermissionMode::Plan
        && profile(policy, facts).is_some_and(|(confined, _)| confined != Confined::Full)
}

/// Would nothing keep the command from files that are denied, once it runs?
pub(crate) fn is_open(policy: &Policy, facts: &Facts) -> bool {
    policy.sandbox.unconfined
        || policy.sandbox.files_open
        || profile(policy, facts).is_none_or(|(confined, _)| confined == Confined::Full)
}
