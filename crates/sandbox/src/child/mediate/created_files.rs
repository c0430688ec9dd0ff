//! The files that a command has created, and the paths that it must not change.

use std::{
    cell::RefCell,
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use haft_witness::FileId;

use super::perform::NameLocation;

/// The files that a command has created under guarded names.
#[derive(Default)]
pub(super) struct CreatedFiles(RefCell<HashSet<FileId>>);

impl CreatedFiles {
    pub(super) fn record(&self, file: Option<FileId>) {
        self.0.borrow_mut().extend(file);
    }

    pub(super) fn remove(&self, file: Option<FileId>) {
        if let Some(file) = file {
            self.0.borrow_mut().remove(&file);
        }
    }

    /// Returns the identity of the file at this place, if the command has created it.
    pub(super) fn known(&self, place: &NameLocation) -> Option<FileId> {
        if self.0.borrow().is_empty() {
            return None;
        }
        let found = FileId::from_entry(&place.directory, &place.name)?;
        self.0.borrow().contains(&found).then_some(found)
    }
}

/// Paths that a command must not change, regardless of their current contents. Read-only mounts
/// alone are not enough: each protects the file that it was made over, and disappears with that
/// file if a process outside replaces it.
#[derive(Default)]
pub(super) struct ImmutablePaths {
    paths: HashSet<PathBuf>,
    /// The directories above those paths, up to their writable directory.
    above: HashSet<PathBuf>,
}

impl ImmutablePaths {
    pub(super) fn new(paths: &[PathBuf], roots: &[PathBuf]) -> Self {
        // Both the given paths and the real paths that they lead to.
        let real = paths.iter().filter_map(|path| fs::canonicalize(path).ok());
        let paths: HashSet<PathBuf> = real.chain(paths.iter().cloned()).collect();
        let above = paths.iter().flat_map(|path| {
            let root = roots.iter().find(|root| path.starts_with(root));
            let above = path.ancestors().skip(1);
            above.take_while(move |above| root.is_some_and(|root| above.starts_with(root)))
        });
        Self {
            above: above.map(Path::to_path_buf).collect(),
            paths,
        }
    }

    /// Returns whether the path is one of them or below one.
    pub(super) fn includes(&self, path: &Path) -> bool {
        !self.paths.is_empty() && path.ancestors().any(|above| self.paths.contains(above))
    }

    /// Returns whether removing this path would remove one of them.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.above.contains(path) || self.includes(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_kept_with_what_is_below_and_above_it() {
        let kept = ImmutablePaths::new(&["/w/a/b/c".into()], &["/w".into()]);
        let cases = [
            ("/w/a/b/c", true, true),
            ("/w/a/b/c/d", true, true),
            ("/w/a/b", false, true),
            ("/w", false, true),
            ("/", false, false),
            ("/w/a/b/d", false, false),
            ("/w/a/b/cc", false, false),
        ];
        for (path, includes, holds) in cases {
            let path = Path::new(path);
            assert_eq!(kept.includes(path), includes, "{path:?}");
            assert_eq!(kept.holds(path), holds, "{path:?}");
        }
    }
}
