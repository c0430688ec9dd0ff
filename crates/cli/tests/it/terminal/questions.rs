//! What is typed at a terminal, and what a question shows.

use std::{fs, path::Path, process::Command};

use serde_json::json;
use tempfile::{TempDir, tempdir};

use super::{
    hostile::{assert_clean, everything, name},
    pty::{Input, Running, Screen},
};
use crate::binary::haft;

/// What stands behind every question for permission.
const PROMPT: &str = "or say what to do instead: ";

fn call(cwd: &Path, input: &[&str]) -> Command {
    let mut command = haft(cwd);
    command.env("TERM", "dumb").arg("call").args(input);
    command
}

/// A call that asks, after this was typed.
fn asked(typed: &str) -> (TempDir, Running) {
    let dir = tempdir().unwrap();
    let screen = Screen::new();
    screen.types(typed);
    let mut command = call(dir.path(), &["Bash", "command=touch made"]);
    let mut running = screen.run(&mut command, Input::Terminal);
    running.until(PROMPT);
    (dir, running)
}

#[test]
fn what_was_typed_before_a_question_never_answers_it() {
    for typed in [
        "y\n",
        "yes\n",
        "a\n",
        "y\ny\ny\ny\ny\ny\ny\ny\n",
        "\n\n\ny\n",
        "n\n",
        "\u{4}",
        "\u{4}\u{4}y\n",
    ] {
        let (dir, mut running) = asked(typed);
        // It is open still: what is typed now decides.
        running.types("y\n");
        running.until("made");
        let (_, code) = running.end();
        assert_eq!(code, 0, "{typed:?}");
        assert!(dir.path().join("made").exists(), "{typed:?}");

        let (dir, running) = asked(typed);
        running.types("n\n");
        let (_, code) = running.end();
        assert_eq!(code, 2, "{typed:?}");
        assert!(!dir.path().join("made").exists(), "{typed:?}");
        let settings = dir.path().join(".claude/settings.local.json");
        assert!(!settings.exists(), "{typed:?}: a rule was kept");
    }
}

#[test]
fn a_line_that_was_begun_before_is_not_ended_by_the_answer() {
    let (dir, mut running) = asked("y");
    running.types("\n");
    // The line is empty, so it is asked again.
    running.until(PROMPT);
    running.types("n\n");
    assert_eq!(running.end().1, 2);
    assert!(!dir.path().join("made").exists());
}

#[test]
fn lines_that_come_together_are_no_answer() {
    for pasted in ["y\ny\n", "y\nrm -rf x\n", "a\n\n\n"] {
        let (dir, mut running) = asked("");
        running.types(pasted);
        let shown = running.until(PROMPT);
        assert!(shown.contains("several lines arrived together"), "{shown}");
        assert!(!dir.path().join("made").exists(), "{pasted:?}");
        running.types("n\n");
        assert_eq!(running.end().1, 2, "{pasted:?}");
        assert!(!dir.path().join("made").exists(), "{pasted:?}");
    }
}

#[test]
fn a_request_of_exec_does_not_bring_its_own_answer() {
    let dir = tempdir().unwrap();
    let call = json!({"name": "Bash", "input": {"command": "touch made"}});
    let screen = Screen::new();
    screen.types(&format!("{call}\ny\na\n"));
    let mut command = haft(dir.path());
    let mut running = screen.run(command.env("TERM", "dumb").arg("exec"), Input::Terminal);
    running.until(PROMPT);
    running.types("n\n");
    let answer = running.until("\"duration_ms\"");
    assert!(answer.contains("\"is_error\":true"), "{answer}");
    running.types("\u{4}");
    assert_eq!(running.end().1, 0);
    assert!(!dir.path().join("made").exists());
}

#[test]
fn neither_trust_nor_a_question_of_the_models_is_answered_in_advance() {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join(".claude")).unwrap();
    let settings = json!({"permissions": {"allow": ["Bash(make)"]}});
    let file = dir.path().join(".claude/settings.json");
    fs::write(file, settings.to_string()).unwrap();
    let screen = Screen::new();
    screen.types("y\ny\n");
    let mut command = haft(dir.path());
    let mut running = screen.run(command.args(["permissions", "trust"]), Input::Terminal);
    running.until("Trust it?");
    running.types("n\n");
    let (seen, _) = running.end();
    assert!(String::from_utf8(seen).unwrap().contains("Not trusted."));

    let options =
        json!([{"label": "Left", "description": ""}, {"label": "Right", "description": ""}]);
    let input = json!({"questions": [{"question": "Which?", "header": "Way", "options": options, "multiSelect": false}]});
    let screen = Screen::new();
    screen.types("1\n1\n");
    let mut command = haft(dir.path());
    command.args(["call", "AskUserQuestion", &input.to_string()]);
    let mut running = screen.run(&mut command, Input::Terminal);
    running.until("(- for no answer): ");
    running.types("2\n");
    let (seen, code) = running.end();
    let shown = String::from_utf8_lossy(&seen).into_owned();
    assert_eq!(code, 0, "{shown}");
    let answered = shown.rsplit("no answer): ").next().unwrap();
    assert!(answered.contains("Right"), "{shown}");
    assert!(!answered.contains("Left"), "{shown}");
}

/// What a question about this call shows; it is answered with no.
fn question(dir: &Path, input: &[&str]) -> String {
    let mut running = Screen::new().run(&mut call(dir, input), Input::Terminal);
    let shown = running.until(PROMPT);
    running.types("n\n");
    let (seen, code) = running.end();
    assert_eq!(code, 2, "{shown}");
    assert_clean(&format!("{input:?}"), &seen, false);
    shown
}

#[test]
fn a_question_shows_everything_that_would_hide() {
    let dir = tempdir().unwrap();
    let hostile = everything().replace('\0', "");
    let quoted = hostile.replace('\'', "");
    let command = format!("command=touch '{quoted}'");
    let shown = question(dir.path(), &["Bash", &command]);
    assert!(
        shown.contains("a<U+202E>") && shown.contains("<U+E0041>"),
        "{shown}"
    );
    let shown = question(
        dir.path(),
        &["Write", &format!("file_path={}", name()), "content=x"],
    );
    assert!(shown.contains("<U+202E><U+200B><U+E0041>"), "{shown}");
    let told = json!({"command": "touch x", "description": hostile}).to_string();
    question(dir.path(), &["Bash", &told]);
    // A second command does not look like a word of the first.
    let shown = question(dir.path(), &["Bash", "command=touch a\ntouch b"]);
    assert!(
        shown.contains("touch a\n") || shown.contains("touch a␊"),
        "{shown}"
    );
}

/// What is left of a text for someone who looks at it: letters that are drawn alike are one.
fn looks(text: &str) -> String {
    text.replace("e\u{301}", "\u{e9}")
        .replace('\u{430}', "a")
        .replace('\u{ff43}', "c")
        .replace('\u{200b}', "")
        .replace('\u{a0}', " ")
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

#[test]
fn names_that_look_alike_are_told_apart_in_questions() {
    let dir = tempdir().unwrap();
    let alike = [
        "caf\u{e9}",
        "cafe\u{301}",
        "c\u{430}f\u{e9}",
        "\u{ff43}af\u{e9}",
        "caf\u{e9}\u{200b}",
        "caf\u{e9}\u{a0}",
    ];
    let mut all = Vec::new();
    for name in alike {
        let write = question(
            dir.path(),
            &["Write", &format!("file_path={name}"), "content=x"],
        );
        let bash = question(dir.path(), &["Bash", &format!("command=touch {name}")]);
        for shown in [write, bash] {
            let seen = looks(&shown);
            assert!(!all.contains(&seen), "{name:?}: {shown}");
            all.push(seen);
        }
    }
    assert!(
        all[0].contains("caf\u{e9}"),
        "the usual one as it is: {}",
        all[0]
    );
}

#[test]
fn always_offers_and_keeps_exactly_what_was_called() {
    let dir = tempdir().unwrap();
    let input = ["Bash", "command=touch made"];
    let mut running = Screen::new().run(&mut call(dir.path(), &input), Input::Terminal);
    let shown = running.until(PROMPT);
    assert!(
        shown.contains("would add the rule Bash(touch made)\n"),
        "{shown}"
    );
    running.types("a\n");
    let (_, code) = running.end();
    assert_eq!(code, 0);
    let file = dir.path().join(".claude/settings.local.json");
    let kept: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(kept["permissions"]["allow"], json!(["Bash(touch made)"]));
    // Any other is asked about.
    let shown = question(dir.path(), &["Bash", "command=touch made more"]);
    assert!(shown.contains("Bash(touch made more)"), "{shown}");
}
