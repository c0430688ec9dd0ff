//! A program on a terminal of our own (`setsid` makes it the controlling one).

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde_json::{Value, json};

pub(crate) fn binary() -> PathBuf {
    haft_testkit::measure::binary(env!("CARGO_BIN_EXE_haft"))
}

/// What a terminal is asked, and what it answers.
const ANSWERS: [(&[u8], &[u8]); 5] = [
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b]10;?", b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
    (b"\x1b]11;?", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
    (b"\x1b[?u", b"\x1b[?0u"),
    (b"\x1b[c", b"\x1b[?62;22c"),
];

/// Far longer than anything takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A program on a terminal.
pub(crate) struct BenchFrontEnd {
    pub(crate) child: Child,
    master: File,
    pub(crate) seen: Arc<Seen>,
}

/// What it wrote so far.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) bytes: Mutex<Vec<u8>>,
    changed: Condvar,
}

impl BenchFrontEnd {
    pub(crate) fn start(dir: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        Self::run(dir, binary().as_os_str(), &arguments, variables, false)
    }

    /// A program on a terminal that answers when it is asked where its cursor is and what it can do: some wait for it.
    pub(crate) fn answering(
        dir: &Path,
        program: &OsStr,
        arguments: &[&OsStr],
        variables: &[(&str, &str)],
    ) -> Self {
        Self::run(dir, program, arguments, variables, true)
    }

    fn run(
        dir: &Path,
        program: &OsStr,
        arguments: &[&OsStr],
        variables: &[(&str, &str)],
        answers: bool,
    ) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(i32::try_from(OFlags::NOCTTY.bits()).unwrap())
            .open(OsStr::from_bytes(name.to_bytes()))
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
            .arg("--ctty")
            .arg(program)
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
                let asked = ANSWERS
                    .iter()
                    .filter(|(asked, _)| answers && find(&buffer[..count], asked).is_some());
                for (_, answer) in asked {
                    let _ = reads.write_all(answer);
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
    pub(crate) fn scripted(dir: &Path, turns: &[Value], arguments: &[&str]) -> Self {
        let script = dir.join("script.json");
        fs::write(&script, json!({"turns": turns}).to_string()).unwrap();
        let mut all = vec!["--script", script.to_str().unwrap()];
        all.extend(arguments);
        let front_end = Self::start(dir, &[], &all);
        front_end.until(0, b"scripted");
        front_end
    }

    pub(crate) fn length(&self) -> usize {
        self.seen.bytes.lock().unwrap().len()
    }

    /// Waits for this behind so many bytes; where it ends, and when it was there.
    pub(crate) fn until(&self, from: usize, wanted: &[u8]) -> (usize, Instant) {
        self.until_within(from, wanted, TIMEOUT).unwrap_or_else(|| {
            let bytes = self.seen.bytes.lock().unwrap();
            let end = &bytes[bytes.len().saturating_sub(2_000)..];
            let (wanted, end) = (
                String::from_utf8_lossy(wanted),
                String::from_utf8_lossy(end),
            );
            panic!("waited in vain for {wanted:?}: {end}")
        })
    }

    /// The same, for one that may never come.
    pub(crate) fn until_within(
        &self,
        from: usize,
        wanted: &[u8],
        patience: Duration,
    ) -> Option<(usize, Instant)> {
        let started = Instant::now();
        let mut bytes = self.seen.bytes.lock().unwrap();
        loop {
            if let Some(at) = find(&bytes[from..], wanted) {
                return Some((from + at + wanted.len(), Instant::now()));
            }
            let left = patience.saturating_sub(started.elapsed());
            if left.is_zero() {
                return None;
            }
            bytes = self.seen.changed.wait_timeout(bytes, left).unwrap().0;
        }
    }

    pub(crate) fn types(&self, text: &str) {
        (&self.master).write_all(text.as_bytes()).unwrap();
    }

    /// A message, and its end: the title of the window has its mark no longer.
    pub(crate) fn says(&self, text: &str, reply: &str) {
        let from = self.length();
        self.types(text);
        let (from, _) = self.until(from, text.as_bytes());
        self.types("\r");
        self.until(from, reply.as_bytes());
        let (from, _) = self.until(from, b"\x1b]2;* go");
        self.until(from, b"\x1b]2;go");
    }

    /// In KB, as the kernel counts it.
    pub(crate) fn memory(&self, what: &str) -> u64 {
        memory_of(self.child.id(), what)
    }

    /// How long it has worked.
    pub(crate) fn work(&self) -> Duration {
        work_of(self.child.id())
    }

    /// The same with all processes that it started.
    pub(crate) fn work_of_all(&self) -> Duration {
        family(self.child.id()).into_iter().map(work_of).sum()
    }

    /// In KB, of all of them.
    pub(crate) fn memory_of_all(&self) -> u64 {
        let all = family(self.child.id()).into_iter();
        all.map(|process| memory_of(process, "VmRSS")).sum()
    }

    /// How often it was woken.
    pub(crate) fn wakes(&self) -> u64 {
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

impl Drop for BenchFrontEnd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In KB, as the kernel counts it.
pub(crate) fn memory_of(process: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(what));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or_default()
}

fn work_of(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse().ok())
            .unwrap_or(0_u64)
    };
    Duration::from_millis((ticks(12) + ticks(13)) * 10)
}

/// A process and those below it.
fn family(process: u32) -> Vec<u32> {
    let mut all = vec![process];
    let mut at = 0;
    while let Some(parent) = all.get(at) {
        let tasks = fs::read_dir(format!("/proc/{parent}/task"))
            .into_iter()
            .flatten()
            .flatten();
        let children =
            tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let children: Vec<u32> = children
            .flat_map(|children| {
                children
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .filter_map(|child| child.parse().ok())
            .collect();
        all.extend(children);
        at += 1;
    }
    all
}

pub(crate) fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
