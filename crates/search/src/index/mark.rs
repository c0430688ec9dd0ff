//! By what a file is known to be the one that was read.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Stat, statat};

use crate::handle::{EntryKind, kind_of};

/// A change within this time of an earlier one may leave the same times behind: clocks of file
/// systems tick as coarsely as 10 ms.
const TICK: Duration = Duration::from_millis(40);

/// Which file it is and when it changed. The time of the last change of anything (ctime) cannot be
/// set by a program, so one that restores the time of its content does not hide it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: (i64, u32),
    pub(crate) changed: (i64, u32),
}

impl Mark {
    #[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(crate) fn of(found: &Stat) -> Self {
        Self {
            device: found.st_dev as u64,
            inode: found.st_ino as u64,
            size: found.st_size as u64,
            modified: (found.st_mtime as i64, found.st_mtime_nsec as u32),
            changed: (found.st_ctime as i64, found.st_ctime_nsec as u32),
        }
    }

    /// Would a change after this moment be seen by the times? Not if the last one was just before
    /// it, or is in its future, as after the clock was set back.
    pub(crate) fn is_settled(&self, moment: SystemTime) -> bool {
        let before = moment.checked_sub(TICK).unwrap_or(UNIX_EPOCH);
        let before = before.duration_since(UNIX_EPOCH).unwrap_or_default();
        let before = (before.as_secs() as i64, before.subsec_nanos());
        self.changed < before && self.modified < before
    }

    pub(crate) fn modified(&self) -> SystemTime {
        let whole = Duration::from_secs(self.modified.0.unsigned_abs());
        let moment = match self.modified.0 >= 0 {
            true => UNIX_EPOCH.checked_add(whole),
            false => UNIX_EPOCH.checked_sub(whole),
        };
        moment
            .and_then(|moment| moment.checked_add(Duration::from_nanos(u64::from(self.modified.1))))
            .unwrap_or(UNIX_EPOCH)
    }
}

/// A file that is not watched and must be looked at before each answer.
#[derive(Debug)]
pub(crate) struct Guarded {
    path: Box<Path>,
    seen: Option<Mark>,
    is_settled: bool,
}

impl Guarded {
    /// A file that was read at this moment or later.
    pub(crate) fn new(path: &Path, read: SystemTime) -> Self {
        let seen = look(path);
        Self {
            path: path.into(),
            is_settled: seen.is_none_or(|mark| mark.is_settled(read)),
            seen,
        }
    }

    /// Is it certainly what it was?
    pub(crate) fn is_same(&self) -> bool {
        self.is_settled && look(&self.path) == self.seen
    }
}

/// A directory counts as the same whatever is in it.
fn look(path: &Path) -> Option<Mark> {
    let found = statat(CWD, path, AtFlags::empty()).ok()?;
    let mark = Mark::of(&found);
    Some(match kind_of(&found) {
        Some(EntryKind::Directory) => Mark {
            device: mark.device,
            inode: mark.inode,
            ..Mark::default()
        },
        _ => mark,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_just_now_or_in_the_future_is_not_settled() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let at = |seconds: i64| (now.as_secs() as i64 + seconds, now.subsec_nanos());
        let mark = |modified, changed| Mark {
            modified: at(modified),
            changed: at(changed),
            ..Mark::default()
        };
        let now = SystemTime::now();
        assert!(mark(-10, -10).is_settled(now));
        assert!(!mark(-10, 0).is_settled(now));
        assert!(!mark(-10, 100).is_settled(now), "the clock was set back");
        assert!(!mark(100, -10).is_settled(now));
    }

    #[test]
    fn guarded_files_may_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let missing = Guarded::new(&path, SystemTime::now());
        assert!(missing.is_same());
        std::fs::write(&path, "x").unwrap();
        assert!(!missing.is_same());
        assert!(
            !Guarded::new(&path, SystemTime::now()).is_same(),
            "it changed just now"
        );
        let folder = Guarded::new(dir.path(), SystemTime::now());
        std::fs::write(dir.path().join("b"), "x").unwrap();
        assert!(folder.is_same());
    }
}
