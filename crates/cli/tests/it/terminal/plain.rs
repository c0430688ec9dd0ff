//! `haft --plain`: a session in lines.

use std::{path::Path, process::Command, thread, time::Duration};

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    pty::{Input, Running, Screen},
    script_in,
};
use crate::binary::{haft, run};

/// A question is not answered by what comes sooner.
const READING: Duration = Duration::from_millis(500);

fn plain(cwd: &Path, turns: &[Value]) -> Command {
    let mut command = haft(cwd);
    command
        .env("TERM", "xterm")
        .args(["--plain", "--script"])
        .arg(script_in(cwd, turns));
    command
}

fn write(path: &str) -> Value {
    let input = json!({"file_path": path, "content": "one\n"});
    json!({"type": "tool_use", "name": "Write", "input": input})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// What was shown, without the bell and the marks for terminals that jump between messages.
fn without_marks(shown: &[u8]) -> String {
    let shown = String::from_utf8_lossy(shown);
    let shown = shown.replace("\x1b]133;A;redraw=0\x07", "");
    shown.replace("\x1b]133;C\x07", "").replace('\x07', "")
}

fn answers(running: &mut Running, line: &str) {
    thread::sleep(READING);
    running.types(line);
}

/// Vector 31.
#[test]
fn a_question_is_answered_by_its_number_and_nothing_moves_the_cursor() {
    let dir = tempdir().unwrap();
    let turns = [
        write("a.txt"),
        write("b.txt"),
        text("Done, **both**.\n\nOr \u{1b}[2Jnot."),
    ];
    let mut running = Screen::new().run(&mut plain(dir.path(), &turns), Input::Terminal);
    running.until("you: ");
    running.types("go\n");
    running.until("number and Enter: ");
    answers(&mut running, "maybe\n");
    running.until("number and Enter: ");
    answers(&mut running, "1\n");
    running.until("number and Enter: ");
    answers(&mut running, "2\n");
    running.until("you: ");
    running.types("/exit\n");
    let (shown, code) = running.end();
    assert_eq!(code, 0);
    assert!(shown.contains(&7), "the bell rings at a question");
    assert!(dir.path().join("a.txt").exists() && !dir.path().join("b.txt").exists());
    let shown = without_marks(&shown);
    assert!(!shown.contains('\x1b'), "{shown:?}");
    let mut filters = insta::Settings::clone_current();
    filters.add_filter(r"haft -r [0-9a-f-]+", "haft -r ID");
    filters.add_filter(&dir.path().display().to_string(), "DIR");
    filters.bind(|| insta::assert_snapshot!(shown));
}

#[test]
fn what_comes_too_soon_or_in_several_lines_answers_nothing() {
    let dir = tempdir().unwrap();
    let turns = [write("a.txt"), text("Done.")];
    let mut running = Screen::new().run(&mut plain(dir.path(), &turns), Input::Terminal);
    running.until("you: ");
    running.types("go\n");
    running.until("number and Enter: ");
    running.types("1\n");
    running.until("before you could read the question\nquestion: number and Enter: ");
    answers(&mut running, "1\n1\n");
    running.until("so none is used as the answer\nquestion: number and Enter: ");
    assert!(!dir.path().join("a.txt").exists());
    answers(&mut running, "1\n");
    let shown = running.until("you: ");
    assert!(shown.contains("agent: Done.\n"), "{shown}");
    running.types("\u{4}");
    assert_eq!(running.end().1, 0);
    assert!(dir.path().join("a.txt").exists());
}

#[test]
fn a_prompt_is_sent_at_once_and_the_end_of_the_input_waits_for_the_answer() {
    let dir = tempdir().unwrap();
    let mut command = plain(dir.path(), &[text("Hello.")]);
    let ran = run(command.arg("hi"), b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("\nagent: Hello.\n"), "{}", ran.stdout);
}

#[test]
fn what_came_of_a_call_is_read_before_the_next_question() {
    let dir = tempdir().unwrap();
    let names: Vec<String> = (0..6).map(|n| format!("{n}.txt")).collect();
    let mut turns: Vec<Value> = names.iter().map(|name| write(name)).collect();
    turns.push(text("Done."));
    let mut running = Screen::new().run(&mut plain(dir.path(), &turns), Input::Terminal);
    running.until("you: ");
    running.types("go\n");
    for _ in &names {
        running.until("number and Enter: ");
        answers(&mut running, "2\n");
    }
    running.until("you: ");
    running.types("/exit\n");
    let shown = without_marks(&running.end().0);
    let at = |words: String| {
        let place = shown.find(&words);
        place.unwrap_or_else(|| panic!("{words}: {shown}"))
    };
    for pair in names.windows(2) {
        let error = at(format!("tool error: Write {};", pair[0]));
        let next = at(format!("/{}  1 line\n", pair[1]));
        assert!(error < next, "{}: {shown}", pair[0]);
    }
}
