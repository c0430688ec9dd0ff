//! The fingerprint of a file, which shows whether the file is still the one that was read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// Two changes within this time may leave the same timestamps: file system clocks can tick as
/// coarsely as every 10 ms.
const TICK: Duration = Duration::from_millis(40);

/// The identity of a file and its times of change. Programs cannot set the ctime, so a program that
/// restores the modification time does not hide a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileFingerprint {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: (i64, u32),
    pub(crate) changed: (i64, u32),
}

impl FileFingerprint {
    #[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(crate) fn from_stat(found: &Stat) -> Self {
        Self {
            device: found.st_dev as u64,
            inode: found.st_ino as u64,
            size: found.st_size as u64,
            modified: (found.st_mtime as i64, found.st_mtime_nsec as u32),
            changed: (found.st_ctime as i64, found.st_ctime_nsec as u32),
        }
    }

    /// Returns whether a change after `time` would show in the timestamps. It would not if the
    /// last change was just before `time` or is in the future, as after the clock was set back.
    pub(crate) fn is_settled(&self, time: SystemTime) -> bool {
        let before = time.checked_sub(TICK).unwrap_or(UNIX_EPOCH);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_just_now_or_in_the_future_is_not_settled() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let at = |seconds: i64| (now.as_secs() as i64 + seconds, now.subsec_nanos());
        let mark = |modified, changed| FileFingerprint {
            modified: at(modified),
            changed: at(changed),
            ..FileFingerprint::default()
        };
        let now = SystemTime::now();
        assert!(mark(-10, -10).is_settled(now));
        assert!(!mark(-10, 0).is_settled(now));
        assert!(!mark(-10, 100).is_settled(now), "the clock was set back");
        assert!(!mark(100, -10).is_settled(now));
    }
}
