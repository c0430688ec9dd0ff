//! Commands that run in parallel and change the same files (W16).

use std::fs;
use std::path::{Path, PathBuf};

use haft_journal::{
    Journal, JournalError, UndoHistory, UndoMode, UndoOutcome, UndoSelection, UnitSummary,
    WitnessUnit, WriteGrant,
};

use super::guard::{Kill, TestGuard};
use super::random::{difference, list_recovered, seen};
use crate::ticket;

struct Desk {
    journal: Journal,
    base: tempfile::TempDir,
}

/// A running command.
struct Running {
    unit: WitnessUnit,
    guard: TestGuard,
    call: String,
}

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        haft_testkit::bound_this_process();
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("p")).unwrap();
        let journal = Journal::new(None).with_undo(base.path().join("undo"));
        let desk = Self { journal, base };
        for (name, text) in files {
            fs::write(desk.at(name), text).unwrap();
        }
        desk
    }

    fn root(&self) -> PathBuf {
        self.base.path().canonicalize().unwrap().join("p")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    fn history(&self) -> &UndoHistory {
        self.journal.history().unwrap()
    }

    fn begin(&self, call: &str) -> Running {
        let roots = [self.root()];
        let unit = self.journal.begin_witness(call, "Bash", call, &roots);
        let unit = unit.unwrap();
        Running {
            guard: TestGuard::new(&unit, Kill::Never),
            unit,
            call: call.to_owned(),
        }
    }

    /// Ends a command, and returns the id of its unit.
    fn end(&self, running: Running) -> Option<String> {
        let Running {
            unit,
            mut guard,
            call,
        } = running;
        guard.end().unwrap();
        drop(guard);
        let grant = WriteGrant::unconfined(&call, "Bash");
        let changes = self.journal.finish_witness(unit, &grant, &|_| false);
        assert_eq!((changes.uncovered, changes.not_restorable), (None, vec![]));
        changes.unit
    }

    fn undo(&self, unit: &str) -> Result<UndoOutcome, JournalError> {
        let which = UndoSelection::Unit(unit.to_owned());
        self.history().undo(&ticket(), &which, UndoMode::Apply)
    }

    fn listed(&self, unit: &str) -> UnitSummary {
        let mut listed = self.history().list(20).unwrap().into_iter();
        listed.find(|one| one.id == unit).unwrap()
    }
}

fn put(running: &mut Running, path: &Path, text: &str) {
    running.guard.put(path, text.as_bytes()).unwrap();
}

/// Each unit names the other, and undo of either restores the first content of both.
#[test]
fn w16_commands_that_wrote_one_file_are_undone_together() {
    for (first, chosen) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let desk = Desk::new(&[("a", "old"), ("b", "old b"), ("c", "old c")]);
        let before = seen(&desk.root());
        let mut all = [Some(desk.begin("one")), Some(desk.begin("two"))];
        for (running, text) in all.iter_mut().zip(["1", "2"]) {
            put(running.as_mut().unwrap(), &desk.at("a"), text);
        }
        put(all[0].as_mut().unwrap(), &desk.at("b"), "1");
        put(all[1].as_mut().unwrap(), &desk.at("c"), "2");
        // The other one continues after the first has ended.
        let mut units = [const { String::new() }; 2];
        units[first] = desk.end(all[first].take().unwrap()).unwrap();
        let refused = desk.undo(&units[first]).unwrap_err().to_string();
        assert!(refused.contains("is still running"), "{refused}");
        let listed = desk.listed(&units[first]).undoable.unwrap_err();
        assert!(listed.contains("running"), "{listed}");
        let other = 1 - first;
        put(all[other].as_mut().unwrap(), &desk.at("a"), "last");
        units[other] = desk.end(all[other].take().unwrap()).unwrap();
        let after = seen(&desk.root());
        for (unit, other) in [(0, 1), (1, 0)] {
            let listed = desk.listed(&units[unit]);
            assert_eq!(listed.overlaps, [units[other].clone()]);
            assert_eq!(listed.undoable, Ok(()));
        }
        // Not even a part of one can be undone alone, if the other one has a later state of it.
        if first == 0 {
            let paths = [desk.at("a")];
            let part = desk.history().revert_paths(&ticket(), &units[0], &paths);
            let refused = part.unwrap_err().to_string();
            assert!(refused.contains("neither can be undone alone"), "{refused}");
        }
        let outcome = desk.undo(&units[chosen]).unwrap();
        let undid: Vec<&str> = outcome.undid.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(undid, [units[other].as_str(), units[first].as_str()]);
        let now = seen(&desk.root());
        assert!(now == before, "{}", difference(&now, &before));
        desk.undo(&outcome.unit.unwrap()).unwrap();
        let now = seen(&desk.root());
        assert!(now == after, "{}", difference(&now, &after));
    }
}

#[test]
fn w16_names_that_both_changed_go_together() {
    let desk = Desk::new(&[("a", "old"), ("b", "other")]);
    let before = seen(&desk.root());
    let (mut one, mut two) = (desk.begin("one"), desk.begin("two"));
    two.guard.unlink(&desk.at("a")).unwrap();
    put(&mut one, &desk.at("a"), "new");
    put(&mut one, &desk.at("n"), "n");
    two.guard.rename(&desk.at("b"), &desk.at("n")).unwrap();
    let one = desk.end(one).unwrap();
    let two = desk.end(two).unwrap();
    assert_eq!(desk.read("n"), "other");
    let outcome = desk.undo(&one).unwrap();
    assert_eq!(outcome.undid[0].0, two);
    let now = seen(&desk.root());
    assert!(now == before, "{}", difference(&now, &before));
}

#[test]
fn commands_without_a_common_file_are_undone_alone() {
    let desk = Desk::new(&[("a", "old"), ("b", "old")]);
    let (mut one, mut two) = (desk.begin("one"), desk.begin("two"));
    put(&mut one, &desk.at("a"), "1");
    put(&mut two, &desk.at("b"), "2");
    let (one, two) = (desk.end(one).unwrap(), desk.end(two).unwrap());
    assert_eq!(desk.listed(&one).overlaps, [] as [String; 0]);
    assert_eq!(desk.undo(&one).unwrap().undid.len(), 1);
    assert_eq!((desk.read("a"), desk.read("b")), ("old".into(), "2".into()));
    desk.undo(&two).unwrap();
}

/// A command that writes a file after another one has ended is a later change like any other.
#[test]
fn a_file_that_a_longer_command_wrote_later_is_undone_in_order() {
    let desk = Desk::new(&[("a", "old"), ("b", "old")]);
    let (mut long, mut short) = (desk.begin("long"), desk.begin("short"));
    put(&mut long, &desk.at("b"), "long");
    put(&mut short, &desk.at("a"), "short");
    let short = desk.end(short).unwrap();
    put(&mut long, &desk.at("a"), "long");
    let long = desk.end(long).unwrap();
    assert_eq!(desk.listed(&short).overlaps, [] as [String; 0]);
    assert!(desk.undo(&short).is_err());
    desk.undo(&long).unwrap();
    assert_eq!(
        (desk.read("a"), desk.read("b")),
        ("short".into(), "old".into())
    );
    desk.undo(&short).unwrap();
    assert_eq!(desk.read("a"), "old");
}

#[test]
fn three_commands_are_undone_together_if_each_shares_a_file_with_the_next() {
    let desk = Desk::new(&[("a", "a"), ("b", "b"), ("c", "c")]);
    let before = seen(&desk.root());
    let mut all = [desk.begin("one"), desk.begin("two"), desk.begin("three")];
    put(&mut all[0], &desk.at("a"), "1");
    put(&mut all[1], &desk.at("a"), "2");
    put(&mut all[2], &desk.at("b"), "3");
    put(&mut all[1], &desk.at("b"), "2");
    put(&mut all[2], &desk.at("c"), "3");
    let units: Vec<String> = all.into_iter().map(|one| desk.end(one).unwrap()).collect();
    assert_eq!(desk.undo(&units[0]).unwrap().undid.len(), 3);
    let now = seen(&desk.root());
    assert!(now == before, "{}", difference(&now, &before));
}

#[test]
fn killed_commands_that_overlapped_are_undone_together() {
    let desk = Desk::new(&[("a", "old"), ("b", "old")]);
    let before = seen(&desk.root());
    let (mut one, mut two) = (desk.begin("one"), desk.begin("two"));
    put(&mut two, &desk.at("a"), "2");
    put(&mut one, &desk.at("a"), "1");
    put(&mut one, &desk.at("b"), "1");
    drop((one, two));
    let next = UndoHistory::open(desk.history().folder());
    let listed = list_recovered(&next);
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0].overlaps, [listed[1].id.clone()]);
    let which = UndoSelection::Unit(listed[1].id.clone());
    next.undo(&ticket(), &which, UndoMode::Apply).unwrap();
    let now = seen(&desk.root());
    assert!(now == before, "{}", difference(&now, &before));
}
