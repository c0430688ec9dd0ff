//! What sessions of the same project left half done when they were killed.
//!
//! A session settles its own journal when it is opened again; one that is never opened again is
//! settled by the next session of its project. Only journals that were written since the last time
//! are looked at: of many old sessions none costs more than a glance.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::undo::{History, Recovered};

/// Its time says up to when all journals are settled.
const SETTLED: &str = ".undo-settled";
/// File systems keep time in steps as coarse as this.
const STEP: Duration = Duration::from_secs(2);

/// Settles the undo journals `SESSION/undo` of all sessions in `project`. What cannot be settled
/// now is tried again the next time.
pub fn settle_crashed(project: &Path) -> Vec<Recovered> {
    let now = SystemTime::now();
    let mark = project.join(SETTLED);
    let settled = fs::metadata(&mark).and_then(|mark| mark.modified()).ok();
    let is_new = |written: SystemTime| settled.is_none_or(|settled| written + STEP >= settled);
    let (mut recovered, mut any, mut all) = (Vec::new(), false, true);
    for session in fs::read_dir(project).into_iter().flatten().flatten() {
        let folder = session.path().join("undo");
        if last_written(&folder).is_ok_and(is_new) {
            any = true;
            match History::open(folder).recover() {
                Ok(more) => recovered.extend(more),
                Err(_) => all = false,
            }
        }
    }
    if any && all {
        // Without the mark the same journals are looked at again; that is all.
        let _ = File::create(mark).and_then(|mark| mark.set_modified(now));
    }
    recovered
}

/// When something in a folder was last written.
fn last_written(folder: &Path) -> io::Result<SystemTime> {
    let mut last = fs::metadata(folder)?.modified()?;
    for entry in fs::read_dir(folder)? {
        last = last.max(entry?.metadata()?.modified()?);
    }
    Ok(last)
}
