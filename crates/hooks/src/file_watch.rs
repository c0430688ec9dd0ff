//! File watching for hooks: detects which of the watched paths have changed.
//!
//! The kernel only reports that a directory has changed. The changed paths are found by checking the
//! watched paths themselves. So the number of scans is limited however often files
//! change, several changes of a path between two scans are one change, and a directory or link that
//! replaces another one is not a special case. No file is opened or read.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe::Receiver;

/// The maximum number of watched paths.
pub(super) const MAX_PATHS: usize = 256;

/// The maximum number of checked entries per watched directory.
const MAX_ENTRIES: usize = 1000;

/// The maximum number of changes reported per scan.
const MAX_CHANGES: usize = 100;

/// Changes within this time are reported as one.
const SETTLE: Duration = Duration::from_millis(100);

/// The interval of scans if kernel notifications are not available.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchedChange {
    /// The path of the file.
    pub path: PathBuf,
    /// `add`, `change` or `unlink`.
    pub event: &'static str,
}

/// The state of a path: its own stamp, and for a link that of its target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PathState(PathStamp, Option<PathStamp>);

/// Device, inode, mode, size, and the times of the last content and status change.
type PathStamp = (u64, u64, u32, u64, [i64; 4]);

fn stamp(is: &Metadata) -> PathStamp {
    // Entries of a directory are checked separately.
    let length = if is.is_dir() { 0 } else { is.len() };
    let times = match is.is_dir() {
        true => [0; 4],
        false => [is.mtime(), is.mtime_nsec(), is.ctime(), is.ctime_nsec()],
    };
    (is.dev(), is.ino(), is.mode(), length, times)
}

fn state(path: &Path) -> Option<PathState> {
    let is = fs::symlink_metadata(path).ok()?;
    let behind = is.is_symlink().then(|| fs::metadata(path).ok()).flatten();
    Some(PathState(stamp(&is), behind.as_ref().map(stamp)))
}

/// A watch on paths.
pub(super) struct FileWatch {
    paths: BTreeSet<PathBuf>,
    seen: BTreeMap<PathBuf, PathState>,
    kernel: Option<Receiver>,
    /// The directories that the kernel watches now.
    watched: BTreeSet<PathBuf>,
}

impl FileWatch {
    pub(super) fn new() -> Self {
        Self {
            paths: BTreeSet::new(),
            seen: BTreeMap::new(),
            kernel: None,
            watched: BTreeSet::new(),
        }
    }

    /// Replaces the watched paths. Changes are reported relative to their present state; paths that
    /// were already watched keep their known state.
    pub(super) fn set(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        let paths: BTreeSet<PathBuf> = paths.into_iter().take(MAX_PATHS).collect();
        if paths == self.paths {
            return;
        }
        let new: BTreeSet<PathBuf> = paths.difference(&self.paths).cloned().collect();
        self.paths = paths;
        let mut seen = self.scan_paths();
        for (path, was) in std::mem::take(&mut self.seen) {
            let is_new = new.iter().any(|one| path.starts_with(one));
            let stays = self.paths.iter().any(|one| path.starts_with(one));
            if stays && !is_new {
                seen.insert(path, was);
            }
        }
        self.seen = seen;
    }

    /// Returns the present state of all watched paths.
    fn scan_paths(&self) -> BTreeMap<PathBuf, PathState> {
        let mut found = BTreeMap::new();
        for path in &self.paths {
            let Some(state) = state(path) else {
                continue;
            };
            let is_directory = fs::symlink_metadata(path).is_ok_and(|is| is.is_dir());
            found.insert(path.clone(), state);
            if is_directory {
                let entries = fs::read_dir(path).into_iter().flatten().flatten();
                let mut names: Vec<OsString> = entries
                    .take(MAX_ENTRIES)
                    .map(|entry| entry.file_name())
                    .collect();
                names.sort_unstable();
                for path in names.iter().map(|name| path.join(name)) {
                    if let Some(state) = self::state(&path) {
                        found.insert(path, state);
                    }
                }
            }
        }
        found
    }

    /// Sets up kernel notifications for the directory of each path, or for its closest existing
    /// ancestor.
    fn arm(&mut self) {
        let mut wanted = BTreeSet::new();
        for path in &self.paths {
            let above = path.ancestors().skip(1).find(|above| above.is_dir());
            wanted.extend(above.map(Path::to_path_buf));
            let is_directory = fs::symlink_metadata(path).is_ok_and(|is| is.is_dir());
            if is_directory {
                wanted.insert(path.clone());
            }
        }
        // All watches are created again, because a directory may have been replaced by another one.
        self.kernel = None;
        self.watched = wanted;
        if self.watched.is_empty() {
            return;
        }
        match listen(&self.watched) {
            Ok(kernel) => self.kernel = Some(kernel),
            Err(error) => {
                tracing::debug!(%error, "the kernel cannot watch files; they are checked at intervals")
            }
        }
    }

    /// Waits for changes. The future can be dropped at any time without losing changes.
    pub(super) async fn changes(&mut self) -> Vec<WatchedChange> {
        if self.paths.is_empty() {
            std::future::pending::<()>().await;
        }
        loop {
            // Changes from before the wait are reported, too.
            let changes = self.compare();
            if !changes.is_empty() {
                return changes;
            }
            match &self.kernel {
                Some(kernel) => {
                    // An error is on our side: fall back to periodic scans.
                    let failed = kernel.readable().await.is_err();
                    tokio::time::sleep(SETTLE).await;
                    drain(kernel);
                    if failed {
                        tokio::time::sleep(SCAN_INTERVAL).await;
                    }
                }
                None => tokio::time::sleep(SCAN_INTERVAL).await,
            }
        }
    }

    /// Returns the changes since the last scan.
    fn compare(&mut self) -> Vec<WatchedChange> {
        // Armed first, so that later changes are reported. The set of directories may have changed,
        // too.
        self.arm();
        let now = self.scan_paths();
        let mut changes = Vec::new();
        let mut tell = |path: &Path, event| {
            changes.push(WatchedChange {
                path: path.to_path_buf(),
                event,
            });
        };
        for (path, state) in &now {
            match self.seen.get(path) {
                None => tell(path, "add"),
                Some(before) if before != state => tell(path, "change"),
                Some(_) => {}
            }
        }
        for path in self.seen.keys().filter(|path| !now.contains_key(*path)) {
            tell(path, "unlink");
        }
        self.seen = now;
        changes.sort_unstable();
        if changes.len() > MAX_CHANGES {
            let left_out = changes.len() - MAX_CHANGES;
            tracing::warn!(
                left_out,
                "too many files changed together; not all changes are reported"
            );
            changes.truncate(MAX_CHANGES);
        }
        changes
    }
}

fn listen(directories: &BTreeSet<PathBuf>) -> io::Result<Receiver> {
    let kernel = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let what = WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MODIFY
        | WatchFlags::ATTRIB
        | WatchFlags::MOVE
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR;
    for directory in directories {
        inotify::add_watch(&kernel, directory, what)?;
    }
    // Reads the descriptor like a pipe, until no events are left.
    Receiver::from_owned_fd_unchecked(kernel)
}

/// Discards all events; their contents are not needed.
fn drain(kernel: &Receiver) {
    let mut bytes = [0; 16 * 1024];
    while kernel.try_read(&mut bytes).is_ok_and(|read| read > 0) {}
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, time::Duration};

    use tokio::time::timeout;

    use super::*;

    /// A folder in the folder for temporary files that is gone with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("haft-watch-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    async fn next(watch: &mut FileWatch) -> Vec<(String, &'static str)> {
        let changes = timeout(Duration::from_secs(30), watch.changes());
        let changes = changes.await.expect("something changed");
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        changes
            .iter()
            .map(|one| (name(&one.path), one.event))
            .collect()
    }

    #[tokio::test]
    async fn files_come_change_and_go() {
        let folder = Folder::new("files");
        let file = folder.0.join("a");
        let mut watch = FileWatch::new();
        watch.set([file.clone()]);
        fs::write(folder.0.join("other"), "x").unwrap();
        fs::write(&file, "1").unwrap();
        assert_eq!(next(&mut watch).await, [("a".to_owned(), "add")]);
        for text in ["2", "22", "222"] {
            fs::write(&file, text).unwrap();
        }
        assert_eq!(next(&mut watch).await, [("a".to_owned(), "change")]);
        // As editors save.
        fs::write(folder.0.join("new"), "3").unwrap();
        fs::rename(folder.0.join("new"), &file).unwrap();
        assert_eq!(next(&mut watch).await, [("a".to_owned(), "change")]);
        fs::remove_file(&file).unwrap();
        assert_eq!(next(&mut watch).await, [("a".to_owned(), "unlink")]);
    }

    #[tokio::test]
    async fn a_directory_that_comes_later_and_one_that_is_replaced() {
        let folder = Folder::new("later");
        let file = folder.0.join("x/y/a");
        let mut watch = FileWatch::new();
        watch.set([file.clone()]);
        fs::create_dir_all(folder.0.join("x/y")).unwrap();
        fs::write(&file, "1").unwrap();
        assert_eq!(next(&mut watch).await, [("a".to_owned(), "add")]);
        // Another directory in its place, by a link.
        fs::create_dir_all(folder.0.join("z")).unwrap();
        fs::write(folder.0.join("z/a"), "22").unwrap();
        fs::remove_dir_all(folder.0.join("x/y")).unwrap();
        symlink(folder.0.join("z"), folder.0.join("x/y")).unwrap();
        let mut seen = next(&mut watch).await;
        if seen == [("a".to_owned(), "unlink")] {
            seen = next(&mut watch).await;
        }
        assert!(
            seen == [("a".to_owned(), "change")] || seen == [("a".to_owned(), "add")],
            "{seen:?}"
        );
        fs::write(folder.0.join("z/a"), "333").unwrap();
        assert_eq!(next(&mut watch).await, [("a".to_owned(), "change")]);
    }

    #[tokio::test]
    async fn odd_paths_are_no_trouble() {
        let folder = Folder::new("odd");
        let pipe = folder.0.join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
        symlink(folder.0.join("nowhere"), folder.0.join("dangling")).unwrap();
        symlink(&folder.0, folder.0.join("loop")).unwrap();
        let mut watch = FileWatch::new();
        watch.set([
            PathBuf::from("/"),
            pipe.clone(),
            folder.0.join("dangling"),
            folder.0.join("loop/loop/loop"),
            PathBuf::from("/proc/self/fd"),
            folder.0.join("a"),
        ]);
        fs::write(folder.0.join("a"), "1").unwrap();
        let mine = |seen: Vec<(String, &'static str)>| seen.contains(&("a".to_owned(), "add"));
        let mut seen = next(&mut watch).await;
        for _ in 0..50 {
            if mine(seen.clone()) {
                return;
            }
            seen = next(&mut watch).await;
        }
        panic!("{seen:?}");
    }

    #[tokio::test]
    async fn a_flood_is_one_change_and_has_a_bound() {
        let folder = Folder::new("flood");
        let mut watch = FileWatch::new();
        watch.set([folder.0.clone()]);
        for number in 0..300 {
            fs::write(folder.0.join(format!("f{number}")), "x").unwrap();
        }
        let changes = timeout(Duration::from_secs(30), watch.changes());
        assert_eq!(changes.await.unwrap().len(), MAX_CHANGES);
        let many = (0..10_000).map(|number| folder.0.join(number.to_string()));
        watch.set(many);
        assert_eq!(watch.paths.len(), MAX_PATHS);
    }
}
