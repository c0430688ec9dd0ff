//! Change events from the kernel (inotify), read only when they are needed.
//!
//! The kernel queues an event within the system call that makes the change. So draining the queue
//! shows every change that was finished before: no thread reads events, and no event is delayed.
//! `tree` lists what the kernel does not report; `watch_overflow` closes a queue that grows too
//! large.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::watch_overflow::FloodGuard;
use crate::handle::Directory;

const OF_DIRECTORIES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// A watch on a file ends with its first event.
const OF_FILES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::ONESHOT);

/// The kernel's number for a watched directory or file.
pub(crate) type WatchNumber = i32;

/// An event queue with its watched directories and files.
#[derive(Debug)]
pub(crate) struct Watcher {
    queue: Arc<EventQueue>,
    /// Polls as `PRI` after a mount or an unmount.
    mounts: File,
    /// `None` if its thread could not be started: then all events are queued, however many there
    /// are.
    _flood: Option<FloodGuard>,
}

/// The kernel's queue, until it is closed. Closing it ends all its watches.
#[derive(Debug)]
pub(crate) struct EventQueue(RwLock<Option<OwnedFd>>);

impl EventQueue {
    fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self(RwLock::new(Some(queue))))
    }

    pub(crate) fn with<T>(
        &self,
        call: impl FnOnce(&OwnedFd) -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        let queue = self.0.read().unwrap_or_else(PoisonError::into_inner);
        call(queue.as_ref().ok_or(Errno::BADF)?)
    }

    pub(crate) fn end(&self) {
        let mut queue = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let ended = queue.take();
        // The kernel needs some time to free many watches; other threads need not wait for that.
        drop(queue);
        drop(ended);
    }
}

/// A change in a watched directory, or to a watched file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WatchEvent {
    pub(crate) watch: WatchNumber,
    pub(crate) name: OsString,
    /// True if a name was added or removed, not only its content changed.
    pub(crate) is_listing: bool,
    /// True if a file was moved to this name.
    pub(crate) is_moved_here: bool,
    /// True if the content was written.
    pub(crate) is_written: bool,
    /// True if the attributes (such as permissions) of a directory changed.
    pub(crate) is_attribute_of_directory: bool,
    /// True if the watched directory itself was moved or removed.
    pub(crate) is_gone: bool,
}

/// The events since the last call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DrainedEvents {
    Changes(Vec<WatchEvent>),
    /// There were too many events, or one that affects the whole tree.
    Everything,
}

impl Watcher {
    pub(crate) fn new() -> io::Result<Self> {
        let queue = Arc::new(EventQueue::new()?);
        let mounts = File::open("/proc/self/mountinfo")?;
        let flood = FloodGuard::new(&queue).ok();
        Ok(Self {
            queue,
            mounts,
            _flood: flood,
        })
    }

    /// Starts to watch a directory: from now on no change is missed. A directory that is already
    /// watched keeps its number.
    pub(crate) fn watch(&self, directory: &Directory) -> io::Result<WatchNumber> {
        // Through the open descriptor, because a path may lead elsewhere by now.
        let path = format!("/proc/self/fd/{}", directory.fd().as_raw_fd());
        self.add(path, OF_DIRECTORIES)
    }

    /// Starts to watch an open file. It may have been opened under another name than in the tree.
    pub(crate) fn watch_file(&self, file: &File) -> io::Result<WatchNumber> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // The path in `/proc` is a link to the open file.
        let flags = OF_FILES.difference(WatchFlags::DONT_FOLLOW);
        self.add(path, flags)
    }

    /// Like [`Self::watch_file`], for a file below a directory. The caller must check the file
    /// afterwards, because a part of the path may have become a link.
    pub(crate) fn watch_file_below(&self, top: &Directory, path: &Path) -> io::Result<WatchNumber> {
        let top = format!("/proc/self/fd/{}", top.fd().as_raw_fd());
        self.add(Path::new(&top).join(path), OF_FILES)
    }

    fn add(&self, path: impl rustix::path::Arg, flags: WatchFlags) -> io::Result<WatchNumber> {
        let add = |queue: &OwnedFd| inotify::add_watch(queue, path, flags);
        Ok(self.queue.with(add)?)
    }

    pub(crate) fn unwatch(&self, watch: WatchNumber) {
        // This fails if the watch has already ended because its file no longer exists.
        let _ = self.queue.with(|queue| inotify::remove_watch(queue, watch));
    }

    /// Returns all events since the last call, without consecutive repetitions.
    pub(crate) fn drain(&self) -> DrainedEvents {
        if self.mounts_changed() {
            return DrainedEvents::Everything;
        }
        let changes = self.queue.with(|queue| Ok(read(queue)));
        changes.unwrap_or(DrainedEvents::Everything)
    }

    fn mounts_changed(&self) -> bool {
        let mut asked = [PollFd::new(&self.mounts, PollFlags::PRI)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match poll(&mut asked, Some(&at_once)) {
            Ok(0) => false,
            Ok(_) => asked[0]
                .revents()
                .intersects(PollFlags::PRI | PollFlags::ERR),
            Err(_) => true,
        }
    }
}

/// Reads all events of a queue, without consecutive repetitions.
fn read(queue: &OwnedFd) -> DrainedEvents {
    let mut buffer = [MaybeUninit::uninit(); 16 << 10];
    let mut reader = inotify::Reader::new(queue, &mut buffer);
    let mut changes = Vec::new();
    loop {
        let event = match reader.next() {
            Ok(event) => event,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => continue,
            Err(_) => return DrainedEvents::Everything,
        };
        let events = event.events();
        if events.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
            return DrainedEvents::Everything;
        }
        let name = event
            .file_name()
            .map(|name| OsStr::from_bytes(name.to_bytes()));
        let on_directory = name.is_none() || events.contains(ReadFlags::ISDIR);
        let is_attribute_of_directory = on_directory && events.contains(ReadFlags::ATTRIB);
        let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED;
        let listing =
            ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        let change = WatchEvent {
            watch: event.wd(),
            name: name.unwrap_or_default().to_os_string(),
            is_listing: events.intersects(listing),
            is_moved_here: events.contains(ReadFlags::MOVED_TO),
            is_written: events.contains(ReadFlags::MODIFY),
            is_attribute_of_directory,
            is_gone: name.is_none() && events.intersects(gone),
        };
        if changes.last() != Some(&change) {
            changes.push(change);
        }
    }
    DrainedEvents::Changes(changes)
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Close the queue now, not when the guarding thread has ended.
        self.queue.end();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use haft_testkit::until_blocking;

    use super::*;

    #[test]
    fn changes_are_there_as_soon_as_they_are_made() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let watcher = Watcher::new().unwrap();
        let watch = watcher
            .watch(&Directory::open_real(&root).unwrap())
            .unwrap();
        assert_eq!(watcher.drain(), DrainedEvents::Changes(Vec::new()));
        for number in 0..500 {
            fs::write(root.join(number.to_string()), "x").unwrap();
            let DrainedEvents::Changes(changes) = watcher.drain() else {
                panic!("few changes");
            };
            assert!(changes.iter().any(|change| {
                change.watch == watch && change.name == *number.to_string() && change.is_listing
            }));
        }
        // A file by whatever name it is written.
        let aside = tempfile::tempdir_in(root.parent().unwrap()).unwrap();
        let other = aside.path().join("other");
        let file = File::open(root.join("7")).unwrap();
        let watch = watcher.watch_file(&file).unwrap();
        let is_told = |watch| match watcher.drain() {
            DrainedEvents::Changes(changes) => changes.iter().any(|change| change.watch == watch),
            DrainedEvents::Everything => panic!("few changes"),
        };
        assert!(!is_told(watch));
        fs::hard_link(root.join("7"), &other).unwrap();
        assert!(is_told(watch), "another name");
        let top = Directory::open_real(&root).unwrap();
        let watch = watcher.watch_file_below(&top, Path::new("7")).unwrap();
        fs::write(&other, "y").unwrap();
        assert!(is_told(watch));
        fs::write(&other, "z").unwrap();
        assert!(!is_told(watch), "it has ended");
        fs::remove_dir_all(&root).unwrap();
        let DrainedEvents::Changes(changes) = watcher.drain() else {
            panic!("few changes");
        };
        assert!(changes.len() >= 500);
    }

    /// Writes to so many files, each again and again.
    fn fill(folder: &Path, times: u32) {
        for number in 0..times {
            fs::write(folder.join((number % 1000).to_string()), "x").unwrap();
        }
    }

    #[test]
    fn a_queue_that_no_one_can_follow_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let root = Directory::open_real(&dir.path().canonicalize().unwrap()).unwrap();
        let watcher = Watcher::new().unwrap();
        watcher.watch(&root).unwrap();
        let has_ended = || watcher.queue.with(|_| Ok(())).is_err();
        fill(dir.path(), 1000);
        assert!(matches!(watcher.drain(), DrainedEvents::Changes(_)));
        assert!(!has_ended(), "that can be followed");
        until_blocking("it is ended", || {
            fill(dir.path(), 1000);
            has_ended()
        });
        assert_eq!(watcher.drain(), DrainedEvents::Everything);
        assert!(watcher.watch(&root).is_err(), "nothing is told any more");
        watcher.unwatch(1);
    }

    #[test]
    fn a_queue_that_lost_events_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let root = Directory::open_real(&dir.path().canonicalize().unwrap()).unwrap();
        let watcher = Watcher {
            queue: Arc::new(EventQueue::new().unwrap()),
            mounts: File::open("/proc/self/mountinfo").unwrap(),
            _flood: None,
        };
        watcher.watch(&root).unwrap();
        let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let limit: u32 = limit.trim().parse().unwrap();
        if limit > 100_000 {
            return haft_testkit::skip("the kernel's queue is too long to fill");
        }
        fill(dir.path(), limit);
        assert_eq!(watcher.drain(), DrainedEvents::Everything);
    }

    #[test]
    fn its_thread_ends_with_it() {
        let watcher = Watcher::new().unwrap();
        let queue = Arc::downgrade(&watcher.queue);
        drop(watcher);
        until_blocking("its thread has ended", || queue.strong_count() == 0);
    }
}
