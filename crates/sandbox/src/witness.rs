//! The request to witness a command: its guard stores what the command changes.

use std::{fs, io, os::fd::OwnedFd, path::PathBuf, sync::Arc};

use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};

use crate::{
    StoragePolicy,
    protocol::{FILES, WitnessOrder},
};

/// The request to witness a command.
#[derive(Debug)]
pub struct WitnessRequest {
    /// The log, opened for appending. The guard keeps it open until the command has ended.
    pub log: fs::File,
    /// The directory for stored files. It must be below the store of
    /// [`Sandbox::set_witness_store`](crate::Sandbox::set_witness_store).
    pub objects: PathBuf,
    /// The directories whose changes are recorded, among the writable ones. In a writable directory
    /// below one of them that is not listed itself, no change is recorded.
    pub roots: Vec<PathBuf>,
    /// The limits of stored files.
    pub limits: WitnessLimits,
    /// The directory of copies that commands of one session share: a file that has not changed since
    /// it was copied is not copied again. It must be below the store, too.
    pub copies: Option<PathBuf>,
    /// Decides about files that cannot be stored. `None`: the command continues without them.
    pub policy: Option<Arc<dyn StoragePolicy>>,
}

/// The limits of the files that are stored for undo, in bytes. For a command with a
/// [`StoragePolicy`], the totals are what the command may store before its guard asks for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessLimits {
    /// The total of all copies.
    pub copy_bytes: u64,
    /// The size of a single copied file, without its holes.
    pub file_bytes: u64,
    /// The total of all files that are stored by a link.
    pub pin_bytes: u64,
    /// The size of the log of one command.
    pub log_bytes: u64,
}

impl Default for WitnessLimits {
    fn default() -> Self {
        Self {
            copy_bytes: 1 << 30,
            file_bytes: 256 << 20,
            pin_bytes: 10 << 30,
            log_bytes: 256 << 20,
        }
    }
}

impl WitnessRequest {
    /// Returns the order for the guard, and the open files that it needs. The guard cannot open them
    /// itself: links are made only between handles of one mount, and its mounts are its own.
    pub(crate) fn order(&self) -> io::Result<(WitnessOrder, Vec<OwnedFd>)> {
        if self.roots.len() + 3 > FILES {
            return Err(io::Error::other("too many directories to witness"));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = |path: &PathBuf| open(path, flags, Mode::empty());
        let mut files = vec![self.log.try_clone()?.into(), directory(&self.objects)?];
        for path in self.copies.iter().chain(&self.roots) {
            files.push(directory(path)?);
        }
        let order = WitnessOrder {
            roots: self.roots.iter().cloned().map(Into::into).collect(),
            limits: self.limits,
            has_copies: self.copies.is_some(),
            asks: self.policy.is_some(),
        };
        Ok((order, files))
    }
}
