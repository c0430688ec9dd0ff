//! The confinement of a command that a call starts.
//!
//! The engine decides it together with the permission and from the same facts. The tool that starts
//! the command must apply it. The default is the strictest: the command may change nothing and
//! connect to nothing.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, CallContext, ControlFiles, HostPolicy, arc_serde};

/// The confinement of a command. Cheap to clone. Paths are absolute, with symlinks resolved.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Confinement {
    /// The profile: how much of the machine the command may use.
    pub profile: ConfinementProfile,
    /// With [`ConfinementProfile::Workspace`]: the paths that the command may change, with everything
    /// below. With [`ConfinementProfile::ReadOnly`] and a network: the sockets of the services it
    /// connects to. A path that this call was permitted to create may not exist yet.
    #[serde(with = "arc_serde::list")]
    pub writable: Arc<[PathBuf]>,
    /// The writable paths that are caches of tools. Missing ones are created, and changes in them
    /// are not recorded.
    #[serde(with = "arc_serde::list", default)]
    pub caches: Arc<[PathBuf]>,
    /// With [`ConfinementProfile::Workspace`]: existing files and directories below a writable path
    /// that must not change. None of them contains a writable path.
    #[serde(with = "arc_serde::list")]
    pub protected: Arc<[PathBuf]>,
    /// The protected files that the command may replace if [`control`](Self::control) permits it,
    /// on machines where each change of a file is checked.
    #[serde(with = "arc_serde::list", default)]
    pub judged: Arc<[PathBuf]>,
    /// Files and directories that the command may not even read, in every profile except
    /// [`ConfinementProfile::Full`]. They exist, except those that a rule names and haft's own
    /// secrets, which may appear while the command runs.
    #[serde(with = "arc_serde::list")]
    pub hidden: Arc<[PathBuf]>,
    /// A directory that could not be scanned for files that deny rules hide, if any. If it is set,
    /// the command must not start.
    #[serde(default)]
    pub unscanned: Option<PathBuf>,
    /// The hidden paths that the user may let a command read: key stores that no rule denies.
    #[serde(with = "arc_serde::list")]
    pub stores: Arc<[PathBuf]>,
    /// Existing directories in which only the paths in [`open`](Self::open) are visible, in every
    /// profile except [`ConfinementProfile::Full`]: the home directories, if the reads of the command
    /// are not known in advance.
    #[serde(with = "arc_serde::list")]
    pub closed: Arc<[PathBuf]>,
    /// The visible paths in the closed directories, with everything below, under these names:
    /// symlinks in them may not be resolved yet. Writable paths are visible too.
    #[serde(with = "arc_serde::list")]
    pub open: Arc<[PathBuf]>,
    /// Whether the command has a `/tmp` and a `/var/tmp` of the session, in which only the paths in
    /// [`open`](Self::open) are those of the machine. Only where the mechanism can do that.
    #[serde(default)]
    pub private_tmp: bool,
    /// The part of the command line, as written, that makes its reads unpredictable, if any.
    pub untold: Option<String>,
    /// Control files that the command may not create or change.
    pub control: ControlFiles,
    /// The network access of the command.
    pub network: NetworkAccess,
    /// Variables that the settings set for the command; an empty value removes an inherited one.
    #[serde(with = "arc_serde::value")]
    pub env: Arc<BTreeMap<String, String>>,
    /// Variables that the command must not inherit, regardless of the other rules.
    #[serde(with = "arc_serde::list")]
    pub withheld: Arc<[String]>,
    /// Variables whose secret values are masked in its output.
    #[serde(with = "arc_serde::list", default)]
    pub masked: Arc<[String]>,
    /// A file that its shell reads first, with the environment variables that hooks have set.
    pub sourced: Option<PathBuf>,
    /// If the command cannot be confined at least this strictly, it must not run.
    pub required: bool,
    /// The command runs without asking only because it is confined. If nothing confines it, it must
    /// not run.
    pub only_confined: bool,
    /// The command runs without asking only because undo can restore what it changes. A change that
    /// undo cannot restore needs the user's decision.
    #[serde(default)]
    pub relies_on_undo: bool,
    /// The user may be asked to run it unconfined, with `dangerouslyDisableSandbox`.
    pub may_be_lifted: bool,
}

impl Confinement {
    /// Returns a confinement that restricts nothing: the command can do what the user can.
    pub fn none() -> Self {
        Self {
            profile: ConfinementProfile::Full,
            network: NetworkAccess::Anybody,
            ..Self::default()
        }
    }
}

/// The strength of the confinement that this machine offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementStrength {
    /// Everything in the confinement is enforced.
    Whole,
    /// A part of it is enforced.
    Reduced,
    /// Nothing is enforced.
    Nothing,
}

/// Finds out how strongly a command would be confined, by preparing its sandbox. The command then
/// runs in this sandbox.
pub trait ProbeConfinement: Send + Sync {
    /// Returns the strength. `None`: it could not be determined, and a command that needs it will
    /// not run either.
    fn strength<'a>(
        &'a self,
        confinement: &'a Confinement,
    ) -> BoxFuture<'a, Option<ConfinementStrength>>;

    /// Returns whether undo will cover everything that a command with this confinement changes in
    /// files. Only then may the mode `auto` run it without asking.
    fn is_witnessed<'a>(
        &'a self,
        confinement: &'a Confinement,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, bool>;

    /// Returns the directories that confined commands of the session have as their own: each as
    /// commands name it, and the folder that it is. Empty if the sandbox is too weak for that. With
    /// `probes`, a sandbox is set up if that is not known yet; otherwise the result is then empty.
    fn private_tmp(&self, probes: bool) -> BoxFuture<'_, Vec<(PathBuf, PathBuf)>> {
        let _ = probes;
        Box::pin(async { Vec::new() })
    }

    /// Sets up the sandbox for commands with this confinement, so that the first one need not wait
    /// for that.
    fn prepare<'a>(&'a self, confinement: &'a Confinement) -> BoxFuture<'a, ()>;

    /// Returns the hosts that the user has allowed for commands in this session, when a command
    /// requested a connection.
    fn allowed_hosts(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A callback that receives one line if commands are confined only in part or not at all.
pub type OnWeakSandbox = Arc<dyn Fn(&str) + Send + Sync>;

/// The profile of a command: how much of the machine it may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementProfile {
    /// It changes no file and has no network.
    #[default]
    ReadOnly,
    /// It changes only the writable paths.
    Workspace,
    /// It can do what the user can.
    Full,
}

impl ConfinementProfile {
    /// Returns the name used in settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "readonly",
            Self::Workspace => "workspace",
            Self::Full => "full",
        }
    }
}

/// The network access of a command.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    /// No network.
    #[default]
    Nobody,
    /// The hosts that rules allow, through a proxy.
    ByRule(HostPolicy),
    /// Only the hosts that these rules allow, through a separate proxy. No later call and no answer of
    /// the user adds a host.
    Only(HostPolicy),
    /// Every host that the user can reach.
    Anybody,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_word_a_command_may_change_nothing_and_reach_nobody() {
        let strictest = Confinement::default();
        assert_eq!(strictest.profile, ConfinementProfile::ReadOnly);
        assert!(matches!(strictest.network, NetworkAccess::Nobody));
        assert!(strictest.writable.is_empty());
        assert!(!strictest.may_be_lifted);
    }
}
