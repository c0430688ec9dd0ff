//! What a command has made, and what is kept from it by its name.

use std::{
    cell::RefCell,
    collections::HashSet,
    ffi::OsStr,
    fs,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, StatxFlags, statx};

use super::act::Place;

/// A file, told from one that has got its number since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct MadeIdentity {
    device: (u32, u32),
    number: u64,
    /// Where the file system knows it.
    born: Option<(i64, u32)>,
}

impl MadeIdentity {
    /// Of what has this name in a directory, a link as itself; without a name, of the file.
    pub(super) fn of(file: impl AsFd, name: &OsStr) -> Option<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let found = statx(file, name, flags, wanted).ok()?;
        let birth = (found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
        Some(Self {
            device: (found.stx_dev_major, found.stx_dev_minor),
            number: found.stx_ino,
            born: StatxFlags::from_bits_retain(found.stx_mask)
                .contains(StatxFlags::BTIME)
                .then_some(birth),
        })
    }
}

/// What a command has made under names that are guarded.
#[derive(Default)]
pub(super) struct MadeFiles(RefCell<HashSet<MadeIdentity>>);

impl MadeFiles {
    pub(super) fn note(&self, file: Option<MadeIdentity>) {
        self.0.borrow_mut().extend(file);
    }

    pub(super) fn forget(&self, file: Option<MadeIdentity>) {
        if let Some(file) = file {
            self.0.borrow_mut().remove(&file);
        }
    }

    /// What is in this place, if the command has made it.
    pub(super) fn known(&self, place: &Place) -> Option<MadeIdentity> {
        if self.0.borrow().is_empty() {
            return None;
        }
        let found = MadeIdentity::of(&place.directory, &place.name)?;
        self.0.borrow().contains(&found).then_some(found)
    }
}

/// Paths that a command may not change, whatever lies there by now: mounts keep what was there when it
/// began, and go with that when it is replaced from outside.
#[derive(Default)]
pub(super) struct KeptPaths {
    paths: HashSet<PathBuf>,
    /// The directories on the way to them.
    above: HashSet<PathBuf>,
}

impl KeptPaths {
    pub(super) fn new(paths: &[PathBuf], roots: &[PathBuf]) -> Self {
        // By their names, and where links lead.
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

    /// Is it one, or in one?
    pub(super) fn includes(&self, path: &Path) -> bool {
        !self.paths.is_empty() && path.ancestors().any(|above| self.paths.contains(above))
    }

    /// Would one of them not be there any more, if this was not?
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.above.contains(path) || self.includes(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_kept_with_what_is_below_and_above_it() {
        let kept = KeptPaths::new(&["/w/a/b/c".into()], &["/w".into()]);
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

    #[test]
    fn a_file_is_told_from_another_of_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let directory = fs::File::open(dir.path()).unwrap();
        let path = dir.path().join("a");
        let of = || MadeIdentity::of(&directory, OsStr::new("a"));
        assert_eq!(of(), None);
        fs::write(&path, "").unwrap();
        let first = of();
        assert!(first.is_some());
        let open = fs::File::open(&path).unwrap();
        assert_eq!(MadeIdentity::of(&open, OsStr::new("")), first);
        fs::write(dir.path().join("b"), "").unwrap();
        fs::rename(dir.path().join("b"), &path).unwrap();
        assert_ne!(of(), first);
    }
}
