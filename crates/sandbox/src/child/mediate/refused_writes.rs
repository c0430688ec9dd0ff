//! The writes that were refused to a command, recorded at the call: the command's output may not
//! mention them.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

use crate::RefusedWrite;

/// The maximum number of recorded writes: a command may try many, and a longer list would not be
/// read.
const MAX_COUNT: usize = 64;

/// Kernel file systems. Users cannot allow writing there.
const NO_FILES: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The writes that a command tried and was refused.
#[derive(Default)]
pub(super) struct RefusedWrites(RefCell<Vec<RefusedWrite>>);

impl RefusedWrites {
    /// Records a refused write. Of several new files in one directory only the first is recorded:
    /// allowing one requires allowing the directory.
    pub(super) fn record(&self, path: &Path, tentative: bool) {
        if !path.is_absolute() || NO_FILES.iter().any(|place| path.starts_with(place)) {
            return;
        }
        let mut recorded = self.0.borrow_mut();
        if recorded.len() >= MAX_COUNT {
            return;
        }
        let is_new = |path: &Path| path.symlink_metadata().is_err();
        let new = is_new(path);
        let same = |known: &&mut RefusedWrite| {
            known.path == path
                || (new && known.path.parent() == path.parent() && is_new(&known.path))
        };
        match recorded.iter_mut().find(same) {
            Some(known) => known.tentative &= tentative,
            None => recorded.push(RefusedWrite {
                path: path.to_path_buf(),
                tentative,
            }),
        }
    }

    pub(super) fn all(&self) -> Vec<RefusedWrite> {
        self.0.borrow().clone()
    }
}

/// Returns the path that a call would use if it cannot be resolved: a directory on the way may
/// exist and only be hidden here.
pub(super) fn unseen(start: &Path, path: &Path) -> PathBuf {
    start.join(path).components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_noted_once_and_devices_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("old"), "").unwrap();
        std::fs::write(at("older"), "").unwrap();
        let noted = RefusedWrites::default();
        noted.record(&at("new"), false);
        noted.record(&at("newer"), false);
        noted.record(&at("old"), true);
        noted.record(&at("older"), true);
        noted.record(&at("older"), false);
        for none in ["/dev/tty", "/proc/self/mem", "/sys/x", "pipe:[7]"] {
            noted.record(Path::new(none), false);
        }
        let all = noted.all();
        let told: Vec<_> = all
            .iter()
            .map(|one| (one.path.clone(), one.tentative))
            .collect();
        let expected = [(at("new"), false), (at("old"), true), (at("older"), false)];
        assert_eq!(told, expected);
        for number in 0..1000 {
            noted.record(&at(&format!("{number}/x")), false);
        }
        assert_eq!(noted.all().len(), MAX_COUNT);
    }
}
