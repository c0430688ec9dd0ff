//! A snapshot of a page with 2,000 elements: `cargo bench -p haft-browser --bench snapshot`.
//!
//! What Chromium takes to answer is reported beside the whole, and the memory of this process before and after.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on should stop there"
)]

use std::{
    fs,
    path::Path,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_browser::{AllowAllRequests, Chromium, ChromiumOptions, SnapshotPart};
use haft_testkit::PageServer;
use tokio::process::Command;

const PROGRAM: &str = "/usr/bin/chromium";
const ROUNDS: usize = 15;

#[tokio::main]
async fn main() {
    if !Path::new(PROGRAM).exists() {
        println!("There is no Chromium here: nothing was measured.");
        return;
    }
    // Rows with a heading, a text, a link and a button each.
    let rows: String = (0..400)
        .map(|row| format!("<div><h2>Row {row}</h2><p>About row {row}</p><a href=/{row}>Open {row}</a><button>Buy {row}</button></div>"))
        .collect();
    let server = PageServer::start([("/", rows)]);
    let folder = tempfile::tempdir().unwrap();
    let mut process = Command::new("/bin/sh")
        .args([
            "-c",
            "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null",
            "sh",
            PROGRAM,
        ])
        .args([
            "--remote-debugging-pipe=cbor",
            "--headless",
            "--no-sandbox",
            "--no-first-run",
            "--disable-gpu",
        ])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let options = ChromiumOptions {
        interceptor: Arc::new(AllowAllRequests),
        downloads: None,
    };
    let (reader, writer) = (
        process.stdout.take().unwrap(),
        process.stdin.take().unwrap(),
    );
    let browser = Chromium::connect(reader, writer, options).await.unwrap();
    let tab = browser.selected().await.unwrap();
    let before = resident_kb();
    tab.navigate(&server.url, Duration::from_secs(60))
        .await
        .unwrap();
    let part = SnapshotPart {
        max_chars: 20_000,
        ..SnapshotPart::default()
    };
    let (mut whole, mut theirs, mut characters) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let shown = tab.snapshot(&part).await.unwrap();
        whole.push(began.elapsed());
        characters = shown.chars().count();
        theirs.push(tab.answer_time().await.unwrap());
    }
    let median = |mut all: Vec<Duration>| {
        all.sort_unstable();
        all[all.len() / 2].as_secs_f64() * 1_000.0
    };
    let (whole, theirs) = (median(whole), median(theirs));
    let verdict = if whole <= 150.0 { "ok" } else { "MISSED" };
    println!("| what | measured | bound | |\n|---|---|---|---|");
    println!(
        "| a snapshot of 2,000 elements (median of {ROUNDS}) | {whole:.1} ms | 150 ms | {verdict} |"
    );
    println!("| of it Chromium's answers, asked for again | {theirs:.1} ms | | |");
    let verdict = if characters <= 20_000 { "ok" } else { "MISSED" };
    println!("| its characters | {characters} | 20,000 | {verdict} |");
    println!(
        "| memory of this process, beyond the empty tab | {} KB | | |",
        resident_kb().saturating_sub(before)
    );
}

fn resident_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
