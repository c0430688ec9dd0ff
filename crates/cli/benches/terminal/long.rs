//! Memory of long sessions: words alone, and with a file read and a command run in each turn; with a front_end, and without
//! one, which says what of it is the session's.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    front_end::{BenchFrontEnd, binary, memory_of},
    row,
    server::{Voice, serve},
    text,
};

const TURNS: usize = 2_000;

/// What a reply of a long session says.
fn reply(turn: usize) -> String {
    let words = "Some words of an answer, as long as answers are. ".repeat(2);
    format!("{words}\n\n```rust\nlet turn = {turn};\n```\n\nReply {turn:05} ends.")
}

fn replies() -> Vec<Value> {
    (1..=TURNS).map(|turn| text(&reply(turn))).collect()
}

fn growth(what: &str, (early, late): (u64, u64)) {
    let megabytes = |kilobytes: u64| kilobytes as f64 / 1e3;
    row(
        &format!("memory after {} and {TURNS} turns, {what}", TURNS / 10),
        &format!("{:.1} MB, {:.1} MB", megabytes(early), megabytes(late)),
        "growth ≤ 8 MB",
        late.saturating_sub(early) <= 8_000,
    );
}

/// Says something so many times, and how much memory it has early and late.
fn long_session(front_end: &BenchFrontEnd, ends: impl Fn(usize) -> String) -> (u64, u64) {
    let mut early = 0;
    for turn in 1..=TURNS {
        front_end.says("go", &ends(turn));
        if turn == TURNS / 10 {
            early = front_end.memory("VmRSS");
        }
        // What was written before is not searched again, nor kept.
        if turn % 50 == 0 {
            thread::sleep(Duration::from_millis(20));
            front_end.seen.bytes.lock().unwrap().clear();
        }
    }
    (early, front_end.memory("VmRSS"))
}

/// The same without a front_end.
fn headless_session(dir: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> (u64, u64) {
    let mut child = Command::new(binary())
        .args(["-p", "--input-format", "stream-json", "--verbose"])
        .args(["--output-format", "stream-json"])
        .args(arguments)
        .current_dir(dir)
        .env_clear()
        .env("HOME", dir)
        .env("PATH", "/usr/bin:/bin")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut early = 0;
    for turn in 1..=TURNS {
        let message = json!({"type": "user", "message": {"role": "user", "content": "go"}});
        writeln!(input, "{message}").unwrap();
        let mut line = String::new();
        while !line.starts_with(r#"{"type":"result""#) {
            line.clear();
            let count = output.read_line(&mut line).unwrap();
            assert!(count > 0, "it ended in turn {turn}");
        }
        if turn == TURNS / 10 {
            early = memory_of(child.id(), "VmRSS");
        }
    }
    let late = memory_of(child.id(), "VmRSS");
    drop(input);
    child.wait().unwrap();
    (early, late)
}

/// A long session of words.
pub(crate) fn turns(dir: &Path) {
    let front_end = BenchFrontEnd::scripted(dir, &replies(), &[]);
    let grown = long_session(&front_end, |turn| format!("Reply {turn:05} ends."));
    growth("words alone", grown);
}

pub(crate) fn headless(dir: &Path) {
    let script = dir.join("script.json");
    fs::write(&script, json!({"turns": replies()}).to_string()).unwrap();
    let grown = headless_session(dir, &[], &["--script", script.to_str().unwrap()]);
    growth("words alone, without a front_end", grown);
}

/// A model that reads a file and runs a command in each turn, and summarizes when it is asked to.
fn working_model(dir: &Path) -> String {
    let file = dir.join("work.txt");
    fs::write(&file, "a line of a file\n".repeat(40)).unwrap();
    let turn = AtomicUsize::new(0);
    serve(Arc::new(move |request: &Value, voice: &mut Voice<'_>| {
        let messages = request["messages"].as_array().map_or(&[][..], |all| all);
        let last = &messages.last().unwrap_or(&Value::Null)["content"];
        let answers = |block: &Value| block["type"] == "tool_result";
        let results = last
            .as_array()
            .map_or(0, |all| all.iter().filter(|b| answers(b)).count());
        // The tools are named, and none may be called.
        let is_summary = request["tool_choice"]["type"] == "none";
        match results {
            _ if is_summary => voice.says("A summary."),
            0 => {
                let number = turn.fetch_add(1, Ordering::Relaxed);
                voice.calls("Read", &json!({"file_path": file}))?;
                let command = format!("echo turn {number} > out.txt; seq 200");
                voice.calls("Bash", &json!({"command": command}))
            }
            _ => voice.says(&format!("{} All ends.", reply(0))),
        }
    }))
}

const WORKS: [&str; 6] = [
    "--model",
    "m",
    "--permission-mode",
    "acceptEdits",
    "--allowed-tools",
    "Bash",
];

/// A long session in which files are read and changed, with a provider's protocol between: requests are written, and
/// the conversation is summarized when it is long.
pub(crate) fn work(dir: &Path) {
    let url = working_model(dir);
    let variables = [("ANTHROPIC_BASE_URL", &*url), ("ANTHROPIC_API_KEY", "key")];
    let front_end = BenchFrontEnd::start(dir, &variables, &WORKS);
    front_end.until(0, b"\x1b[?2026l");
    thread::sleep(Duration::from_secs(1));
    let grown = long_session(&front_end, |_| "All ends.".to_owned());
    growth("a file read and a command run in each", grown);
}

pub(crate) fn headless_work(dir: &Path) {
    let url = working_model(dir);
    let variables = [("ANTHROPIC_BASE_URL", &*url), ("ANTHROPIC_API_KEY", "key")];
    let grown = headless_session(dir, &variables, &WORKS);
    growth(
        "a file read and a command run in each, without a front_end",
        grown,
    );
}
