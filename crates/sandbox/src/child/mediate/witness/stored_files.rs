//! The files that a witness stores, and their limits.

use std::{
    cell::{Cell, RefCell},
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    time::{Duration, Instant},
};

use haft_witness::{FileId, KeptFile, KeptWay, WitnessedEntry};
use rustix::{
    fs::{
        AtFlags, Mode, OFlags, ResolveFlags, SeekFrom, StatxFlags, copy_file_range, fstat,
        ftruncate, linkat, makedev, openat, openat2, seek, statx, unlinkat,
    },
    io::Errno,
    time::{ClockId, clock_gettime},
};

use super::super::{
    caller::reopen,
    perform::{NameLocation, open_handle},
};
use crate::{
    StorageLease, WitnessLimits,
    protocol::{self, GuardEvent},
};

/// The size of the blocks in which `stat` counts the allocated space.
const BLOCK: u64 = 512;

/// The minimum size of a copy that later commands share, in bytes. A smaller file is copied about as
/// fast as its copy is found.
const MIN_SHARED: u64 = 1 << 20;
/// The minimum age of the last change of a file whose copy is shared. File systems store times with
/// the resolution of the kernel's clock, which is less than this.
const SETTLED_SECONDS: i64 = 2;
/// The time after which a copy is reported as slow, and the bytes that are copied between checks.
const SLOW_COPY: Duration = Duration::from_millis(200);
const MAX_STEP: usize = 32 << 20;

/// The stored files of one command.
pub(super) struct StoredFiles {
    /// Their directory, in the mount namespace of our process.
    objects: OwnedFd,
    /// The directory of copies that the commands of the session share.
    copies: Option<OwnedFd>,
    limits: WitnessLimits,
    names: Cell<u64>,
    /// The bytes that may still be stored.
    lease: Cell<StorageLease>,
    /// The socket to our process, for reports of slow copies.
    socket: RefCell<UnixStream>,
}

/// The answer of our process about a file that could not be stored.
#[derive(Debug)]
pub(super) enum StorageDecision {
    /// It is copied regardless of the limits.
    Copy,
    /// The command continues without it, for this reason.
    Skip(String),
    /// The call fails.
    Refuse,
}

/// The reason why a file could not be stored.
#[derive(Debug)]
pub(super) struct StorageProblem {
    /// As in [`crate::UnstoredFile`].
    pub(super) link_bytes: Option<u64>,
    pub(super) copy_bytes: u64,
    pub(super) error: Option<String>,
    /// The reason in readable form.
    pub(super) text: String,
}

impl StorageProblem {
    fn from_error(copy_bytes: u64, text: String) -> Self {
        Self {
            link_bytes: None,
            copy_bytes,
            error: Some(text.clone()),
            text,
        }
    }

    fn from_limit(bytes: u64, setting: &str, limit: u64) -> Self {
        Self {
            link_bytes: None,
            copy_bytes: bytes,
            error: None,
            text: format!(
                "it has {}, and undo stores at most {} (setting `undo.{setting}`)",
                shown(bytes),
                shown(limit)
            ),
        }
    }
}

/// The reason why no link was made.
#[derive(Debug)]
pub(super) enum LinkProblem {
    /// It would exceed what may be stored.
    Limit,
    /// It is impossible for this file.
    Impossible,
}

impl StoredFiles {
    pub(super) fn new(
        objects: OwnedFd,
        copies: Option<OwnedFd>,
        limits: WitnessLimits,
        socket: UnixStream,
    ) -> Self {
        Self {
            objects,
            copies,
            limits,
            names: Cell::new(0),
            lease: Cell::new(StorageLease {
                copy_bytes: limits.copy_bytes,
                pin_bytes: limits.pin_bytes,
            }),
            socket: RefCell::new(socket),
        }
    }

    /// Adds bytes that may be stored.
    pub(super) fn add_lease(&self, more: StorageLease) {
        let lease = self.lease.get();
        self.lease.set(StorageLease {
            copy_bytes: lease.copy_bytes.saturating_add(more.copy_bytes),
            pin_bytes: lease.pin_bytes.saturating_add(more.pin_bytes),
        });
    }

    /// Stores a file that is about to lose this name: by a link, or by a copy if that is impossible.
    /// `root` is the recorded directory above it, and its handle. `must_copy`: it is copied regardless
    /// of the limits.
    pub(super) fn store_removed(
        &self,
        place: &NameLocation,
        entry: &WitnessedEntry,
        root: (&Path, &OwnedFd),
        must_copy: bool,
    ) -> Result<KeptFile, StorageProblem> {
        let link_bytes = match self.link_removed(place, entry, root) {
            Ok(stored) => return Ok(stored),
            Err(LinkProblem::Limit) => Some(entry.size),
            Err(LinkProblem::Impossible) => None,
        };
        let file = open_handle(&place.directory, &place.name, OFlags::NOFOLLOW);
        let file = file
            .map_err(|error| StorageProblem::from_error(entry.size, cannot_read(error.into())))?;
        self.copy(&file, &place.path, must_copy)
            .map_err(|problem| StorageProblem {
                link_bytes,
                ..problem
            })
    }

    /// Stores a file that is about to lose this name by a link.
    pub(super) fn link_removed(
        &self,
        place: &NameLocation,
        entry: &WitnessedEntry,
        root: (&Path, &OwnedFd),
    ) -> Result<KeptFile, LinkProblem> {
        let lease = self.lease.get();
        let left = lease.pin_bytes.checked_sub(entry.size);
        let left = left.ok_or(LinkProblem::Limit)?;
        let name = self.link(place, entry.id, root);
        let name = name.map_err(|_| LinkProblem::Impossible)?;
        self.lease.set(StorageLease {
            pin_bytes: left,
            ..lease
        });
        let way = KeptWay::Link;
        Ok(KeptFile { name, way })
    }

    /// Links a file into the directory of stored files. Both handles belong to the mount namespace of
    /// our process: a link across mounts is impossible, even if both show the same file system.
    fn link(
        &self,
        place: &NameLocation,
        id: FileId,
        (root, directory): (&Path, &OwnedFd),
    ) -> rustix::io::Result<String> {
        let parent = place.path.parent().ok_or(Errno::INVAL)?;
        let below = parent.strip_prefix(root).map_err(|_| Errno::INVAL)?;
        let below = match below.as_os_str().is_empty() {
            true => Path::new("."),
            false => below,
        };
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = openat2(directory, below, flags, Mode::empty(), resolve)?;
        let name = self.new_name();
        linkat(
            &parent,
            &*place.name,
            &self.objects,
            &*name,
            AtFlags::empty(),
        )?;
        // A mount of the sandbox may show another file than there is outside.
        if FileId::from_entry(&self.objects, OsStr::new(&name)) != Some(id) {
            let _ = unlinkat(&self.objects, &*name, AtFlags::empty());
            return Err(Errno::STALE);
        }
        Ok(name)
    }

    /// Stores a copy of a file. `must_copy`: regardless of the limits.
    pub(super) fn copy(
        &self,
        file: &OwnedFd,
        path: &Path,
        must_copy: bool,
    ) -> Result<KeptFile, StorageProblem> {
        let way = KeptWay::Copy;
        let found = fstat(file)
            .map_err(|error| StorageProblem::from_error(0, cannot_read(error.into())))?;
        let size = u64::try_from(found.st_size).unwrap_or(u64::MAX);
        let allocated = u64::try_from(found.st_blocks).unwrap_or(u64::MAX / BLOCK) * BLOCK;
        // A small file may be stored in its inode, without a block.
        let bytes = allocated.min(size);
        let shared = self.shared_copy(file, bytes);
        if let Some(name) = shared.as_ref().and_then(|shared| self.link_shared(shared)) {
            return Ok(KeptFile { name, way });
        }
        let lease = self.lease.get();
        let left = lease.copy_bytes.checked_sub(bytes);
        if bytes > self.limits.file_bytes && !must_copy {
            let limit = self.limits.file_bytes;
            return Err(StorageProblem::from_limit(bytes, "fileBytes", limit));
        }
        if left.is_none() && !must_copy {
            let limit = self.limits.copy_bytes;
            return Err(StorageProblem::from_limit(bytes, "copyBytes", limit));
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let source = reopen(file, flags, Mode::empty())
            .map_err(|error| StorageProblem::from_error(bytes, cannot_read(error.into())))?;
        let name = self.new_name();
        let copy = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            let target = openat(&self.objects, &*name, flags, mode)?;
            let mut progress = CopyProgress::new(|| self.report_slow(path, bytes));
            match allocated < size {
                true => copy_with_holes(&source, &target, size, &mut progress),
                false => copy_range(&source, &target, 0, size, &mut progress),
            }
        };
        if let Err(error) = copy() {
            let _ = unlinkat(&self.objects, &*name, AtFlags::empty());
            let text = format!("its content cannot be stored: {error}");
            return Err(StorageProblem::from_error(bytes, text));
        }
        if !must_copy {
            self.lease.set(StorageLease {
                copy_bytes: left.unwrap_or_default(),
                ..lease
            });
        }
        if let Some(shared) = &shared {
            self.share(&name, shared);
        }
        Ok(KeptFile { name, way })
    }

    /// Returns the name of a shared copy of this state of a file. `None` if copies are not shared,
    /// the file is small, or it changed so recently that a later change could have the same times.
    fn shared_copy(&self, file: &OwnedFd, bytes: u64) -> Option<String> {
        self.copies.as_ref()?;
        if bytes < MIN_SHARED {
            return None;
        }
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
        let found = statx(file, "", flags, wanted).ok()?;
        let changed = found.stx_ctime;
        let now = clock_gettime(ClockId::Realtime).tv_sec;
        if now.saturating_sub(changed.tv_sec) < SETTLED_SECONDS {
            return None;
        }
        let device = makedev(found.stx_dev_major, found.stx_dev_minor);
        let (born, modified) = (found.stx_btime, found.stx_mtime);
        Some(format!(
            "{device:x}-{:x}-{}.{}-{:x}-{}.{}-{}.{}",
            found.stx_ino,
            born.tv_sec,
            born.tv_nsec,
            found.stx_size,
            modified.tv_sec,
            modified.tv_nsec,
            changed.tv_sec,
            changed.tv_nsec
        ))
    }

    /// Stores a shared copy by a link. Returns the name of the link.
    fn link_shared(&self, shared: &str) -> Option<String> {
        let copies = self.copies.as_ref()?;
        let name = self.new_name();
        let flags = AtFlags::empty();
        linkat(copies, shared, &self.objects, &*name, flags).ok()?;
        Some(name)
    }

    /// Shares a copy with later commands.
    fn share(&self, name: &str, shared: &str) {
        if let Some(copies) = &self.copies {
            // Without it, the next command makes its own copy.
            let _ = linkat(&self.objects, name, copies, shared, AtFlags::empty());
        }
    }

    /// Reports to our process that storing a file takes long.
    fn report_slow(&self, path: &Path, bytes: u64) {
        let path = path.to_path_buf().into();
        let event = GuardEvent::SlowCopy { path, bytes };
        let _ = protocol::write(&mut self.socket.borrow_mut(), &event);
    }

    fn new_name(&self) -> String {
        self.names.set(self.names.get() + 1);
        self.names.get().to_string()
    }
}

/// The time since the start of a copy, with a report once it takes long.
struct CopyProgress<F> {
    started: Instant,
    report: Option<F>,
}

impl<F: Fn()> CopyProgress<F> {
    fn new(report: F) -> Self {
        Self {
            started: Instant::now(),
            report: Some(report),
        }
    }

    fn check(&mut self) {
        if self.started.elapsed() >= SLOW_COPY
            && let Some(report) = self.report.take()
        {
            report();
        }
    }
}

fn cannot_read(error: io::Error) -> String {
    format!("its content cannot be read: {error}")
}

/// Copies the parts of a file that have content; the others stay holes.
fn copy_with_holes(
    source: &OwnedFd,
    target: &OwnedFd,
    size: u64,
    progress: &mut CopyProgress<impl Fn()>,
) -> io::Result<()> {
    let mut end = 0;
    while end < size {
        let start = match seek(source, SeekFrom::Data(end)) {
            Err(Errno::NXIO) => break, // only a hole is left
            Err(Errno::INVAL) => end,  // the file system does not know
            found => found?,
        };
        end = seek(source, SeekFrom::Hole(start))
            .unwrap_or(size)
            .min(size);
        copy_range(source, target, start, end, progress)?;
    }
    Ok(ftruncate(target, size)?)
}

/// Copies a part of a file. File systems that can share blocks do so.
fn copy_range(
    source: &OwnedFd,
    target: &OwnedFd,
    start: u64,
    end: u64,
    progress: &mut CopyProgress<impl Fn()>,
) -> io::Result<()> {
    let (mut from, mut to) = (start, start);
    while from < end {
        progress.check();
        let left = usize::try_from(end - from)
            .unwrap_or(usize::MAX)
            .min(MAX_STEP);
        match copy_file_range(source, Some(&mut from), target, Some(&mut to), left) {
            Ok(0) => break, // it was truncated in the meantime
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return copy_bytes(source, target, from, end, progress);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Copies a part of a file by reading and writing it.
fn copy_bytes(
    source: &OwnedFd,
    target: &OwnedFd,
    start: u64,
    end: u64,
    progress: &mut CopyProgress<impl Fn()>,
) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let (source, target) = (
        File::from(source.as_fd().try_clone_to_owned()?),
        File::from(target.as_fd().try_clone_to_owned()?),
    );
    let mut buffer = vec![0; 256 << 10];
    let mut at = start;
    while at < end {
        progress.check();
        let left = usize::try_from(end - at).unwrap_or(usize::MAX);
        let length = left.min(buffer.len());
        match source.read_at(&mut buffer[..length], at)? {
            0 => break,
            count => {
                target.write_all_at(&buffer[..count], at)?;
                at += count as u64;
            }
        }
    }
    Ok(())
}

/// Returns a number of bytes for reading.
fn shown(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let mut unit = 0;
    let mut scale = 1;
    while bytes / scale >= 1024 && unit + 1 < UNITS.len() {
        scale *= 1024;
        unit += 1;
    }
    let tenths = bytes * 10 / scale;
    match tenths % 10 {
        0 => format!("{} {}", tenths / 10, UNITS[unit]),
        part => format!("{}.{part} {}", tenths / 10, UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn sizes_are_readable() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (256 << 20, "256 MiB"),
            (2_254_857_830, "2 GiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(shown(bytes), text);
        }
    }

    #[test]
    fn a_sparse_file_stays_sparse() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse");
        let file = File::create(&path).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(b"data", 32 << 20).unwrap();
        let objects = File::open(dir.path()).unwrap().into();
        let limits = WitnessLimits {
            copy_bytes: 1 << 20,
            file_bytes: 1 << 20,
            pin_bytes: 0,
            ..WitnessLimits::default()
        };
        let (socket, _ours) = UnixStream::pair().unwrap();
        let stored = StoredFiles::new(objects, None, limits, socket);
        let source = File::open(&path).unwrap().into();
        let name = stored.copy(&source, &path, false).unwrap().name;
        let copy = dir.path().join(name);
        assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(&path).unwrap());
        let blocks = |path: &Path| path.metadata().unwrap().blocks();
        assert_eq!(blocks(&copy), blocks(&path));
    }
}
