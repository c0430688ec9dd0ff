//! The directories for temporary files of a command.
//!
//! In the scratch folder of a session the kernel lets the command write. In a private directory,
//! such as the session's own `/tmp`, the guard writes for it: a working directory may be below.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::perform::{CallMediation, MediationStop, NameLocation};
use crate::{private_tmp::PlannedDirectory, protocol::SandboxPlan};

/// The directories for temporary files of a command.
pub(super) struct TemporaryFiles {
    /// The scratch folder, if the command sees it.
    scratch: Option<PathBuf>,
    /// The private directories, with the ID of the mount of each.
    private: Vec<(PlannedDirectory, Option<u64>)>,
}

impl TemporaryFiles {
    /// Finds the directories. The calling process must be in the mount namespace of the command.
    pub(super) fn for_plan(plan: &SandboxPlan) -> Self {
        let private = plan.private_directories().into_iter();
        Self {
            scratch: plan
                .temporary()
                .into_iter()
                .find(|path| *path == plan.scratch),
            private: private
                .map(|directory| {
                    let mount = mount_id(CWD, &directory.path);
                    (directory, mount)
                })
                .collect(),
        }
    }

    /// Returns whether a path is that of a temporary file.
    pub(super) fn include(&self, path: &Path) -> bool {
        let mut scratch = self.scratch.iter();
        scratch.any(|scratch| path.starts_with(scratch)) || self.is_private(path).is_some()
    }

    /// Returns whether this entry of a private directory is, or contains, a visible path of the
    /// machine. It cannot be moved.
    pub(super) fn is_mount_point(&self, path: &Path) -> bool {
        let mut private = self.private.iter();
        private.any(|(directory, _)| directory.entries().iter().any(|entry| entry == path))
    }

    /// Returns the private directory that a path is in.
    fn is_private(&self, path: &Path) -> Option<&(PlannedDirectory, Option<u64>)> {
        let mut private = self.private.iter();
        private.find(|(directory, _)| directory.holds(path))
    }

    /// Returns whether an open file or directory is in a private directory. Its mount is compared as
    /// well, so that a working directory is never treated like one, whatever its path is by now.
    fn holds(&self, file: &OwnedFd, path: &Path) -> bool {
        self.is_private(path)
            .is_some_and(|(_, mount)| mount.is_some() && *mount == mount_id(file, Path::new("")))
    }
}

impl CallMediation<'_> {
    /// Returns whether an open file at this path is a temporary file that the guard may write.
    pub(super) fn is_temporary(&self, file: &OwnedFd, path: &Path) -> bool {
        self.mediator.temporary.holds(file, path)
    }

    /// Checks that the guard may create or change a directory entry. Otherwise records a refused
    /// write and leaves the call to the kernel.
    pub(super) fn inside_at(
        &self,
        place: &NameLocation,
        tentative: bool,
    ) -> Result<(), MediationStop> {
        match self.is_temporary(&place.directory, &place.path) {
            true => Ok(()),
            false => self.inside(&place.path, tentative),
        }
    }
}

/// Returns the ID of the mount that a file is on.
fn mount_id(directory: impl AsFd, path: &Path) -> Option<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    let found = statx(directory, path, flags, StatxFlags::MNT_ID).ok()?;
    let is_known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    is_known.then_some(found.stx_mnt_id)
}
