//! Temporary files of processes that were killed, and with them everything that would have removed the files.

use std::{
    fs::{self, File},
    os::unix::fs::{DirBuilderExt, symlink},
    path::{Path, PathBuf},
};

use haft_sandbox::{Mechanism, Sandbox, SandboxSetup, ScratchLease, ShellCommand};

use super::{
    driver::{Driver, profiles},
    read_until, setup,
};
use crate::outside::{is_there, until};

/// The driver's part: a command in each profile, with a file in the folder for temporary files.
pub(super) async fn hold_scratch(dir: &Path, best: Mechanism) {
    let parent = fs::canonicalize(dir.join("tmp")).unwrap();
    let folder = ScratchLease::create(&parent).unwrap();
    let sandbox = Sandbox::new(SandboxSetup {
        scratch: folder.path().to_path_buf(),
        ..setup(dir, best)
    });
    let mut running = Vec::new();
    for profile in profiles(dir) {
        let line = ShellCommand {
            text: "mktemp -p \"${TMPDIR:-$PLACE}\"; echo ready; exec sleep 1000".to_owned(),
            cwd: dir.to_owned(),
            source_file: None,
            name_policy: None,
        };
        let mut command = sandbox.start(&profile, line).await.unwrap();
        read_until(&mut command, "ready\n").await;
        running.push(command);
    }
    fs::write(dir.join("ready"), "").unwrap();
    std::future::pending::<()>().await;
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).unwrap().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[tokio::test]
async fn the_next_start_removes_the_temporary_files_of_killed_processes_and_no_others() {
    for best in [Mechanism::Namespaces, Mechanism::Reduced] {
        let parent = tempfile::tempdir().unwrap();
        let mut driver = Driver::start_in("hold_scratch", best, parent.path());
        driver.running().await;
        let held = folders(parent.path());
        assert_eq!(held.len(), 1, "{held:?}");
        assert!(fs::read_dir(&held[0]).unwrap().count() > 0);

        // One start while they run.
        let dead = parent.path().join("haft-tmp-0123456789abcdef");
        fs::DirBuilder::new().mode(0o700).create(&dead).unwrap();
        drop(ScratchLease::create(parent.path()).unwrap());
        until("the abandoned folder is removed", || !dead.exists()).await;
        assert_eq!(folders(parent.path()), held);

        // All of them are killed, those first that would remove the files. Then another start.
        let started = driver.below();
        driver.kill_all();
        until("all are dead", || !started.iter().any(is_there)).await;
        assert_eq!(folders(parent.path()), held);
        // A killed process keeps its files until its last thread has ended, which may be after its first one.
        until("its lock is released", || {
            File::open(&held[0]).unwrap().try_lock().is_ok()
        })
        .await;
        let other_name = driver.dir.path().join("other-name");
        symlink(parent.path(), &other_name).unwrap();
        let next = ScratchLease::create(&other_name).unwrap();
        until("their folder is removed", || !held[0].exists()).await;
        assert!(next.path().exists());
        drop(next);
        assert_eq!(folders(parent.path()), Vec::<PathBuf>::new());
        driver.nothing_left(&started).await;
    }
}
