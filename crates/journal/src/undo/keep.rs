//! The folder `keep/`: files that undo puts back instead of copying them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The names of logs in folders whose records are not written yet.
const LOG: &str = "log";
const OBJECTS: &str = "objects";

/// Returns a name for a folder of this call that no other process uses.
pub(crate) fn unique_name(call: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let safe = |c: char| match c.is_ascii_alphanumeric() || c == '_' {
        true => c,
        false => '-',
    };
    let call: String = call.chars().take(60).map(safe).collect();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!(
        "{call}-{}-{:x}-{count}",
        std::process::id(),
        time.as_millis()
    )
}

/// Returns the stored files that no record names. Folders whose log is still there are left to
/// recovery; those of `damaged` units stay.
pub(super) fn unneeded(
    folder: &Path,
    needed: &HashSet<&Path>,
    damaged: &HashSet<&str>,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for unit in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_damaged = unit
            .file_name()
            .to_str()
            .is_some_and(|name| damaged.contains(name));
        let unit = unit.path();
        if is_damaged || unit.join(LOG).exists() {
            continue;
        }
        let mut is_used = false;
        let mut below = Vec::new();
        for entry in fs::read_dir(unit.join(OBJECTS))
            .into_iter()
            .flatten()
            .flatten()
        {
            match needed.contains(entry.path().as_path()) {
                true => is_used = true,
                false => below.push(entry.path()),
            }
        }
        match is_used {
            true => found.extend(below),
            false => found.push(unit),
        }
    }
    found
}

/// Removes a stored file, or a folder with everything in it.
pub(super) fn remove(path: &Path) {
    let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let _ = match is_directory {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
}
