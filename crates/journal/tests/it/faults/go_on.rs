//! After an error the session goes on: what failed is not in the way of what comes next.

use std::fs;
use std::path::{Path, PathBuf};

use haft_journal::edit::EditRequest;
use haft_journal::{PageRequest, UndoMode, UndoSelection, UnitState};

use super::scene::{journal, lines, ticket, work};
use super::{FOLDER, Fault, litter};
use crate::strace;

const EDITS: usize = 3;

fn call(number: usize) -> String {
    format!("call-{number}")
}

fn texts(number: usize) -> (String, String) {
    (format!("line {number} "), format!("changed {number} "))
}

/// The child: edits of one file, whatever becomes of each; says which were made.
#[test]
fn edits() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    strace::get_ahead();
    let journal = journal(&folder);
    let path = work(&folder).join("file");
    journal.read(&path, &PageRequest::default()).unwrap();
    strace::say("begin");
    let mut made = String::new();
    for number in 0..EDITS {
        let (old, new) = texts(number);
        let change = EditRequest {
            old: &old,
            new: &new,
            replace_all: false,
        };
        let edited = journal.edit(&ticket(&folder, &call(number)), &path, &change);
        made.push(if edited.is_ok() { '1' } else { '0' });
    }
    strace::say(&made);
    strace::say("end");
    std::process::exit(0);
}

fn set_up(folder: &Path) {
    fs::create_dir_all(work(folder)).unwrap();
    fs::write(work(folder).join("file"), lines(20)).unwrap();
}

#[test]
fn an_error_is_not_in_the_way_of_later_edits() {
    if !strace::is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    set_up(dir.path());
    let folder = |path: &Path| path.to_str().unwrap().to_owned();
    let variables = folder(dir.path());
    let (ran, steps) = strace::steps("faults::go_on::edits", &[(FOLDER, &variables)], &[]);
    assert_eq!(ran.said, ["111"]);
    for step in steps.iter().filter(|step| step.changes()) {
        let dir = tempfile::tempdir().unwrap();
        set_up(dir.path());
        let fault = Fault::error("EIO", step);
        let variables = folder(dir.path());
        let variables = [(FOLDER, variables.as_str())];
        let ran = strace::run("faults::go_on::edits", &variables, &fault.injections);
        check(dir.path(), &ran.said[0], &fault.words);
    }
}

fn check(folder: &Path, said: &str, what: &str) {
    assert!(said.matches('0').count() <= 1, "{what}: {said}");
    let made = || (0..EDITS).filter(|&number| said.as_bytes()[number] == b'1');
    let file = work(folder).join("file");
    let mut expected = lines(20);
    for number in made() {
        let (old, new) = texts(number);
        expected = expected.replacen(&old, &new, 1);
    }
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        expected,
        "{what}: {said}"
    );
    let journal = journal(folder);
    let units = journal.history().unwrap().list(100).unwrap();
    let mut standing: Vec<&str> = units
        .iter()
        .filter(|unit| unit.state == UnitState::Made)
        .map(|unit| unit.call.as_str())
        .collect();
    standing.reverse();
    let calls: Vec<String> = made().map(call).collect();
    assert_eq!(standing, calls, "{what}: {said}, {units:#?}");
    let is_settled = |state: &UnitState| matches!(state, UnitState::Made | UnitState::NotMade);
    assert!(units.iter().all(|unit| is_settled(&unit.state)), "{what}");
    for call in calls.iter().rev() {
        let which = UndoSelection::Unit(call.clone());
        let undone = journal.undo(&ticket(folder, "back"), &which, UndoMode::Apply);
        assert!(undone.is_ok(), "{what}: {undone:?}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), lines(20), "{what}");
    assert_eq!(super::Tree::of(&work(folder)).names().count(), 1, "{what}");
    assert_eq!(litter(folder), Vec::<String>::new(), "{what}");
}
