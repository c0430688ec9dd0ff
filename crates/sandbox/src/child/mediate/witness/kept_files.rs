//! The files that a witness stores, and their limits.

use std::{
    cell::Cell,
    ffi::OsStr,
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use haft_witness::{FileId, KeptFile, KeptWay, WitnessedEntry};
use rustix::{
    fs::{
        AtFlags, Mode, OFlags, ResolveFlags, SeekFrom, copy_file_range, fstat, ftruncate, linkat,
        openat, openat2, seek, unlinkat,
    },
    io::Errno,
};

use super::super::{
    caller::reopen,
    perform::{NameLocation, open_handle},
};
use crate::WitnessLimits;

/// The size of the blocks in which `stat` counts the allocated space.
const BLOCK: u64 = 512;

/// The stored files of one command.
pub(super) struct KeptFiles {
    /// Their directory, in the mount namespace of our process.
    objects: OwnedFd,
    limits: WitnessLimits,
    names: Cell<u64>,
    copied: Cell<u64>,
    linked: Cell<u64>,
}

impl KeptFiles {
    pub(super) fn new(objects: OwnedFd, limits: WitnessLimits) -> Self {
        Self {
            objects,
            limits,
            names: Cell::new(0),
            copied: Cell::new(0),
            linked: Cell::new(0),
        }
    }

    /// Stores a file that is about to lose this name: by a link, or by a copy if that is impossible.
    /// `root` is the recorded directory above it, and its handle.
    pub(super) fn keep_removed(
        &self,
        place: &NameLocation,
        entry: &WitnessedEntry,
        root: (&Path, &OwnedFd),
    ) -> Result<KeptFile, String> {
        if let Some(kept) = self.link_removed(place, entry, root) {
            return Ok(kept);
        }
        let file = open_handle(&place.directory, &place.name, OFlags::NOFOLLOW);
        self.copy(&file.map_err(|error| cannot_read(error.into()))?)
    }

    /// Stores a file that is about to lose this name by a link. `None` if that is impossible.
    pub(super) fn link_removed(
        &self,
        place: &NameLocation,
        entry: &WitnessedEntry,
        root: (&Path, &OwnedFd),
    ) -> Option<KeptFile> {
        let linked = self.linked.get().saturating_add(entry.size);
        if linked > self.limits.pin_bytes {
            return None;
        }
        let name = self.link(place, entry.id, root).ok()?;
        self.linked.set(linked);
        let way = KeptWay::Link;
        Some(KeptFile { name, way })
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

    /// Copies the content of a file.
    pub(super) fn copy(&self, file: &OwnedFd) -> Result<KeptFile, String> {
        let found = fstat(file).map_err(|error| cannot_read(error.into()))?;
        let size = u64::try_from(found.st_size).unwrap_or(u64::MAX);
        let allocated = u64::try_from(found.st_blocks).unwrap_or(u64::MAX / BLOCK) * BLOCK;
        // A small file may be stored in its inode, without a block.
        let bytes = allocated.min(size);
        let copied = self.copied.get().saturating_add(bytes);
        let limit = |setting: &str, limit: u64| {
            format!(
                "it has {}, and undo stores at most {} (setting `undo.{setting}`)",
                shown(bytes),
                shown(limit)
            )
        };
        if bytes > self.limits.file_bytes {
            return Err(limit("fileBytes", self.limits.file_bytes));
        }
        if copied > self.limits.copy_bytes {
            return Err(limit("copyBytes", self.limits.copy_bytes));
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let source =
            reopen(file, flags, Mode::empty()).map_err(|error| cannot_read(error.into()))?;
        let name = self.new_name();
        let copy = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            let target = openat(&self.objects, &*name, flags, mode)?;
            match allocated < size {
                true => copy_with_holes(&source, &target, size),
                false => copy_range(&source, &target, 0, size),
            }
        };
        if let Err(error) = copy() {
            let _ = unlinkat(&self.objects, &*name, AtFlags::empty());
            return Err(format!("its content cannot be stored: {error}"));
        }
        self.copied.set(copied);
        let way = KeptWay::Copy;
        Ok(KeptFile { name, way })
    }

    fn new_name(&self) -> String {
        self.names.set(self.names.get() + 1);
        self.names.get().to_string()
    }
}

fn cannot_read(error: io::Error) -> String {
    format!("its content cannot be read: {error}")
}

/// Copies the parts of a file that have content; the others stay holes.
fn copy_with_holes(source: &OwnedFd, target: &OwnedFd, size: u64) -> io::Result<()> {
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
        copy_range(source, target, start, end)?;
    }
    Ok(ftruncate(target, size)?)
}

/// Copies a part of a file. File systems that can share blocks do so.
fn copy_range(source: &OwnedFd, target: &OwnedFd, start: u64, end: u64) -> io::Result<()> {
    let (mut from, mut to) = (start, start);
    while from < end {
        let left = usize::try_from(end - from).unwrap_or(usize::MAX);
        match copy_file_range(source, Some(&mut from), target, Some(&mut to), left) {
            Ok(0) => break, // it was truncated in the meantime
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return copy_bytes(source, target, from, end);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Copies a part of a file by reading and writing it.
fn copy_bytes(source: &OwnedFd, target: &OwnedFd, start: u64, end: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let (source, target) = (
        File::from(source.as_fd().try_clone_to_owned()?),
        File::from(target.as_fd().try_clone_to_owned()?),
    );
    let mut buffer = vec![0; 256 << 10];
    let mut at = start;
    while at < end {
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
        let kept = KeptFiles::new(objects, limits);
        let name = kept.copy(&File::open(&path).unwrap().into()).unwrap().name;
        let copy = dir.path().join(name);
        assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(&path).unwrap());
        let blocks = |path: &Path| path.metadata().unwrap().blocks();
        assert_eq!(blocks(&copy), blocks(&path));
    }
}
