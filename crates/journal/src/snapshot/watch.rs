//! Which directories something happened in, as the kernel reports it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use std::{mem::MaybeUninit, os::fd::OwnedFd};

#[cfg(target_os = "linux")]
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};

/// Watches directories, not what is below them.
#[derive(Debug)]
pub(crate) struct DirectoryWatch {
    #[cfg(target_os = "linux")]
    queue: OwnedFd,
    paths: HashMap<i32, PathBuf>,
}

#[cfg(target_os = "linux")]
impl DirectoryWatch {
    /// `None`: this system does not report it, or no more.
    pub(crate) fn new() -> Option<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self {
            queue,
            paths: HashMap::new(),
        })
    }

    /// `false`: it cannot be watched. One that is gone need not be.
    pub(crate) fn add(&mut self, path: &Path) -> bool {
        let wanted = WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        match inotify::add_watch(&self.queue, path, wanted) {
            // One that was moved here keeps its number.
            Ok(number) => {
                self.paths.insert(number, path.to_path_buf());
                true
            }
            Err(error) => matches!(error, Errno::NOENT | Errno::NOTDIR),
        }
    }

    /// The directories in which something happened since this was asked last. `None`: more than could
    /// be reported.
    pub(crate) fn changed(&mut self) -> Option<HashSet<PathBuf>> {
        let mut changed = HashSet::new();
        let mut buffer = vec![MaybeUninit::uninit(); 64 << 10];
        let mut events = inotify::Reader::new(&self.queue, &mut buffer);
        let mut lost = false;
        loop {
            match events.next() {
                Ok(event) => {
                    lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    if let Some(path) = self.paths.get(&event.wd())
                        && !changed.contains(path)
                    {
                        changed.insert(path.clone());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => break,
                Err(_) => return None,
            }
        }
        (!lost).then_some(changed)
    }

    /// Forgets directories that are gone.
    pub(crate) fn forget(&mut self, is_gone: &dyn Fn(&Path) -> bool) {
        let gone: Vec<i32> = self
            .paths
            .iter()
            .filter(|(_, path)| is_gone(path))
            .map(|(number, _)| *number)
            .collect();
        for number in gone {
            self.paths.remove(&number);
            // The kernel has done so already if it was removed.
            let _ = inotify::remove_watch(&self.queue, number);
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl DirectoryWatch {
    /// Nothing is reported here.
    pub(crate) fn new() -> Option<Self> {
        None
    }

    pub(crate) fn add(&mut self, _: &Path) -> bool {
        false
    }

    pub(crate) fn changed(&mut self) -> Option<HashSet<PathBuf>> {
        None
    }

    pub(crate) fn forget(&mut self, _: &dyn Fn(&Path) -> bool) {
        self.paths.clear();
    }
}
