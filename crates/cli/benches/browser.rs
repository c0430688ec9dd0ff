//! The browser through the binary: `cargo bench -p haft-cli --bench browser`.
//!
//! A page of 2,000 elements in a project is opened and looked at again and again: how long a snapshot takes from call
//! to answer, how long it is, and what haft itself takes in memory beside what it took before there was a browser.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on should stop there"
)]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use haft_testkit::measure;
use serde_json::{Value, json};

const ROUNDS: usize = 15;

struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(binary())
            .current_dir(dir)
            .env("HOME", dir)
            .arg("exec")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// The answer, and how many milliseconds it took.
    fn call(&mut self, name: &str, input: &Value) -> (Value, f64) {
        let began = Instant::now();
        writeln!(self.stdin, "{}", json!({"name": name, "input": input})).unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        let took = began.elapsed().as_secs_f64() * 1_000.0;
        (serde_json::from_str(&answer).unwrap(), took)
    }

    fn memory_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let mut lines = status.lines();
        let line = lines.find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

fn binary() -> PathBuf {
    measure::binary(env!("CARGO_BIN_EXE_haft"))
}

fn main() {
    if measure::is_test_run() {
        return;
    }
    let dir = std::env::temp_dir().join(format!("haft-browser-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    // Rows with a heading, a text, a link and a button each: with what holds them, 2,000 elements.
    let rows: String = (0..400)
        .map(|row| format!("<div><h2>Row {row}</h2><p>About row {row}</p><a href=/{row}>Open {row}</a><button>Buy {row}</button></div>"))
        .collect();
    fs::write(dir.join("rows.html"), rows).unwrap();
    let mut session = Session::start(&dir);
    session.call(
        "Read",
        &json!({"file_path": dir.join("rows.html"), "limit": 1}),
    );
    let before = session.memory_kb();
    let (opened, first) = session.call(
        "Browser",
        &json!({"action": "navigate", "url": "rows.html"}),
    );
    if opened["is_error"] == true {
        println!("Nothing was measured: {}", opened["content"]);
        return;
    }
    let mut times = Vec::new();
    let mut characters = 0;
    for _ in 0..ROUNDS {
        let (shown, took) = session.call("Browser", &json!({"action": "snapshot"}));
        let text = shown["content"].as_str().map(str::to_owned);
        let text = text.or_else(|| shown["content"][0]["text"].as_str().map(str::to_owned));
        characters = text.unwrap_or_default().chars().count();
        times.push(took);
    }
    let more = session.memory_kb().saturating_sub(before);
    times.sort_by(f64::total_cmp);
    let median = times[ROUNDS / 2];
    let verdict = |good: bool| if good { "ok" } else { "MISSED" };
    println!("| what | measured | bound | |\n|---|---|---|---|");
    println!(
        "| Browser: a snapshot of 2,000 elements, call to answer (median of {ROUNDS}) | {median:.0} ms | 150 ms | {} |",
        verdict(median <= 150.0)
    );
    println!(
        "| its characters, marks included | {characters} | 20,200 | {} |",
        verdict(characters <= 20_200)
    );
    println!("| the first page, with the start of Chromium | {first:.0} ms | | |");
    println!(
        "| memory of haft itself, beyond {before} KB without a browser | {more} KB | 10,240 KB | {} |",
        verdict(more <= 10_240)
    );
    drop(session.stdin);
    session.child.wait().unwrap();
    let _ = fs::remove_dir_all(&dir);
}
