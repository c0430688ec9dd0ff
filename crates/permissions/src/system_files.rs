//! Files of the system, which a line that only reads may read without a question.
//!
//! One list of directories decides about a path that is written in the line and about one that is computed
//! (`cat "$(…)"`, `xargs cat`): a computed path outside the working directories, the tools and these
//! directories is not visible to the command.

use std::{
    fs,
    path::{Path, PathBuf},
};

use haft_contract::ConfinementProfile;

use super::{CallFacts, Policy, TouchedPath, allow, sandbox};

/// Directories with programs, libraries and configuration of the whole machine, and the databases of
/// package managers. Credential stores in them stay hidden.
const SYSTEM_DIRECTORIES: &[&str] = &[
    "/bin",
    "/etc",
    "/gnu",
    "/lib",
    "/lib32",
    "/lib64",
    "/libexec",
    "/libx32",
    "/nix",
    "/opt",
    "/sbin",
    "/snap",
    "/usr",
    "/var/cache/fontconfig",
    "/var/cache/man",
    "/var/db/pkg",
    "/var/lib/apk",
    "/var/lib/dpkg",
    "/var/lib/pacman",
    "/var/lib/rpm",
];

/// Directories of the kernel, which each command has as its own.
const KERNEL_DIRECTORIES: &[&str] = &["/dev", "/proc", "/sys"];

/// Returns whether the path belongs to the system, as written and with links followed.
pub(super) fn has(touched: &TouchedPath) -> bool {
    let belongs = |path: &PathBuf| {
        let mut directories = SYSTEM_DIRECTORIES.iter();
        directories.any(|directory| path.starts_with(directory))
    };
    belongs(&touched.given) && belongs(&touched.real)
}

/// Returns whether the command of a call may read files of the system: it only reads, in a sandbox.
pub(super) fn are_readable(policy: &Policy, facts: &CallFacts) -> bool {
    let Some(shell) = &facts.shell else {
        return false;
    };
    !policy.sandbox.unconfined
        && sandbox::profile(policy, facts)
            .is_some_and(|(confined, _)| confined == ConfinementProfile::ReadOnly)
        && allow::is_read_only(policy, shell)
}

/// Returns the directories outside the system that a command with computed paths does not see.
pub(super) fn closed_directories() -> Vec<PathBuf> {
    let mut closed = Vec::new();
    close(Path::new("/"), &mut closed);
    closed
}

fn close(directory: &Path, closed: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_listed = |path: &Path| {
        let mut listed = SYSTEM_DIRECTORIES.iter().chain(KERNEL_DIRECTORIES);
        listed.any(|listed| path.starts_with(listed))
    };
    for entry in entries {
        // A link is closed where it leads.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        if is_listed(&path) {
            continue;
        }
        if SYSTEM_DIRECTORIES
            .iter()
            .any(|listed| Path::new(listed).starts_with(&path))
        {
            close(&path, closed);
            continue;
        }
        closed.push(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_the_system_nor_the_kernel_is_closed() {
        let closed = closed_directories();
        assert!(closed.contains(&PathBuf::from("/tmp")), "{closed:?}");
        for open in SYSTEM_DIRECTORIES.iter().chain(KERNEL_DIRECTORIES) {
            let open = Path::new(open);
            assert!(
                !closed
                    .iter()
                    .any(|closed| open.starts_with(closed) || closed.starts_with(open)),
                "{closed:?}"
            );
        }
    }
}
