//! How a command that a call starts is to be confined.
//!
//! The engine decides it with the permission and from the same facts; the tool that starts the
//! command holds itself to it. The default is the strictest: nothing may be changed, no one reached.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, ControlFiles, Hosts, shared};

/// How a command is to be confined. Cheap to clone. Paths are absolute, links in them followed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Confinement {
    /// How much of the machine it gets.
    pub profile: Confined,
    /// With [`Confined::Workspace`]: what it may change, with everything below. With
    /// [`Confined::ReadOnly`] and a network: the sockets of the services it asks. What this very call
    /// was permitted to make may not exist yet.
    #[serde(with = "shared::list")]
    pub writable: Arc<[PathBuf]>,
    /// Of what is writable: caches of tools, which are made if they are missing. What a command
    /// changes there is not recorded.
    #[serde(with = "shared::list", default)]
    pub caches: Arc<[PathBuf]>,
    /// With [`Confined::Workspace`]: existing files and directories below what is writable that stay
    /// as they are. None of them holds a writable path.
    #[serde(with = "shared::list")]
    pub protected: Arc<[PathBuf]>,
    /// Those of the protected files that it may replace as [`control`](Self::control) says, where
    /// that is asked about every file.
    #[serde(with = "shared::list", default)]
    pub judged: Arc<[PathBuf]>,
    /// Existing files and directories that it may not even read, in every profile but
    /// [`Confined::Full`].
    #[serde(with = "shared::list")]
    pub hidden: Arc<[PathBuf]>,
    /// Those of the hidden ones that a person may let a command read: stores of keys, which no rule
    /// denies.
    #[serde(with = "shared::list")]
    pub stores: Arc<[PathBuf]>,
    /// Existing directories of which it sees nothing but what is open in them, in every profile but
    /// [`Confined::Full`]: the homes, where it is not known beforehand what it reads.
    #[serde(with = "shared::list")]
    pub closed: Arc<[PathBuf]>,
    /// What of the closed directories it sees, with everything below, under this name: links in it
    /// need not be followed yet. What is writable is open too.
    #[serde(with = "shared::list")]
    pub open: Arc<[PathBuf]>,
    /// What in the line keeps its reads from being known beforehand, if anything does: as written.
    pub untold: Option<String>,
    /// Files that a command may not make either.
    pub control: ControlFiles,
    /// Whom it may talk to.
    pub network: NetworkAccess,
    /// Variables that the settings give it; an empty value takes away an inherited one.
    #[serde(with = "shared::value")]
    pub env: Arc<BTreeMap<String, String>>,
    /// Variables that it must not inherit, whatever else passes.
    #[serde(with = "shared::list")]
    pub withheld: Arc<[String]>,
    /// A file that its shell reads first: what hooks of the session want set.
    pub sourced: Option<PathBuf>,
    /// Rather no command at all than one that is less confined than this.
    pub required: bool,
    /// It runs unasked because it is confined: where nothing confines it, it must not run.
    pub only_confined: bool,
    /// A person may be asked to let it run unconfined, by `dangerouslyDisableSandbox`.
    pub may_be_lifted: bool,
}

impl Confinement {
    /// What the user could do.
    pub fn none() -> Self {
        Self {
            profile: Confined::Full,
            network: NetworkAccess::Anybody,
            ..Self::default()
        }
    }
}

/// How well commands are confined on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementStrength {
    /// All that a confinement says holds.
    Whole,
    /// Some of it does.
    Reduced,
    /// None of it does.
    Nothing,
}

/// Finds out how a command would really be confined: by making its sandbox ready, which the command
/// then runs in.
pub trait ProbeConfinement: Send + Sync {
    /// `None`: it could not be found out, and a command that needs it will not run either.
    fn strength<'a>(
        &'a self,
        confinement: &'a Confinement,
    ) -> BoxFuture<'a, Option<ConfinementStrength>>;
}

/// Learns, in one line, that commands are confined in part or not at all.
pub type OnWeakSandbox = Arc<dyn Fn(&str) + Send + Sync>;

/// How much of the machine a command gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confined {
    /// It changes no file and talks to no one.
    #[default]
    ReadOnly,
    /// It changes files where it may.
    Workspace,
    /// What the user could do.
    Full,
}

impl Confined {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "readonly",
            Self::Workspace => "workspace",
            Self::Full => "full",
        }
    }
}

/// Whom a command may talk to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    /// No one.
    #[default]
    Nobody,
    /// Hosts by rule, through a proxy.
    ByRule(Hosts),
    /// Everyone the user can reach.
    Anybody,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_word_a_command_may_change_nothing_and_reach_nobody() {
        let strictest = Confinement::default();
        assert_eq!(strictest.profile, Confined::ReadOnly);
        assert!(matches!(strictest.network, NetworkAccess::Nobody));
        assert!(strictest.writable.is_empty());
        assert!(!strictest.may_be_lifted);
    }
}
