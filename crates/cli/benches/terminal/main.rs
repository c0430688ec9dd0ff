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

mod face;
mod peers;
mod server;
mod sessions;

use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use self::{
    face::{Face, binary},
    server::{Voice, serve},
};

const STARTS: usize = 31;
const KEYS: usize = 200;
const IDLE: Duration = Duration::from_secs(10);
const TURNS: usize = 2_000;
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
    let parts: [BenchPart; 9] = [
        ("start", start),
        ("resume", sessions::resume),
        ("echo", echo),
        ("idle", idle),
        ("watches", sessions::watches),
        ("turns", turns),
        ("headless", headless),
        ("work", work),
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
        let face = Face::start(dir, &[("ANTHROPIC_API_KEY", "key")], &["--model", "m"]);
        let (_, at) = face.until(0, b"\x1b[?2026l");
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
    let face = Face::start(
        dir,
        &variables,
        &["--model", "m", "--allowed-tools", "Bash"],
    );
    face.until(0, b"\x1b[?2026l");
    thread::sleep(Duration::from_secs(1));
    face.types("go");
    thread::sleep(Duration::from_millis(300));
    let from = face.length();
    face.types("\r");
    let (from, _) = face.until(from, b"word");
    let (from, _) = face.until(from, b"a line of what");
    thread::sleep(Duration::from_millis(500));
    let mut samples = Vec::new();
    let before = face.length();
    let began = Instant::now();
    assert!(before >= from);
    // Letters that nothing else writes, not even as the end of a sequence: each is on the screen when its row is.
    let letters: Vec<char> = ('а'..='я').collect();
    for key in 0..KEYS {
        let at = key % letters.len();
        if at == 0 && key > 0 {
            face.types("\u{15}");
            thread::sleep(Duration::from_millis(100));
        }
        let from = face.length();
        let typed = Instant::now();
        face.types(&letters[at].to_string());
        let (_, seen) = face.until(from, letters[at].to_string().as_bytes());
        samples.push(seen - typed);
        // As fast as people type, and never in step with frames.
        thread::sleep(Duration::from_millis(23 + (key as u64 * 7) % 31));
    }
    let written = (face.length() - before) as f64 / began.elapsed().as_secs_f64() / 1e3;
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
    let face = Face::scripted(dir, &[text("ok")], &[]);
    thread::sleep(Duration::from_secs(3));
    let (bytes, work, wakes) = (face.length(), face.work(), face.wakes());
    thread::sleep(IDLE);
    let (bytes, work) = (face.length() - bytes, face.work() - work);
    // A thread that had nothing to do may have ended meanwhile, with its count.
    let wakes = face.wakes().saturating_sub(wakes);
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

/// What a reply of a long session says.
fn reply(turn: usize) -> String {
    let words = "Some words of an answer, as long as answers are. ".repeat(2);
    format!("{words}\n\n```rust\nlet turn = {turn};\n```\n\nReply {turn:05} ends.")
}

fn replies() -> Vec<Value> {
    (1..=TURNS).map(|turn| text(&reply(turn))).collect()
}

fn growth(what: &str, early: u64, late: u64) {
    let megabytes = |kilobytes: u64| kilobytes as f64 / 1e3;
    row(
        &format!("memory after {} and {TURNS} turns, {what}", TURNS / 10),
        &format!("{:.1} MB, {:.1} MB", megabytes(early), megabytes(late)),
        "growth ≤ 8 MB",
        late.saturating_sub(early) <= 8_000,
    );
}

/// Says something so many times, and how much memory it has early and late.
fn long_session(face: &Face, ends: impl Fn(usize) -> String) -> (u64, u64) {
    let mut early = 0;
    for turn in 1..=TURNS {
        face.says("go", &ends(turn));
        if turn == TURNS / 10 {
            early = face.memory("VmRSS");
        }
        // What was written before is not searched again, nor kept.
        if turn % 50 == 0 {
            thread::sleep(Duration::from_millis(20));
            face.seen.bytes.lock().unwrap().clear();
        }
    }
    (early, face.memory("VmRSS"))
}

/// A long session of words.
fn turns(dir: &Path) {
    let face = Face::scripted(dir, &replies(), &[]);
    let (early, late) = long_session(&face, |turn| format!("Reply {turn:05} ends."));
    growth("words alone", early, late);
}

/// The same without a face: what of it is the session's.
fn headless(dir: &Path) {
    let script = dir.join("script.json");
    fs::write(&script, json!({"turns": replies()}).to_string()).unwrap();
    let mut child = Command::new(binary())
        .args(["-p", "--input-format", "stream-json", "--verbose"])
        .args(["--output-format", "stream-json", "--script"])
        .arg(&script)
        .current_dir(dir)
        .env_clear()
        .env("HOME", dir)
        .env("PATH", "/usr/bin:/bin")
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
            early = face::memory_of(child.id(), "VmRSS");
        }
    }
    let late = face::memory_of(child.id(), "VmRSS");
    drop(input);
    child.wait().unwrap();
    growth("words alone, without a face", early, late);
}

/// A long session in which files are read and changed, with a provider's protocol between: requests are written, and
/// the conversation is summarized when it is long.
fn work(dir: &Path) {
    let file = dir.join("work.txt");
    fs::write(&file, "a line of a file\n".repeat(40)).unwrap();
    let place = file.clone();
    let turn = AtomicUsize::new(0);
    let url = serve(Arc::new(move |request: &Value, voice: &mut Voice<'_>| {
        let messages = request["messages"].as_array().map_or(&[][..], |all| all);
        let last = &messages.last().unwrap_or(&Value::Null)["content"];
        let answers = |block: &Value| block["type"] == "tool_result";
        let results = last
            .as_array()
            .map_or(0, |all| all.iter().filter(|b| answers(b)).count());
        let is_summary = request["tools"].as_array().is_none_or(Vec::is_empty);
        match results {
            _ if is_summary => voice.says("A summary."),
            0 => {
                let number = turn.fetch_add(1, Ordering::Relaxed);
                voice.calls("Read", &json!({"file_path": place}))?;
                let command = format!("echo turn {number} > out.txt; seq 200");
                voice.calls("Bash", &json!({"command": command}))
            }
            _ => voice.says(&format!("{} All ends.", reply(0))),
        }
    }));
    let variables = [("ANTHROPIC_BASE_URL", &*url), ("ANTHROPIC_API_KEY", "key")];
    let flags = ["--model", "m", "--permission-mode", "acceptEdits"];
    let allowed = ["--allowed-tools", "Bash"];
    let face = Face::start(dir, &variables, &[&flags[..], &allowed].concat());
    face.until(0, b"\x1b[?2026l");
    thread::sleep(Duration::from_secs(1));
    let (early, late) = long_session(&face, |_| "All ends.".to_owned());
    growth("a file read and a command run in each", early, late);
}

/// A call that writes very much.
fn output(dir: &Path) {
    let command = format!("yes 'a line of what a program writes' | head -c {OUTPUT}");
    let call = json!({"content": [
        {"type": "tool_use", "name": "Bash", "input": {"command": command, "timeout": 120_000}},
    ]});
    let turns = [text("Before."), call, text("Behind.")];
    let face = Face::scripted(dir, &turns, &["--allowed-tools", "Bash"]);
    face.says("go", "Before.");
    let (peak, bytes) = (face.memory("VmHWM"), face.length());
    face.says("go", "Behind.");
    let grown = face.memory("VmHWM").saturating_sub(peak);
    row(
        "a call that writes 100 MB",
        &format!(
            "{:.1} MB more at the peak, {} KB to the terminal",
            grown as f64 / 1e3,
            (face.length() - bytes) / 1000
        ),
        "≤ 8 MB (64 KB a call in the face)",
        grown <= 8_000,
    );
}
