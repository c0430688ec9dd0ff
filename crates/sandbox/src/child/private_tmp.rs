//! Mounts the session's folders as `/tmp` and `/var/tmp`, and the paths of the machine that a
//! command must see in them.
//!
//! Commands can write to these folders, so every entry in them may be a symlink by now. No mount
//! follows a link there.

use std::{
    fs, io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
        fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
    },
};

use super::keeper::{SetupFailure, step_at};
use crate::{
    private_tmp::{self, PlannedDirectory},
    protocol::SandboxPlan,
};

/// Creates the folders of the private directories, and a mount point for each entry that is one of
/// the machine. Runs outside of the sandbox.
pub(super) fn prepare(plan: &SandboxPlan) -> io::Result<()> {
    for directory in plan.private_directories() {
        private_tmp::make_folder(&directory.folder)?;
        for entry in directory.entries() {
            let Some(name) = entry.file_name() else {
                continue;
            };
            let is_file = directory.open.contains(&entry) && !entry.is_dir();
            make_mount_point(&directory.folder.join(name), is_file)?;
        }
    }
    Ok(())
}

/// Creates a file or directory without any permissions, which shows that the entry is one of the
/// machine. An existing one of the same kind stays unchanged.
fn make_mount_point(path: &Path, is_file: bool) -> io::Result<()> {
    // A command may have created something else there.
    if let Ok(found) = fs::symlink_metadata(path)
        && !found.is_dir()
        && !(is_file && found.is_file())
    {
        fs::remove_file(path)?;
    }
    let created = match is_file {
        true => {
            let mut file = fs::OpenOptions::new();
            let file = file.write(true).create_new(true).mode(0o000).open(path);
            file.map(drop)
        }
        false => fs::DirBuilder::new().mode(0o000).create(path),
    };
    match created {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The mounts of a private directory, cloned before anything covers them.
pub(super) struct HeldDirectory {
    planned: PlannedDirectory,
    folder: OwnedFd,
    /// The paths of the machine that stay visible; whether each is a directory.
    open: Vec<(PathBuf, bool, OwnedFd)>,
}

/// Clones the mounts of all private directories of a plan.
pub(super) fn hold(plan: &SandboxPlan) -> io::Result<Vec<HeldDirectory>> {
    let clone = |path: &Path, recursive: OpenTreeFlags| {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        open_tree(CWD, path, flags | recursive)
    };
    let hold = |planned: PlannedDirectory| {
        let open = planned.open.iter().filter_map(|path| {
            let is_dir = fs::metadata(path).ok()?.is_dir();
            // A path that cannot be cloned is not visible.
            let held = clone(path, OpenTreeFlags::AT_RECURSIVE).ok()?;
            Some((path.clone(), is_dir, held))
        });
        Ok(HeldDirectory {
            open: open.collect(),
            folder: clone(&planned.folder, OpenTreeFlags::empty())?,
            planned,
        })
    };
    plan.private_directories().into_iter().map(hold).collect()
}

/// Mounts the private directories.
pub(super) fn mount(held: Vec<HeldDirectory>) -> Result<(), SetupFailure> {
    held.into_iter().try_for_each(|directory| {
        let path = directory.planned.path.clone();
        step_at(&path, || mount_one(directory))
    })
}

fn mount_one(directory: HeldDirectory) -> io::Result<()> {
    let HeldDirectory {
        planned,
        folder,
        open,
    } = directory;
    attach(&folder, CWD, &planned.path)?;
    // A running command may have replaced the mount point. The next attempt creates it again.
    let attach_entry = |mount: &OwnedFd, entry: &Path| {
        attach(mount, CWD, entry).map_err(|error| match error {
            Errno::INVAL | Errno::LOOP | Errno::NOTDIR => Errno::STALE,
            error => error,
        })
    };
    for entry in planned.entries() {
        if planned.open.contains(&entry) {
            if let Some((_, _, held)) = open.iter().find(|(path, ..)| *path == entry) {
                attach_entry(held, &entry)?;
            }
            continue;
        }
        let mut inside = open.iter().filter(|(path, ..)| path.starts_with(&entry));
        let above = empty_directory()?;
        attach_entry(&above, &entry)?;
        inside.try_for_each(|(path, is_dir, held)| {
            let below = path.strip_prefix(&entry).map_err(io::Error::other)?;
            make_below(&above, below, *is_dir)?;
            Ok::<_, io::Error>(attach(held, &above, below)?)
        })?;
    }
    Ok(())
}

/// Attaches a mount to a path. Does not follow a symlink at its end.
fn attach(
    mount: &OwnedFd,
    directory: impl std::os::fd::AsFd,
    path: &Path,
) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(mount, c"", directory, path, flags)
}

/// Returns a new empty directory, which is not mounted yet.
fn empty_directory() -> rustix::io::Result<OwnedFd> {
    let system = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&system, "mode", "0755")?;
    fsconfig_set_string(&system, "size", "4m")?;
    fsconfig_create(&system)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Creates a mount point below a directory that only this process can change.
fn make_below(directory: &OwnedFd, path: &Path, is_dir: bool) -> rustix::io::Result<()> {
    let mut made = PathBuf::new();
    let count = path.components().count();
    for (index, part) in path.components().enumerate() {
        made.push(part);
        if index + 1 == count && !is_dir {
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            openat(directory, &made, flags, Mode::RUSR)?;
            break;
        }
        match mkdirat(directory, &made, Mode::from_raw_mode(0o755)) {
            Err(Errno::EXIST) | Ok(()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
