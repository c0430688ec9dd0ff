//! Files that hooks want to know of: which of them have changed.
//!
//! The kernel only says that something happened in a directory; what it was is found out by looking at the
//! watched paths themselves. So however fast files change, a look is taken at most so often, a path that
//! changed many times has changed once, and a directory or a link that is put in another's place is no
//! special case. Nothing is opened or read.

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

/// More paths are not watched.
pub(super) const MOST_PATHS: usize = 256;

/// Of a directory that is watched, so many entries are looked at.
const MOST_ENTRIES: usize = 1000;

/// Of one look, no more changes than this are told.
const MOST_CHANGES: usize = 100;

/// What changes within this time has changed once.
const SETTLE: Duration = Duration::from_millis(100);

/// Where the kernel cannot say that something happened, a look is taken so often.
const LOOK: Duration = Duration::from_secs(2);

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchedChange {
    /// The file.
    pub path: PathBuf,
    /// `add`, `change` or `unlink`.
    pub event: &'static str,
}

/// What tells one state of a path from another: of what it is, and of what a link leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PathState(PathStamp, Option<PathStamp>);

/// Device, number, kind, length, and when content and anything else changed.
type PathStamp = (u64, u64, u32, u64, [i64; 4]);

fn stamp(is: &Metadata) -> PathStamp {
    // What is in a directory is looked at by itself.
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

/// Watches paths.
pub(super) struct FileWatch {
    paths: BTreeSet<PathBuf>,
    seen: BTreeMap<PathBuf, PathState>,
    kernel: Option<Receiver>,
    /// Directories that the kernel watches now.
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

    /// From now on these are watched, as they are now. One that was watched before keeps what was seen of it.
    pub(super) fn set(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        let paths: BTreeSet<PathBuf> = paths.into_iter().take(MOST_PATHS).collect();
        if paths == self.paths {
            return;
        }
        let new: BTreeSet<PathBuf> = paths.difference(&self.paths).cloned().collect();
        self.paths = paths;
        let mut seen = self.look();
        for (path, was) in std::mem::take(&mut self.seen) {
            let is_new = new.iter().any(|one| path.starts_with(one));
            let stays = self.paths.iter().any(|one| path.starts_with(one));
            if stays && !is_new {
                seen.insert(path, was);
            }
        }
        self.seen = seen;
    }

    /// All that is watched, as it is now.
    fn look(&self) -> BTreeMap<PathBuf, PathState> {
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
                    .take(MOST_ENTRIES)
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

    /// Tells the kernel where to look: in the directory of each path, or the nearest one above that is there.
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
        // Anew each time: a directory may have been put in another's place.
        self.kernel = None;
        self.watched = wanted;
        if self.watched.is_empty() {
            return;
        }
        match listen(&self.watched) {
            Ok(kernel) => self.kernel = Some(kernel),
            Err(error) => tracing::debug!(%error, "files are looked at from time to time"),
        }
    }

    /// Waits for changes. What it waits for can be dropped at any time: nothing is lost.
    pub(super) async fn changes(&mut self) -> Vec<WatchedChange> {
        if self.paths.is_empty() {
            std::future::pending::<()>().await;
        }
        loop {
            // Whatever happened before someone waited for it counts too.
            let changes = self.compare();
            if !changes.is_empty() {
                return changes;
            }
            match &self.kernel {
                Some(kernel) => {
                    // An error is one of ours: then time must do.
                    let failed = kernel.readable().await.is_err();
                    tokio::time::sleep(SETTLE).await;
                    drain(kernel);
                    if failed {
                        tokio::time::sleep(LOOK).await;
                    }
                }
                None => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// What is different since the last look.
    fn compare(&mut self) -> Vec<WatchedChange> {
        // First: what happens from here on is heard. Directories may have come and gone, too.
        self.arm();
        let now = self.look();
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
        if changes.len() > MOST_CHANGES {
            let left_out = changes.len() - MOST_CHANGES;
            tracing::warn!(left_out, "more files changed at once than are reported");
            changes.truncate(MOST_CHANGES);
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
    // It is read like a pipe: until there is nothing more for now.
    Receiver::from_owned_fd_unchecked(kernel)
}

/// What exactly happened is not asked.
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
        assert_eq!(changes.await.unwrap().len(), MOST_CHANGES);
        let many = (0..10_000).map(|number| folder.0.join(number.to_string()));
        watch.set(many);
        assert_eq!(watch.paths.len(), MOST_PATHS);
    }
}
