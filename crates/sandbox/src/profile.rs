//! The files and network that a command may use.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::GuardedNames;

/// The access that a command has to the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxProfile {
    /// All files can be read, none can be changed. No network and no sockets. Temporary files are
    /// private and removed at the end.
    ReadOnly(ReadOnlyProfile),
    /// Files below the working directories can be changed, except those that control programs.
    Workspace(WorkspaceProfile),
    /// No restrictions: everything that the user may do. Must be chosen explicitly.
    Full,
}

/// The restrictions of a command that only reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOnlyProfile {
    /// Files and directories that must not be read; absolute paths.
    pub hidden: Vec<PathBuf>,
    /// Directories where only selected paths are visible.
    pub closed: ClosedDirectories,
}

/// Directories where a command sees only selected paths. All paths are absolute; missing ones
/// are skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedDirectories {
    /// The directories that look empty, except for the open paths. Symlinks in these paths must be
    /// resolved already.
    pub directories: Vec<PathBuf>,
    /// Paths that stay visible under this name, with everything below. A symlink is replaced by its
    /// target. Writable paths are open, too.
    pub open: Vec<PathBuf>,
    /// Whether `/tmp` and `/var/tmp` are folders of the session, in which only the open paths of the
    /// machine are visible. Without mount namespaces, this has no effect.
    pub private_tmp: bool,
}

/// The paths that a command may change. All paths are absolute; missing ones are skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceProfile {
    /// Paths that may be changed, with everything below.
    pub writable: Vec<PathBuf>,
    /// Paths below a writable one that must not be changed.
    pub protected: Vec<PathBuf>,
    /// Paths that must not be read.
    pub hidden: Vec<PathBuf>,
    /// Names below a writable path that the command may use only if the
    /// command's [`NamePolicy`](crate::NamePolicy) permits it. With `None`, it creates and changes
    /// files there freely.
    pub guarded: Option<GuardedNames>,
    /// Directories where only selected paths are visible.
    pub closed: ClosedDirectories,
    /// The hosts that the command may connect to.
    pub network: SandboxNetwork,
}

impl WorkspaceProfile {
    /// Splits the protected paths into those that always stay unchanged, and those that may be
    /// replaced with permission. The second list is empty unless `is_mediated`.
    pub(crate) fn split_protected(&self, is_mediated: bool) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let is_replaceable = |path: &PathBuf| {
            is_mediated
                && self
                    .guarded
                    .as_ref()
                    .is_some_and(|names| names.judged.contains(path))
        };
        let (replaceable, immutable) = self.protected.iter().cloned().partition(is_replaceable);
        (immutable, replaceable)
    }
}

/// The network access of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxNetwork {
    /// The user's network.
    Open,
    /// Only through our proxy, whose [`NetworkGate`](crate::network::NetworkGate) decides about each
    /// request.
    Proxy,
    /// No network.
    None,
}

impl SandboxProfile {
    /// Returns the name of the profile, which users and models read.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReadOnly(_) => "readonly",
            Self::Workspace(_) => "workspace",
            Self::Full => "full",
        }
    }
}
