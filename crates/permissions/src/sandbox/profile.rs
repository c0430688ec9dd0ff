//! Selects the sandbox profile of a command.

use std::fmt;

use haft_contract::{ConfinementProfile, PermissionMode};
use serde_json::Value;

use super::super::{
    CallFacts, Policy, allow,
    offline::{self, OfflineReason},
    read_domains,
};

/// The reason why a command gets its profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileReason {
    /// The command is known to change nothing.
    ReadOnly,
    /// The command changes nothing, but sends requests to a service of the user.
    ReadsNetwork,
    /// The command changes nothing, and `sandbox.network.readDomains` has these hosts that it contacts.
    ReadsDomains(Vec<String>),
    /// The command may change something.
    MayChange,
    /// The command runs without network.
    Offline(OfflineReason),
    /// The settings exclude the command from the sandbox; contains the pattern.
    Excluded(String),
    /// The call requests no sandbox, and the user must agree.
    Lifted,
    /// The settings disable the sandbox.
    Disabled,
    /// The settings disable the file restrictions, and do not restrict the network.
    FilesOpen,
    /// The permission mode allows everything, and the settings do not require a sandbox.
    Bypass,
}

impl fmt::Display for ProfileReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly => f.write_str("it only reads"),
            Self::ReadsNetwork => {
                f.write_str("it only reads, and sends requests to one of your services")
            }
            Self::ReadsDomains(hosts) => {
                let hosts = hosts.join(", ");
                write!(
                    f,
                    "it only reads, and sandbox.network.readDomains has {hosts}"
                )
            }
            Self::MayChange => f.write_str("it may change something"),
            Self::Offline(reason) => write!(f, "{reason}"),
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

/// Returns the profile of a call that runs a command, once it is allowed, and the reason. Has no
/// side effects.
pub fn profile(policy: &Policy, facts: &CallFacts) -> Option<(ConfinementProfile, ProfileReason)> {
    if is_lifted(policy, facts) {
        return Some((ConfinementProfile::Full, ProfileReason::Lifted));
    }
    without_lifting(policy, facts)
}

/// Returns whether commands are confined, files and network. The mode `auto` confines them unless the
/// settings disable the sandbox.
pub(super) fn enabled(policy: &Policy) -> Option<bool> {
    match policy.mode {
        PermissionMode::Auto => policy.sandbox.enabled.or(Some(true)),
        _ => policy.sandbox.enabled,
    }
}

fn without_lifting(
    policy: &Policy,
    facts: &CallFacts,
) -> Option<(ConfinementProfile, ProfileReason)> {
    let shell = facts.shell.as_ref()?;
    let sandbox = &policy.sandbox;
    if let Some(excluded) = sandbox.excludes(facts) {
        return Some((
            ConfinementProfile::Full,
            ProfileReason::Excluded(excluded.text.clone()),
        ));
    }
    if allow::is_read_only(policy, shell) {
        return Some((ConfinementProfile::ReadOnly, ProfileReason::ReadOnly));
    }
    if let Some(reason) = offline::reason(policy, facts) {
        return Some((
            ConfinementProfile::Workspace,
            ProfileReason::Offline(reason),
        ));
    }
    if let Some((hosts, _)) = read_domains::permitted(policy, facts) {
        return Some((
            ConfinementProfile::ReadOnly,
            ProfileReason::ReadsDomains(hosts),
        ));
    }
    let bypass = policy.mode == PermissionMode::BypassPermissions;
    // If the command may run only because of the sandbox, the user has not agreed to its access to
    // the service.
    // The mode `auto` asks about such commands.
    let auto = policy.mode == PermissionMode::Auto;
    let agreed = auto || !(sandbox.enabled == Some(true) && sandbox.lets_through);
    let network = agreed && allow::reads_network(policy, shell);
    Some(match enabled(policy) {
        Some(true) if network => (ConfinementProfile::ReadOnly, ProfileReason::ReadsNetwork),
        None if network && !bypass && !sandbox.files_open => {
            (ConfinementProfile::ReadOnly, ProfileReason::ReadsNetwork)
        }
        Some(true) => (ConfinementProfile::Workspace, ProfileReason::MayChange),
        Some(false) => (ConfinementProfile::Full, ProfileReason::Disabled),
        None if bypass => (ConfinementProfile::Full, ProfileReason::Bypass),
        None if sandbox.files_open => (ConfinementProfile::Full, ProfileReason::FilesOpen),
        None => (ConfinementProfile::Workspace, ProfileReason::MayChange),
    })
}

fn wants_lifting(policy: &Policy, facts: &CallFacts) -> bool {
    let asked = facts.input.get("dangerouslyDisableSandbox") == Some(&Value::Bool(true));
    asked && policy.sandbox.may_be_lifted
}

/// Returns whether the call requests to run unconfined and would be confined otherwise.
pub(crate) fn is_lifted(policy: &Policy, facts: &CallFacts) -> bool {
    wants_lifting(policy, facts)
        && without_lifting(policy, facts)
            .is_some_and(|(confined, _)| confined != ConfinementProfile::Full)
}

/// Returns whether the confinement is strict enough to run the command without permission. It must
/// restrict both files and network, and the machine must support it.
pub(crate) fn is_enough(policy: &Policy, facts: &CallFacts) -> bool {
    let sandbox = &policy.sandbox;
    let replaces_permission = match policy.mode {
        PermissionMode::Auto => !sandbox.asks_confined && is_witnessed(policy, facts),
        _ => sandbox.lets_through && sandbox.available,
    };
    enabled(policy) == Some(true)
        && replaces_permission
        && !sandbox.unconfined
        && !sandbox.files_open
        && policy.mode != PermissionMode::Plan
        && profile(policy, facts).is_some_and(|(confined, _)| confined != ConfinementProfile::Full)
}

/// Returns whether undo would cover everything that the command of this call changes in files.
pub fn is_witnessed(policy: &Policy, facts: &CallFacts) -> bool {
    !policy.sandbox.unwitnessed
        && !policy.sandbox.unconfined
        && !policy.sandbox.files_open
        && profile(policy, facts).is_some_and(|(confined, _)| confined != ConfinementProfile::Full)
}

/// Returns whether no confinement would prevent the command from opening denied files.
pub(crate) fn is_open(policy: &Policy, facts: &CallFacts) -> bool {
    policy.sandbox.unconfined
        || policy.sandbox.files_open
        || profile(policy, facts).is_none_or(|(confined, _)| confined == ConfinementProfile::Full)
}
