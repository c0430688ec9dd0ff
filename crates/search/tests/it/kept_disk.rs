//! An index file that cannot be written, or only in part: the answers stay right.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use haft_search::{GrepMode, IndexSettings, SearchEngine, StopCondition};
use haft_testkit::until_blocking;

use crate::kept::Both;
use crate::kept_mounts::Mounted;
use crate::tree::Tree;

const CHILD: &str = "HAFT_TEST_INDEX_WRITER";
const CALL: &str = "HAFT_TEST_INDEX_CALL";

fn settings(folder: &Path) -> IndexSettings {
    IndexSettings {
        at_once: true,
        few_files: 3,
        cache_folder: Some(folder.to_path_buf()),
        ..IndexSettings::default()
    }
}

/// A tree with an index of some hundred KB, of files that are old enough to be kept.
fn varied() -> Tree {
    let tree = Tree::new();
    let mut state = 7_u64;
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    for number in 0..150 {
        let text: String = (0..1500)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                char::from(b'!' + (state % 90) as u8)
            })
            .collect();
        let path = tree.write(
            format!("part{}/{number}.txt", number % 5),
            text + "\nneedle\n",
        );
        fs::File::open(path).unwrap().set_modified(old).unwrap();
    }
    tree
}

/// Two sessions, one after the other, with something changed in between.
fn check(tree: &Tree, folder: &Path) {
    for round in 0..2 {
        let both = Both::with(settings(folder));
        both.check(tree);
        tree.write("part1/new.txt", format!("needle {round}\n"));
        assert!(both.has(tree, "part1/new.txt"));
        tree.write("part1/new.txt", "hay\n");
        assert!(!both.has(tree, "part1/new.txt"));
        both.check(tree);
    }
}

fn index_files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_index = |path: &PathBuf| path.extension().is_some_and(|it| it == "index");
    entries.map(|entry| entry.path()).filter(is_index).count()
}

/// Writes index files until it is ended; only in a process of its own.
#[test]
fn a_writer_that_is_ended() {
    let Some(places) = std::env::var_os(CHILD) else {
        return;
    };
    let places = PathBuf::from(places);
    let tree = Tree::at(places.join("tree"));
    let engine = SearchEngine::with(settings(&places.join("cache")));
    for round in 0..20_000 {
        // Three new files make a new segment, and so a new file.
        for number in 0..3 {
            tree.write(
                format!("new/{number}.txt"),
                format!("round {round} {number}\n"),
            );
        }
        let query = tree.query("round", GrepMode::Count);
        engine.grep(&query, &StopCondition::never()).unwrap();
    }
}

#[test]
fn a_session_that_is_killed_while_it_writes_leaves_nothing_wrong() {
    let (tree, place) = (varied(), Tree::new());
    let folder = place.root.join("cache");
    fs::rename(&tree.root, place.root.join("tree")).unwrap();
    let inside = Tree::at(place.root.join("tree"));
    let mut caught = 0;
    for round in 0..12 {
        let mut child = haft_testkit::command(std::env::current_exe().unwrap().to_str().unwrap())
            .args(["--exact", "kept_disk::a_writer_that_is_ended"])
            .env(CHILD, &place.root)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let is_writing = || {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut paths = entries.map(|entry| entry.path());
            paths.any(|path| path.extension().is_some_and(|it| it == "new"))
        };
        until_blocking("an index is being written", is_writing);
        child.kill().unwrap();
        child.wait().unwrap();
        caught += usize::from(is_writing());
        let both = Both::with(settings(&folder));
        both.check(&inside);
        inside.write("part2/late.txt", format!("needle {round}\n"));
        assert!(both.has(&inside, "part2/late.txt"));
    }
    assert!(caught > 0, "it was never killed in the middle");
    fs::rename(place.root.join("tree"), &tree.root).unwrap();
}

/// As `haft call Grep` does it: one question, and the process ends.
#[test]
fn a_call_of_its_own() {
    let Some(places) = std::env::var_os(CALL) else {
        return;
    };
    let places = PathBuf::from(places);
    let tree = Tree::at(places.join("tree"));
    let engine = SearchEngine::with(IndexSettings {
        at_once: false,
        ..settings(&places.join("cache"))
    });
    let query = tree.query("needle", GrepMode::Count);
    let report = engine.grep(&query, &StopCondition::never()).unwrap();
    assert_eq!(report.tally.files, 150);
    let status = engine.index_status();
    let indexed = status.first().map_or(0, |status| status.indexed);
    fs::write(places.join("indexed"), indexed.to_string()).unwrap();
    // Without any further ado.
    std::process::exit(0);
}

#[test]
fn a_single_call_uses_the_index_that_is_there_and_leaves_no_part_of_one() {
    let (tree, place) = (varied(), Tree::new());
    let folder = place.root.join("cache");
    fs::rename(&tree.root, place.root.join("tree")).unwrap();
    let inside = Tree::at(place.root.join("tree"));
    let call = || {
        let status = haft_testkit::command(std::env::current_exe().unwrap().to_str().unwrap())
            .args(["--exact", "kept_disk::a_call_of_its_own"])
            .env(CALL, &place.root)
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        let indexed = fs::read_to_string(place.root.join("indexed")).unwrap();
        indexed.parse::<usize>().unwrap()
    };
    // On a busy machine the process may be held up long enough to begin one.
    let begins_nothing = |_: &usize| {
        call();
        let is_empty = fs::read_dir(&folder).map_or(0, Iterator::count) == 0;
        let _ = fs::remove_dir_all(&folder);
        is_empty
    };
    assert!((0..5).filter(begins_nothing).count() > 0);
    // A session that goes on leaves one, with what was old enough when it was written.
    until_blocking("one with all files is used at once", || {
        Both::with(settings(&folder)).check(&inside);
        assert_eq!(index_files(&folder), 1);
        call() == 150
    });
    fs::rename(place.root.join("tree"), &tree.root).unwrap();
}

#[test]
fn a_full_disk_is_no_trouble() {
    let (tree, place) = (varied(), Tree::new());
    let folder = place.root.join("cache");
    fs::create_dir(&folder).unwrap();
    let options = ["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs"];
    let Some(_mounted) = Mounted::new(&options, folder.clone()) else {
        return;
    };
    check(&tree, &folder);
    assert_eq!(index_files(&folder), 0);
    let left: Vec<_> = fs::read_dir(&folder).unwrap().flatten().collect();
    let is_part = |path: PathBuf| path.extension().is_some_and(|it| it == "new");
    assert!(!left.iter().any(|entry| is_part(entry.path())), "{left:?}");
}

#[test]
fn a_folder_that_is_read_only_is_no_trouble() {
    let (tree, place) = (varied(), Tree::new());
    let folder = place.root.join("cache");
    check(&tree, &folder);
    assert_eq!(index_files(&folder), 1);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    check(&tree, &folder);
    let options = ["--bind", "-o", "ro", folder.to_str().unwrap()];
    if let Some(_mounted) = Mounted::new(&options, folder.clone()) {
        check(&tree, &folder);
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_folder_of_another_user_is_neither_read_nor_written() {
    let (tree, place) = (varied(), Tree::new());
    let folder = place.root.join("cache");
    fs::create_dir(&folder).unwrap();
    if std::os::unix::fs::chown(&folder, Some(65534), Some(65534)).is_err() {
        haft_testkit::skip("only root gives a folder away");
        return;
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    check(&tree, &folder);
    assert_eq!(index_files(&folder), 0);
    assert_eq!(fs::metadata(&folder).unwrap().uid(), 65534);
}
