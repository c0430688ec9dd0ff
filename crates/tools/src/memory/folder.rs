//! The folder of notes. Accesses never leave it.
//!
//! Every directory in a path is opened by name inside the previous one, and links are refused
//! everywhere, so reads and writes stay below the folder, regardless of concurrent changes.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use haft_contract::CallId;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};

/// The maximum size of one note, in bytes.
pub(super) const MAX_LENGTH: u64 = 64 * 1024;
/// The maximum size of all notes together, in bytes.
pub(super) const MAX_SIZE: u64 = 1024 * 1024;
/// The maximum number of listed notes. Further notes are ignored.
const MAX_COUNT: usize = 500;
/// The maximum number of names in a path, including the name of the note.
const MAX_DEPTH: usize = 5;

/// The folder of notes that outlive a session. A service; the folder need not exist yet.
#[derive(Debug, Clone)]
pub struct MemoryFolder {
    root: PathBuf,
}

/// A note in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemoryNote {
    pub(super) path: String,
    pub(super) bytes: u64,
}

impl MemoryFolder {
    /// Creates the service for this folder, an absolute path.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns all notes, sorted by path.
    pub(super) fn list(&self) -> io::Result<Vec<MemoryNote>> {
        let mut notes = Vec::new();
        if let Some(root) = self.open(&[], CreateMode::No)? {
            walk(&root, "", 1, &mut notes)?;
        }
        notes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(notes)
    }

    /// Returns the text of a note; `None` if it does not exist.
    pub(super) fn read(&self, path: &NotePath) -> io::Result<Option<String>> {
        let (folder, name) = path.split();
        let Some(folder) = self.open(folder, CreateMode::No)? else {
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(refused(error)),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_LENGTH + 1).read_to_end(&mut bytes)?;
        let is_long = bytes.len() as u64 > MAX_LENGTH;
        bytes.truncate(MAX_LENGTH as usize);
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if is_long {
            text += "\n[the rest of this note is left out]";
        }
        Ok(Some(text))
    }

    /// Replaces a note atomically.
    pub(super) fn write(&self, path: &NotePath, text: &str) -> io::Result<()> {
        let (folder, name) = path.split();
        let Some(folder) = self.open(folder, CreateMode::Yes)? else {
            return Err(io::Error::other("the folder cannot be created"));
        };
        self.is_replaceable(&folder, name)?;
        let partial = format!(".{}.partial", CallId::new());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&folder, &*partial, flags, Mode::RUSR | Mode::WUSR)?;
        let write = || {
            let mut file = File::from(file);
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            renameat(&folder, &*partial, &folder, name).map_err(io::Error::from)
        };
        write().inspect_err(|_| {
            let _ = unlinkat(&folder, &*partial, AtFlags::empty());
        })
    }

    /// Removes a note; returns `false` if it does not exist.
    pub(super) fn remove(&self, path: &NotePath) -> io::Result<bool> {
        let (folder, name) = path.split();
        let Some(folder) = self.open(folder, CreateMode::No)? else {
            return Ok(false);
        };
        if !self.is_replaceable(&folder, name)? {
            return Ok(false);
        }
        unlinkat(&folder, name, AtFlags::empty())?;
        Ok(true)
    }

    /// Returns whether a regular file exists there. Anything else is an error and is never
    /// replaced.
    fn is_replaceable(&self, folder: &OwnedFd, name: &str) -> io::Result<bool> {
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
            Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_file() => Ok(true),
            Ok(_) => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// Opens a directory of the folder; `None` if it does not exist.
    fn open(&self, parts: &[String], make: CreateMode) -> io::Result<Option<OwnedFd>> {
        if make == CreateMode::Yes {
            fs::create_dir_all(&self.root)?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = match rustix::fs::open(&self.root, flags, Mode::empty()) {
            Ok(root) => root,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(refused(error)),
        };
        for part in parts {
            if make == CreateMode::Yes {
                match rustix::fs::mkdirat(&folder, part.as_str(), Mode::RWXU) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            folder = match openat(&folder, part.as_str(), flags, Mode::empty()) {
                Ok(folder) => folder,
                Err(rustix::io::Errno::NOENT) => return Ok(None),
                Err(error) => return Err(refused(error)),
            };
        }
        Ok(Some(folder))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CreateMode {
    Yes,
    No,
}

/// Converts the errors for links and files in a path into readable ones.
fn refused(error: rustix::io::Errno) -> io::Error {
    match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => {
            io::Error::other("the path contains a link, or a file instead of a folder")
        }
        error => error.into(),
    }
}

fn walk(
    folder: &OwnedFd,
    above: &str,
    depth: usize,
    notes: &mut Vec<MemoryNote>,
) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if name.starts_with('.') || notes.len() >= MAX_COUNT {
            continue;
        }
        let path = format!("{above}{name}");
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => notes.push(MemoryNote {
                path,
                bytes: u64::try_from(stat.st_size).unwrap_or_default(),
            }),
            FileType::Directory if depth < MAX_DEPTH => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let below = openat(folder, name, flags, Mode::empty())?;
                walk(&below, &format!("{path}/"), depth + 1, notes)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A path below the folder, as a model writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotePath(Vec<String>);

impl NotePath {
    /// Parses a path; the error explains valid paths.
    pub(super) fn parse(path: &str) -> Result<Self, String> {
        let problem = |what: &str| {
            Err(format!(
                "`path` {what}. Name a note by its path in the memory folder, such as `build.md` or \
                 `decisions/api.md`."
            ))
        };
        let mut parts = Vec::new();
        for part in Path::new(path).components() {
            match part {
                Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
                Component::CurDir => {}
                Component::ParentDir => return problem("holds `..`"),
                Component::RootDir | Component::Prefix(_) => return problem("is absolute"),
            }
        }
        if parts.is_empty() {
            return problem("names nothing");
        }
        if parts.iter().any(|part| part.starts_with(['.', '~'])) {
            return problem("begins a name with `.` or `~`");
        }
        if path.chars().any(char::is_control) || path.ends_with('/') {
            return problem("is not a name for a note");
        }
        if parts.len() > MAX_DEPTH || path.len() > 200 {
            return problem("is too long or too deep");
        }
        Ok(Self(parts))
    }

    fn split(&self) -> (&[String], &str) {
        match self.0.split_last() {
            Some((name, folder)) => (folder, name),
            None => (&[], ""),
        }
    }
}

impl std::fmt::Display for NotePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    fn inside(path: &str) -> NotePath {
        NotePath::parse(path).unwrap()
    }

    #[test]
    fn notes_are_written_read_listed_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = MemoryFolder::new(dir.path().join("deep/memory"));
        assert_eq!(folder.list().unwrap(), []);
        assert_eq!(folder.read(&inside("a.md")).unwrap(), None);
        assert!(!folder.remove(&inside("x/a.md")).unwrap());
        folder.write(&inside("x/a.md"), "one").unwrap();
        folder.write(&inside("x/a.md"), "two").unwrap();
        assert_eq!(
            folder.read(&inside("./x/a.md")).unwrap().as_deref(),
            Some("two")
        );
        let listed = folder.list().unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!((&*listed[0].path, listed[0].bytes), ("x/a.md", 3));
        assert!(folder.write(&inside("x"), "a folder").is_err());
        assert!(folder.write(&inside("x/a.md/b"), "a file").is_err());
        assert!(folder.remove(&inside("x/a.md")).unwrap());
        assert_eq!(folder.list().unwrap(), []);
    }

    #[test]
    fn no_link_leads_out() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("memory/real")).unwrap();
        fs::write(at("secret"), "secret").unwrap();
        symlink(at("secret"), at("memory/link.md")).unwrap();
        symlink(dir.path(), at("memory/up")).unwrap();
        let folder = MemoryFolder::new(at("memory"));
        for path in ["link.md", "up/secret"] {
            assert!(folder.read(&inside(path)).is_err(), "{path}");
            assert!(folder.write(&inside(path), "x").is_err(), "{path}");
            assert!(folder.remove(&inside(path)).is_err(), "{path}");
        }
        assert!(folder.write(&inside("up/new"), "x").is_err());
        assert_eq!(folder.list().unwrap(), []);
        assert_eq!(fs::read_to_string(at("secret")).unwrap(), "secret");
        assert!(at("memory/link.md").is_symlink());
        // The folder itself may be no link either.
        symlink(at("memory"), at("alias")).unwrap();
        assert!(MemoryFolder::new(at("alias")).list().is_err());
    }

    proptest! {
        /// Whatever path a model writes: everything outside stays as it is.
        #[test]
        fn nothing_outside_is_touched(path in "[a./~\\\\ -]{0,12}") {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("a"), "outside").unwrap();
            fs::create_dir(dir.path().join("memory")).unwrap();
            let folder = MemoryFolder::new(dir.path().join("memory"));
            if let Ok(path) = NotePath::parse(&path) {
                let _ = folder.write(&path, "new");
                let _ = folder.remove(&path);
            }
            let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
            prop_assert_eq!(left.len(), 2);
            prop_assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "outside");
        }
    }
}
