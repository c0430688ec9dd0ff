//! Ignore files above the tree that is searched: no one watches them, and each change is seen.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use haft_search::GrepQuery;

use crate::kept::Both;
use crate::tree::{CONTENT, Tree};

/// Beyond this what happened in a directory is known by its times.
const SETTLED: Duration = Duration::from_millis(60);

struct Nested {
    above: Tree,
    both: Both,
}

impl Nested {
    fn new() -> Self {
        let above = Tree::new();
        for name in ["a.txt", "b.txt", "deep/c.txt", "deep/d.txt"] {
            above.write(format!("one/two/root/{name}"), "needle\n");
        }
        let both = Both::new();
        Self { above, both }
    }

    /// Which of the four files are found, by both kinds of engine.
    fn found(&self) -> String {
        let root = self.above.root.join("one/two/root");
        let found = self.both.grep(&GrepQuery {
            mode: CONTENT,
            ..GrepQuery::new("needle", root)
        });
        let is_found = |name: &&str| found.contains(&format!("{name}.txt"));
        ["a", "b", "c", "d"].into_iter().filter(is_found).collect()
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.above.root.join(path)).unwrap();
    }
}

#[test]
fn rules_that_come_and_go_above_are_seen_at_once() {
    let nested = Nested::new();
    assert_eq!(nested.found(), "abcd");
    let places = [".ignore", "one/.ignore", "one/two/.rgignore"];
    for round in 0..24 {
        let place = places[round % places.len()];
        // At times what is above is known by the times of a directory, at times not.
        if round % 4 == 0 {
            sleep(SETTLED);
            assert_eq!(nested.found(), "abcd");
        }
        nested.above.write(place, "a.txt\n");
        assert_eq!(nested.found(), "bcd", "round {round}");
        nested.above.write(place, "b.txt\nd.txt\n");
        assert_eq!(nested.found(), "ac", "round {round}");
        nested.remove(place);
        assert_eq!(nested.found(), "abcd", "round {round}");
        // Other names do not matter.
        nested.above.write(format!("one/other{round}"), "");
        assert_eq!(nested.found(), "abcd");
    }
}

#[test]
fn a_directory_whose_time_is_set_back_hides_nothing() {
    let nested = Nested::new();
    let folder = nested.above.root.join("one");
    sleep(SETTLED);
    assert_eq!(nested.found(), "abcd");
    for _ in 0..5 {
        let before = folder.metadata().unwrap().modified().unwrap();
        nested.above.write("one/.ignore", "c.txt\n");
        let times = FileTimes::new().set_modified(before);
        File::open(&folder).unwrap().set_times(times).unwrap();
        assert_eq!(folder.metadata().unwrap().modified().unwrap(), before);
        assert_eq!(nested.found(), "abd");
        nested.remove("one/.ignore");
        assert_eq!(nested.found(), "abcd");
        sleep(SETTLED);
        assert_eq!(nested.found(), "abcd");
    }
}

#[test]
fn a_repository_above_and_links_that_lead_nowhere_yet() {
    let nested = Nested::new();
    let root = &nested.above.root;
    nested.above.write("one/.gitignore", "a.txt\n");
    sleep(SETTLED);
    assert_eq!(nested.found(), "abcd", "no repository");
    fs::create_dir(root.join(".git")).unwrap();
    assert_eq!(nested.found(), "bcd");
    fs::remove_dir(root.join(".git")).unwrap();
    assert_eq!(nested.found(), "abcd");
    // A link is there, what it leads to comes later and elsewhere.
    symlink("rules/here", root.join("one/two/.ignore")).unwrap();
    sleep(SETTLED);
    assert_eq!(nested.found(), "abcd");
    nested.above.write("one/two/rules/here", "d.txt\n");
    nested.found();
    nested.above.write("one/two/rules/here", "c.txt\n");
    nested.found();
    nested.remove("one/two/rules/here");
    assert_eq!(nested.found(), "abcd");
}

#[test]
fn another_directory_in_the_place_of_one_above_is_another() {
    let nested = Nested::new();
    let root = &nested.above.root;
    sleep(SETTLED);
    assert_eq!(nested.found(), "abcd");
    for name in ["a.txt", "b.txt"] {
        nested
            .above
            .write(format!("new/two/root/{name}"), "needle\n");
    }
    nested.above.write("new/.ignore", "b.txt\n");
    let swap = |one: &str, two: &str| {
        let aside = root.join("aside");
        let path = |name: &str| -> std::path::PathBuf { Path::new(root).join(name) };
        fs::rename(path(one), &aside).unwrap();
        fs::rename(path(two), path(one)).unwrap();
        fs::rename(&aside, path(two)).unwrap();
    };
    for _ in 0..3 {
        swap("one", "new");
        assert_eq!(nested.found(), "a");
        swap("one", "new");
        assert_eq!(nested.found(), "abcd");
    }
}
