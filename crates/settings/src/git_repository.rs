//! Finds the repository that git uses in a directory. This does not start git, because a repository can make git
//! start programs.
//!
//! This follows `setup.c` of git, byte for byte where it reads names. Environment variables such as `GIT_DIR`
//! are not considered: a command line that sets one is not read-only.

use std::{
    ffi::OsStr,
    fs,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use super::{document::open_regular, real_path};

/// Git rejects a longer file `.git`.
const MAX_GIT_FILE: u64 = 1 << 20;

/// The number of bytes that git reads of `HEAD` to check it.
const MAX_HEAD: u64 = 255;

/// The minimum length of an object's name in hexadecimal digits: 40 for SHA-1; SHA-256 has 64.
const MIN_OBJECT_NAME: usize = 40;

/// A repository, by real paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRepository {
    /// The directory that holds `HEAD`.
    pub git_dir: PathBuf,
    /// The directory that holds `config`, `objects` and `refs`; the same one unless a file `commondir` names
    /// another.
    pub common_dir: PathBuf,
    /// The directory that holds `.git`; `None` if git found a bare repository.
    pub work_tree: Option<PathBuf>,
}

/// The result of a search for a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitDiscovery {
    /// Git finds this one.
    Found(GitRepository),
    /// Git stops with an error because of this file or directory.
    Invalid(PathBuf),
    /// No repository contains the directory.
    Outside,
}

/// Finds the repository that git uses in a directory.
pub fn discover(start: &Path) -> GitDiscovery {
    let start = real_path::resolve_links(start);
    for directory in start.ancestors() {
        if let Some(found) = discover_in(directory) {
            return found;
        }
    }
    GitDiscovery::Outside
}

/// The repository of this directory alone, if it has one or is one.
fn discover_in(directory: &Path) -> Option<GitDiscovery> {
    let dot_git = directory.join(".git");
    let invalid = || Some(GitDiscovery::Invalid(dot_git.clone()));
    let found = |git_dir: &Path, common_dir: PathBuf, work_tree: Option<&Path>| {
        Some(GitDiscovery::Found(GitRepository {
            git_dir: git_dir.to_path_buf(),
            common_dir,
            work_tree: work_tree.map(Path::to_path_buf),
        }))
    };
    match fs::metadata(&dot_git) {
        Ok(metadata) if metadata.is_file() => {
            let Some(git_dir) = linked_git_dir(&dot_git) else {
                return invalid();
            };
            return match common_dir_if_valid(&git_dir) {
                Ok(Some(common)) => found(&git_dir, common, Some(directory)),
                Ok(None) | Err(_) => invalid(),
            };
        }
        Ok(_) => match common_dir_if_valid(&dot_git) {
            Ok(Some(common)) => {
                return found(&real_path::resolve_links(&dot_git), common, Some(directory));
            }
            Ok(None) => {}
            Err(_) => return invalid(),
        },
        Err(_) => {}
    }
    match common_dir_if_valid(directory) {
        Ok(Some(common)) => found(directory, common, None),
        Ok(None) => None,
        Err(_) => Some(GitDiscovery::Invalid(directory.to_path_buf())),
    }
}

/// The directory that a file `.git` names, by its real path; `None` if git rejects the file.
pub fn linked_git_dir(file: &Path) -> Option<PathBuf> {
    let bytes = read_file(file, MAX_GIT_FILE).ok()?;
    let name = trim_line_ends(bytes.strip_prefix(b"gitdir: ")?);
    (!name.is_empty())
        .then(|| real_path::resolve_links(&file.parent().unwrap_or(file).join(c_string(name))))
}

/// The directory that holds the configuration of the repository at `git_dir`, by its real path.
///
/// # Errors
/// There is a file `commondir` that git cannot read.
pub fn common_dir(git_dir: &Path) -> io::Result<PathBuf> {
    let file = git_dir.join("commondir");
    if fs::symlink_metadata(&file).is_err() {
        return Ok(real_path::resolve_links(git_dir));
    }
    let bytes = read_file(&file, u64::MAX)?;
    if bytes.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let path = git_dir.join(c_string(trim_line_ends(&bytes)));
    match fs::canonicalize(&path) {
        // Only the last name may be missing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = path.parent().map_or(Err(error), fs::canonicalize)?;
            Ok(above.join(path.file_name().unwrap_or_default()))
        }
        found => found,
    }
}

/// Returns the common directory of the repository at this path; `None` if git does not accept the
/// directory as a repository. The directory need not be named `.git`.
///
/// # Errors
/// Git stops because it cannot read one of the repository's files.
pub fn common_dir_if_valid(directory: &Path) -> io::Result<Option<PathBuf>> {
    if !has_valid_head(directory)? {
        return Ok(None);
    }
    let common = common_dir(directory)?;
    let mut parts = ["objects", "refs"].iter();
    let valid = parts.all(|part| access(common.join(part), Access::EXEC_OK).is_ok());
    Ok(valid.then_some(common))
}

/// Returns whether `HEAD` names a branch or an object.
fn has_valid_head(directory: &Path) -> io::Result<bool> {
    let head = directory.join("HEAD");
    let Ok(metadata) = fs::symlink_metadata(&head) else {
        return Ok(false);
    };
    if metadata.is_symlink() {
        let target = fs::read_link(&head).unwrap_or_default();
        return Ok(target.as_os_str().as_bytes().starts_with(b"refs/"));
    }
    if metadata.is_dir() {
        return Ok(false);
    }
    let text = match read_start(&head, MAX_HEAD) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
        Err(error) => return Err(error),
    };
    if let Some(name) = text.strip_prefix(b"ref:") {
        let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let start = name.iter().take_while(space).count();
        if name[start..].starts_with(b"refs/") {
            return Ok(true);
        }
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit());
    Ok(digits.count() >= MIN_OBJECT_NAME)
}

/// Returns whether git could accept this directory as a repository after at most one part is added: it has two of
/// `HEAD`, `objects` and `refs`, or `HEAD` and `commondir`. Only the names are checked, because their contents can
/// change later.
pub fn has_repository_parts(directory: &Path) -> bool {
    has_parts(&|name| fs::symlink_metadata(directory.join(name)).is_ok())
}

/// Like [`has_repository_parts`], but as if the directory also had an entry with this name.
pub fn has_repository_parts_with(directory: &Path, added: &OsStr) -> bool {
    has_parts(&|name| {
        added.eq_ignore_ascii_case(name) || fs::symlink_metadata(directory.join(name)).is_ok()
    })
}

fn has_parts(has: &dyn Fn(&str) -> bool) -> bool {
    let parts = ["HEAD", "objects", "refs"].map(has);
    let count = parts.iter().filter(|part| **part).count();
    count >= 2 || (parts[0] && has("commondir"))
}

/// Returns the contents of a regular file of at most `max` bytes.
fn read_file(file: &Path, max: u64) -> io::Result<Vec<u8>> {
    if fs::metadata(file)?.len() > max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    read_start(file, max)
}

/// Returns the first bytes of a regular file. Any other file is an error.
fn read_start(file: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(file)?.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Removes trailing line ends. A trailing space belongs to the name.
fn trim_line_ends(bytes: &[u8]) -> &[u8] {
    let is_line_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let end = bytes.iter().rposition(|byte| !is_line_end(byte));
    end.map_or(&bytes[..0], |end| &bytes[..=end])
}

/// Returns the bytes up to the first NUL, where a C string ends.
fn c_string(bytes: &[u8]) -> &OsStr {
    let end = bytes.iter().position(|byte| *byte == 0);
    OsStr::from_bytes(&bytes[..end.unwrap_or(bytes.len())])
}

#[cfg(test)]
#[path = "git_repository_tests.rs"]
mod tests;
