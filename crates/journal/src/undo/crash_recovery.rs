//! Recovery of changes that were interrupted because a session was killed.
//!
//! A session recovers its own journal when it is opened again. If it is never opened again, the
//! next session of its project does that. Only journals that were written since the last recovery
//! are read, so many old sessions cost little.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{RecoveredUnit, UndoHistory};

/// The name of a file whose modification time is the time up to which all journals are recovered.
const SETTLED: &str = ".undo-settled";
/// The coarsest time resolution of file systems.
const STEP: Duration = Duration::from_secs(2);

/// Recovers the undo journals `SESSION/undo` of all sessions in `project`. If a journal cannot be
/// recovered now, the next call tries again.
pub fn settle_crashed(project: &Path) -> Vec<RecoveredUnit> {
    let now = SystemTime::now();
    let mark = project.join(SETTLED);
    let written = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    let settled = written(&mark);
    let (mut recovered, mut any, mut all) = (Vec::new(), false, true);
    for session in fs::read_dir(project).into_iter().flatten().flatten() {
        let history = UndoHistory::open(session.path().join("undo"));
        let interrupted = history.abandoned_candidates();
        let written = match (written(&history.store().log_path()), interrupted.is_empty()) {
            (Some(written), true) => written,
            (None, true) => continue,
            // A command was interrupted, or runs in another process.
            (_, false) => now,
        };
        if settled.is_none_or(|settled| written + STEP >= settled) {
            any = true;
            match history.recover() {
                Ok(more) => recovered.extend(more),
                Err(_) => all = false,
            }
        }
    }
    if any && all {
        // Without the mark, the same journals are read again, which only takes time.
        let _ = File::create(mark).and_then(|mark| mark.set_modified(now));
    }
    recovered
}
