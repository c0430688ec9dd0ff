//! Read access by path, for mechanisms that cannot hide files with mounts: grants everything except
//! closed and hidden paths.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::ClosedDirectories;

/// The maximum number of entries of a directory that are granted one by one. In a larger directory
/// only those entries are considered that contain, or are in, a closed, open or hidden path. The
/// other entries cannot be read.
const MAX_COUNT: usize = 4096;

/// Returns paths that together contain everything that may be read: everything outside of closed
/// and hidden paths, and the open paths in closed directories. No returned path contains one that
/// must not be read. A directory above a closed or hidden path is replaced by its entries: a
/// command can walk through it by name but not list it.
///
/// Files that are created later in a replaced directory cannot be read. Symlinks are returned
/// without being followed: their target is granted or not by its own path.
pub fn readable(closed: &ClosedDirectories, hidden: &[PathBuf], open: &[PathBuf]) -> Vec<PathBuf> {
    let open: Vec<PathBuf> = closed
        .open
        .iter()
        .chain(open)
        .map(|path| real(path))
        .collect();
    let shut: Vec<PathBuf> = closed
        .directories
        .iter()
        .map(|path| real(path))
        .filter(|path| !open.iter().any(|open| path.starts_with(open)))
        .collect();
    let parts = ReadableParts {
        shut,
        open,
        hidden: hidden.iter().map(|path| real(path)).collect(),
    };
    let mut found = Vec::new();
    parts.gather(Path::new("/"), &mut found);
    found.sort_unstable();
    found
}

struct ReadableParts {
    shut: Vec<PathBuf>,
    open: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
}

impl ReadableParts {
    fn gather(&self, path: &Path, found: &mut Vec<PathBuf>) {
        if self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            return;
        }
        let below = |list: &[PathBuf]| list.iter().any(|one| one.starts_with(path));
        let is_open = self.is_open(path);
        if is_open && !below(&self.hidden) && !below(&self.shut) {
            found.push(path.to_path_buf());
            return;
        }
        if !is_open && !below(&self.open) {
            return;
        }
        // A directory that cannot be listed is not granted.
        let Ok(entries) = fs::read_dir(path) else {
            return;
        };
        let entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let wide = entries.len() > MAX_COUNT;
        for entry in entries {
            if wide && !self.concerns(&entry) {
                continue;
            }
            self.gather(&entry, found);
        }
    }

    /// Returns whether the innermost closed or open directory around this path is an open one.
    fn is_open(&self, path: &Path) -> bool {
        let deepest = |list: &[PathBuf]| {
            let holding = list.iter().filter(|one| path.starts_with(one));
            holding.map(|one| one.components().count()).max()
        };
        match (deepest(&self.shut), deepest(&self.open)) {
            (Some(shut), Some(open)) => open >= shut,
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    fn concerns(&self, path: &Path) -> bool {
        let lists = [&self.shut, &self.open, &self.hidden];
        lists
            .into_iter()
            .flatten()
            .any(|one| one.starts_with(path) || path.starts_with(one))
    }
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Tree {
        _dir: tempfile::TempDir,
        root: PathBuf,
    }

    impl Tree {
        fn new(files: &[&str]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            for file in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            Self { _dir: dir, root }
        }

        fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
            names.iter().map(|name| self.root.join(name)).collect()
        }

        /// What of the tree may be read; and whether everything outside of it may.
        fn readable(&self, closed: &[&str], hidden: &[&str], open: &[&str]) -> Vec<String> {
            let closed = ClosedDirectories {
                directories: self.paths(closed),
                ..ClosedDirectories::default()
            };
            let all = readable(&closed, &self.paths(hidden), &self.paths(open));
            let inside = all
                .iter()
                .filter_map(|path| path.strip_prefix(&self.root).ok());
            let inside = inside
                .map(|path| path.to_str().unwrap().to_owned())
                .collect();
            for path in ["/usr", "/etc"] {
                let covers = |one: &PathBuf| Path::new(path).starts_with(one);
                assert!(all.iter().any(covers), "{path}: {all:?}");
            }
            inside
        }
    }

    const FILES: &[&str] = &[
        "home/.ssh/id",
        "home/notes",
        "home/.cargo/bin/x",
        "home/.cargo/credentials.toml",
        "home/work/src/a.rs",
        "home/work/.env",
        "data/x",
    ];

    #[test]
    fn everything_is_readable_where_nothing_is_closed_or_hidden() {
        let all = readable(&ClosedDirectories::default(), &[], &[]);
        assert_eq!(all, [Path::new("/")]);
    }

    #[test]
    fn what_is_hidden_is_left_out_and_its_neighbours_are_not() {
        let tree = Tree::new(FILES);
        assert_eq!(
            tree.readable(&[], &["home/.ssh", "home/work/.env"], &[]),
            ["data", "home/.cargo", "home/notes", "home/work/src"]
        );
    }

    #[test]
    fn of_a_closed_directory_only_what_is_open_is_left_without_what_is_hidden() {
        let tree = Tree::new(FILES);
        assert_eq!(tree.readable(&["home"], &["home/.ssh"], &[]), ["data"]);
        assert_eq!(
            tree.readable(
                &["home"],
                &["home/.ssh", "home/.cargo/credentials.toml"],
                &["home/work", "home/.cargo"]
            ),
            ["data", "home/.cargo/bin", "home/work"]
        );
        // What is open holds the closed directory: then it is not closed, and nothing is taken apart.
        assert!(tree.readable(&["home/work"], &[], &["home"]).is_empty());
        // Nothing is left of it.
        assert_eq!(
            tree.readable(&["home"], &["home/.ssh/id"], &["home/.ssh"]),
            ["data"]
        );
    }

    #[test]
    fn a_link_opens_nothing_but_itself() {
        let tree = Tree::new(FILES);
        symlink(tree.root.join("home/.ssh"), tree.root.join("data/link")).unwrap();
        symlink(
            tree.root.join("home/notes"),
            tree.root.join("home/work/notes"),
        )
        .unwrap();
        let found = tree.readable(&["home"], &[], &["home/work"]);
        assert_eq!(found, ["data", "home/work"]);
        // Opened by a link, a file is opened where it is.
        symlink(tree.root.join("home/notes"), tree.root.join("home/alias")).unwrap();
        let found = tree.readable(&["home"], &[], &["home/alias"]);
        assert_eq!(found, ["data", "home/notes"]);
    }
}
