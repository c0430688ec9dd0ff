//! The confinement of commands.
//!
//! [`SandboxSettings`] contains the settings. [`profile`] selects the profile of a call, without
//! side effects. [`confine`] returns the whole confinement, for which it reads the file system.

mod approved;
mod caches;
mod control_files;
pub(crate) mod from_settings;
mod home_visibility;
mod hosts;
mod known_reads;
mod named_control_files;
mod path_scan;
mod paths;
mod profile;
mod scan_cache;
mod secret_variables;
mod services;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{Confinement, ConfinementProfile, NetworkAccess, PermissionMode, RuleMatch};
use haft_settings::extend_unique;
use serde_json::Value;

use super::{
    CallFacts, Policy,
    rules::{List, PathPattern, WildcardPattern, collapse},
    shell_facts::ShellFacts,
};

pub(crate) use approved::ApprovedAccess;
pub(super) use approved::approved_access;
pub use hosts::{HostsByPolicy, SettingsHost, SettingsHosts};
pub(crate) use paths::{controlled, session_writable_paths as session_paths};
pub use profile::{ProfileReason, is_witnessed, profile};
pub(super) use profile::{is_enough, is_lifted, is_open};
pub(super) use secret_variables::uses_secret;
pub(crate) use services::stores_of;

/// The sandbox settings. The default applies if no settings file has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSettings {
    /// Whether commands are confined. `None`: their files are, and the network is not.
    pub enabled: Option<bool>,
    /// Whether the workspace is trusted to select programs with its pins.
    pub trusted: bool,
    /// Whether this machine supports the sandbox. The session setup sets it.
    pub available: bool,
    /// Whether a probe found that nothing confines commands here. Then commands that only read need
    /// permission, too.
    pub unconfined: bool,
    /// Whether a probe found that undo would not cover what commands change here. Then the mode `auto`
    /// asks about them.
    pub unwitnessed: bool,
    /// Whether a probe found the whole sandbox, or will before the user sees a choice that relies on it.
    pub whole: bool,
    /// Whether the session must not start if the sandbox is not available.
    pub required: bool,
    /// Whether a confined command needs no permission.
    pub lets_through: bool,
    /// Whether a confined command needs permission, because a file says so explicitly.
    pub asks_confined: bool,
    /// Whether the mode `auto` ignores allow rules for commands.
    pub auto_ignores_command_rules: bool,
    /// Commands that run unconfined.
    pub excluded: Vec<ExcludedCommand>,
    /// Whether the user may let a command run unconfined.
    pub may_be_lifted: bool,
    /// Whether files are not confined. The network still may be.
    pub files_open: bool,
    /// Paths that commands may change, besides the working directories.
    pub allow_write: Vec<PathBuf>,
    /// Paths that commands may not change.
    pub deny_write: Vec<PathPattern>,
    /// The directory of the user's settings, trust and sessions, under each of its names. A change
    /// to any file in it can decide what runs, even if `CLAUDE_CONFIG_DIR` sets another directory.
    pub own_directory: Vec<PathBuf>,
    /// Paths that commands may not read.
    pub deny_read: Vec<PathPattern>,
    /// Paths that commands may read although `deny_read` covers them.
    pub allow_read: Vec<PathBuf>,
    /// Hosts that commands may connect to.
    pub allowed_hosts: Vec<SettingsHost>,
    /// Hosts that commands may not connect to.
    pub denied_hosts: Vec<SettingsHost>,
    /// Whether all other hosts are denied without asking.
    pub strict_hosts: bool,
    /// Whether only the administrator's settings may allow hosts.
    pub managed_hosts_only: bool,
    /// Variables for commands. An empty value removes an inherited variable.
    pub env: Arc<BTreeMap<String, String>>,
    /// Variables that a confined command does not inherit.
    pub withheld: Vec<String>,
    /// The files and directories in which haft stores secrets; absolute. No command reads them.
    pub own_secrets: Vec<PathBuf>,
    /// The size in bytes of the largest file whose old content undo stores; `None` for no limit.
    pub max_undo_bytes: Option<u64>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            enabled: None,
            trusted: false,
            available: false,
            unconfined: false,
            unwitnessed: false,
            whole: false,
            required: false,
            lets_through: false,
            asks_confined: false,
            auto_ignores_command_rules: false,
            excluded: Vec::new(),
            may_be_lifted: true,
            files_open: false,
            allow_write: Vec::new(),
            deny_write: Vec::new(),
            own_directory: Vec::new(),
            deny_read: Vec::new(),
            allow_read: Vec::new(),
            allowed_hosts: Vec::new(),
            denied_hosts: Vec::new(),
            strict_hosts: false,
            managed_hosts_only: false,
            env: Arc::default(),
            withheld: Vec::new(),
            own_secrets: Vec::new(),
            max_undo_bytes: None,
        }
    }
}

/// Commands that run unconfined, in the syntax of command rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludedCommand {
    /// The pattern as written.
    pub text: String,
    pattern: WildcardPattern,
}

impl ExcludedCommand {
    /// Parses a pattern.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            pattern: WildcardPattern::for_command(&collapse(text)),
        }
    }

    /// Returns whether the pattern matches a part of this line as written. A program of the same
    /// name elsewhere is another program.
    fn names(&self, shell: &ShellFacts) -> bool {
        let fits = |text: &str| self.pattern.matches(&collapse(text));
        shell.analysis.unreadable.is_none()
            && shell.parts().any(|(at, part, _)| {
                // The launcher's environment selects the program that it starts.
                !shell.is_launched(at) && (fits(&part.text) || fits(&part.words))
            })
    }
}

impl SandboxSettings {
    /// Returns a message if the settings require a sandbox that this machine cannot provide.
    pub fn missing(&self) -> Option<&'static str> {
        (self.enabled == Some(true) && !self.available)
            .then_some("sandbox.enabled is true, but commands cannot be confined on this machine")
    }

    /// Applies everything that is stricter in other settings. `whole`: the others are complete, so
    /// that what they do not allow is no longer allowed.
    pub fn tighten(&mut self, other: Self, whole: bool) {
        if other.enabled == Some(true) && self.enabled != Some(true) {
            self.enabled = Some(true);
            // The user has not agreed that the sandbox replaces permission.
            self.lets_through = false;
        }
        self.asks_confined |= other.asks_confined;
        self.auto_ignores_command_rules |= other.auto_ignores_command_rules;
        self.required |= other.required;
        self.may_be_lifted &= other.may_be_lifted;
        self.strict_hosts |= other.strict_hosts;
        self.managed_hosts_only |= other.managed_hosts_only;
        extend_unique(&mut self.deny_write, other.deny_write);
        extend_unique(&mut self.deny_read, other.deny_read);
        extend_unique(&mut self.denied_hosts, other.denied_hosts);
        extend_unique(&mut self.withheld, other.withheld);
        extend_unique(&mut self.own_secrets, other.own_secrets);
        if whole {
            self.lets_through &= other.lets_through;
            self.files_open &= other.files_open;
            self.excluded.retain(|one| other.excluded.contains(one));
            self.allow_write
                .retain(|one| other.allow_write.contains(one));
            self.allow_read.retain(|one| other.allow_read.contains(one));
            let hosts = &other.allowed_hosts;
            self.allowed_hosts.retain(|one| hosts.contains(one));
        }
    }

    /// Applies the patterns for a checkout to its worktree, too.
    pub fn extend_to_worktree(&mut self, main: &Path, copy: &Path) {
        for pattern in self.deny_write.iter_mut().chain(&mut self.deny_read) {
            pattern.extend_to_worktree(main, copy, List::Deny);
        }
    }

    /// Returns the exclusion that matches a part of this call, if any.
    fn excludes(&self, facts: &CallFacts) -> Option<&ExcludedCommand> {
        let shell = facts.shell.as_ref()?;
        self.excluded.iter().find(|excluded| excluded.names(shell))
    }
}

/// Returns why the call runs outside the sandbox, if a setting excludes its command.
pub(super) fn excluded_reason(policy: &Policy, facts: &CallFacts) -> Option<String> {
    let excluded = policy.sandbox.excludes(facts)?;
    Some(format!(
        "it runs outside the sandbox: {}",
        ProfileReason::Excluded(excluded.text.clone())
    ))
}

/// Returns the network access of a command with this profile.
pub(super) fn network(
    policy: &Policy,
    confined: ConfinementProfile,
    reason: &ProfileReason,
    approved: Option<&ApprovedAccess>,
) -> NetworkAccess {
    match (confined, reason) {
        (ConfinementProfile::Full, _) => NetworkAccess::Anybody,
        (ConfinementProfile::Workspace, ProfileReason::Offline(_)) => {
            NetworkAccess::Only(SettingsHosts::none().into_host_policy())
        }
        (ConfinementProfile::ReadOnly, ProfileReason::ReadsDomains(named)) => {
            let hosts = SettingsHosts::from_policy(policy).limited_to(named);
            NetworkAccess::Only(hosts.into_host_policy())
        }
        (ConfinementProfile::ReadOnly, reason) if *reason != ProfileReason::ReadsNetwork => {
            NetworkAccess::Nobody
        }
        _ => by_settings(policy, approved),
    }
}

/// Returns the network access of a command that may use the network.
fn by_settings(policy: &Policy, approved: Option<&ApprovedAccess>) -> NetworkAccess {
    match profile::enabled(policy) {
        Some(true) if approved.is_some_and(|approved| approved.direct) => NetworkAccess::Anybody,
        Some(true) => {
            let mut hosts = SettingsHosts::from_policy(policy);
            if let Some(approved) = approved {
                approved.add_hosts(&mut hosts);
            }
            NetworkAccess::ByRule(hosts.into_host_policy())
        }
        _ => NetworkAccess::Anybody,
    }
}

/// Returns the confinement of a call's command, if the call has one and may run. Reads the file
/// system to find the relevant files that exist.
pub fn confine(policy: &Policy, facts: &CallFacts) -> Option<Confinement> {
    let (confined, reason) = profile(policy, facts)?;
    let asks_services = matches!(
        reason,
        ProfileReason::ReadsNetwork | ProfileReason::ReadsDomains(_)
    );
    let sandbox = &policy.sandbox;
    let masked = secret_variables::masked(policy, facts);
    if confined == ConfinementProfile::Full {
        return Some(Confinement {
            env: Arc::clone(&sandbox.env),
            masked,
            ..Confinement::none()
        });
    }
    // No user approved a line that only reads, and the line needs no secret.
    let env = match confined == ConfinementProfile::ReadOnly && !asks_services {
        true => secret_variables::without_values(&sandbox.env, &masked),
        false => Arc::clone(&sandbox.env),
    };
    let paths = paths::resolve_paths(policy, facts, confined);
    let mut paths = paths;
    let mut homes = match confined {
        ConfinementProfile::Workspace if sandbox.files_open => {
            home_visibility::HomeVisibility::default()
        }
        _ => home_visibility::visible_homes(policy, facts, confined),
    };
    if let Some(shell) = facts.shell.as_ref().filter(|_| asks_services) {
        let home = policy.home.as_deref();
        homes.open.extend(stores_of(shell, home));
        paths.writable = services::sockets_of(shell, home);
    }
    let approved = approved_access(policy, facts);
    if let Some(approved) = &approved {
        homes.open.extend(approved.stores.iter().cloned());
        paths.writable.extend(approved.sockets.iter().cloned());
    }
    let network = network(policy, confined, &reason, approved.as_ref());
    // A weaker sandbox could neither close the network nor record every change.
    let has_own_network = matches!(network, NetworkAccess::Only(_));
    Some(Confinement {
        profile: confined,
        writable: paths.writable.into(),
        caches: paths.caches.into(),
        judged: paths.judged.into(),
        protected: paths.protected.into(),
        hidden: paths.hidden.into(),
        unscanned: paths.unscanned,
        stores: paths.stores.into(),
        closed: homes.closed.into(),
        open: homes.open.into(),
        private_tmp: facts.shell.is_some(),
        untold: homes.untold,
        control: paths.control,
        network,
        env,
        withheld: sandbox.withheld.iter().cloned().collect(),
        masked,
        sourced: None,
        only_confined: false,
        relies_on_undo: false,
        required: (sandbox.required && profile::enabled(policy) == Some(true)) || has_own_network,
        may_be_lifted: sandbox.may_be_lifted && policy.mode != PermissionMode::DontAsk,
    })
}

/// Returns the confinement of a program that no call starts, such as an MCP server. It is treated
/// as a command without further facts. Reads the file system, like [`confine`].
pub fn confine_program(
    policy: &Policy,
    confined: ConfinementProfile,
    network: NetworkAccess,
) -> Confinement {
    let facts = CallFacts::without_effects("", RuleMatch::NameOnly, Value::Null);
    let paths = paths::resolve_paths(policy, &facts, confined);
    Confinement {
        profile: confined,
        writable: paths.writable.into(),
        caches: paths.caches.into(),
        judged: paths.judged.into(),
        protected: paths.protected.into(),
        hidden: paths.hidden.into(),
        unscanned: paths.unscanned,
        stores: paths.stores.into(),
        control: paths.control,
        network,
        ..Confinement::default()
    }
}
