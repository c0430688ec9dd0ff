//! `haft -p` where a person watches: what stderr shows while stdout waits for the answer.

use std::{fs, path::Path, process::Command};

use haft_testkit::{
    anthropic::text_reply,
    http::{HttpFake, HttpReply},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    pty::{Input, Screen},
    script_in,
};
use crate::binary::{haft, run};

fn scripted(cwd: &Path, turns: &[Value]) -> Command {
    let mut command = haft(cwd);
    command
        .env("TERM", "dumb")
        .args(["-p", "go", "--script"])
        .arg(script_in(cwd, turns));
    command
}

fn call(name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "name": name, "input": input})
}

fn write(path: &str) -> Value {
    call("Write", json!({"file_path": path, "content": "one\n"}))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn cards_come_as_they_happen_and_questions_are_asked() {
    let dir = tempdir().unwrap();
    fs::write(
        dir.path().join("price.sh"),
        "a=1\nb=2\nc=3\nd=4\ne=5\nf=6\ng=7\n",
    )
    .unwrap();
    let look = call("Read", json!({"file_path": "price.sh"}));
    let change = json!({"file_path": "price.sh", "old_string": "e=5", "new_string": "e=50"});
    let over = json!({"file_path": "price.sh", "content": "a=1\nb=2\nc=3\nd=4\ne=5\n"});
    let turns = [
        look,
        call("Edit", change),
        call("Write", over),
        write("a.txt"),
        text("All done."),
    ];
    let mut running = Screen::new().run(&mut scripted(dir.path(), &turns), Input::Terminal);
    let mut shown = running.until("or say what to do instead: ");
    running.types("y\n");
    shown += &running.until("or say what to do instead: ");
    running.types("n\n");
    shown += &running.until("or say what to do instead: ");
    running.types("y\n");
    shown += &running.until("All done.");
    let (_, code) = running.end();
    assert_eq!(code, 0);
    assert!(dir.path().join("a.txt").exists());
    let price = fs::read_to_string(dir.path().join("price.sh")).unwrap();
    assert!(price.contains("e=50\nf=6"), "{price}");
    let here = dir.path().display().to_string();
    insta::assert_snapshot!(shown.replace(&here, "HERE"));
}

#[test]
fn waiting_for_the_model_is_shown() {
    let dir = tempdir().unwrap();
    let busy = HttpReply::error(529, "overloaded_error", "Overloaded").header("retry-after", "0");
    let server = HttpFake::start_strict([busy, text_reply("Hello.")]);
    let mut command = haft(dir.path());
    command
        .env("TERM", "dumb")
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "key")
        .args(["-p", "hi", "--model", "m-1"]);
    let (seen, code) = Screen::new().run(&mut command, Input::Terminal).end();
    assert_eq!(code, 0);
    let seen = String::from_utf8(seen).unwrap();
    assert!(
        seen.starts_with("! ") && seen.contains("try 1 of 10 in "),
        "{seen}"
    );
    assert!(seen.ends_with("Hello.\n"), "{seen}");
}

#[test]
fn in_a_pipe_only_the_last_line_says_what_was_refused() {
    let dir = tempdir().unwrap();
    let turns = [
        write("a.txt"),
        call("Bash", json!({"command": "touch x"})),
        text("I could not."),
    ];
    let ran = run(&mut scripted(dir.path(), &turns), b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "I could not.\n"));
    let here = dir.path().display().to_string();
    insta::assert_snapshot!(ran.stderr.replace(&here, "HERE"));
}

#[test]
fn after_an_interrupt_the_way_on_is_shown() {
    let dir = tempdir().unwrap();
    let turns = [write("a.txt"), text("never")];
    let id = "00000000-0000-4000-8000-000000000001";
    let mut command = scripted(dir.path(), &turns);
    let mut running = Screen::new().run(command.args(["--session-id", id]), Input::Terminal);
    running.until("or say what to do instead: ");
    let process = running.child.id().to_string();
    let sent = haft_testkit::command("kill")
        .args(["-s", "INT", &process])
        .status();
    assert!(sent.unwrap().success());
    let way_on = format!("haft: interrupted; continue with: haft -p --resume {id} 'PROMPT'\n");
    running.until(&way_on);
    assert_eq!(running.end().1, 130);
}
