//! What the kernel says has changed, read at the moment it is asked for.
//!
//! The kernel queues an event inside the very call that makes the change. So who drains the
//! queue knows of every change that was finished before: no thread waits for events, and nothing is
//! delayed. `tree` has what the kernel does not tell.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

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

/// Ends with the first event.
const OF_FILES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::ONESHOT);

/// A watched directory or file.
pub(crate) type WatchNumber = i32;

/// A queue of events, and the directories and files it is for.
#[derive(Debug)]
pub(crate) struct Watcher {
    queue: OwnedFd,
    /// Readable as out of the ordinary when something was mounted or unmounted.
    mounts: File,
}

/// Something changed in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Change {
    pub(crate) watch: WatchNumber,
    pub(crate) name: OsString,
    /// A name came or went, not only what it stands for.
    pub(crate) is_listing: bool,
    /// It was moved to this name.
    pub(crate) is_moved_here: bool,
    /// Its content was written.
    pub(crate) is_written: bool,
    /// Who may do what with a directory.
    pub(crate) is_attribute_of_directory: bool,
    /// The directory itself was moved or removed.
    pub(crate) is_gone: bool,
}

/// What happened since the last look.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    Changes(Vec<Change>),
    /// Too much to tell, or something that concerns the whole tree.
    Everything,
}

impl Watcher {
    pub(crate) fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mounts = File::open("/proc/self/mountinfo")?;
        Ok(Self { queue, mounts })
    }

    /// Begins to watch a directory: from now on nothing is missed. A directory that is watched
    /// already keeps its number.
    pub(crate) fn watch(&self, directory: &Directory) -> io::Result<WatchNumber> {
        // By what is open, not by a path that may lead elsewhere by now.
        let path = format!("/proc/self/fd/{}", directory.fd().as_raw_fd());
        Ok(inotify::add_watch(&self.queue, path, OF_DIRECTORIES)?)
    }

    /// Begins to watch a file by what is open. It need not be opened by the name it has in the tree.
    pub(crate) fn watch_file(&self, file: &File) -> io::Result<WatchNumber> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // The path is a link to what is open.
        let flags = OF_FILES.difference(WatchFlags::DONT_FOLLOW);
        Ok(inotify::add_watch(&self.queue, path, flags)?)
    }

    /// The same for a file below a directory. Only for one that is looked at afterwards: a part of
    /// the path may have become a link.
    pub(crate) fn watch_file_below(&self, top: &Directory, path: &Path) -> io::Result<WatchNumber> {
        let top = format!("/proc/self/fd/{}", top.fd().as_raw_fd());
        Ok(inotify::add_watch(
            &self.queue,
            Path::new(&top).join(path),
            OF_FILES,
        )?)
    }

    pub(crate) fn unwatch(&self, watch: WatchNumber) {
        // It has ended by itself if what it was for is gone.
        let _ = inotify::remove_watch(&self.queue, watch);
    }

    /// Everything since the last time; each change once.
    pub(crate) fn drain(&self) -> Drained {
        if self.mounts_changed() {
            return Drained::Everything;
        }
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
        let mut changes = Vec::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(_) => return Drained::Everything,
            };
            let events = event.events();
            if events.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
                return Drained::Everything;
            }
            let name = event
                .file_name()
                .map(|name| OsStr::from_bytes(name.to_bytes()));
            let on_directory = name.is_none() || events.contains(ReadFlags::ISDIR);
            let is_attribute_of_directory = on_directory && events.contains(ReadFlags::ATTRIB);
            let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED;
            let listing =
                ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
            let change = Change {
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
        Drained::Changes(changes)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn changes_are_there_as_soon_as_they_are_made() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let watcher = Watcher::new().unwrap();
        let watch = watcher.watch(&Directory::at(&root).unwrap()).unwrap();
        assert_eq!(watcher.drain(), Drained::Changes(Vec::new()));
        for number in 0..500 {
            fs::write(root.join(number.to_string()), "x").unwrap();
            let Drained::Changes(changes) = watcher.drain() else {
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
            Drained::Changes(changes) => changes.iter().any(|change| change.watch == watch),
            Drained::Everything => panic!("few changes"),
        };
        assert!(!is_told(watch));
        fs::hard_link(root.join("7"), &other).unwrap();
        assert!(is_told(watch), "another name");
        let top = Directory::at(&root).unwrap();
        let watch = watcher.watch_file_below(&top, Path::new("7")).unwrap();
        fs::write(&other, "y").unwrap();
        assert!(is_told(watch));
        fs::write(&other, "z").unwrap();
        assert!(!is_told(watch), "it has ended");
        fs::remove_dir_all(&root).unwrap();
        let Drained::Changes(changes) = watcher.drain() else {
            panic!("few changes");
        };
        assert!(changes.len() >= 500);
    }
}
