//! How commands are confined.
//!
//! [`SandboxSettings`] is what the settings say of it, [`profile`] which profile a call gets (pure, like the
//! decision), [`confine`] the whole of it, for which files are looked at.

mod caches;
mod control_files;
pub(crate) mod from_settings;
mod home_visibility;
mod hosts;
mod known_reads;
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
    rules::{List, PathPattern, Wildcard, collapse},
    shell_facts::ShellFacts,
};

pub use hosts::{HostsByPolicy, SettingsHost, SettingsHosts};
pub(crate) use paths::controlled;
pub use profile::{ProfileReason, profile};
pub(super) use profile::{is_enough, is_lifted, is_open};
pub(super) use secret_variables::uses_secret;
pub(crate) use services::stores_of;

/// What the settings say of confining commands. The default is what holds without a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSettings {
    /// Commands are to be confined (`true`), or not (`false`); without a word their files are, and
    /// the network is not.
    pub enabled: Option<bool>,
    /// The workspace is trusted with what it runs, so its pins may choose programs.
    pub trusted: bool,
    /// This machine can really do it. Anyone who sets a session up says so.
    pub available: bool,
    /// Nothing confines commands here, as was found out: what would run unasked because it only reads
    /// is asked about.
    pub unconfined: bool,
    /// Rather no session than one in which it cannot be done.
    pub required: bool,
    /// A confined command needs no permission.
    pub lets_through: bool,
    /// Commands that run unconfined.
    pub excluded: Vec<ExcludedCommand>,
    /// A person may let a command run unconfined.
    pub may_be_lifted: bool,
    /// Files are not confined, only the network is.
    pub files_open: bool,
    /// May be changed beside the working directories.
    pub allow_write: Vec<PathBuf>,
    /// May not be changed.
    pub deny_write: Vec<PathPattern>,
    /// The directory of the user's settings, trust and sessions, under each of its names. A change to any file in it can
    /// decide what runs, whatever `CLAUDE_CONFIG_DIR` calls it.
    pub own_directory: Vec<PathBuf>,
    /// May not be read.
    pub deny_read: Vec<PathPattern>,
    /// May be read although it lies in what may not.
    pub allow_read: Vec<PathBuf>,
    /// Hosts that may be talked to.
    pub allowed_hosts: Vec<SettingsHost>,
    /// Hosts that may not.
    pub denied_hosts: Vec<SettingsHost>,
    /// A host that is not named may not be talked to: no one is asked.
    pub strict_hosts: bool,
    /// Only the administrator names hosts that may be talked to.
    pub managed_hosts_only: bool,
    /// Variables for commands; an empty one takes away what is inherited.
    pub env: Arc<BTreeMap<String, String>>,
    /// Variables that a confined command does not inherit.
    pub withheld: Vec<String>,
    /// The files and directories in which haft stores secrets; absolute. No command reads them.
    pub own_secrets: Vec<PathBuf>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            enabled: None,
            trusted: false,
            available: false,
            unconfined: false,
            required: false,
            lets_through: false,
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
        }
    }
}

/// Commands that run unconfined, as a rule for commands writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludedCommand {
    /// As written.
    pub text: String,
    pattern: Wildcard,
}

impl ExcludedCommand {
    /// Reads one.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            pattern: Wildcard::of_command(&collapse(text)),
        }
    }

    /// Does it name a part of this line? By the text as written: what merely has the same name
    /// elsewhere is another program.
    fn names(&self, shell: &ShellFacts) -> bool {
        let fits = |text: &str| self.pattern.matches(&collapse(text));
        shell.analysis.unreadable.is_none()
            && shell.parts().any(|(at, part, _)| {
                // What a launcher starts is chosen by its environment.
                !shell.is_launched(at) && (fits(&part.text) || fits(&part.words))
            })
    }
}

impl SandboxSettings {
    /// What was asked for that this machine cannot do, in words.
    pub fn missing(&self) -> Option<&'static str> {
        (self.enabled == Some(true) && !self.available).then_some(
            "sandbox.enabled asks for commands to be confined, which cannot be done here",
        )
    }

    /// Takes over what is stricter in another one. `whole`: the other says everything there is, so
    /// that what it no longer allows is no longer allowed.
    pub fn tighten(&mut self, other: Self, whole: bool) {
        if other.enabled == Some(true) && self.enabled != Some(true) {
            self.enabled = Some(true);
            // No one has agreed that it stands in for consent.
            self.lets_through = false;
        }
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

    /// What may not be read or changed in a checkout may not be in its copy either.
    pub fn follow(&mut self, main: &Path, copy: &Path) {
        for pattern in self.deny_write.iter_mut().chain(&mut self.deny_read) {
            pattern.extend_to_worktree(main, copy, List::Deny);
        }
    }

    /// The exclusion that names a part of this call, if one does.
    fn excludes(&self, facts: &CallFacts) -> Option<&ExcludedCommand> {
        let shell = facts.shell.as_ref()?;
        self.excluded.iter().find(|excluded| excluded.names(shell))
    }
}

/// Whom a command so confined may reach.
pub(super) fn network(
    policy: &Policy,
    confined: ConfinementProfile,
    reason: &ProfileReason,
) -> NetworkAccess {
    match (confined, policy.sandbox.enabled) {
        (ConfinementProfile::Full, _) => NetworkAccess::Anybody,
        (ConfinementProfile::ReadOnly, _) if *reason != ProfileReason::ReadsNetwork => {
            NetworkAccess::Nobody
        }
        (_, Some(true)) => NetworkAccess::ByRule(SettingsHosts::from_policy(policy).judge()),
        _ => NetworkAccess::Anybody,
    }
}

/// How the command of a call is to be confined, if it has one and may run. Looks at files: which of
/// those that matter exist.
pub fn confine(policy: &Policy, facts: &CallFacts) -> Option<Confinement> {
    let (confined, reason) = profile(policy, facts)?;
    let asks_services = reason == ProfileReason::ReadsNetwork;
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
    let network = network(policy, confined, &reason);
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
        untold: homes.untold,
        control: paths.control,
        network,
        env,
        withheld: sandbox.withheld.iter().cloned().collect(),
        masked,
        sourced: None,
        only_confined: false,
        required: sandbox.required && sandbox.enabled == Some(true),
        may_be_lifted: sandbox.may_be_lifted && policy.mode != PermissionMode::DontAsk,
    })
}

/// How a program that no call starts, such as an MCP server, is confined: as a command of which only this is known.
/// Looks at files, like [`confine`].
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
