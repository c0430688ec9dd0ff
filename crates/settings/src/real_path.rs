//! Real paths: resolving symbolic links.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// The maximum number of links; the kernel has the same limit.
const MAX_LINKS: usize = 40;

/// Resolves every link and every `..` of a path. The end of the path need not exist: a file that is
/// about to be created has a real path, too.
pub fn resolve_links(path: &Path) -> PathBuf {
    if is_deep_and_plain(path) && leads_to_itself(path) {
        return path.to_path_buf();
    }
    fs::canonicalize(path).unwrap_or_else(|_| walk(path))
}

/// Like [`resolve_links`], but with a cache, for a directory that is resolved at every call: instead of
/// every name of the path, only the directory itself is checked.
///
/// The result is safe for paths below it: the cached and the given path were just found to be the
/// same directory.
pub fn real_directory(path: &Path) -> PathBuf {
    static KNOWN: Mutex<Vec<KnownDirectory>> = Mutex::new(Vec::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(found) = identity(path).filter(|_| path.is_absolute()) else {
        return resolve_links(path);
    };
    let is_known = |known: &KnownDirectory| known.path.as_os_str() == path.as_os_str();
    let kept = known().iter().find(|known| is_known(known)).map(|kept| {
        // Mostly both paths are equal, so a copy is not needed.
        let real = kept.real.as_os_str() != path.as_os_str();
        (kept.identity, real.then(|| kept.real.clone()))
    });
    match kept {
        Some((identity, None)) if identity == found => return path.to_path_buf(),
        Some((known, Some(real))) if known == found && identity(&real) == Some(found) => {
            return real;
        }
        _ => {}
    }
    let real = resolve_links(path);
    let mut known = known();
    known.retain(|known| !is_known(known));
    if known.len() >= MAX_KNOWN {
        known.remove(0);
    }
    known.push(KnownDirectory {
        path: path.to_path_buf(),
        real: real.clone(),
        identity: found,
    });
    real
}

/// The maximum number of cached directories; a session has only a few.
const MAX_KNOWN: usize = 16;

#[derive(Clone)]
struct KnownDirectory {
    path: PathBuf,
    real: PathBuf,
    identity: (u64, u64),
}

/// Returns device and inode, which identify an existing directory.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
    Some((found.dev(), found.ino()))
}

/// Checking every name of a path for links takes one system call per name. For paths with at least
/// `DEEP` names it is cheaper to ask the kernel once whether there is any link.
const DEEP: usize = 3;

/// Returns whether the path is plain (see [`is_plain`]) and has many names.
fn is_deep_and_plain(path: &Path) -> bool {
    let names = || path.as_os_str().as_encoded_bytes().iter();
    is_plain(path) && names().filter(|byte| **byte == b'/').count() >= DEEP
}

/// Returns whether the path is absolute and has only names, separated by single slashes. Then its
/// text can be compared and copied instead of its components, which is much faster. Nearly all
/// paths are like this, and each call checks several.
pub fn is_plain(path: &Path) -> bool {
    let Some(rest) = path.as_os_str().as_encoded_bytes().strip_prefix(b"/") else {
        return false;
    };
    let is_name = |length: usize, dots: usize| length > 2 || dots < length;
    let (mut length, mut dots) = (0, 0);
    for byte in rest {
        if *byte == b'/' {
            if !is_name(length, dots) {
                return false;
            }
            (length, dots) = (0, 0);
        } else {
            length += 1;
            dots += usize::from(*byte == b'.');
        }
    }
    is_name(length, dots)
}

/// Returns whether a path is this directory or below it. Like `starts_with`, but compares the texts
/// if possible.
pub fn is_below(path: &Path, directory: &Path) -> bool {
    if !is_plain(path) || !is_plain(directory) {
        return path.starts_with(directory);
    }
    let rest = path
        .as_os_str()
        .as_encoded_bytes()
        .strip_prefix(directory.as_os_str().as_encoded_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Returns whether the file exists and no part of the path is a link.
#[cfg(target_os = "linux")]
fn leads_to_itself(path: &Path) -> bool {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    // Without `NOFOLLOW`, because with it a link at the end would be opened itself.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // This opens only the path, not the file. If the kernel lacks the call, every name is checked
    // instead.
    openat2(CWD, path, flags, Mode::empty(), resolve).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn leads_to_itself(_: &Path) -> bool {
    false
}

/// Removes `.` and `..` from a path without accessing the file system.
pub fn normalize(path: &Path) -> PathBuf {
    if is_plain(path) {
        return path.to_path_buf();
    }
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

fn walk(path: &Path) -> PathBuf {
    let mut real = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = parts(path);
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(part);
        match fs::read_link(&next) {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                for part in parts(&target).into_iter().rev() {
                    rest.push_front(part);
                }
            }
            _ => real = next,
        }
    }
    real
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What lies below the answer must lie in the directory that the path leads to now, whatever was there before.
    #[test]
    fn a_directory_that_is_asked_for_again_is_found_where_it_is_now() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for name in ["one", "two", "three/deep"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let link = root.join("link");
        let point = |to: &str| {
            let _ = fs::remove_file(&link);
            symlink(root.join(to), &link).unwrap();
        };
        let holds = |path: &Path, expected: &str| {
            for _ in 0..2 {
                assert_eq!(
                    real_directory(path),
                    root.join(expected),
                    "{}",
                    path.display()
                );
            }
        };
        holds(&root.join("one"), "one");
        point("one");
        holds(&link, "one");
        point("two");
        holds(&link, "two");
        // The same directory under another name, and another one under its old name.
        fs::rename(root.join("two"), root.join("moved")).unwrap();
        fs::create_dir(root.join("two")).unwrap();
        point("moved");
        holds(&link, "moved");
        point("three/deep");
        holds(&link, "three/deep");
        fs::rename(root.join("three"), root.join("four")).unwrap();
        fs::create_dir_all(root.join("three/deep")).unwrap();
        holds(&link, "three/deep");
        point("four/deep");
        holds(&link, "four/deep");
        // A directory that is a link now.
        fs::rename(root.join("one"), root.join("other")).unwrap();
        symlink(root.join("other"), root.join("one")).unwrap();
        let now = real_directory(&root.join("one"));
        assert!(
            !now.join("x").starts_with(root.join("two")),
            "{}",
            now.display()
        );
        fs::remove_dir(root.join("other")).unwrap();
        assert_eq!(real_directory(&root.join("one")), root.join("other"));
        // More of them than are remembered.
        for number in 0..2 * MAX_KNOWN {
            let name = format!("n{number}");
            fs::create_dir(root.join(&name)).unwrap();
            holds(&root.join(&name), &name);
        }
    }

    #[test]
    fn what_the_text_says_is_what_the_components_say() {
        let paths = [
            "/", "/a", "/a/", "/a/b", "/a//b", "/a/./b", "/a/.b", "/a/..", "/a/../b", "/ab", "a",
            "a/b", "", ".", "//a", "/a/b/c", "/a/b.c", "/.a", "/ä/b",
        ];
        for path in paths.map(Path::new) {
            let has_only_names = || {
                let rebuilt: PathBuf = path.components().collect();
                let mut parts = path.components();
                parts.next() == Some(Component::RootDir)
                    && parts.all(|part| matches!(part, Component::Normal(_)))
                    && rebuilt.as_os_str() == path.as_os_str()
            };
            assert!(!is_plain(path) || has_only_names(), "{}", path.display());
            for directory in paths.map(Path::new) {
                assert_eq!(
                    is_below(path, directory),
                    path.starts_with(directory),
                    "{} below {}",
                    path.display(),
                    directory.display()
                );
            }
        }
    }

    #[test]
    fn links_are_followed_also_to_what_does_not_exist_yet() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink(root.join("a"), root.join("absolute")).unwrap();
        symlink("a/b", root.join("relative")).unwrap();
        symlink("../gone/file", root.join("a/dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        fs::create_dir_all(root.join("deep/deep/deep/deep")).unwrap();
        symlink("..", root.join("deep/deep/deep/up")).unwrap();
        let cases = [
            ("deep/deep/deep/deep", "deep/deep/deep/deep"),
            ("deep/deep/deep/up", "deep/deep"),
            ("deep/deep/deep/up/deep", "deep/deep/deep"),
            ("deep/deep/./deep/..", "deep/deep"),
            ("deep//deep/deep/deep/", "deep/deep/deep/deep"),
            ("deep/deep/deep/none", "deep/deep/deep/none"),
            ("a/b", "a/b"),
            ("absolute/b/new.txt", "a/b/new.txt"),
            ("relative/../c", "a/c"),
            ("absolute/dangling", "gone/file"),
            ("missing/../x", "x"),
            ("relative/new/deep", "a/b/new/deep"),
        ];
        for (given, expected) in cases {
            assert_eq!(
                resolve_links(&root.join(given)),
                root.join(expected),
                "{given}"
            );
        }
        // No answer is right for a loop; what matters is that there is one.
        resolve_links(&root.join("loop"));
    }
}
