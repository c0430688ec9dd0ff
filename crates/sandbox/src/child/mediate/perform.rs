//! Carries out the calls of a command.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};

use haft_witness::FileId;
use rustix::{
    fs::{
        AtFlags, FileType, MemfdFlags, Mode, OFlags, RenameFlags, ResolveFlags, fstat, ftruncate,
        memfd_create, open, openat, openat2, readlinkat,
    },
    io::Errno,
};

use super::{
    MediationOutcome, Mediator, REFUSED,
    caller::{CallingThread, exists, low, own_descriptor, real, reopen},
    metadata::{MetadataChange, MetadataTarget, TimeFormat},
    new_directories::is_hook,
    refused_writes::unseen,
    witness::{StorageStop, UnstoredObject},
};
use crate::{
    NameAction, NameUse,
    child::filter,
    notify::{self, NotifiedCall, NotifyReply},
};

/// The maximum number of symlinks on a path, as in the kernel.
const LINKS: usize = 40;

/// The reason why a call is not carried out here.
pub(super) enum MediationStop {
    /// The kernel carries the call out or refuses it.
    Continue,
    /// The call fails with this error.
    Failed(Errno),
    /// Our process must decide about this use first.
    Ask(NameUse),
    /// Our process must decide about this file first, which could not be stored.
    Store(UnstoredObject),
}

impl From<Errno> for MediationStop {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

impl From<StorageStop> for MediationStop {
    fn from(stop: StorageStop) -> Self {
        match stop {
            StorageStop::Ask(file) => Self::Store(file),
            StorageStop::Refused => Self::Failed(REFUSED),
        }
    }
}

pub(super) type MediationResult = Result<MediationOutcome, MediationStop>;

/// A directory entry, which may not exist: the directory, and the name in it.
pub(super) struct NameLocation {
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
    /// The path of the entry. Symlinks in the path of the directory are resolved.
    pub(super) path: PathBuf,
    /// Whether the path ended with a slash, so that it can only mean a directory.
    pub(super) slash: bool,
}

/// Carries a call out, and returns the outcome.
pub(super) fn carry_out(
    mediator: &Mediator,
    call: &NotifiedCall,
    permits: &HashMap<NameUse, bool>,
) -> MediationOutcome {
    let acted = CallMediation::new(mediator, call, permits).and_then(|acting| acting.carry_out());
    match acted {
        Ok(outcome) => outcome,
        Err(MediationStop::Continue) => MediationOutcome::Answered(NotifyReply::Continue),
        Err(MediationStop::Failed(errno)) => MediationOutcome::Answered(NotifyReply::Failed(errno)),
        Err(MediationStop::Ask(used)) => MediationOutcome::Ask(used),
        Err(MediationStop::Store(file)) => MediationOutcome::Store(file),
    }
}

pub(super) struct CallMediation<'a> {
    pub(super) mediator: &'a Mediator,
    pub(super) call: &'a NotifiedCall,
    pub(super) caller: CallingThread,
    /// The decisions of our process about the names that this call uses.
    pub(super) permits: &'a HashMap<NameUse, bool>,
}

impl<'a> CallMediation<'a> {
    fn new(
        mediator: &'a Mediator,
        call: &'a NotifiedCall,
        permits: &'a HashMap<NameUse, bool>,
    ) -> Result<Self, MediationStop> {
        // If the caller cannot be inspected, the kernel decides, and refuses writes. It would not refuse
        // connections, so the guard does.
        let caller = CallingThread::from_call(call).map_err(|_| match call.number {
            libc::SYS_connect => MediationStop::Failed(Errno::ACCESS),
            _ => MediationStop::Continue,
        })?;
        Ok(Self {
            mediator,
            call,
            caller,
            permits,
        })
    }

    fn carry_out(&self) -> MediationResult {
        let [a, b, c, d, e, _] = self.call.arguments;
        const HERE: u64 = libc::AT_FDCWD as u64;
        let mode = |argument: u64| Mode::from_raw_mode(low(argument).unsigned_abs() & 0o7777);
        let flags = |argument: u64| OFlags::from_bits_retain(low(argument).unsigned_abs());
        const NOFOLLOW: u64 = libc::AT_SYMLINK_NOFOLLOW as u64;
        let at = |directory, address, flags| MetadataTarget {
            directory,
            address,
            flags: AtFlags::from_bits_retain(low(flags).unsigned_abs()),
        };
        #[cfg(target_arch = "x86_64")]
        match self.call.number {
            libc::SYS_open => return self.open(HERE, a, flags(b), mode(c)),
            libc::SYS_creat => {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
                return self.open(HERE, a, flags, mode(b));
            }
            libc::SYS_mkdir => return self.make_directory(HERE, a, mode(b)),
            libc::SYS_mknod => return self.make_node(HERE, a, b, mode(b), c),
            libc::SYS_symlink => return self.make_link(a, HERE, b),
            libc::SYS_link => return self.link((HERE, a), (HERE, b), AtFlags::empty()),
            libc::SYS_rename => return self.rename((HERE, a), (HERE, b), RenameFlags::empty()),
            libc::SYS_unlink => return self.remove(HERE, a, AtFlags::empty()),
            libc::SYS_rmdir => return self.remove(HERE, a, AtFlags::REMOVEDIR),
            libc::SYS_chmod => {
                return self.change_metadata(&at(HERE, a, 0), &MetadataChange::Mode(mode(b)));
            }
            libc::SYS_chown => {
                return self.change_metadata(&at(HERE, a, 0), &MetadataChange::Owner(b, c));
            }
            libc::SYS_lchown => {
                return self.change_metadata(&at(HERE, a, NOFOLLOW), &MetadataChange::Owner(b, c));
            }
            libc::SYS_utime => {
                let times = MetadataChange::Times(b, TimeFormat::Seconds);
                return self.change_metadata(&at(HERE, a, 0), &times);
            }
            libc::SYS_utimes => {
                let times = MetadataChange::Times(b, TimeFormat::Microseconds);
                return self.change_metadata(&at(HERE, a, 0), &times);
            }
            libc::SYS_futimesat => {
                let times = MetadataChange::Times(c, TimeFormat::Microseconds);
                return self.change_metadata(&at(a, b, 0), &times);
            }
            _ => {}
        }
        match self.call.number {
            libc::SYS_openat => self.open(a, b, flags(c), mode(d)),
            libc::SYS_mkdirat => self.make_directory(a, b, mode(c)),
            libc::SYS_mknodat => self.make_node(a, b, c, mode(c), d),
            libc::SYS_symlinkat => self.make_link(a, b, c),
            libc::SYS_linkat => {
                let flags = AtFlags::from_bits_retain(low(e).unsigned_abs());
                self.link((a, b), (c, d), flags)
            }
            libc::SYS_renameat => self.rename((a, b), (c, d), RenameFlags::empty()),
            libc::SYS_renameat2 => {
                let flags = RenameFlags::from_bits_retain(low(e).unsigned_abs());
                self.rename((a, b), (c, d), flags)
            }
            libc::SYS_unlinkat => {
                let flags = AtFlags::from_bits_retain(low(c).unsigned_abs());
                self.remove(a, b, flags)
            }
            libc::SYS_truncate => self.truncate(a, b),
            libc::SYS_bind => self.bind(b, c),
            libc::SYS_connect => self.connect(a, b, c),
            libc::SYS_fchmodat => {
                self.change_metadata(&at(a, b, 0), &MetadataChange::Mode(mode(c)))
            }
            filter::FCHMODAT2 => self.change_metadata(&at(a, b, d), &MetadataChange::Mode(mode(c))),
            libc::SYS_fchownat => self.change_metadata(&at(a, b, e), &MetadataChange::Owner(c, d)),
            libc::SYS_utimensat => {
                let times = MetadataChange::Times(c, TimeFormat::Nanoseconds);
                self.change_metadata(&at(a, b, d), &times)
            }
            libc::SYS_setxattr | libc::SYS_lsetxattr => {
                let change = MetadataChange::SetXattr {
                    name: b,
                    value: c,
                    size: d,
                    flags: e,
                };
                let follow = self.call.number == libc::SYS_setxattr;
                self.change_metadata(&at(HERE, a, if follow { 0 } else { NOFOLLOW }), &change)
            }
            libc::SYS_removexattr | libc::SYS_lremovexattr => {
                let follow = self.call.number == libc::SYS_removexattr;
                let flags = if follow { 0 } else { NOFOLLOW };
                let change = MetadataChange::RemoveXattr { name: b };
                self.change_metadata(&at(HERE, a, flags), &change)
            }
            libc::SYS_fchmod
            | libc::SYS_fchown
            | libc::SYS_fsetxattr
            | libc::SYS_fremovexattr
            | libc::SYS_ioctl => self.change_open_metadata(a),
            _ => Err(MediationStop::Continue),
        }
    }

    /// Checks that a path is below a writable directory. Otherwise records a refused write and leaves
    /// the call to the kernel. `tentative`: programs often continue without this access.
    pub(super) fn inside(&self, path: &Path, tentative: bool) -> Result<(), MediationStop> {
        match self.mediator.path_in_root(path) {
            Some(_) => Ok(()),
            None => {
                self.mediator.record_refused(path, tentative);
                Err(MediationStop::Continue)
            }
        }
    }

    /// Reads a path argument. Returns the directory where the path starts, and the path. If an
    /// argument is invalid, leaves the call to the kernel, which reports the error.
    pub(super) fn start(
        &self,
        directory: u64,
        address: u64,
    ) -> Result<(OwnedFd, PathBuf), MediationStop> {
        let path = self
            .caller
            .path(address)
            .map_err(|_| MediationStop::Continue)?;
        let directory = if path.is_absolute() {
            root()
        } else if low(directory) == libc::AT_FDCWD {
            self.caller.current()
        } else {
            self.caller.directory(directory)
        };
        // If the call no longer waits, the memory may be that of another process.
        if path.as_os_str().is_empty() || !notify::waits(as_fd(self.mediator), self.call) {
            return Err(MediationStop::Continue);
        }
        Ok((directory.map_err(|_| MediationStop::Continue)?, path))
    }

    /// Returns the entry that a path argument names, if it is below a writable directory. Otherwise leaves
    /// the call to the kernel. `must_exist`: the call works only on an existing entry; if false, only on
    /// a missing one.
    pub(super) fn place(
        &self,
        directory: u64,
        address: u64,
        must_exist: bool,
    ) -> Result<NameLocation, MediationStop> {
        let (start, path) = self.start(directory, address)?;
        let place = self.walk(&start, &path, must_exist)?;
        if self.mediator.path_in_root(&place.path).is_none()
            && exists(&place.directory, &place.name) == must_exist
        {
            self.mediator.record_refused(&place.path, false);
        }
        let is_writable = self.mediator.path_in_root(&place.path).is_some()
            || self.is_temporary(&place.directory, &place.path);
        match is_writable {
            true => Ok(place),
            false => Err(MediationStop::Continue),
        }
    }

    /// Returns the entry that a path names. `must_exist`: the call works only on an existing entry.
    pub(super) fn walk(
        &self,
        start: &OwnedFd,
        path: &Path,
        must_exist: bool,
    ) -> Result<NameLocation, MediationStop> {
        place(start, path).map_err(|error| {
            let lost = self.outcome_of_missing(start, path, error);
            // A directory that the command does not see may exist for the user.
            if let (MediationStop::Continue, Errno::NOENT, false, Ok(start)) =
                (&lost, error, must_exist, real(start))
            {
                self.mediator.record_refused(&unseen(&start, path), false);
            }
            lost
        })
    }

    /// Returns the outcome for a path that cannot be resolved. Below a writable directory the call fails
    /// with this error. It is not left to the kernel: another thread may create the missing directory in
    /// the meantime, and the kernel would then refuse a call that is allowed.
    pub(super) fn outcome_of_missing(
        &self,
        start: &OwnedFd,
        path: &Path,
        error: Errno,
    ) -> MediationStop {
        let missing = matches!(error, Errno::NOENT | Errno::NOTDIR);
        let inside = |start: PathBuf| self.mediator.path_in_root(&unseen(&start, path)).is_some();
        match missing && real(start).is_ok_and(inside) {
            true => MediationStop::Failed(error),
            false => MediationStop::Continue,
        }
    }

    /// Runs a system call with the user, group and umask of the caller.
    fn make<T>(&self, make: impl FnOnce() -> rustix::io::Result<T>) -> Result<T, MediationStop> {
        let maker = self
            .caller
            .identity()
            .map_err(|_| MediationStop::Continue)?;
        Ok(maker.act(make)?)
    }

    /// Runs a system call as the caller, and returns the outcome of a call that was carried out.
    pub(super) fn done(&self, make: impl FnOnce() -> rustix::io::Result<()>) -> MediationResult {
        self.make(make)?;
        Ok(MediationOutcome::Answered(NotifyReply::Done))
    }

    fn open(&self, directory: u64, address: u64, flags: OFlags, mode: Mode) -> MediationResult {
        let (start, path) = self.start(directory, address)?;
        // `/dev/null` is the path that is opened most often.
        if path == Path::new("/dev/null") || flags.contains(OFlags::PATH) {
            return Err(MediationStop::Continue);
        }
        if let Some(number) = own_descriptor(&path) {
            let handle = self
                .caller
                .descriptor(number)
                .map_err(|_| MediationStop::Continue)?;
            return self.open_existing(handle, flags, mode);
        }
        let makes = flags.contains(OFlags::CREATE);
        let only_new = makes && flags.contains(OFlags::EXCL);
        let (mut start, mut path) = (start, path);
        for _ in 0..LINKS {
            let place = self.walk(&start, &path, !makes)?;
            let follow = if only_new || flags.contains(OFlags::NOFOLLOW) {
                OFlags::NOFOLLOW
            } else {
                OFlags::empty()
            };
            match open_handle(&place.directory, &place.name, follow) {
                Ok(handle) if !only_new => return self.open_existing(handle, flags, mode),
                Ok(_) => {
                    self.mediator
                        .path_in_root(&place.path)
                        .ok_or(MediationStop::Continue)?;
                    return Err(MediationStop::Failed(Errno::EXIST));
                }
                Err(Errno::NOENT) if makes && !place.slash => {}
                Err(error) if !makes => {
                    return Err(self.outcome_of_missing(
                        &place.directory,
                        Path::new(&place.name),
                        error,
                    ));
                }
                Err(_) => return Err(MediationStop::Continue),
            }
            // A symlink whose target is missing: the target is created.
            if let Ok(target) = readlinkat(&place.directory, &*place.name, Vec::new()) {
                path = OsString::from_vec(target.into_bytes()).into();
                start = if path.is_absolute() {
                    root().map_err(|_| MediationStop::Continue)?
                } else {
                    place.directory
                };
                continue;
            }
            self.inside_at(&place, false)?;
            match self.ask(&place, NameAction::MakeFile, false) {
                Err(MediationStop::Failed(REFUSED)) if self.is_discarded_hook(&place) => {
                    let file = memfd_create("hook", MemfdFlags::CLOEXEC)?;
                    return Ok(self.file(file, flags));
                }
                asked => asked?,
            }
            let new = flags.difference(OFlags::TRUNC)
                | OFlags::CREATE
                | OFlags::EXCL
                | OFlags::NOFOLLOW
                | OFlags::NOCTTY
                | OFlags::CLOEXEC;
            self.name_changes(&place);
            let made = self.make(|| openat(&place.directory, &*place.name, new, mode));
            match made {
                Ok(file) => {
                    if let Some(witness) = &self.mediator.witness {
                        witness.created(&file, OsStr::new(""));
                    }
                    if self.is_guarded_by_name(&place.path, false) {
                        let made = FileId::from_entry(&file, OsStr::new(""));
                        self.mediator.created.record(made);
                    }
                    return Ok(self.file(file, flags));
                }
                // Another process has created the file in the meantime.
                Err(MediationStop::Failed(Errno::EXIST)) if !only_new => {
                    start = place.directory;
                    path = place.name.into();
                }
                Err(stop) => return Err(stop),
            }
        }
        Err(MediationStop::Failed(Errno::LOOP))
    }

    /// Returns whether a refused hook is created without a name: it is in a repository that the command
    /// has just created, from a template. Git does not continue if it cannot copy a template.
    fn is_discarded_hook(&self, place: &NameLocation) -> bool {
        is_hook(&place.path)
            && self.caller.is_named("git")
            && !self
                .mediator
                .new_directories
                .above(&place.directory)
                .is_empty()
    }

    fn open_existing(&self, handle: OwnedFd, flags: OFlags, mode: Mode) -> MediationResult {
        let path = real(&handle).map_err(|_| MediationStop::Continue)?;
        let kind = FileType::from_raw_mode(fstat(&handle)?.st_mode);
        if self.mediator.path_in_root(&path).is_none() && !self.is_temporary(&handle, &path) {
            let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
            let unnamed = flags.contains(OFlags::TMPFILE);
            if (kind == FileType::RegularFile && writes) || (kind == FileType::Directory && unnamed)
            {
                // Many programs first try to open a file for reading and writing, and then only for
                // reading.
                let tentative = flags.contains(OFlags::RDWR)
                    && !flags.intersects(OFlags::TRUNC | OFlags::APPEND)
                    && !unnamed;
                self.mediator.record_refused(&path, tentative);
            }
            return Err(MediationStop::Continue);
        }
        let reopen_flags = flags.difference(OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW)
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        match kind {
            FileType::Symlink => return Err(MediationStop::Failed(Errno::LOOP)),
            FileType::Directory if flags.contains(OFlags::TMPFILE) => {
                let file = self.make(|| reopen(&handle, reopen_flags, mode))?;
                return Ok(self.file(file, flags));
            }
            FileType::Directory => return Err(MediationStop::Failed(Errno::ISDIR)),
            _ => {}
        }
        self.ask_change(&handle, &path)?;
        if kind == FileType::Fifo && !flags.contains(OFlags::NONBLOCK) {
            let flags =
                reopen_flags.difference(OFlags::CLOEXEC) | flags.intersection(OFlags::CLOEXEC);
            return Ok(MediationOutcome::Waits { handle, flags });
        }
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
        if kind == FileType::RegularFile && writes {
            self.content_changes(&handle, &path)?;
        }
        let file = self.make(|| reopen(&handle, reopen_flags, mode))?;
        Ok(self.file(file, flags))
    }

    /// Records a file that was created: for undo, and under a guarded name.
    pub(super) fn record_created(&self, place: &NameLocation, directory: bool) {
        if let Some(witness) = &self.mediator.witness {
            witness.created(&place.directory, &place.name);
        }
        if self.is_guarded_by_name(&place.path, directory) {
            let made = FileId::from_entry(&place.directory, &place.name);
            self.mediator.created.record(made);
        }
    }

    /// Stores the old entry of a name for undo.
    pub(super) fn name_changes(&self, place: &NameLocation) {
        if let Some(witness) = &self.mediator.witness {
            witness.name_changes(place);
        }
    }

    /// Stores the old content of a file for undo.
    fn content_changes(&self, file: &OwnedFd, path: &Path) -> Result<(), MediationStop> {
        match &self.mediator.witness {
            Some(witness) => Ok(witness.content_changes(file, path)?),
            None => Ok(()),
        }
    }

    /// Returns whether a path is guarded by its name.
    fn is_guarded_by_name(&self, path: &Path, directory: bool) -> bool {
        let below = self.mediator.path_in_root(path);
        below.is_some_and(|below| self.mediator.names.is_guarded_name(below, directory))
    }

    fn file(&self, file: OwnedFd, flags: OFlags) -> MediationOutcome {
        MediationOutcome::File {
            file,
            close_on_exec: flags.contains(OFlags::CLOEXEC),
        }
    }

    fn truncate(&self, address: u64, length: u64) -> MediationResult {
        let (start, path) = self.start(libc::AT_FDCWD as u64, address)?;
        let handle = open_handle(&start, path.as_os_str(), OFlags::empty())
            .map_err(|error| self.outcome_of_missing(&start, &path, error))?;
        let path = real(&handle).map_err(|_| MediationStop::Continue)?;
        if FileType::from_raw_mode(fstat(&handle)?.st_mode) != FileType::RegularFile {
            return Err(MediationStop::Continue);
        }
        if !self.is_temporary(&handle, &path) {
            self.inside(&path, false)?;
        }
        self.ask_change(&handle, &path)?;
        self.content_changes(&handle, &path)?;
        self.done(|| {
            let file = reopen(&handle, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            ftruncate(&file, length)
        })
    }
}

/// Returns a handle of the root directory.
pub(super) fn root() -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open("/", flags, Mode::empty())
}

/// Returns a handle of the file that a path leads to. Fails at links like `/proc/self/fd/1`, which lead
/// to another file here than for the caller.
pub(super) fn open_handle(
    start: &OwnedFd,
    path: &OsStr,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    openat2(
        start,
        path,
        flags,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )
}

/// Resolves the directory of a path, and returns the entry that the path names.
pub(super) fn place(start: &OwnedFd, path: &Path) -> rustix::io::Result<NameLocation> {
    let bytes = path.as_os_str().as_bytes();
    let trimmed = bytes.trim_ascii_end_slashes();
    let (above, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&trimmed[..=slash], &trimmed[slash + 1..]),
        None => (&b"."[..], trimmed),
    };
    if matches!(name, b"" | b"." | b"..") {
        return Err(Errno::INVAL);
    }
    let directory = open_handle(start, OsStr::from_bytes(above), OFlags::DIRECTORY)?;
    let name = OsStr::from_bytes(name).to_owned();
    Ok(NameLocation {
        path: real(&directory)?.join(&name),
        directory,
        name,
        slash: trimmed.len() < bytes.len(),
    })
}

trait TrailingSlashes {
    fn trim_ascii_end_slashes(&self) -> &Self;
}

impl TrailingSlashes for [u8] {
    fn trim_ascii_end_slashes(&self) -> &Self {
        let end = self.iter().rposition(|byte| *byte != b'/');
        end.map_or(&self[..0], |end| &self[..=end])
    }
}

pub(super) fn as_fd(mediator: &Mediator) -> std::os::fd::BorrowedFd<'_> {
    use std::os::fd::AsFd;
    mediator.listener.as_fd()
}
