//! The state of a directory entry before its first change.

use std::{ffi::OsStr, os::fd::AsFd};

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, makedev, statx};
use serde::{Deserialize, Serialize};

use crate::OsBytes;

/// The identity of a file. Differs from that of a later file with the same inode number, if the file
/// system stores birth times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileId {
    /// The device number, as `stat` returns it.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// The birth time in seconds and nanoseconds, if the file system stores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born: Option<(i64, u32)>,
}

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WitnessedKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

/// A directory entry with its metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessedEntry {
    /// The identity of the file.
    pub id: FileId,
    /// Its kind.
    pub kind: WitnessedKind,
    /// The permission bits, at most 0o7777.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The size in bytes.
    pub size: u64,
    /// The number of hard links.
    pub links: u32,
    /// The modification time in nanoseconds since the epoch.
    pub mtime: i64,
    /// The target of a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<OsBytes>,
    /// The extended attributes, if they were read: those of an entry that only loses its name are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub xattrs: Vec<WitnessedXattr>,
}

/// An extended attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessedXattr {
    /// The name with its namespace.
    pub name: OsBytes,
    /// The value.
    pub value: OsBytes,
}

impl FileId {
    /// Returns the identity of a directory entry, without following symlinks, or of the file itself
    /// if the name is empty.
    pub fn from_entry(file: impl AsFd, name: &OsStr) -> Option<Self> {
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        Some(Self::from_statx(&stat(file, name, wanted)?))
    }

    fn from_statx(found: &Statx) -> Self {
        let has_birth = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        Self {
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            born: has_birth.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec)),
        }
    }
}

impl WitnessedEntry {
    /// Returns a directory entry, or the file itself if the name is empty, without the target of a
    /// link and without extended attributes. `None` if it does not exist.
    pub fn from_entry(file: impl AsFd, name: &OsStr) -> Option<Self> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let found = stat(file, name, wanted)?;
        let kind = match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::RegularFile => WitnessedKind::File,
            FileType::Directory => WitnessedKind::Directory,
            FileType::Symlink => WitnessedKind::Link,
            FileType::Fifo => WitnessedKind::Pipe,
            FileType::Socket => WitnessedKind::Socket,
            _ => WitnessedKind::Device,
        };
        let mtime = i128::from(found.stx_mtime.tv_sec) * 1_000_000_000
            + i128::from(found.stx_mtime.tv_nsec);
        Some(Self {
            id: FileId::from_statx(&found),
            kind,
            mode: u32::from(found.stx_mode) & 0o7777,
            uid: found.stx_uid,
            gid: found.stx_gid,
            size: found.stx_size,
            links: found.stx_nlink,
            // 64 bits are enough until the year 2262.
            mtime: i64::try_from(mtime).unwrap_or_default(),
            target: None,
            xattrs: Vec::new(),
        })
    }
}

fn stat(file: impl AsFd, name: &OsStr, wanted: StatxFlags) -> Option<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    statx(file, name, flags, wanted).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_told_from_another_of_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let directory = fs::File::open(dir.path()).unwrap();
        let path = dir.path().join("a");
        let of = || FileId::from_entry(&directory, OsStr::new("a"));
        assert_eq!(of(), None);
        fs::write(&path, "text").unwrap();
        let first = of();
        assert!(first.is_some());
        let open = fs::File::open(&path).unwrap();
        assert_eq!(FileId::from_entry(&open, OsStr::new("")), first);
        let entry = WitnessedEntry::from_entry(&directory, OsStr::new("a")).unwrap();
        assert_eq!(
            (entry.kind, entry.size, entry.links),
            (WitnessedKind::File, 4, 1)
        );
        assert_eq!(Some(entry.id), first);
        fs::write(dir.path().join("b"), "").unwrap();
        fs::rename(dir.path().join("b"), &path).unwrap();
        assert_ne!(of(), first);
    }
}
