//! Recovery, on states made by hand: what a crash leaves at each step.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::mutation::{MutationStep, OpenUnit, read_snapshot};
use super::store::{Durability, UndoStore};
use super::{RecoveryVerdict, UndoHistory, UndoLimits};
use crate::journal::Journal;
use crate::write_grant::WriteGrant;

struct Scene {
    _dir: tempfile::TempDir,
    root: PathBuf,
    history: UndoHistory,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("work")).unwrap();
        let history = UndoHistory::open(root.join("undo"));
        Self {
            _dir: dir,
            root,
            history,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join("work").join(name)
    }

    fn put(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn get(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.join("work")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A call that was killed right after its intent; gives the names of its temporary files.
    fn begin(&self, changes: &[(&str, Option<&str>)]) -> Vec<String> {
        let step = |(name, after): &(&str, Option<&str>)| MutationStep {
            given: self.path(name),
            real: self.path(name),
            before: read_snapshot(&self.path(name), u64::MAX).unwrap(),
            after: after.map(|after| after.as_bytes().to_vec()),
            attributes: None,
            unmake: Vec::new(),
            added: 0,
            removed: 0,
        };
        let steps: Vec<MutationStep> = changes.iter().map(step).collect();
        let ticket = WriteGrant::unconfined("call", "Test");
        let unit = OpenUnit::begin(&self.history, &ticket, &steps, Vec::new()).unwrap();
        let names = unit.besides.iter().map(|beside| beside.temporary.clone());
        names.collect()
    }

    fn recover(&self) -> RecoveryVerdict {
        // As the next start would: nothing remembered.
        let settled = UndoHistory::open(self.root.join("undo")).recover().unwrap();
        assert_eq!(settled.len(), 1);
        assert_eq!(self.history.recover().unwrap(), []);
        settled[0].verdict
    }
}

#[test]
fn one_file_by_rename() {
    let cases = [
        // (found after the crash, verdict, content then)
        ("old", RecoveryVerdict::NeverHappened, "old"),
        ("new", RecoveryVerdict::Completed, "new"),
        ("neither", RecoveryVerdict::Unclear, "neither"),
        ("nld", RecoveryVerdict::Unclear, "nld"), // a mixture, but a rename makes none
    ];
    for (found, verdict, then) in cases {
        let scene = Scene::new();
        scene.put("file", "old");
        let temporaries = scene.begin(&[("file", Some("new"))]);
        scene.put(&temporaries[0], "half of ne");
        scene.put(".haft-0000000000000000.tmp", "somebody else's");
        scene.put("file", found);
        assert_eq!(scene.recover(), verdict, "{found}");
        assert_eq!(scene.get("file").as_deref(), Some(then));
        assert_eq!(scene.names(), [".haft-0000000000000000.tmp", "file"]);
    }
}

#[test]
fn one_file_in_place() {
    let cases = [
        ("old old", RecoveryVerdict::NeverHappened, "old old"),
        ("new", RecoveryVerdict::Completed, "new"),
        ("newdold", RecoveryVerdict::Unclear, "newdold"),
        ("nld old", RecoveryVerdict::Reverted, "old old"),
        ("new old", RecoveryVerdict::Reverted, "old old"),
        ("mine", RecoveryVerdict::Unclear, "mine"),
    ];
    for (found, verdict, then) in cases {
        let scene = Scene::new();
        scene.put("file", "old old");
        fs::hard_link(scene.path("file"), scene.path("twin")).unwrap();
        scene.begin(&[("file", Some("new"))]);
        scene.put("file", found);
        assert_eq!(scene.recover(), verdict, "{found}");
        assert_eq!(scene.get("file").as_deref(), Some(then));
        assert_eq!(scene.get("twin").as_deref(), Some(then), "still one file");
    }
}

#[test]
fn a_file_to_be_made() {
    let scene = Scene::new();
    let temporaries = scene.begin(&[("a/b/file", Some("new"))]);
    fs::create_dir_all(scene.path("a/b")).unwrap();
    scene.put(&format!("a/b/{}", temporaries[0]), "ne");
    assert_eq!(scene.recover(), RecoveryVerdict::NeverHappened);
    assert!(scene.names().is_empty(), "its directories are gone, too");

    let scene = Scene::new();
    scene.begin(&[("a/file", Some("new"))]);
    fs::create_dir(scene.path("a")).unwrap();
    scene.put("a/file", "new");
    assert_eq!(scene.recover(), RecoveryVerdict::Completed);
    assert_eq!(scene.get("a/file").as_deref(), Some("new"));
}

#[test]
fn a_file_to_be_removed() {
    let scene = Scene::new();
    scene.put("file", "old");
    scene.begin(&[("file", None)]);
    fs::remove_file(scene.path("file")).unwrap();
    assert_eq!(scene.recover(), RecoveryVerdict::Completed);
    assert_eq!(scene.get("file"), None);
}

#[test]
fn several_files_stand_or_fall_together() {
    let scene = Scene::new();
    scene.put("a", "old");
    scene.put("b", "old");
    scene.put("gone", "old");
    scene.begin(&[
        ("a", Some("new")),
        ("gone", None),
        ("made", Some("new")),
        ("b", Some("new")),
    ]);
    scene.put("a", "new");
    fs::remove_file(scene.path("gone")).unwrap();
    scene.put("made", "new");
    assert_eq!(scene.recover(), RecoveryVerdict::Reverted);
    let now = ["a", "b", "gone"].map(|name| scene.get(name));
    assert_eq!(
        now,
        [
            Some("old".to_owned()),
            Some("old".to_owned()),
            Some("old".to_owned())
        ]
    );
    assert_eq!(scene.names(), ["a", "b", "gone"]);
}

#[test]
fn what_is_not_ours_any_more_is_left_alone() {
    let scene = Scene::new();
    scene.put("file", "old");
    scene.put("other", "old");
    scene.begin(&[("file", Some("new")), ("other", Some("new"))]);
    fs::remove_file(scene.path("file")).unwrap();
    fs::create_dir(scene.path("file")).unwrap();
    scene.put("other", "new");
    assert_eq!(scene.recover(), RecoveryVerdict::Unclear);
    assert_eq!(scene.get("other").as_deref(), Some("new"));
    let listed = scene.history.list(1).unwrap();
    assert!(listed[0].undoable.is_err());
}

#[test]
fn a_unit_that_still_runs_is_waited_for() {
    let scene = Scene::new();
    scene.put("file", "old");
    let step = MutationStep {
        given: scene.path("file"),
        real: scene.path("file"),
        before: read_snapshot(&scene.path("file"), u64::MAX).unwrap(),
        after: Some(b"new".to_vec()),
        attributes: None,
        unmake: Vec::new(),
        added: 0,
        removed: 0,
    };
    let ticket = WriteGrant::unconfined("call", "Test");
    let steps = std::slice::from_ref(&step);
    let unit = OpenUnit::begin(&scene.history, &ticket, steps, Vec::new()).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            UndoHistory::open(scene.root.join("undo"))
                .recover()
                .unwrap()
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!other.is_finished());
        fs::write(Path::new(&step.real), "new").unwrap();
        unit.end(super::record::UnitEnding::Made, None);
        drop(unit);
        assert_eq!(other.join().unwrap(), []);
    });
    assert_eq!(scene.get("file").as_deref(), Some("new"));
}

#[test]
fn a_kept_content_is_there_whatever_happened_to_it() {
    let scene = Scene::new();
    let store = UndoStore::new(scene.root.join("undo"));
    drop(store.open().unwrap());
    let hash = store.put(b"content", Durability::Durable).unwrap();
    let blob = scene.root.join("undo/blobs").join(&hash);
    // Another process drops it with old units.
    fs::remove_file(&blob).unwrap();
    assert_eq!(store.put(b"content", Durability::Durable).unwrap(), hash);
    assert_eq!(store.get(&hash).unwrap().as_deref(), Some(&b"content"[..]));
    // A power failure leaves something of the same length; the next start knows nothing of it.
    fs::write(&blob, "\0\0\0\0\0\0\0").unwrap();
    let store = UndoStore::new(scene.root.join("undo"));
    assert_eq!(store.get(&hash).unwrap(), None);
    store.put(b"content", Durability::Durable).unwrap();
    assert_eq!(store.get(&hash).unwrap().as_deref(), Some(&b"content"[..]));
}

#[test]
fn a_start_tidies_the_folder_unless_someone_is_at_work() {
    let scene = Scene::new();
    scene.put("file", "old");
    scene.begin(&[("file", Some("new"))]);
    assert_eq!(scene.recover(), RecoveryVerdict::NeverHappened);
    let undo = scene.root.join("undo");
    let needed = fs::read_dir(undo.join("blobs")).unwrap().count();
    let litter = ["blobs/unfinished-1-1", "blobs/0000", "log.jsonl.new"];
    let left = || litter.map(|name| undo.join(name).exists());
    for name in litter {
        fs::write(undo.join(name), "x").unwrap();
    }
    let log = scene.history.store().open().unwrap();
    UndoHistory::open(&undo).recover().unwrap();
    assert_eq!(left(), [true; 3]);
    drop(log);
    UndoHistory::open(&undo).recover().unwrap();
    assert_eq!(left(), [false; 3]);
    assert_eq!(fs::read_dir(undo.join("blobs")).unwrap().count(), needed);
}

#[test]
fn what_is_recorded_behind_a_mark_is_found_by_the_end_of_the_log() {
    let scene = Scene::new();
    let log = scene.history.store().log_path();
    let changed = |mark: &super::LogMark| {
        let changed = scene.history.changed_since(mark).unwrap();
        let mut paths: Vec<PathBuf> = changed.into_keys().collect();
        paths.sort();
        paths
    };
    let before_all = scene.history.mark();
    assert_eq!(changed(&before_all), [] as [PathBuf; 0]);
    scene.begin(&[("a", Some("1"))]);
    let mark = scene.history.mark();
    assert_eq!(changed(&mark), [] as [PathBuf; 0]);
    scene.begin(&[("b", Some("2"))]);
    assert_eq!(changed(&mark), [scene.path("b")]);
    let late = scene.history.mark();
    scene.begin(&[("c", Some("3"))]);
    // Whatever stands before the mark is not looked at.
    let file = fs::OpenOptions::new().write(true).open(&log).unwrap();
    let (_, length) = late.end.as_ref().unwrap();
    let other = vec![b'x'; usize::try_from(*length).unwrap()];
    file.write_all_at(&other, 0).unwrap();
    assert_eq!(changed(&late), [scene.path("c")]);
}

#[test]
fn a_log_that_was_rewritten_behind_a_mark_is_read_by_its_times() {
    let scene = Scene::new();
    scene.begin(&[("a", Some("1"))]);
    haft_testkit::until_blocking("another millisecond", {
        let then = super::now();
        move || super::now() > then
    });
    let mark = scene.history.mark();
    haft_testkit::until_blocking("another millisecond", {
        let then = super::now();
        move || super::now() > then
    });
    scene.begin(&[("b", Some("2"))]);
    let log = scene.history.store().open_alone().unwrap().unwrap();
    log.rewrite(&scene.history.store().records().unwrap())
        .unwrap();
    let changed = scene.history.changed_since(&mark).unwrap();
    let paths: Vec<PathBuf> = changed.into_keys().collect();
    assert_eq!(paths, [scene.path("b")]);
}

/// A session of thousands of commands: memory holds what the limits let be undone, and no more.
#[test]
fn what_is_known_of_units_goes_with_them() {
    let scene = Scene::new();
    let limits = UndoLimits {
        units: 10,
        ..UndoLimits::default()
    };
    let journal = Journal::new(None)
        .with_undo(scene.root.join("undo"))
        .with_undo_limits(limits);
    for number in 0..200 {
        let grant = WriteGrant::unconfined(format!("call {number}"), "Write");
        let content = format!("content {number}");
        journal
            .write(&grant, &scene.path("file"), &content)
            .unwrap();
    }
    let history = journal.history().unwrap();
    let tally = history.tally();
    let tally = tally.as_ref().unwrap();
    let (ids, hashes) = (tally.ids.len(), tally.hashes());
    assert!(ids <= limits.units, "{ids} units are known");
    // Each has a content before and one after.
    assert!(hashes <= 2 * limits.units, "{hashes} contents are known");
    let blobs = history.store().known_blobs();
    assert!(blobs <= 2 * limits.units, "{blobs} blobs are known");
}
