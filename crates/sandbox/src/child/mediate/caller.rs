//! The thread that made a call: its arguments, its directory, its user.

use std::{
    ffi::{CString, OsString},
    fs::{self, File},
    io,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStringExt, fs::FileExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, open, openat},
    io::Errno,
    process::{
        Gid, Pid, PidfdFlags, PidfdGetfdFlags, Uid, getegid, geteuid, pidfd_getfd, pidfd_open,
        umask,
    },
    thread::{set_thread_res_gid, set_thread_res_uid},
};

use crate::notify::NotifiedCall;

/// The longest path that the system accepts, with its terminating zero byte.
const PATH_MAX: usize = 4096;
/// The smallest page size. Memory is mapped in multiples of it.
const PAGE: u64 = 4096;

/// The directory argument that means the current directory.
const CURRENT: i32 = libc::AT_FDCWD;

/// The thread that made a call.
pub(super) struct CallingThread {
    thread: u32,
    memory: File,
}

/// The user, group and umask for creating a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallerIdentity {
    umask: Mode,
    uid: Uid,
    gid: Gid,
}

impl CallingThread {
    pub(super) fn from_call(call: &NotifiedCall) -> io::Result<Self> {
        let thread = call.thread;
        let memory = File::open(format!("/proc/{thread}/mem"))?;
        Ok(Self { thread, memory })
    }

    /// Returns whether this is the name of the calling program.
    pub(super) fn is_named(&self, name: &str) -> bool {
        let comm = fs::read_to_string(format!("/proc/{}/comm", self.thread));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    }

    /// Reads a path argument.
    pub(super) fn path(&self, address: u64) -> io::Result<PathBuf> {
        let mut bytes = Vec::new();
        let mut position = address;
        while bytes.len() < PATH_MAX {
            // Reads at most to the end of a page: the next one may not be mapped.
            let left = usize::try_from(PAGE - position % PAGE).unwrap_or(PATH_MAX);
            let mut piece = vec![0; left.min(PATH_MAX - bytes.len())];
            let got = self.memory.read_at(&mut piece, position)?;
            if got == 0 {
                break;
            }
            if let Some(end) = piece[..got].iter().position(|byte| *byte == 0) {
                bytes.extend(&piece[..end]);
                return Ok(OsString::from_vec(bytes).into());
            }
            bytes.extend(&piece[..got]);
            position += got as u64;
        }
        Err(Errno::NAMETOOLONG.into())
    }

    /// Returns the path in a Unix socket address, if it has one.
    pub(super) fn socket_name(&self, address: u64, length: i32) -> Option<PathBuf> {
        // The address is the family followed by the path.
        let length = usize::try_from(length)
            .ok()?
            .min(size_of::<libc::sockaddr_un>());
        let mut bytes = vec![0; length];
        self.memory.read_exact_at(&mut bytes, address).ok()?;
        let (family, name) = bytes.split_first_chunk::<2>()?;
        if u16::from_ne_bytes(*family) != libc::AF_UNIX.unsigned_abs() as u16 {
            return None;
        }
        let name = name.split(|byte| *byte == 0).next()?;
        (!name.is_empty()).then(|| OsString::from_vec(name.to_vec()).into())
    }

    /// Reads bytes of the caller's memory.
    pub(super) fn bytes(&self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.memory.read_exact_at(&mut bytes, address)?;
        Ok(bytes)
    }

    /// Returns a duplicate of the caller's socket. Sockets cannot be opened by a path.
    pub(super) fn socket(&self, number: i32) -> rustix::io::Result<OwnedFd> {
        // `PIDFD_THREAD`: threads may have separate descriptor tables. Older kernels support only
        // processes.
        let thread = PidfdFlags::from_bits_retain(OFlags::EXCL.bits());
        let open = |id: Option<Pid>, flags| pidfd_open(id.ok_or(Errno::SRCH)?, flags);
        let id = i32::try_from(self.thread).ok().and_then(Pid::from_raw);
        let handle = match open(id, thread) {
            Err(Errno::INVAL) => open(self.process(), PidfdFlags::empty()),
            opened => opened,
        };
        pidfd_getfd(handle?, number, PidfdGetfdFlags::empty())
    }

    /// Returns the process that the thread belongs to.
    fn process(&self) -> Option<Pid> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.thread)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
        Pid::from_raw(line.trim().parse().ok()?)
    }

    /// Returns the directory that a relative path starts from. The descriptor is in the low half of
    /// the argument.
    pub(super) fn directory(&self, argument: u64) -> rustix::io::Result<OwnedFd> {
        match low(argument) {
            CURRENT => self.opened("cwd"),
            number => self.descriptor(number),
        }
    }

    /// Returns the caller's current directory.
    pub(super) fn current(&self) -> rustix::io::Result<OwnedFd> {
        self.opened("cwd")
    }

    /// Returns a handle of a file that the caller has open.
    pub(super) fn descriptor(&self, number: i32) -> rustix::io::Result<OwnedFd> {
        self.opened(&format!("fd/{number}"))
    }

    fn opened(&self, what: &str) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        open(
            format!("/proc/{}/{what}", self.thread),
            flags,
            Mode::empty(),
        )
    }

    /// Returns the user, group and umask of the caller: it owns the files that the guard creates
    /// for it.
    pub(super) fn identity(&self) -> io::Result<CallerIdentity> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.thread))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_ascii_whitespace())
        };
        // The fields are the real, effective, saved and file system ID.
        let id = |name| field(name)?.nth(3)?.parse().ok();
        let mask = field("Umask:").and_then(|mut fields| fields.next());
        let mask = mask.and_then(|mask| u32::from_str_radix(mask, 8).ok());
        match (mask, id("Uid:"), id("Gid:")) {
            (Some(mask), Some(uid), Some(gid)) => Ok(CallerIdentity {
                umask: Mode::from_raw_mode(mask),
                uid: Uid::from_raw(uid),
                gid: Gid::from_raw(gid),
            }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl CallerIdentity {
    /// Runs a closure with this user, group and umask.
    pub(super) fn act<T>(
        self,
        act: impl FnOnce() -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        let before = umask(self.umask);
        let (uid, gid) = (geteuid(), getegid());
        let other = uid != self.uid || gid != self.gid;
        let turn_into = |uid: Uid, gid: Gid| {
            set_thread_res_gid(None, gid, None)?;
            set_thread_res_uid(None, uid, None)
        };
        let done = if other {
            let back = || {
                set_thread_res_uid(None, uid, None)?;
                set_thread_res_gid(None, gid, None)
            };
            match turn_into(self.uid, self.gid) {
                Ok(()) => {
                    let done = act();
                    back().and(done)
                }
                Err(error) => back().and(Err(error)),
            }
        } else {
            act()
        };
        umask(before);
        done
    }
}

/// Returns the low half of an argument, as a signed number.
pub(super) fn low(argument: u64) -> i32 {
    let bytes = argument.to_ne_bytes();
    let half = if cfg!(target_endian = "little") {
        [bytes[0], bytes[1], bytes[2], bytes[3]]
    } else {
        [bytes[4], bytes[5], bytes[6], bytes[7]]
    };
    i32::from_ne_bytes(half)
}

/// Returns the descriptor that a path like `/dev/stdout` or `/proc/self/fd/1` names.
pub(super) fn own_descriptor(path: &Path) -> Option<i32> {
    let text = path.to_str()?;
    let number = match text {
        "/dev/stdin" => return Some(0),
        "/dev/stdout" => return Some(1),
        "/dev/stderr" => return Some(2),
        _ => text
            .strip_prefix("/dev/fd/")
            .or_else(|| text.strip_prefix("/proc/self/fd/"))
            .or_else(|| text.strip_prefix("/proc/thread-self/fd/"))?,
    };
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| number.parse().ok()).flatten()
}

/// Opens the file of a handle again.
pub(super) fn reopen(handle: &OwnedFd, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    openat(CWD, handle_path(handle), flags, mode)
}

/// Returns a path that leads to the file of a handle.
pub(super) fn handle_path(handle: &OwnedFd) -> CString {
    use std::os::fd::AsRawFd;
    let text = format!("/proc/self/fd/{}", handle.as_raw_fd());
    CString::new(text).unwrap_or_default()
}

/// Returns the real path of a handle's file.
pub(super) fn real(handle: &OwnedFd) -> rustix::io::Result<PathBuf> {
    let path = rustix::fs::readlinkat(CWD, handle_path(handle), Vec::new())?;
    Ok(OsString::from_vec(path.into_bytes()).into())
}

/// Returns whether an entry with this name exists. Symlinks are not followed.
pub(super) fn exists(directory: &OwnedFd, name: &std::ffi::OsStr) -> bool {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_name_an_open_file_are_known() {
        let cases = [
            ("/dev/stdout", Some(1)),
            ("/dev/fd/7", Some(7)),
            ("/proc/self/fd/12", Some(12)),
            ("/dev/fd/", None),
            ("/dev/fd/x", None),
            ("/dev/fd/1/x", None),
            ("/dev/null", None),
            ("/proc/self/fd/99999999999", None),
        ];
        for (path, expected) in cases {
            assert_eq!(own_descriptor(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn half_an_argument_is_a_signed_number() {
        assert_eq!(low(0xffff_ff9c), CURRENT);
        assert_eq!(low(0xffff_ffff_ffff_ff9c), CURRENT);
        assert_eq!(low(3), 3);
    }
}
