//! What schedules and monitors cost while nothing happens: `cargo bench -p haft-cli --bench idle`.
//!
//! The processor time of haft itself over half a minute, with 50 schedules and 10 monitors and without any.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on should stop there"
)]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use haft_testkit::measure;
use serde_json::{Value, json};

const SCHEDULES: usize = 50;
const MONITORS: usize = 10;
/// How long it is watched.
const WATCHED: Duration = Duration::from_secs(30);
/// The processor time that still counts as nothing, in ticks of the kernel (10 ms).
const BOUND: u64 = 2;

fn binary() -> PathBuf {
    measure::binary(env!("CARGO_BIN_EXE_haft"))
}

fn main() {
    if measure::is_test_run() {
        return;
    }
    let without = idle(0, 0);
    let with = idle(SCHEDULES, MONITORS);
    let verdict = if with <= without + BOUND {
        "ok"
    } else {
        "MISSED"
    };
    println!("| what | measured | bound | |\n|---|---|---|---|");
    println!(
        "| processor time of an idle session with {SCHEDULES} schedules and {MONITORS} monitors in {} s (without: {} ms) | {} ms | {} ms more | {verdict} |",
        WATCHED.as_secs(),
        without * 10,
        with * 10,
        BOUND * 10
    );
}

/// The ticks that an idle session uses in this time.
fn idle(schedules: usize, monitors: usize) -> u64 {
    let dir = std::env::temp_dir().join(format!("haft-idle-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let mut child = session(&dir, schedules, monitors);
    let mut stdin = child.stdin.take().unwrap();
    let message = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    writeln!(stdin, "{message}").unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut made = 0;
    for line in lines.map_while(Result::ok) {
        let line: Value = serde_json::from_str(&line).unwrap();
        let result = &line["message"]["content"][0];
        if result["type"] == "tool_result" {
            assert_ne!(result["is_error"], true, "{line}");
            made += 1;
        }
        if line["type"] == "result" {
            break;
        }
    }
    assert_eq!(made, schedules + monitors);
    // What the beginning left to do is done.
    thread::sleep(Duration::from_secs(2));
    let before = ticks(child.id());
    thread::sleep(WATCHED);
    let used = ticks(child.id()) - before;
    drop(stdin);
    child.wait().unwrap();
    let _ = fs::remove_dir_all(&dir);
    used
}

fn session(dir: &Path, schedules: usize, monitors: usize) -> Child {
    let call = |name: &str, input: Value| json!({"type": "tool_use", "name": name, "input": input});
    let mut calls: Vec<Value> = (0..schedules)
        .map(|number| {
            let cron = format!("{} {} * * *", number, number % 24);
            call("CronCreate", json!({"cron": cron, "prompt": "look"}))
        })
        .collect();
    calls.extend((0..monitors).map(|_| {
        let input =
            json!({"description": "Waits", "command": "command sleep 1000", "persistent": true});
        call("Monitor", input)
    }));
    let mut turns: Vec<Value> = calls
        .iter()
        .map(|call| json!({"content": [call]}))
        .collect();
    turns.push(json!({"content": [{"type": "text", "text": "done"}]}));
    let script = dir.join("script.json");
    fs::write(&script, json!({"turns": turns}).to_string()).unwrap();
    Command::new(binary())
        .current_dir(dir)
        .env("HOME", dir)
        .args(["--allowedTools=Monitor", "--script"])
        .arg(script)
        .args(["--input-format", "stream-json"])
        .args(["--output-format", "stream-json", "--verbose"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// User and system time of a process, in ticks.
fn ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name, which stands in parentheses, may hold blanks.
    let fields = stat.rsplit_once(')').unwrap().1;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
