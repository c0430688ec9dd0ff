//! Where a path really leads.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs,
    path::{Component, Path, PathBuf},
};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// The path with every link followed and every `..` taken away, also where its end (or more of it)
/// does not exist yet: a file about to be created has a real path too.
pub fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| walk(path))
}

/// The path without `.` and `..`, by its text alone.
pub fn lexical(path: &Path) -> PathBuf {
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
            Ok(target) if links < MOST_LINKS => {
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

    #[test]
    fn links_are_followed_also_to_what_does_not_exist_yet() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink(root.join("a"), root.join("absolute")).unwrap();
        symlink("a/b", root.join("relative")).unwrap();
        symlink("../gone/file", root.join("a/dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let cases = [
            ("a/b", "a/b"),
            ("absolute/b/new.txt", "a/b/new.txt"),
            ("relative/../c", "a/c"),
            ("absolute/dangling", "gone/file"),
            ("missing/../x", "x"),
            ("relative/new/deep", "a/b/new/deep"),
        ];
        for (given, expected) in cases {
            assert_eq!(real(&root.join(given)), root.join(expected), "{given}");
        }
        // No answer is right for a loop; what matters is that there is one.
        real(&root.join("loop"));
    }
}
