//! A background thread that stores the preimages that could not be stored before a command. Each
//! copy is identified by its stamp, so it does not matter when it is made.

use std::sync::{Arc, Mutex, PoisonError};

use super::preimages::{PreimageBudget, PreimageStore};

/// Starts the thread, unless it is already running. It ends with the session.
pub(super) fn work_on(shelf: &Arc<Mutex<PreimageStore>>, budget: PreimageBudget) {
    {
        let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.backlog.is_empty() || shelf.is_worked_on {
            return;
        }
        shelf.is_worked_on = true;
    }
    let session = Arc::downgrade(shelf);
    let work = move || {
        while let Some(shelf) = session.upgrade() {
            if !PreimageStore::process_backlog(&shelf, budget) {
                return;
            }
        }
    };
    let begun = std::thread::Builder::new()
        .name("haft-keep".to_owned())
        .spawn(work);
    if begun.is_err() {
        let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.is_worked_on = false;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use crate::{Journal, SnapshotLimits, SnapshotScope, WriteGrant};

    #[test]
    fn what_there_was_no_time_for_is_kept_while_no_one_waits() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("w");
        for number in 0..600 {
            let directory = root.join(format!("d{}", number % 20));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(number.to_string()), number.to_string()).unwrap();
        }
        let limits = SnapshotLimits {
            scan_time: Duration::from_secs(100),
            store_time: Duration::ZERO,
            ..SnapshotLimits::default()
        };
        let journal = Journal::new(None)
            .with_undo(place.path().join("undo"))
            .with_sweep_limits(limits);
        let sweep = SnapshotScope {
            roots: vec![root.clone()],
            ..SnapshotScope::default()
        };
        // A command that begins at once and takes its time.
        let before = journal.before_command(&sweep);
        assert_eq!(before.cost().1, 0);
        let is_done = || {
            let shelf = journal.preimages.lock().unwrap();
            shelf.backlog.is_empty() && !shelf.is_worked_on
        };
        haft_testkit::until_blocking("everything is kept", is_done);
        fs::write(root.join("d7/7"), "changed").unwrap();
        let grant = WriteGrant::unconfined("call", "Bash");
        let changed = journal.after_command(before, &grant, "", &|_| false);
        assert_eq!(changed.not_restorable, []);
        assert_eq!(changed.modified.len(), 1);
        // The next one finds it all there.
        let before = journal.before_command(&sweep);
        fs::remove_dir_all(root.join("d8")).unwrap();
        let changed = journal.after_command(before, &grant, "", &|_| false);
        assert_eq!(changed.not_restorable, []);
    }

    #[test]
    fn what_there_was_no_time_to_look_at_is_looked_at_while_no_one_waits() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("w");
        fs::create_dir_all(root.join("d")).unwrap();
        fs::write(root.join("d/f"), "old").unwrap();
        let limits = |look: Duration| SnapshotLimits {
            scan_time: look,
            store_time: Duration::from_secs(100),
            ..SnapshotLimits::default()
        };
        let mut journal = Journal::new(None)
            .with_undo(place.path().join("undo"))
            .with_sweep_limits(limits(Duration::ZERO));
        let sweep = SnapshotScope {
            roots: vec![root.clone()],
            ..SnapshotScope::default()
        };
        let before = journal.before_command(&sweep);
        assert!(before.uncovered().unwrap().contains("took more than"));
        haft_testkit::until_blocking("it was looked at", || {
            journal.cached_tree.lock().unwrap().is_some()
                && !journal.preimages.lock().unwrap().is_looking
        });
        journal = journal.with_sweep_limits(limits(Duration::from_secs(100)));
        let before = journal.before_command(&sweep);
        assert_eq!(before.uncovered(), None);
        fs::write(root.join("d/f"), "newer").unwrap();
        let grant = WriteGrant::unconfined("call", "Bash");
        let changed = journal.after_command(before, &grant, "", &|_| false);
        assert_eq!(
            (changed.modified.len(), changed.not_restorable.len()),
            (1, 0)
        );
    }
}
