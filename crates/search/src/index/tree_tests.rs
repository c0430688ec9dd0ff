use std::fs;
use std::thread;
use std::time::Duration;

use super::*;

/// Whether anything is known; it is settled, so that only the file's times decide.
#[derive(Default)]
struct Remembered(bool);

impl ContentKnowledge for Remembered {
    fn is_settled(&self) -> bool {
        true
    }
}

fn read(root: &Path, watching: WatchMode) -> LiveTree<Remembered> {
    let mut tree =
        LiveTree::read(root, root, 2, watching, FileWatches::new(None), &|| false).unwrap();
    for entry in &mut tree.entries {
        entry.data = Remembered(true);
    }
    tree
}

fn known(tree: &LiveTree<Remembered>) -> Vec<String> {
    let entries = (0..tree.entries.len()).filter(|at| {
        let entry = &tree.entries[*at];
        entry.is_there && entry.kind == EntryKind::File && entry.data.0
    });
    let mut paths: Vec<String> = entries
        .map(|at| tree.path_of(at as EntryNumber).display().to_string())
        .collect();
    paths.sort();
    paths
}

#[test]
fn without_watches_all_is_looked_at_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    for name in ["a", "b", "sub/c"] {
        fs::write(root.join(name), "x").unwrap();
    }
    for (watching, refreshed) in [
        (WatchMode::Enabled, RefreshOutcome::InPlace),
        (WatchMode::RanOut, RefreshOutcome::ReadAgain),
    ] {
        let mut tree = read(&root, watching);
        assert_eq!(tree.is_watched(), watching == WatchMode::Enabled);
        assert_eq!(tree.refresh().unwrap(), refreshed);
        assert_eq!(known(&tree), ["a", "b", "sub/c"]);
        thread::sleep(Duration::from_millis(50));
        fs::write(root.join("b"), "y").unwrap();
        fs::write(root.join("sub/new"), "y").unwrap();
        assert_eq!(tree.refresh().unwrap(), refreshed);
        assert_eq!(
            known(&tree),
            ["a", "sub/c"],
            "what changed or came is not known"
        );
        assert!(tree.find(Path::new("sub")).is_some());
        fs::remove_file(root.join("sub/new")).unwrap();
    }
}

#[test]
fn nothing_is_read_again_while_nothing_but_files_changes() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let mut tree = read(&root, WatchMode::Enabled);
    for round in 0..20 {
        fs::create_dir_all(root.join("x/y/z")).unwrap();
        fs::write(root.join("x/y/f"), "x").unwrap();
        fs::write(root.join("aside"), "x").unwrap();
        fs::rename(root.join("aside"), root.join("x/y/f")).unwrap();
        assert_eq!(tree.refresh().unwrap(), RefreshOutcome::InPlace, "{round}");
        fs::rename(root.join("x"), root.join("w")).unwrap();
        fs::remove_dir_all(root.join("w")).unwrap();
        assert_eq!(tree.refresh().unwrap(), RefreshOutcome::InPlace, "{round}");
    }
}

#[test]
fn a_file_system_that_others_may_change_is_refused() {
    let read = LiveTree::<Remembered>::read(
        Path::new("/proc/self/task"),
        Path::new("/proc/self/task"),
        1,
        WatchMode::Enabled,
        FileWatches::new(None),
        &|| false,
    );
    assert!(read.is_err());
    let read = LiveTree::<Remembered>::read(
        Path::new("/sys/kernel"),
        Path::new("/"),
        1,
        WatchMode::Enabled,
        FileWatches::new(None),
        &|| false,
    );
    assert_eq!(read.err(), Some(TreeRefusal::NotLocal));
}
