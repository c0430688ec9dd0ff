//! Kernel notifications about changes in directories (inotify).
//!
//! Directories are watched one by one. A file with hard links may be written under a name in
//! another directory, which the watch of the first directory does not report. So the file itself is
//! watched, too. Some directories cannot be watched: those over the limits, on file systems of
//! other machines, or without read permission. [`TreeWatch::add_directory`] returns `false` for
//! them.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use std::{
    mem::MaybeUninit,
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

#[cfg(target_os = "linux")]
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};

/// The maximum number of watched directories and files; the others are listed every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchLimits {
    pub(crate) directories: usize,
    pub(crate) files: usize,
}

/// The maximum number of watched files: the kernel holds each watched file in memory.
const MAX_FILES: usize = 1 << 16;

impl WatchLimits {
    /// Returns a part of the watches that the user may have, so that editors get enough, too.
    pub(crate) fn from_system() -> Self {
        let text = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
        let all = text.ok().and_then(|text| text.trim().parse().ok());
        let all: usize = all.unwrap_or(8192);
        Self {
            directories: all / 2,
            files: (all / 3).min(MAX_FILES),
        }
    }
}

#[derive(Debug)]
pub(crate) struct TreeWatch {
    #[cfg(target_os = "linux")]
    queue: OwnedFd,
    #[cfg(target_os = "linux")]
    places: Mutex<WatchedPlaces>,
    #[cfg(target_os = "linux")]
    limits: WatchLimits,
}

/// Maps the kernel's watch numbers to paths and back.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
struct WatchedPlaces {
    directories: HashMap<i32, Arc<Path>>,
    numbers: HashMap<Arc<Path>, i32>,
    /// Watched files, with the directories that contain a name of them.
    files: HashMap<i32, Vec<Arc<Path>>>,
    files_of: HashMap<Arc<Path>, Vec<i32>>,
}

#[cfg(target_os = "linux")]
const OF_FILES: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::DONT_FOLLOW);

#[cfg(target_os = "linux")]
const OF_DIRECTORIES: WatchFlags = OF_FILES
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR);

#[cfg(target_os = "linux")]
impl TreeWatch {
    /// Returns `None` if this system has no notifications or no instance is left.
    pub(crate) fn new(limits: WatchLimits) -> Option<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self {
            queue,
            places: Mutex::default(),
            limits,
        })
    }

    fn places(&self) -> MutexGuard<'_, WatchedPlaces> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a directory; call it before the directory is listed. `false`: it must be listed
    /// every time.
    pub(crate) fn add_directory(&self, path: &Path) -> bool {
        let has_room = |places: &WatchedPlaces| {
            places.directories.len() < self.limits.directories || places.numbers.contains_key(path)
        };
        if !has_room(&self.places()) || is_of_another_machine(path) {
            return false;
        }
        let Ok(number) = inotify::add_watch(&self.queue, path, OF_DIRECTORIES) else {
            return false;
        };
        let mut places = self.places();
        // Another thread may have used the last watch in the meantime.
        if !has_room(&places) && !places.directories.contains_key(&number) {
            let _ = inotify::remove_watch(&self.queue, number);
            return false;
        }
        let path: Arc<Path> = Arc::from(path);
        // A directory that was moved here keeps its number.
        places.directories.insert(number, Arc::clone(&path));
        let old = places.numbers.insert(Arc::clone(&path), number);
        if let Some(old) = old.filter(|old| *old != number)
            && places.directories.get(&old) == Some(&path)
        {
            places.directories.remove(&old);
            let _ = inotify::remove_watch(&self.queue, old);
        }
        true
    }

    /// Watches exactly these files of a directory for writes under other names; call it before
    /// their stamps are read. `false`: the directory must be listed every time.
    pub(crate) fn set_files<'a>(
        &self,
        directory: &Path,
        names: impl Iterator<Item = &'a std::ffi::OsStr>,
    ) -> bool {
        let mut numbers = Vec::new();
        let mut all = true;
        for name in names {
            let room = self.places().files.len() + numbers.len() < self.limits.files;
            let added = room
                .then(|| inotify::add_watch(&self.queue, directory.join(name), OF_FILES))
                .transpose();
            match added {
                Ok(Some(number)) => numbers.push(number),
                Ok(None) => {
                    all = false;
                    break;
                }
                // The removal of a file is reported for its directory.
                Err(Errno::NOENT) => {}
                Err(_) => {
                    all = false;
                    break;
                }
            }
        }
        let mut places = self.places();
        let before = places.files_of.remove(directory).unwrap_or_default();
        if numbers.is_empty() && before.is_empty() {
            return all;
        }
        let directory: Arc<Path> = Arc::from(directory);
        for number in &numbers {
            let directories = places.files.entry(*number).or_default();
            if !directories.contains(&directory) {
                directories.push(Arc::clone(&directory));
            }
        }
        let kept: HashSet<i32> = numbers.iter().copied().collect();
        self.drop_files(
            &mut places,
            &directory,
            before.into_iter().filter(|one| !kept.contains(one)),
        );
        if !numbers.is_empty() {
            places.files_of.insert(directory, numbers);
        }
        all
    }

    fn drop_files(
        &self,
        places: &mut WatchedPlaces,
        directory: &Path,
        numbers: impl Iterator<Item = i32>,
    ) {
        for number in numbers {
            let Some(directories) = places.files.get_mut(&number) else {
                continue;
            };
            directories.retain(|one| **one != *directory);
            if directories.is_empty() {
                places.files.remove(&number);
                // If the file was removed, the kernel has already done this.
                let _ = inotify::remove_watch(&self.queue, number);
            }
        }
    }

    /// Returns the directories with changes since the last call. `None`: events were lost.
    pub(crate) fn changed(&self) -> Option<HashSet<Arc<Path>>> {
        let mut changed = HashSet::new();
        let mut numbers = HashSet::new();
        let mut buffer = vec![MaybeUninit::uninit(); 64 << 10];
        let mut events = inotify::Reader::new(&self.queue, &mut buffer);
        let mut lost = false;
        loop {
            match events.next() {
                Ok(event) => {
                    lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    numbers.insert(event.wd());
                }
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => break,
                Err(_) => return None,
            }
        }
        let places = self.places();
        for number in numbers {
            changed.extend(places.directories.get(&number).cloned());
            changed.extend(places.files.get(&number).into_iter().flatten().cloned());
        }
        (!lost).then_some(changed)
    }

    /// Stops watching a directory that is no longer at this path.
    pub(crate) fn unwatch(&self, path: &Path) {
        let mut places = self.places();
        if let Some(number) = places.numbers.remove(path)
            && places
                .directories
                .get(&number)
                .is_some_and(|now| **now == *path)
        {
            places.directories.remove(&number);
            // If the directory was removed, the kernel has already done this.
            let _ = inotify::remove_watch(&self.queue, number);
        }
        let files = places.files_of.remove(path).unwrap_or_default();
        self.drop_files(&mut places, path, files.into_iter());
    }
}

/// Returns whether the kernel does not report changes on this file system, because other machines
/// or programs make them.
#[cfg(target_os = "linux")]
fn is_of_another_machine(path: &Path) -> bool {
    // NFS, SMB, CIFS, SMB2, 9p, Ceph, AFS, Coda, FUSE, VirtualBox
    const MAGIC: [u32; 10] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x0102_1997,
        0x00c3_6400,
        0x5346_414f,
        0x7375_7245,
        0x6573_5546,
        0x786f_4256,
    ];
    rustix::fs::statfs(path).is_ok_and(|found| MAGIC.contains(&(found.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
impl TreeWatch {
    /// Notifications are not supported on this system.
    pub(crate) fn new(_: WatchLimits) -> Option<Self> {
        None
    }

    pub(crate) fn add_directory(&self, _: &Path) -> bool {
        false
    }

    pub(crate) fn set_files<'a>(
        &self,
        _: &Path,
        _: impl Iterator<Item = &'a std::ffi::OsStr>,
    ) -> bool {
        false
    }

    pub(crate) fn changed(&self) -> Option<HashSet<Arc<Path>>> {
        None
    }

    pub(crate) fn unwatch(&self, _: &Path) {}
}
