//! Undo journals that another program has changed: settling and undoing must do no more than this program's own records
//! can ask for.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use haft_journal::{RecoveryVerdict, UndoHistory, UndoMode, UndoSelection};
use rustix::fs::{CWD, Mode as FileMode, mkfifoat};

use crate::{Desk, assert_says, ticket};

/// Far more than opening a file takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A user that owns nothing of the test.
const OTHER_USER: u32 = 65_534;

fn log_of(desk: &Desk) -> PathBuf {
    desk.session.path().join("undo/log.jsonl")
}

fn history(desk: &Desk) -> UndoHistory {
    UndoHistory::open(desk.session.path().join("undo"))
}

/// Adds an intent without an outcome, as a crash leaves one.
fn add_intent(log: &Path, fields: &str) {
    let mut text = fs::read_to_string(log).unwrap();
    text.push_str(&format!(
        "{{\"kind\":\"intent\",\"unit\":\"tampered-1\",\"call\":\"c\",\"tool\":\"Bash\",\"time\":1,{fields}}}\n"
    ));
    fs::write(log, text).unwrap();
}

#[test]
fn recovery_removes_only_temporary_files_of_this_program() {
    for case in ["swept", "files"] {
        for name in ["victim", "../victim", ".haft-/../victim", "ABSOLUTE"] {
            let desk = Desk::with_read("a\n");
            desk.edit("file", "a", "b").unwrap();
            let victim = desk.path("victim");
            fs::create_dir(&victim).unwrap();
            fs::write(victim.join("precious"), "precious").unwrap();
            fs::create_dir(desk.path("below")).unwrap();
            let place = match name.starts_with("..") {
                true => desk.path("below/x"),
                false => desk.path("x"),
            };
            let (place, absolute) = (place.display().to_string(), victim.display().to_string());
            let name = name.replace("ABSOLUTE", &absolute);
            let states = r#""before":{"state":"absent"},"after":"#;
            let fields = match case {
                "swept" => format!(
                    r#""files":[],"swept":[{{"path":"{place}",{states}{{"state":"absent"}}}}],"temporary":"{name}""#
                ),
                _ => format!(
                    r#""files":[{{"given":"{place}","real":"{place}",{states}null,"temporary":"{name}","added":0,"removed":0}}]"#
                ),
            };
            add_intent(&log_of(&desk), &fields);
            let settled = history(&desk).recover().unwrap();
            assert_eq!(settled.len(), 1, "{case} {name}");
            assert_eq!(
                settled[0].verdict,
                RecoveryVerdict::Unclear,
                "{case} {name}"
            );
            assert!(victim.join("precious").exists(), "{case} {name}");
        }
    }
}

#[test]
fn a_log_that_is_a_pipe_or_a_link_is_an_error_and_does_not_block() {
    for is_pipe in [true, false] {
        let desk = Desk::with_read("a\n");
        desk.edit("file", "a", "b").unwrap();
        let log = log_of(&desk);
        let elsewhere = desk.session.path().join("elsewhere");
        fs::rename(&log, &elsewhere).unwrap();
        match is_pipe {
            true => mkfifoat(CWD, &log, FileMode::RUSR | FileMode::WUSR).unwrap(),
            false => symlink(&elsewhere, &log).unwrap(),
        }
        let before = fs::read(&elsewhere).unwrap();
        let folder = desk.session.path().join("undo");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let history = UndoHistory::open(folder);
            let refused = [
                history.recover().is_err(),
                history.list(9).is_err(),
                history
                    .undo(&ticket(), &UndoSelection::Last, UndoMode::Apply)
                    .is_err(),
            ];
            sender.send(refused)
        });
        let refused = receiver.recv_timeout(TIMEOUT);
        assert_eq!(refused, Ok([true; 3]), "pipe: {is_pipe}");
        assert_says(desk.write("new", "x\n"), &["undo journal"]);
        assert_eq!(fs::read(&elsewhere).unwrap(), before);
        assert_eq!(desk.get("file"), b"b\n");
    }
}

#[test]
fn the_journal_of_another_user_is_neither_settled_nor_undone() {
    let desk = Desk::with_read("a\n");
    desk.edit("file", "a", "b").unwrap();
    let log = log_of(&desk);
    // Only root can give a file away.
    if chown(&log, Some(OTHER_USER), None).is_err() {
        return;
    }
    let place = desk.path("file").display().to_string();
    add_intent(
        &log,
        &format!(
            r#""files":[{{"given":"{place}","real":"{place}","before":{{"state":"absent"}},"after":null,"temporary":"","made":["{place}"],"added":0,"removed":0}}]"#
        ),
    );
    chown(&log, Some(OTHER_USER), None).unwrap();
    let before = fs::read(&log).unwrap();
    assert_eq!(history(&desk).recover().unwrap(), []);
    let undone = history(&desk).undo(&ticket(), &UndoSelection::Last, UndoMode::Apply);
    assert_says(undone, &["belongs to another user"]);
    assert_eq!(fs::read(&log).unwrap(), before);
    assert_eq!(desk.get("file"), b"b\n");
}
