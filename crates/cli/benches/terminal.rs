//! The limits of the interactive terminal: `cargo bench -p haft-cli --bench terminal`.
//!
//! The binary runs on a terminal of our own (`setsid` makes it the controlling one), with a model that is a
//! server in this process or a script. What is measured is what a person would notice: when something is on the
//! screen, when a key is, what it costs to do nothing, what a long session and a long output cost.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use haft_testkit::{
    ModelLine,
    measure::{self, millis, percentile, row},
    model_line::{call_block, text_block},
};
use rustix::{
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_haft");
const STARTS: usize = 31;
const KEYS: usize = 200;
const IDLE: Duration = Duration::from_secs(10);
const TURNS: usize = 2_000;
const OUTPUT: u64 = 100_000_000;
/// Far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is measured, by the name it is asked for with.
type BenchPart = (&'static str, fn(&Path));

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if measure::is_test_run() {
        return;
    }
    let names: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| *wanted == name);
    let dir = std::env::temp_dir().join(format!("haft-bench-terminal-{}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    measure::table();
    let parts: [BenchPart; 5] = [
        ("start", start),
        ("echo", echo),
        ("idle", idle),
        ("turns", turns),
        ("output", output),
    ];
    for (name, measure) in parts {
        if is_wanted(name) {
            measure(&dir);
        }
    }
    fs::remove_dir_all(&dir).unwrap();
}

/// The binary on a terminal.
struct Face {
    child: Child,
    master: File,
    seen: Arc<Seen>,
}

/// What it wrote so far.
#[derive(Default)]
struct Seen {
    bytes: Mutex<Vec<u8>>,
    changed: Condvar,
}

impl Face {
    fn start(dir: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(i32::try_from(OFlags::NOCTTY.bits()).unwrap())
            .open(std::ffi::OsStr::from_bytes(name.to_bytes()))
            .unwrap();
        let size = Winsize {
            ws_row: 40,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let child = Command::new("setsid")
            .args(["--ctty", BINARY])
            .args(arguments)
            .current_dir(dir)
            .env_clear()
            .env("HOME", dir)
            .env("PATH", "/usr/bin:/bin")
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .envs(variables.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let master = File::from(master);
        let seen = Arc::new(Seen::default());
        let (mut reads, writes) = (master.try_clone().unwrap(), Arc::clone(&seen));
        thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count) = reads.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                writes.bytes.lock().unwrap().extend(&buffer[..count]);
                writes.changed.notify_all();
            }
        });
        Self {
            child,
            master,
            seen,
        }
    }

    /// A session with this script, when it is open.
    fn scripted(dir: &Path, turns: &[Value], arguments: &[&str]) -> Self {
        let script = dir.join("script.json");
        fs::write(&script, json!({"turns": turns}).to_string()).unwrap();
        let mut all = vec!["--script", script.to_str().unwrap()];
        all.extend(arguments);
        let face = Self::start(dir, &[], &all);
        face.until(0, b"scripted");
        face
    }

    fn length(&self) -> usize {
        self.seen.bytes.lock().unwrap().len()
    }

    /// Waits for this behind so many bytes; where it ends, and when it was there.
    fn until(&self, from: usize, wanted: &[u8]) -> (usize, Instant) {
        let started = Instant::now();
        let mut bytes = self.seen.bytes.lock().unwrap();
        loop {
            let place = find(&bytes[from..], wanted);
            if let Some(at) = place {
                return (from + at + wanted.len(), Instant::now());
            }
            assert!(
                started.elapsed() < PATIENCE,
                "waited in vain for {:?}: {}",
                String::from_utf8_lossy(wanted),
                String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(2_000)..])
            );
            let wait = self.seen.changed.wait_timeout(bytes, PATIENCE);
            bytes = wait.unwrap().0;
        }
    }

    fn types(&self, text: &str) {
        (&self.master).write_all(text.as_bytes()).unwrap();
    }

    /// A message, and its end: the title of the window has its mark no longer.
    fn says(&self, text: &str, reply: &str) {
        let from = self.length();
        self.types(text);
        let (from, _) = self.until(from, text.as_bytes());
        self.types("\r");
        self.until(from, reply.as_bytes());
        let (from, _) = self.until(from, b"\x1b]2;* go");
        self.until(from, b"\x1b]2;go");
    }

    fn memory(&self, what: &str) -> u64 {
        measure::memory(self.child.id(), what)
    }

    /// How long it has worked.
    fn work(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
        let ticks: u64 = fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }

    /// How often it was woken.
    fn wakes(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of_task = |task: fs::DirEntry| {
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let line = status
                .lines()
                .find(|line| line.starts_with("voluntary_ctxt_switches"));
            let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
            number.unwrap_or_default()
        };
        tasks.map(|task| of_task(task.unwrap())).sum()
    }
}

impl Drop for Face {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
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
    let took = millis(percentile(samples.clone(), 50));
    let most = millis(percentile(samples, 95));
    row(
        "process start to first frame",
        &format!("{took:.1} ms, 95 %: {most:.1} ms"),
        "≤ 30 ms",
        took <= 30.0,
    );
}

/// A key while a reply streams and a call writes.
fn echo(dir: &Path) {
    let mut model = ModelLine::open();
    let url = model.url().to_owned();
    // It ends with this process, or when no one reads any longer.
    thread::spawn(move || {
        model.request();
        let _ = reply(&mut model);
    });
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
    let took = millis(percentile(samples.clone(), 50));
    let most = millis(percentile(samples, 99));
    row(
        "echo of a key at 500 tokens/s and 10 MB/s of output",
        &format!("{took:.1} ms, 99 %: {most:.1} ms ({written:.0} KB/s to the terminal)"),
        "≤ 16 ms",
        most <= 16.0,
    );
}

/// A reply that begins with a call that writes, and goes on with 500 words a second.
fn reply(line: &mut ModelLine) -> io::Result<()> {
    line.begin()?;
    let command = "for i in $(seq 400); do cat piece.txt; sleep 0.1; done";
    let input = json!({"command": command, "timeout": 120_000});
    line.say(&call_block(0, "toolu_1", "Bash", &input))?;
    let [start, _, _] = text_block(1, "");
    line.say(&[start])?;
    let began = Instant::now();
    for number in 0..60_000_u32 {
        let text = match number % 60 {
            59 => "word.\n\n",
            _ => "word ",
        };
        let [_, piece, _] = text_block(1, text);
        line.say(&[piece])?;
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

/// A long session.
fn turns(dir: &Path) {
    let replies: Vec<Value> = (1..=TURNS)
        .map(|turn| {
            let words = "Some words of an answer, as long as answers are. ".repeat(2);
            text(&format!(
                "{words}\n\n```rust\nlet turn = {turn};\n```\n\nReply {turn:05} ends."
            ))
        })
        .collect();
    let face = Face::scripted(dir, &replies, &[]);
    let mut early = 0;
    for turn in 1..=TURNS {
        face.says("go", &format!("Reply {turn:05} ends."));
        if turn == TURNS / 10 {
            early = face.memory("VmRSS");
        }
        // What was written before is not searched again, nor kept.
        if turn % 50 == 0 {
            thread::sleep(Duration::from_millis(20));
            face.seen.bytes.lock().unwrap().clear();
        }
    }
    let late = face.memory("VmRSS");
    let megabytes = |kilobytes: u64| kilobytes as f64 / 1e3;
    let growth = late.saturating_sub(early);
    row(
        &format!("memory after {} and {TURNS} turns", TURNS / 10),
        &format!("{:.1} MB, {:.1} MB", megabytes(early), megabytes(late)),
        "growth ≤ 8 MB",
        growth <= 8_000,
    );
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
