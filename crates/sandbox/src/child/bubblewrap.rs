//! Sets up the sandbox with bubblewrap: on some systems only bubblewrap may create namespaces.

use std::path::PathBuf;
use std::{collections::BTreeSet, env, ffi::OsString, io};

use super::{closed_directories, mounts};
use crate::{SandboxProfile, protocol::SandboxPlan};

/// Returns the arguments of bubblewrap. It starts this program again, which then confines itself
/// further.
pub(super) fn arguments(plan: &SandboxPlan) -> io::Result<Vec<OsString>> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |words: &[&OsString]| arguments.extend(words.iter().map(|word| (*word).clone()));
    let word = |text: &str| OsString::from(text);
    add(&[&word("--ro-bind"), &word("/"), &word("/")]);
    add(&[&word("--dev"), &word("/dev")]);
    add(&[&word("--proc"), &word("/proc")]);
    let closed = closed_directories::from_plan(plan);
    for one in &closed {
        if one.directory.is_dir() {
            let directory = one.directory.as_os_str().to_owned();
            add(&[
                &word("--perms"),
                &word("0755"),
                &word("--tmpfs"),
                &directory,
            ]);
            for path in &one.open {
                let path = path.as_os_str().to_owned();
                add(&[&word("--ro-bind-try"), &path, &path]);
            }
        }
    }
    let private = plan.private_directories();
    for one in &private {
        let (folder, path) = (&one.folder.as_os_str().to_owned(), one.path.as_os_str());
        add(&[&word("--bind"), folder, &path.to_owned()]);
        for entry in one
            .entries()
            .iter()
            .filter(|entry| !one.open.contains(entry))
        {
            let entry = entry.as_os_str().to_owned();
            add(&[&word("--perms"), &word("0755"), &word("--tmpfs"), &entry]);
        }
        for path in &one.open {
            let path = path.as_os_str().to_owned();
            add(&[&word("--ro-bind-try"), &path, &path]);
        }
    }
    let sees_scratch = plan.temporary().contains(&plan.scratch);
    let scratch = plan.scratch.as_os_str().to_owned();
    let hidden = match &plan.profile {
        SandboxProfile::ReadOnly(reading) => {
            if sees_scratch {
                add(&[&word("--tmpfs"), &scratch]);
            }
            add(&[&word("--unshare-net")]);
            &reading.hidden
        }
        SandboxProfile::Workspace(workspace) => {
            for path in &workspace.writable {
                let path = path.as_os_str().to_owned();
                add(&[&word("--bind-try"), &path, &path]);
            }
            // Mounts must be in path order: a parent before the paths below it.
            let real = |paths: Vec<PathBuf>| -> BTreeSet<PathBuf> {
                let paths = paths.iter();
                paths.filter_map(|path| path.canonicalize().ok()).collect()
            };
            let (immutable, replaceable) = workspace.split_protected(plan.is_mediated());
            let (protected, replaceable) = (real(immutable), real(replaceable));
            let pinned: BTreeSet<_> = protected
                .iter()
                .chain(&replaceable)
                .flat_map(|path| mounts::above(path, &workspace.writable))
                .collect();
            for path in pinned {
                let path = path.into_os_string();
                add(&[&word("--bind"), &path, &path]);
            }
            for path in protected {
                let path = path.into_os_string();
                add(&[&word("--ro-bind"), &path, &path]);
            }
            if sees_scratch {
                add(&[&word("--bind"), &scratch, &scratch]);
            }
            if !super::namespaces::has_network(&plan.profile) {
                add(&[&word("--unshare-net")]);
            }
            &workspace.hidden
        }
        SandboxProfile::Full => {
            return Err(io::Error::other("it is not for commands without a sandbox"));
        }
    };
    for one in closed.iter().filter(|one| one.directory.is_dir()) {
        let directory = one.directory.as_os_str().to_owned();
        add(&[&word("--remount-ro"), &directory]);
    }
    for one in &private {
        for entry in one
            .entries()
            .iter()
            .filter(|entry| !one.open.contains(entry))
        {
            add(&[&word("--remount-ro"), &entry.as_os_str().to_owned()]);
        }
    }
    for path in hidden.iter().chain(&mounts::sockets(plan)) {
        // A path in a closed directory does not exist in the sandbox, so it needs no cover.
        if closed.iter().any(|one| one.is_shut(path)) || private.iter().any(|one| one.hides(path)) {
            continue;
        }
        let Ok(metadata) = std::fs::metadata(path) else {
            continue;
        };
        let path = path.as_os_str().to_owned();
        if metadata.is_dir() {
            add(&[&word("--perms"), &word("0000"), &word("--tmpfs"), &path]);
            add(&[&word("--remount-ro"), &path]);
        } else {
            add(&[&word("--ro-bind"), &word("/dev/null"), &path]);
        }
    }
    for option in [
        "--unshare-user-try",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-cgroup-try",
        "--as-pid-1",
        "--die-with-parent",
        "--",
    ] {
        add(&[&word(option)]);
    }
    add(&[env::current_exe()?.as_os_str(), super::ARGUMENT.as_ref()]
        .map(OsString::from)
        .each_ref());
    Ok(arguments)
}
