//! Changing modes, owners, times and extended attributes on behalf of a command.
//!
//! The guard carries out the calls that name a file by its path, on the handle of the file that it
//! recorded. Calls on an open file are recorded and left to the kernel.

use std::{
    ffi::{CString, OsStr},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, chmodat, chownat,
        removexattr, setxattr, utimensat,
    },
    io::Errno,
};

use super::{
    caller::{handle_path, low, own_descriptor, real},
    perform::{CallMediation, MediationResult, MediationStop, as_fd, open_handle},
};
use crate::notify;

/// The longest name of an extended attribute, with its terminating zero byte, and the longest value.
const MAX_XATTR_NAME: usize = 256;
const MAX_XATTR_VALUE: usize = 64 << 10;

/// A file by a directory and the address of a path, with the flags of the call.
pub(super) struct MetadataTarget {
    pub(super) directory: u64,
    pub(super) address: u64,
    pub(super) flags: AtFlags,
}

/// A change of metadata. Addresses are those of the caller's memory.
pub(super) enum MetadataChange {
    Mode(Mode),
    Owner(u64, u64),
    /// Two times at an address, if it is not 0, in a format.
    Times(u64, TimeFormat),
    SetXattr {
        name: u64,
        value: u64,
        size: u64,
        flags: u64,
    },
    RemoveXattr {
        name: u64,
    },
}

/// The format of two times in memory.
pub(super) enum TimeFormat {
    /// Whole seconds.
    Seconds,
    /// Seconds and microseconds.
    Microseconds,
    /// Seconds and nanoseconds.
    Nanoseconds,
}

impl CallMediation<'_> {
    /// Carries out a change of metadata below a writable directory. Leaves other changes to the kernel,
    /// and records those that it will refuse.
    pub(super) fn change_metadata(
        &self,
        target: &MetadataTarget,
        change: &MetadataChange,
    ) -> MediationResult {
        let file = self.metadata_target(target)?;
        let path = real(&file).map_err(|_| MediationStop::Continue)?;
        let is_writable =
            self.mediator.path_in_root(&path).is_some() || self.is_temporary(&file, &path);
        if !is_writable || self.mediator.immutable.includes(&path) {
            self.mediator.record_refused(&path, false);
            return Err(MediationStop::Continue);
        }
        if let Some(witness) = &self.mediator.witness {
            witness.metadata_changes(&file, &path);
        }
        let by_handle = handle_path(&file);
        match change {
            MetadataChange::Mode(mode) => {
                self.done(|| chmodat(CWD, &*by_handle, *mode, AtFlags::empty()))
            }
            MetadataChange::Owner(uid, gid) => {
                let (uid, gid) = (low(*uid).cast_unsigned(), low(*gid).cast_unsigned());
                let uid = (uid != u32::MAX).then(|| Uid::from_raw(uid));
                let gid = (gid != u32::MAX).then(|| Gid::from_raw(gid));
                self.done(|| chownat(&file, "", uid, gid, AtFlags::EMPTY_PATH))
            }
            MetadataChange::Times(address, format) => {
                let times = self.times(*address, format)?;
                self.done(|| utimensat(CWD, &*by_handle, &times, AtFlags::empty()))
            }
            MetadataChange::SetXattr {
                name,
                value,
                size,
                flags,
            } => {
                let name = self.xattr_name(*name)?;
                let size = usize::try_from(*size).map_err(|_| Errno::TOOBIG)?;
                if size > MAX_XATTR_VALUE {
                    return Err(MediationStop::Failed(Errno::TOOBIG));
                }
                let value = self.memory(*value, size)?;
                let flags = XattrFlags::from_bits_retain(low(*flags).cast_unsigned());
                self.done(|| setxattr(&*by_handle, &*name, &value, flags))
            }
            MetadataChange::RemoveXattr { name } => {
                let name = self.xattr_name(*name)?;
                self.done(|| removexattr(&*by_handle, &*name))
            }
        }
    }

    /// Records a change of the metadata of an open file, and leaves it to the kernel.
    pub(super) fn change_open_metadata(&self, descriptor: u64) -> MediationResult {
        if let Some(witness) = &self.mediator.witness
            && let Ok(file) = self.caller.descriptor(low(descriptor))
            && let Ok(path) = real(&file)
            && self.mediator.path_in_root(&path).is_some()
        {
            witness.metadata_changes(&file, &path);
        }
        Err(MediationStop::Continue)
    }

    /// Returns a handle of the file whose metadata is to change.
    fn metadata_target(&self, target: &MetadataTarget) -> Result<OwnedFd, MediationStop> {
        let given = self
            .caller
            .path(target.address)
            .map_err(|_| MediationStop::Continue)?;
        let follows = !target.flags.contains(AtFlags::SYMLINK_NOFOLLOW);
        let descriptor = match own_descriptor(&given) {
            Some(number) if follows => Some(number),
            _ if given.as_os_str().is_empty() && target.flags.contains(AtFlags::EMPTY_PATH) => {
                Some(low(target.directory))
            }
            _ => None,
        };
        if let Some(number) = descriptor {
            let file = match number {
                libc::AT_FDCWD => self.caller.current(),
                number => self.caller.descriptor(number),
            };
            // Only if the call still waits do memory and descriptor belong to the thread that made it.
            if !notify::waits(as_fd(self.mediator), self.call) {
                return Err(MediationStop::Failed(Errno::INTR));
            }
            return file.map_err(|_| MediationStop::Continue);
        }
        let (start, path) = self.start(target.directory, target.address)?;
        let flags = match follows {
            true => OFlags::empty(),
            false => OFlags::NOFOLLOW,
        };
        open_handle(&start, path.as_os_str(), flags).map_err(|error| match error {
            // A link of `/proc` leads to another file here than for the caller. The kernel must not
            // follow it either: the change would not be recorded.
            Errno::LOOP => MediationStop::Failed(Errno::LOOP),
            error => self.outcome_of_missing(&start, Path::new(&path), error),
        })
    }

    fn times(&self, address: u64, format: &TimeFormat) -> Result<Timestamps, MediationStop> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: libc::UTIME_NOW,
        };
        if address == 0 {
            return Ok(Timestamps {
                last_access: now,
                last_modification: now,
            });
        }
        let fields = match format {
            TimeFormat::Seconds => 2,
            TimeFormat::Microseconds | TimeFormat::Nanoseconds => 4,
        };
        let bytes = self.memory(address, fields * 8)?;
        let field = |at: usize| {
            let bytes = bytes.get(at * 8..at * 8 + 8)?;
            Some(i64::from_ne_bytes(bytes.try_into().ok()?))
        };
        let time = |at: usize| {
            Some(match format {
                TimeFormat::Seconds => Timespec {
                    tv_sec: field(at)?,
                    tv_nsec: 0,
                },
                TimeFormat::Microseconds => Timespec {
                    tv_sec: field(at * 2)?,
                    tv_nsec: field(at * 2 + 1).filter(|part| (0..1_000_000).contains(part))? * 1000,
                },
                TimeFormat::Nanoseconds => Timespec {
                    tv_sec: field(at * 2)?,
                    tv_nsec: field(at * 2 + 1)?,
                },
            })
        };
        let invalid = MediationStop::Failed(Errno::INVAL);
        match (time(0), time(1)) {
            (Some(last_access), Some(last_modification)) => Ok(Timestamps {
                last_access,
                last_modification,
            }),
            _ => Err(invalid),
        }
    }

    fn xattr_name(&self, address: u64) -> Result<CString, MediationStop> {
        let name = self
            .caller
            .path(address)
            .map_err(|_| MediationStop::Failed(Errno::FAULT))?;
        let name: &OsStr = name.as_os_str();
        if name.is_empty() || name.len() >= MAX_XATTR_NAME {
            return Err(MediationStop::Failed(Errno::RANGE));
        }
        use std::os::unix::ffi::OsStrExt;
        CString::new(name.as_bytes()).map_err(|_| MediationStop::Failed(Errno::INVAL))
    }

    fn memory(&self, address: u64, length: usize) -> Result<Vec<u8>, MediationStop> {
        let bytes = self.caller.bytes(address, length);
        // If the call no longer waits, the memory may be that of another process.
        if !notify::waits(as_fd(self.mediator), self.call) {
            return Err(MediationStop::Failed(Errno::INTR));
        }
        bytes.map_err(|_| MediationStop::Failed(Errno::FAULT))
    }
}
