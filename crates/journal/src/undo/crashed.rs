//! What sessions of the same project left half done when they were killed.
//!
//! A session settles its own journal when it is opened again; one that is never opened again is
//! settled by the next session of its project. Only journals that were written since the last time
//! are read: of many old sessions none costs more than a glance.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{Recovered, UndoHistory};

/// Its time says up to when all journals are settled.
const SETTLED: &str = ".undo-settled";
/// File systems keep time in steps as coarse as this.
const STEP: Duration = Duration::from_secs(2);

/// Settles the undo journals `SESSION/undo` of all sessions in `project`. What cannot be settled
/// now is tried again the next time.
pub fn settle_crashed(project: &Path) -> Vec<Recovered> {
    let now = SystemTime::now();
    let mark = project.join(SETTLED);
    let written = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    let settled = written(&mark);
    let (mut recovered, mut any, mut all) = (Vec::new(), false, true);
    for session in fs::read_dir(project).into_iter().flatten().flatten() {
        let history = UndoHistory::open(session.path().join("undo"));
        let Some(written) = written(&history.store().log_path()) else {
            continue;
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
        // Without the mark the same journals are read again; that is all.
        let _ = File::create(mark).and_then(|mark| mark.set_modified(now));
    }
    recovered
}
