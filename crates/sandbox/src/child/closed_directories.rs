//! Closed directories: a command sees only selected paths in them. An empty directory is mounted
//! over each, and the open paths are mounted into it again.

use std::{
    env, fs, io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::CWD,
    mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree},
};

use super::mounts;
use crate::{ClosedDirectories, SandboxProfile, protocol::SandboxPlan};

/// A closed directory and the open paths in it. No open path is below another one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClosedDirectory {
    pub(super) directory: PathBuf,
    pub(super) open: Vec<PathBuf>,
}

impl ClosedDirectory {
    /// Returns whether the command cannot see this path.
    pub(super) fn is_shut(&self, path: &Path) -> bool {
        path.starts_with(&self.directory) && !self.open.iter().any(|open| path.starts_with(open))
    }
}

/// Returns the directories that a plan closes. A directory that is itself open is not closed.
pub(super) fn from_plan(plan: &SandboxPlan) -> Vec<ClosedDirectory> {
    let (closed, writable) = match &plan.profile {
        SandboxProfile::ReadOnly(reading) => (&reading.closed, &[][..]),
        SandboxProfile::Workspace(workspace) => (&workspace.closed, &workspace.writable[..]),
        SandboxProfile::Full => return Vec::new(),
    };
    let private = plan.private_directories();
    let is_private = |path: &PathBuf| private.iter().any(|one| path.starts_with(&one.path));
    let closed = &ClosedDirectories {
        directories: closed
            .directories
            .iter()
            .filter(|path| !is_private(path))
            .cloned()
            .collect(),
        ..closed.clone()
    };
    // The sandbox itself needs these paths.
    let program = env::current_exe().ok();
    let temporary = plan.temporary();
    let own = temporary.iter().chain([&plan.shell]);
    let own = own.chain(&plan.snapshot).chain(&program);
    let open = closed.open.iter().chain(writable).chain(own);
    let open: Vec<&Path> = open.map(PathBuf::as_path).collect();
    directories(closed, &open)
}

fn directories(closed: &ClosedDirectories, open: &[&Path]) -> Vec<ClosedDirectory> {
    let directories = outermost(closed.directories.iter().map(PathBuf::as_path));
    let shut = directories
        .into_iter()
        .filter(|directory| !open.iter().any(|open| directory.starts_with(open)));
    shut.map(|directory| {
        let inside = open.iter().copied();
        let inside = inside.filter(|path| path.starts_with(directory));
        ClosedDirectory {
            directory: directory.to_path_buf(),
            open: outermost(inside).into_iter().map(Into::into).collect(),
        }
    })
    .collect()
}

/// Returns the paths without those that are below another one.
pub(crate) fn outermost<'a>(paths: impl Iterator<Item = &'a Path>) -> Vec<&'a Path> {
    let mut paths: Vec<&Path> = paths.collect();
    paths.sort_unstable();
    let mut outermost: Vec<&Path> = Vec::new();
    for path in paths {
        // Paths sort by components, so everything below a path follows it directly.
        if !outermost.last().is_some_and(|last| path.starts_with(last)) {
            outermost.push(path);
        }
    }
    outermost
}

/// Closes the directories of a plan. The calling process must have its own mount namespace, with
/// nothing else mounted in it yet.
pub(super) fn close(plan: &SandboxPlan) -> io::Result<()> {
    for closed in from_plan(plan) {
        if closed.directory.is_dir() {
            let named = |error: io::Error| {
                let text = format!("{}: {error}", closed.directory.display());
                io::Error::new(error.kind(), text)
            };
            close_one(&closed).map_err(named)?;
        }
    }
    Ok(())
}

fn close_one(closed: &ClosedDirectory) -> io::Result<()> {
    // All open paths are cloned before the empty directory hides them.
    let held: Vec<(&Path, bool, OwnedFd)> = closed
        .open
        .iter()
        .filter_map(|path| {
            let is_dir = fs::metadata(path).ok()?.is_dir();
            let flags = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_RECURSIVE;
            // A path that cannot be cloned stays closed.
            let held = open_tree(CWD, path, flags).ok()?;
            Some((path.as_path(), is_dir, held))
        })
        .collect();
    mounts::tmpfs(&closed.directory, "mode=0755,size=4m")?;
    for (path, is_dir, held) in held {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o755);
        if is_dir {
            builder.create(path)?;
        } else {
            builder.create(path.parent().unwrap_or(&closed.directory))?;
            let mut file = fs::OpenOptions::new();
            file.write(true).create_new(true).mode(0o444).open(path)?;
        }
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&held, c"", CWD, path, flags)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_put_back_once_and_an_open_directory_is_not_closed() {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let closed = ClosedDirectories {
            directories: paths(&["/home", "/root", "/home/me", "/data/me"]),
            ..ClosedDirectories::default()
        };
        let open = [
            "/home/me/work/sub",
            "/home/me/work",
            "/home/me/workshop",
            "/home/other/.tool",
            "/data",
            "/usr/bin",
        ];
        let open = open.map(Path::new);
        let expected = [
            ClosedDirectory {
                directory: "/home".into(),
                open: paths(&["/home/me/work", "/home/me/workshop", "/home/other/.tool"]),
            },
            ClosedDirectory {
                directory: "/root".into(),
                open: Vec::new(),
            },
        ];
        assert_eq!(directories(&closed, &open), expected);
    }
}
