//! Going back, and taking up.

use std::fs;

use serde_json::{Value, json};

use super::super::tmux::{Tmux, call, is_idle, text};

#[test]
fn vector_32_what_a_command_changed_is_undone_and_can_be_had_again() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let file = tmux.project().join("a.txt");
    fs::write(&file, "before\n").unwrap();
    let command = json!({"command": "echo after > a.txt; touch new.txt"});
    tmux.haft(
        "--allowed-tools Bash",
        &[call("Bash", command), text("Changed.")],
    );
    tmux.say("change it");
    tmux.answered("Changed.");
    assert_eq!(fs::read_to_string(&file).unwrap(), "after\n");
    let undo = |tmux: &Tmux| {
        tmux.say("/undo");
        tmux.wait_until("the list", |screen| {
            screen.starts_with("Undo") && screen.contains("Bash")
        });
        tmux.type_text("A");
    };
    undo(&tmux);
    // One file after the other.
    tmux.wait_until("the files as before", |_| {
        let is_there = tmux.project().join("new.txt").exists();
        !is_there && fs::read_to_string(&file).unwrap() == "before\n"
    });
    // The undo is the newest in the list, and can be undone itself.
    let screen = tmux.wait_until("the undo in the list", |screen| {
        screen.contains("(an undo)")
    });
    assert!(screen.contains("(undone already)"), "{screen}");
    tmux.type_text("u");
    tmux.wait_until("the change again", |_| {
        let is_there = tmux.project().join("new.txt").exists();
        is_there && fs::read_to_string(&file).unwrap() == "after\n"
    });
}

#[test]
fn vector_33_going_back_to_now_changes_nothing() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("", &[text("First."), text("Second.")]);
    tmux.say("one");
    tmux.answered("First.");
    let before = tmux.transcript();
    tmux.say("/rewind");
    let screen = tmux.wait_until("the list", |screen| screen.contains("now"));
    insta::assert_snapshot!(screen.lines().last().unwrap_or_default());
    tmux.press("Enter");
    tmux.wait_until("the session", is_idle);
    assert_eq!(tmux.transcript(), before);
    tmux.say("two");
    tmux.answered("Second.");
}

/// A line of a transcript.
fn line(role: &str, number: usize, parent: Option<usize>, content: &Value) -> String {
    let id = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
    let message = json!({"role": role, "content": content});
    let line = json!({
        "type": role, "uuid": id(number), "parentUuid": parent.map(id), "isSidechain": false,
        "sessionId": "00000000-0000-4000-8000-0000000000aa", "timestamp": "2026-01-01T00:00:00.000Z",
        "message": message,
    });
    format!("{line}\n")
}

#[test]
fn vector_35_a_long_session_is_taken_up_by_its_end() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    // Where sessions of this directory are kept.
    tmux.haft("", &[text("Kept.")]);
    tmux.say("first");
    tmux.answered("Kept.");
    tmux.leave();
    let found = tmux.shell("find ~/.claude/projects -name '*.jsonl'");
    let folder = std::path::Path::new(found.trim())
        .parent()
        .unwrap()
        .to_path_buf();
    fs::remove_file(found.trim()).unwrap();
    let mut lines = String::new();
    for turn in 0..5_000 {
        let at = turn * 2 + 1;
        let parent = (turn > 0).then(|| at - 1);
        lines += &line("user", at, parent, &json!(format!("prompt {turn}")));
        let words: String = (0..100).map(|n| format!("row {n} of {turn}\n\n")).collect();
        let words = if turn < 4_990 {
            "Short.".to_owned()
        } else {
            words
        };
        let content = json!([{"type": "text", "text": words}]);
        lines += &line("assistant", at + 1, Some(at), &content);
    }
    fs::write(
        folder.join("00000000-0000-4000-8000-0000000000aa.jsonl"),
        lines,
    )
    .unwrap();
    tmux.run("clear");
    tmux.wait_until("an empty screen", |screen| !screen.contains("haft -r"));
    tmux.tmux(&["clear-history"]);
    tmux.haft("-c", &[text("Taken up.")]);
    let screen = tmux.wait_until("its end", |screen| screen.contains("row 99 of 4999"));
    assert!(is_idle(&screen), "{screen}");
    let all = tmux.lines();
    let first = all
        .iter()
        .position(|line| line.contains("earlier"))
        .unwrap();
    insta::assert_snapshot!(all[first]);
    let rows = all[first..].iter().filter(|line| !line.is_empty()).count();
    assert!(rows <= 205, "{rows}");
    tmux.say("go on");
    tmux.answered("Taken up.");
}
