//! What a command may touch.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::GuardedNames;

/// How much of the machine a command gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxProfile {
    /// Every file as it is, none to be changed; no network, no sockets; temporary files of its own
    /// that go away with it.
    ReadOnly(Reading),
    /// Files below the working directories may be changed, those that control programs may not.
    Workspace(Workspace),
    /// What the user could do. Only by an explicit decision.
    Full,
}

/// What is kept from a command that only reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Files and directories that may not even be read; absolute.
    pub hidden: Vec<PathBuf>,
    /// Directories of which hardly anything is seen.
    pub closed: ClosedDirectories,
}

/// Directories of which a command sees nothing but some parts. All paths absolute; those that do not
/// exist are passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedDirectories {
    /// Look empty, but for what is open in them. Links in these paths are followed already.
    pub directories: Vec<PathBuf>,
    /// Is seen all the same, with everything below, under this name. What a link leads to is seen in
    /// the place of the link. What is writable is open too.
    pub open: Vec<PathBuf>,
}

/// What a command that changes files may touch. All paths absolute; those that do not exist are
/// passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// May be changed, with everything below.
    pub writable: Vec<PathBuf>,
    /// Below a writable path, and yet may not be changed.
    pub protected: Vec<PathBuf>,
    /// May not even be read.
    pub hidden: Vec<PathBuf>,
    /// Names below a writable path that it may use only as the [`NameJudge`](crate::NameJudge) of its
    /// line says. `None`: it makes and changes files there as it likes.
    pub guarded: Option<GuardedNames>,
    /// Directories of which hardly anything is seen.
    pub closed: ClosedDirectories,
    /// Which hosts it may talk to.
    pub network: Network,
}

impl Workspace {
    /// What stays as it is, and what may be replaced by what is judged, if anything is.
    pub(crate) fn kept_and_judged(&self, judges: bool) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let judged = |path: &PathBuf| {
            judges
                && self
                    .guarded
                    .as_ref()
                    .is_some_and(|names| names.judged.contains(path))
        };
        let (judged, kept) = self.protected.iter().cloned().partition(judged);
        (kept, judged)
    }
}

/// Whom a command may talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// All that the user may reach.
    Open,
    /// Only through our proxy, which decides by rule.
    Proxy,
    /// No one.
    None,
}

impl SandboxProfile {
    /// Its name, as people and models read it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReadOnly(_) => "readonly",
            Self::Workspace(_) => "workspace",
            Self::Full => "full",
        }
    }
}
