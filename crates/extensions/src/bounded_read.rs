//! Reading untrusted files: only regular files, up to a size limit, without blocking.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, ErrorKind, Read},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Component, Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, openat};

use crate::ExtensionWarning;

/// The maximum size that is read of one file, in bytes.
pub(crate) const MAX_LENGTH: usize = 256 * 1024;

/// The maximum depth below a folder.
const MAX_DEPTH: usize = 8;

/// The maximum number of entries of a folder and everything below it.
const MAX_ENTRIES: usize = 10_000;

/// The text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoundedText {
    /// The text. Invalid UTF-8 is replaced; line breaks are `\n`.
    pub(crate) text: String,
    /// The file is longer than the limit.
    pub(crate) is_cut: bool,
}

/// Reads a file up to a length; `None` if it does not exist. A pipe or device is an error, and so
/// is a link to a file with another extension: otherwise a project could have a key file read as
/// instructions.
pub(crate) fn read(path: &Path, longest: usize) -> io::Result<Option<BoundedText>> {
    match fs::canonicalize(path) {
        Ok(real) if !is_same_kind(path, &real) => {
            Err(io::Error::other("it is a link to a file of another kind"))
        }
        Ok(real) => read_real(&real, longest),
        Err(error) => none_if_missing(error),
    }
}

fn is_same_kind(path: &Path, real: &Path) -> bool {
    match (path.extension(), real.extension()) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        (one, other) => one == other,
    }
}

fn none_if_missing(error: io::Error) -> io::Result<Option<BoundedText>> {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
        _ => Err(error),
    }
}

/// Like [`read`], but for a file whose real path was checked. If a link was put into the path
/// since, that is an error.
pub(crate) fn read_real(real: &Path, longest: usize) -> io::Result<Option<BoundedText>> {
    let file = match open_real(real) {
        Ok(file) => File::from(file),
        Err(error) => return none_if_missing(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(longest as u64 + 1).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() > longest;
    bytes.truncate(longest);
    if is_cut {
        // The cut must not split a character.
        let end = match str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => bytes.len(),
        };
        bytes.truncate(end);
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(Some(BoundedText {
        text: text.replace("\r\n", "\n"),
        is_cut,
    }))
}

/// Opens each directory inside the previous one, then the file; no link is followed.
fn open_real(real: &Path) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    const PASSING: OFlags = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    const PASSING: OFlags = OFlags::RDONLY;
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let passing = PASSING | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut directory = rustix::fs::open("/", passing, Mode::empty())?;
    let mut names = real.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let Some(mut last) = names.next() else {
        return Err(io::Error::other("it is not a regular file"));
    };
    for name in names {
        directory = openat(&directory, last, passing, Mode::empty())?;
        last = name;
    }
    Ok(openat(&directory, last, flags, Mode::empty())?)
}

/// Resolves all links of a path; `None` if it does not exist.
pub(crate) fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Returns the Markdown files below a folder, sorted by name; links are followed, but each target
/// is visited once.
pub(crate) fn markdown_below(folder: &Path, warnings: &mut Vec<ExtensionWarning>) -> Vec<PathBuf> {
    let mut walk = MarkdownWalk::default();
    walk.enter(folder, 0);
    if walk.is_cut {
        warnings.push(ExtensionWarning::new(
            folder,
            format!(
                "it holds more than {MAX_ENTRIES} entries, or folders nested deeper than {MAX_DEPTH}: \
                 the rest is left out"
            ),
        ));
    }
    walk.files
}

#[derive(Default)]
struct MarkdownWalk {
    files: Vec<PathBuf>,
    seen: HashSet<(u64, u64)>,
    entries: usize,
    is_cut: bool,
}

impl MarkdownWalk {
    fn enter(&mut self, folder: &Path, depth: usize) {
        let Ok(metadata) = fs::metadata(folder) else {
            return;
        };
        if !metadata.is_dir() || !self.seen.insert((metadata.dev(), metadata.ino())) {
            return;
        }
        for path in entries(folder, MAX_ENTRIES) {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.is_cut = true;
                return;
            }
            let Ok(metadata) = fs::metadata(&path) else {
                continue;
            };
            if metadata.is_dir() {
                match depth < MAX_DEPTH {
                    true => self.enter(&path, depth + 1),
                    false => self.is_cut = true,
                }
            } else if is_markdown(&path) && self.seen.insert((metadata.dev(), metadata.ino())) {
                self.files.push(path);
            }
        }
    }
}

fn is_markdown(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

/// Returns up to `most` + 1 entries of a folder, without hidden ones, sorted by name.
pub(crate) fn entries(folder: &Path, most: usize) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = listing
        .flatten()
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|entry| entry.path())
        .take(most + 1)
        .collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn pipes_and_folders_are_errors_and_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.md");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RWXU).unwrap();
        assert!(read(&pipe, 10).is_err());
        assert!(read(folder.path(), 10).is_err());
        assert!(read(Path::new("/dev/zero"), 10).is_err());
        assert_eq!(read(&folder.path().join("none"), 10).unwrap(), None);
    }

    #[test]
    fn a_link_leads_to_a_file_of_the_same_kind_or_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("id_key"), "key").unwrap();
        fs::write(path("shared.MD"), "text").unwrap();
        symlink("id_key", path("a.md")).unwrap();
        symlink("shared.MD", path("b.md")).unwrap();
        assert!(read(&path("a.md"), 10).is_err());
        assert_eq!(read(&path("b.md"), 10).unwrap().unwrap().text, "text");
        // What was judged is what is opened.
        let real = folder.path().canonicalize().unwrap();
        assert!(read_real(&real.join("b.md"), 10).is_err());
        assert!(read_real(&real.join("shared.MD"), 10).unwrap().is_some());
    }

    #[test]
    fn a_long_file_is_cut_at_a_character() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.md");
        fs::write(&file, "\u{feff}ab\r\nä".repeat(3)).unwrap();
        let whole = read(&file, 100).unwrap().unwrap();
        assert!(!whole.is_cut);
        assert!(whole.text.starts_with("ab\nä"));
        let cut = read(&file, 8).unwrap().unwrap();
        assert_eq!(cut.text, "ab\n");
        assert!(cut.is_cut);
    }

    #[test]
    fn circles_of_links_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("a/b")).unwrap();
        fs::write(path("a/b/x.md"), "").unwrap();
        fs::write(path("a/y.MD"), "").unwrap();
        fs::write(path("a/z.txt"), "").unwrap();
        symlink(path("a"), path("a/b/again")).unwrap();
        let mut warnings = Vec::new();
        let found = markdown_below(&path("a"), &mut warnings);
        assert_eq!(found, [path("a/b/x.md"), path("a/y.MD")]);
        assert!(warnings.is_empty());
    }
}
