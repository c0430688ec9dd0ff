//! The limits of the interactive terminal: `cargo bench -p haft-cli --bench terminal`.
//!
//! The binary runs on a terminal of our own, with a model that is a server in this process or a script. What is
//! measured is what a person would notice: when something is on the screen, when a key is, what it costs to do
//! nothing, what a long session and a long output cost. Names behind `--` choose parts; `peers` measures other agents
//! beside it, where they are in the path.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

mod front_end;
mod long;
mod peers;
mod server;
mod sessions;

use std::{
    fs, io,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use self::{
    front_end::BenchFrontEnd,
    server::{Voice, serve},
};

const STARTS: usize = 31;
const KEYS: usize = 200;
const IDLE: Duration = Duration::from_secs(10);
const OUTPUT: u64 = 100_000_000;

/// What is measured, by the name it is asked for with.
type BenchPart = (&'static str, fn(&Path));

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test` builds benches too and passes this; there is nothing to test here.
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    let names: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| *wanted == name);
    let dir = std::env::temp_dir().join(format!("haft-bench-terminal-{}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    println!("| promise | measured | bound | |");
    println!("|---|---|---|---|");
    let parts: [BenchPart; 10] = [
        ("start", start),
        ("resume", sessions::resume),
        ("echo", echo),
        ("idle", idle),
        ("watches", sessions::watches),
        ("turns", long::turns),
        ("headless", long::headless),
        ("work", long::work),
        ("headless-work", long::headless_work),
        ("output", output),
    ];
    for (name, measure) in parts {
        if is_wanted(name) {
            measure(&dir);
        }
    }
    // Only where it is asked for: other programs are started.
    if names.iter().any(|wanted| *wanted == "peers") {
        peers::peers(&dir);
    }
    fs::remove_dir_all(&dir).unwrap();
}

fn row(what: &str, measured: &str, bound: &str, holds: bool) {
    let mark = if holds { "ok" } else { "**over**" };
    println!("| {what} | {measured} | {bound} | {mark} |");
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The one that so many in a hundred are not above.
fn percentile(samples: &mut [Duration], percent: usize) -> Duration {
    samples.sort();
    samples[(samples.len() * percent / 100).min(samples.len() - 1)]
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// From nothing to the first frame, settings not read yet.
fn start(dir: &Path) {
    let mut samples = Vec::new();
    for _ in 0..STARTS {
        let started = Instant::now();
        let front_end =
            BenchFrontEnd::start(dir, &[("ANTHROPIC_API_KEY", "key")], &["--model", "m"]);
        let (_, at) = front_end.until(0, b"\x1b[?2026l");
        samples.push(at - started);
    }
    let took = millis(percentile(&mut samples, 50));
    let most = millis(percentile(&mut samples, 95));
    row(
        "process start to first frame",
        &format!("{took:.1} ms, 95 %: {most:.1} ms"),
        "≤ 30 ms",
        took <= 30.0,
    );
}

/// A key while a reply streams and a call writes.
fn echo(dir: &Path) {
    let url = serve(Arc::new(|_, voice| talks_and_works(voice)));
    let line = "a line of what a program writes, as long as such lines are\n";
    let piece = line.repeat(1_000_000 / line.len());
    fs::write(dir.join("piece.txt"), piece).unwrap();
    let variables = [("ANTHROPIC_BASE_URL", &*url), ("ANTHROPIC_API_KEY", "key")];
    let front_end = BenchFrontEnd::start(
        dir,
        &variables,
        &["--model", "m", "--allowed-tools", "Bash"],
    );
    front_end.until(0, b"\x1b[?2026l");
    thread::sleep(Duration::from_secs(1));
    front_end.types("go");
    thread::sleep(Duration::from_millis(300));
    let from = front_end.length();
    front_end.types("\r");
    let (from, _) = front_end.until(from, b"word");
    let (from, _) = front_end.until(from, b"a line of what");
    thread::sleep(Duration::from_millis(500));
    let mut samples = Vec::new();
    let before = front_end.length();
    let began = Instant::now();
    assert!(before >= from);
    // Letters that nothing else writes, not even as the end of a sequence: each is on the screen when its row is.
    let letters: Vec<char> = ('а'..='я').collect();
    for key in 0..KEYS {
        let at = key % letters.len();
        if at == 0 && key > 0 {
            front_end.types("\u{15}");
            thread::sleep(Duration::from_millis(100));
        }
        let from = front_end.length();
        let typed = Instant::now();
        front_end.types(&letters[at].to_string());
        let (_, seen) = front_end.until(from, letters[at].to_string().as_bytes());
        samples.push(seen - typed);
        // As fast as people type, and never in step with frames.
        thread::sleep(Duration::from_millis(23 + (key as u64 * 7) % 31));
    }
    let written = (front_end.length() - before) as f64 / began.elapsed().as_secs_f64() / 1e3;
    let took = millis(percentile(&mut samples, 50));
    let most = millis(percentile(&mut samples, 99));
    row(
        "echo of a key at 500 tokens/s and 10 MB/s of output",
        &format!("{took:.1} ms, 99 %: {most:.1} ms ({written:.0} KB/s to the terminal)"),
        "≤ 16 ms",
        most <= 16.0,
    );
}

/// A reply that begins with a call that writes, and goes on with 500 words a second.
fn talks_and_works(voice: &mut Voice<'_>) -> io::Result<()> {
    let command = "for i in $(seq 400); do cat piece.txt; sleep 0.1; done";
    voice.calls("Bash", &json!({"command": command, "timeout": 120_000}))?;
    let began = Instant::now();
    for number in 0..60_000_u32 {
        let text = match number % 60 {
            59 => "word.\n\n",
            _ => "word ",
        };
        voice.says(text)?;
        let due = began + Duration::from_millis(2) * number;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Nothing happens for a while.
fn idle(dir: &Path) {
    let front_end = BenchFrontEnd::scripted(dir, &[text("ok")], &[]);
    thread::sleep(Duration::from_secs(3));
    let (bytes, work, wakes) = (front_end.length(), front_end.work(), front_end.wakes());
    thread::sleep(IDLE);
    let (bytes, work) = (front_end.length() - bytes, front_end.work() - work);
    // A thread that had nothing to do may have ended meanwhile, with its count.
    let wakes = front_end.wakes().saturating_sub(wakes);
    row(
        "idle for 10 s",
        &format!(
            "{bytes} bytes, {:.0} ms of CPU, woken {wakes} times",
            millis(work)
        ),
        "0 bytes, 0 ms",
        bytes == 0 && work.is_zero(),
    );
}

/// A call that writes very much.
fn output(dir: &Path) {
    let command = format!("yes 'a line of what a program writes' | head -c {OUTPUT}");
    let call = json!({"content": [
        {"type": "tool_use", "name": "Bash", "input": {"command": command, "timeout": 120_000}},
    ]});
    let turns = [text("Before."), call, text("Behind.")];
    let front_end = BenchFrontEnd::scripted(dir, &turns, &["--allowed-tools", "Bash"]);
    front_end.says("go", "Before.");
    let (peak, bytes) = (front_end.memory("VmHWM"), front_end.length());
    front_end.says("go", "Behind.");
    let grown = front_end.memory("VmHWM").saturating_sub(peak);
    row(
        "a call that writes 100 MB",
        &format!(
            "{:.1} MB more at the peak, {} KB to the terminal",
            grown as f64 / 1e3,
            (front_end.length() - bytes) / 1000
        ),
        "≤ 8 MB (64 KB a call in the front end)",
        grown <= 8_000,
    );
}
