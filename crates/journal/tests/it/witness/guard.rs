//! A model of the guard: it carries out calls on real files, and writes the witness log before.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use haft_witness::{
    FileId, KeptFile, KeptWay, LogLine, OsBytes, UnitFolder, WitnessedChange, WitnessedEntry,
    WitnessedKind, WitnessedXattr, encode,
};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, XattrFlags};

use haft_journal::WitnessUnit;

/// The end of a run: the process was killed.
#[derive(Debug)]
pub(crate) struct Killed;

/// When the process is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kill {
    Never,
    /// After this many lines; the call of the last line is not carried out.
    AfterLine(usize),
    /// In the middle of this line.
    InLine(usize),
}

pub(crate) struct TestGuard {
    log: File,
    objects: PathBuf,
    number: usize,
    kill: Kill,
    slots: HashSet<(FileId, OsString)>,
    created: HashSet<FileId>,
    /// Objects with a line for their metadata, and with a copy or a link.
    described: HashSet<FileId>,
    copied: HashSet<FileId>,
    linked: HashMap<FileId, usize>,
    stored: usize,
    /// The reason why contents are not stored.
    pub(crate) missing: Option<String>,
}

/// The time in nanoseconds; later calls get a later one.
fn now() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    u64::try_from(now.as_nanos()).unwrap()
}

type Carried = Result<(), Killed>;

impl TestGuard {
    pub(crate) fn new(unit: &WitnessUnit, kill: Kill) -> Self {
        Self {
            log: unit.log().try_clone().unwrap(),
            objects: UnitFolder::open(unit.folder()).objects(),
            number: 0,
            kill,
            slots: HashSet::new(),
            created: HashSet::new(),
            described: HashSet::new(),
            copied: HashSet::new(),
            linked: HashMap::new(),
            stored: 0,
            missing: None,
        }
    }

    fn line(&mut self, change: WitnessedChange) -> Carried {
        self.number += 1;
        let line = encode(&LogLine {
            time: now(),
            number: self.number as u64,
            change,
        })
        .unwrap();
        match self.kill {
            Kill::InLine(at) if at == self.number => {
                self.log.write_all(&line[..line.len() / 2]).unwrap();
                return Err(Killed);
            }
            _ => self.log.write_all(&line).unwrap(),
        }
        match self.kill {
            Kill::AfterLine(at) if at == self.number => Err(Killed),
            _ => Ok(()),
        }
    }

    pub(crate) fn end(&mut self) -> Carried {
        self.line(WitnessedChange::End)
    }

    fn entry(path: &Path, with_xattrs: bool) -> Option<WitnessedEntry> {
        let mut entry = WitnessedEntry::from_entry(CWD, path.as_os_str())?;
        if entry.kind == WitnessedKind::Link {
            let target = fs::read_link(path).unwrap();
            entry.target = Some(target.as_path().into());
        }
        if with_xattrs && matches!(entry.kind, WitnessedKind::File | WitnessedKind::Directory) {
            entry.xattrs = xattrs(path)
                .into_iter()
                .map(|(name, value)| WitnessedXattr {
                    name: OsBytes(name),
                    value: OsBytes(value),
                })
                .collect();
        }
        Some(entry)
    }

    fn id(path: &Path) -> Option<FileId> {
        FileId::from_entry(CWD, path.as_os_str())
    }

    fn is_created(&self, path: &Path) -> bool {
        Self::id(path).is_some_and(|id| self.created.contains(&id))
    }

    fn name(&mut self, path: &Path) -> Carried {
        let directory = Self::id(path.parent().unwrap()).unwrap();
        let key = (directory, path.file_name().unwrap().to_owned());
        if self.created.contains(&directory) || !self.slots.insert(key) {
            return Ok(());
        }
        let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let entry = Self::entry(path, is_directory);
        let path = path.into();
        self.line(WitnessedChange::Name { path, entry })
    }

    fn metadata(&mut self, path: &Path) -> Carried {
        let Some(id) = Self::id(path) else {
            return Ok(());
        };
        if self.created.contains(&id) || !self.described.insert(id) {
            return Ok(());
        }
        self.object(path, true, None)
    }

    fn object(&mut self, path: &Path, with_xattrs: bool, kept: Option<KeptFile>) -> Carried {
        let entry = Self::entry(path, with_xattrs).unwrap();
        let missing = self.missing.clone().filter(|_| kept.is_none());
        self.line(WitnessedChange::Object {
            path: path.into(),
            other_path: self.is_created(path.parent().unwrap()),
            entry,
            kept,
            missing,
        })
    }

    fn next_name(&mut self) -> String {
        self.stored += 1;
        format!("o{}", self.stored)
    }

    fn content(&mut self, path: &Path) -> Carried {
        let id = Self::id(path).unwrap();
        if self.created.contains(&id) || !self.copied.insert(id) {
            return Ok(());
        }
        let with_xattrs = self.described.insert(id);
        let kept = match self.missing {
            Some(_) => None,
            None => {
                let name = self.next_name();
                fs::copy(path, self.objects.join(&name)).unwrap();
                Some(KeptFile {
                    name,
                    way: KeptWay::Copy,
                })
            }
        };
        self.object(path, with_xattrs, kept)
    }

    fn loses_name(&mut self, path: &Path) -> Carried {
        let Some(entry) = Self::entry(path, false) else {
            return Ok(());
        };
        if self.created.contains(&entry.id) || entry.kind != WitnessedKind::File {
            return match entry.kind {
                WitnessedKind::Directory => self.metadata(path),
                _ => Ok(()),
            };
        }
        if self.copied.contains(&entry.id) && entry.links == 1 {
            return Ok(());
        }
        if self.missing.is_some() {
            return self.object(path, false, None);
        }
        *self.linked.entry(entry.id).or_default() += 1;
        let name = self.next_name();
        fs::hard_link(path, self.objects.join(&name)).unwrap();
        let way = KeptWay::Link;
        self.object(path, false, Some(KeptFile { name, way }))
    }

    fn born(&mut self, path: &Path) {
        self.created.insert(Self::id(path).unwrap());
    }

    pub(crate) fn write(&mut self, path: &Path, content: &[u8], options: &OpenOptions) -> Carried {
        let is_new = !path.exists();
        match is_new {
            true => self.name(path)?,
            false => self.content(path)?,
        }
        let mut file = options.open(path).unwrap();
        if is_new {
            self.born(path);
        }
        file.write_all(content).unwrap();
        Ok(())
    }

    /// Opens with `O_CREAT` and `O_TRUNC`.
    pub(crate) fn put(&mut self, path: &Path, content: &[u8]) -> Carried {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        self.write(path, content, &options)
    }

    pub(crate) fn append(&mut self, path: &Path, content: &[u8]) -> Carried {
        self.write(path, content, OpenOptions::new().append(true).create(true))
    }

    pub(crate) fn truncate(&mut self, path: &Path, size: u64) -> Carried {
        self.content(path)?;
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(size).unwrap();
        Ok(())
    }

    pub(crate) fn mkdir(&mut self, path: &Path) -> Carried {
        self.name(path)?;
        fs::create_dir(path).unwrap();
        self.born(path);
        Ok(())
    }

    pub(crate) fn symlink(&mut self, target: &str, path: &Path) -> Carried {
        self.name(path)?;
        symlink(target, path).unwrap();
        self.born(path);
        Ok(())
    }

    pub(crate) fn mkfifo(&mut self, path: &Path) -> Carried {
        self.name(path)?;
        rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        self.born(path);
        Ok(())
    }

    pub(crate) fn unlink(&mut self, path: &Path) -> Carried {
        self.name(path)?;
        self.loses_name(path)?;
        fs::remove_file(path).unwrap();
        Ok(())
    }

    pub(crate) fn rmdir(&mut self, path: &Path) -> Carried {
        self.name(path)?;
        self.loses_name(path)?;
        fs::remove_dir(path).unwrap();
        Ok(())
    }

    pub(crate) fn remove_all(&mut self, path: &Path) -> Carried {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            match path.symlink_metadata().unwrap().is_dir() {
                true => self.remove_all(&path)?,
                false => self.unlink(&path)?,
            }
        }
        self.rmdir(path)
    }

    /// Creates a file without a name first.
    pub(crate) fn link_nameless(&mut self, path: &Path, content: &[u8]) -> Carried {
        self.name(path)?;
        fs::write(path, content).unwrap();
        self.born(path);
        Ok(())
    }

    pub(crate) fn link(&mut self, old: &Path, new: &Path) -> Carried {
        // The old name must be known, because the file may be changed through the new one.
        if !self.is_created(old) && !old.symlink_metadata().unwrap().is_symlink() {
            self.metadata(old)?;
        }
        self.name(new)?;
        fs::hard_link(old, new).unwrap();
        Ok(())
    }

    /// Fails without a line if the kernel would refuse it.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> Carried {
        self.name(from)?;
        self.name(to)?;
        if Self::id(from) != Self::id(to) {
            self.loses_name(to)?;
        }
        let entry = Self::entry(from, false).unwrap();
        if entry.kind == WitnessedKind::Directory {
            self.line(WitnessedChange::Moved {
                from: from.into(),
                to: to.into(),
                id: entry.id,
                exchange: false,
            })?;
        }
        fs::rename(from, to).unwrap();
        Ok(())
    }

    pub(crate) fn exchange(&mut self, one: &Path, other: &Path) -> Carried {
        self.name(one)?;
        self.name(other)?;
        let entries = [one, other].map(|path| Self::entry(path, false).unwrap());
        let is_directory = |entry: &WitnessedEntry| entry.kind == WitnessedKind::Directory;
        if entries.iter().any(is_directory) {
            self.line(WitnessedChange::Moved {
                from: one.into(),
                to: other.into(),
                id: entries[0].id,
                exchange: true,
            })?;
        }
        rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        Ok(())
    }

    pub(crate) fn chmod(&mut self, path: &Path, mode: u32) -> Carried {
        self.metadata(path)?;
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        Ok(())
    }

    pub(crate) fn setxattr(&mut self, path: &Path, name: &str, value: &[u8]) -> Carried {
        self.metadata(path)?;
        // Not every file system has user attributes.
        let _ = rustix::fs::lsetxattr(path, name, value, XattrFlags::empty());
        Ok(())
    }

    pub(crate) fn removexattr(&mut self, path: &Path, name: &str) -> Carried {
        self.metadata(path)?;
        let _ = rustix::fs::lremovexattr(path, name);
        Ok(())
    }
}

/// Returns the user's extended attributes of a file or directory, sorted.
pub(crate) fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 1 << 12];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names) else {
        return Vec::new();
    };
    let names = names[..length].split(|&byte| byte == 0);
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = names
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 1 << 12];
            let name_text = std::ffi::OsStr::from_bytes(name);
            let length = rustix::fs::lgetxattr(path, name_text, &mut value).unwrap_or_default();
            value.truncate(length);
            (name.to_vec(), value)
        })
        .collect();
    all.sort();
    all
}

/// Returns whether a rename is possible: the kernel refuses others.
pub(crate) fn can_rename(from: &Path, to: &Path) -> bool {
    let (Ok(one), other) = (from.symlink_metadata(), to.symlink_metadata().ok()) else {
        return false;
    };
    let is_empty = || fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_none());
    let kinds_fit = match other {
        None => true,
        Some(other) if one.is_dir() => other.is_dir() && is_empty(),
        Some(other) => !other.is_dir(),
    };
    from != to && kinds_fit && !to.starts_with(from)
}
