//! Reads the directories of a tree: their entries and ignore files. From then on they are watched.
//!
//! A directory is watched before it is listed, so that a concurrent change is reported as an event.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::fs::fstatfs;
use rustix::io::Errno;

use super::file_fingerprint::FileFingerprint;
use super::watch::{WatchNumber, Watcher};
use crate::handle::{Directory, EntryKind, kind_of};
use crate::skip::{Skip, SkipLog, SkipReason};
use crate::walk::{
    IgnoreFilesPresent, IgnoreLevel, IgnoreRules, IgnoreVerdict, is_version_control,
};

/// The maximum number of entries in a tree. Larger trees are not indexed.
pub(crate) const MAX_ENTRIES: usize = 600_000;

/// File systems on which the kernel reports every change: those that only this machine writes to.
const LOCAL: [u64; 9] = [
    0xef53,      // ext2, ext3, ext4
    0x9123_683e, // btrfs
    0x5846_5342, // xfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0xf2f5_2010, // f2fs
    0x2fc1_2fc1, // zfs
    0xca45_1a4e, // bcachefs
    0x794c_7630, // overlayfs: changes below its own mount are undefined, by its documentation
];

/// The reason why a tree is not indexed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TreeRefusal {
    TooLarge,
    /// A part of the tree is on a file system that other machines may write to.
    NotLocal,
    Stopped,
    Failed,
}

impl TreeRefusal {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge => "it has too many entries",
            Self::NotLocal => "part of it is on a file system that others may change",
            Self::Stopped | Self::Failed => "it could not be read or watched",
        }
    }
}

/// A directory that was read.
pub(crate) struct LoadedDirectory {
    /// The index of the parent directory in the list, and the index of this directory among the
    /// parent's entries. `None` for the first.
    pub(crate) above: Option<(usize, usize)>,
    /// The path relative to the root of the tree.
    pub(crate) path: PathBuf,
    pub(crate) mark: FileFingerprint,
    pub(crate) watch: Option<WatchNumber>,
    pub(crate) level: Option<Arc<IgnoreLevel>>,
    pub(crate) skips: Vec<Skip>,
    /// Sorted by name.
    pub(crate) entries: Vec<LoadedEntry>,
}

pub(crate) struct LoadedEntry {
    pub(crate) name: OsString,
    pub(crate) kind: EntryKind,
    pub(crate) verdict: IgnoreVerdict,
    /// For a directory that is entered, the fingerprint in its [`LoadedDirectory`] applies instead.
    pub(crate) mark: FileFingerprint,
}

/// The parameters of reading a tree.
pub(crate) struct TreeLoader<'a> {
    pub(crate) top: &'a Directory,
    pub(crate) root: &'a Path,
    pub(crate) rules: &'a IgnoreRules,
    /// `None` if everything is checked before each answer instead.
    pub(crate) watcher: Option<&'a Watcher>,
    pub(crate) threads: usize,
    pub(crate) stop: &'a (dyn Fn() -> bool + Sync),
    pub(crate) ran_out_of_watches: &'a AtomicBool,
    pub(crate) local: LocalDevice,
}

/// The last device that was found to be local: nearly all directories are on the same device.
#[derive(Debug)]
pub(crate) struct LocalDevice(AtomicU64);

impl LocalDevice {
    pub(crate) fn unknown() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    fn is(&self, device: u64) -> bool {
        self.0.load(Ordering::Relaxed) == device
    }

    fn set(&self, device: u64) {
        self.0.store(device, Ordering::Relaxed);
    }
}

struct ReadTask {
    above: Option<(usize, usize)>,
    path: PathBuf,
    level: Option<Arc<IgnoreLevel>>,
}

impl TreeLoader<'_> {
    /// Reads a directory and everything below it, level by level.
    pub(crate) fn load(
        &self,
        path: &Path,
        level: Option<Arc<IgnoreLevel>>,
    ) -> Result<Vec<LoadedDirectory>, TreeRefusal> {
        let mut loaded: Vec<LoadedDirectory> = Vec::new();
        let mut tasks = vec![ReadTask {
            above: None,
            path: path.to_path_buf(),
            level,
        }];
        let mut entries = 0;
        while !tasks.is_empty() {
            let start = loaded.len();
            for directory in self.load_all(&tasks)?.into_iter().flatten() {
                entries += directory.entries.len() + 1;
                loaded.push(directory);
            }
            if entries > MAX_ENTRIES {
                return Err(TreeRefusal::TooLarge);
            }
            tasks.clear();
            for (number, directory) in loaded.iter().enumerate().skip(start) {
                let inside = directory.entries.iter().enumerate();
                let inside = inside.filter(|(_, entry)| entry.is_entered());
                tasks.extend(inside.map(|(place, entry)| ReadTask {
                    above: Some((number, place)),
                    path: directory.path.join(&entry.name),
                    level: directory.level.clone(),
                }));
            }
        }
        Ok(loaded)
    }

    fn load_all(&self, tasks: &[ReadTask]) -> Result<Vec<Option<LoadedDirectory>>, TreeRefusal> {
        if self.threads <= 1 || tasks.len() < 16 {
            return tasks.iter().map(|task| self.read(task)).collect();
        }
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<_>> = Mutex::new(Vec::with_capacity(tasks.len()));
        let work = || {
            let mut own = Vec::new();
            while let Some((at, task)) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                tasks.get(at).map(|task| (at, task))
            } {
                own.push((at, self.read(task)));
            }
            results
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(own);
        };
        thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(work);
            }
            work();
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Reads one directory. Returns `None` if it no longer exists or was replaced by something
    /// else.
    fn read(&self, task: &ReadTask) -> Result<Option<LoadedDirectory>, TreeRefusal> {
        if (self.stop)() {
            return Err(TreeRefusal::Stopped);
        }
        let path = self.root.join(&task.path);
        let mut loaded = LoadedDirectory {
            above: task.above,
            path: task.path.clone(),
            mark: FileFingerprint::default(),
            watch: None,
            level: task.level.clone(),
            skips: Vec::new(),
            entries: Vec::new(),
        };
        let unreadable = |error: &io::Error| Skip {
            path: Some(path.clone()),
            reason: SkipReason::Unreadable {
                message: error.to_string(),
            },
        };
        let directory = match self.top.enter_below(&task.path) {
            Ok(directory) => directory,
            Err(error) if is_unsupported(&error) => return Err(TreeRefusal::Failed),
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => {
                loaded.skips.push(unreadable(&error));
                return Ok(Some(loaded));
            }
        };
        let found = directory.stat().map_err(|_| TreeRefusal::Failed)?;
        loaded.mark = FileFingerprint::from_stat(&found);
        if !self.local.is(loaded.mark.device) {
            check_local(&directory)?;
            self.local.set(loaded.mark.device);
        }
        if let Some(watcher) = self.watcher {
            match watcher.watch(&directory) {
                Ok(watch) => loaded.watch = Some(watch),
                Err(error) if error.raw_os_error() == Some(Errno::NOSPC.raw_os_error()) => {
                    self.ran_out_of_watches.store(true, Ordering::Relaxed);
                }
                Err(_) => return Err(TreeRefusal::Failed),
            }
        }
        let mut names = Vec::new();
        let mut telling = IgnoreFilesPresent::default();
        let listed = directory.list(|name, kind| {
            telling.record(&name);
            names.push((name, kind));
        });
        if let Err(error) = listed {
            loaded.skips.push(unreadable(&error));
        }
        let skips = SkipLog::default();
        let level = task.level.clone();
        loaded.level = self.rules.enter(&directory, &path, &telling, level, &skips);
        loaded.skips.extend(skips.into_all());
        names.sort_unstable_by(|(one, _), (two, _)| one.cmp(two));
        let level = loaded.level.as_deref();
        for (name, kind) in names {
            // A `stat` of a directory that is opened next would add nothing.
            let is_entered = kind == EntryKind::Directory && !is_version_control(&name);
            let verdict = is_entered.then(|| self.verdict(&name, kind, &path, level));
            let entry = match verdict.filter(|verdict| *verdict != IgnoreVerdict::Ignored) {
                Some(verdict) => Some(LoadedEntry {
                    name,
                    kind,
                    verdict,
                    mark: FileFingerprint::default(),
                }),
                None => self.entry(&directory, name, &path, level)?,
            };
            loaded.entries.extend(entry);
        }
        Ok(Some(loaded))
    }

    /// Reads one name of a directory. Returns `None` if it no longer exists or is never searched.
    /// If the `stat` fails for another reason, the tree is refused, because a walk would report
    /// that entry.
    pub(crate) fn entry(
        &self,
        directory: &Directory,
        name: OsString,
        path: &Path,
        level: Option<&IgnoreLevel>,
    ) -> Result<Option<LoadedEntry>, TreeRefusal> {
        if is_version_control(&name) {
            return Ok(None);
        }
        let found = directory.try_stat_entry(&name);
        let found = found.map_err(|_| TreeRefusal::Failed)?;
        Ok(found.and_then(|found| {
            let kind = kind_of(&found)?;
            Some(LoadedEntry {
                verdict: self.verdict(&name, kind, path, level),
                name,
                kind,
                mark: FileFingerprint::from_stat(&found),
            })
        }))
    }

    /// Returns the decision of the ignore files about a name in the directory at this path.
    fn verdict(
        &self,
        name: &OsStr,
        kind: EntryKind,
        path: &Path,
        level: Option<&IgnoreLevel>,
    ) -> IgnoreVerdict {
        let is_dir = kind == EntryKind::Directory;
        match level {
            Some(_) => self.rules.by_files(&path.join(name), is_dir, level),
            // No ignore file applies.
            None => IgnoreVerdict::Unknown,
        }
    }
}

fn check_local(directory: &Directory) -> Result<(), TreeRefusal> {
    let found = fstatfs(directory.fd()).map_err(|_| TreeRefusal::Failed)?;
    match is_local(found.f_type as u64) {
        true => Ok(()),
        false => Err(TreeRefusal::NotLocal),
    }
}

/// Returns whether only this machine writes to a file system of this type.
pub(crate) fn is_local(file_system: u64) -> bool {
    LOCAL.contains(&(file_system & 0xffff_ffff))
}

impl LoadedEntry {
    pub(crate) fn is_entered(&self) -> bool {
        self.kind == EntryKind::Directory && self.verdict != IgnoreVerdict::Ignored
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    [
        Errno::NOSYS,
        Errno::PERM,
        Errno::INVAL,
        Errno::MFILE,
        Errno::NFILE,
    ]
    .iter()
    .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn is_missing(error: &io::Error) -> bool {
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::XDEV]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
