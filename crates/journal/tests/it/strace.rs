//! A child of this test binary under `strace`: the system calls it makes, and a fault at any of them.
//!
//! The child does its work in one thread and says what it has to say with [`say`], which is no call
//! that is ever disturbed. Only the calls between "begin" and "end" are steps.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, fstat, statat};

/// Calls after which something on the disk, or a lock on it, may be different.
const CHANGING: &[&str] = &[
    "openat",
    "write",
    "pwrite64",
    "ftruncate",
    "fallocate",
    "copy_file_range",
    "fchmod",
    "fchown",
    "fsetxattr",
    "fsync",
    "fdatasync",
    "flock",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "symlink",
    "symlinkat",
    "fchmodat",
    "fchownat",
    "utimensat",
    "mkdir",
    "mkdirat",
    "rmdir",
];

/// Those that only look.
const LOOKING: &[&str] = &[
    "openat2",
    "read",
    "pread64",
    "fstat",
    "statx",
    "newfstatat",
    "getdents64",
    "readlink",
    "flistxattr",
    "fgetxattr",
];

/// One system call of the child.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) call: String,
    /// How many of that name the thread had made, with this one.
    pub(crate) nth: usize,
    /// As strace shows it.
    pub(crate) line: String,
}

impl Step {
    /// May it leave another state behind? An `openat` only if it can create.
    pub(crate) fn changes(&self) -> bool {
        match self.call.as_str() {
            "openat" => self.line.contains("O_CREAT"),
            call => CHANGING.contains(&call),
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line: String = self.line.chars().take(160).collect();
        write!(formatter, "{line}")
    }
}

/// What a child did.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Its words between "begin" and "end", as far as it came.
    pub(crate) said: Vec<String>,
    pub(crate) began: bool,
    pub(crate) killed: bool,
}

/// Can children be traced here? If not, says so where it is seen.
pub(crate) fn is_there() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| {
        let probe = haft_testkit::command("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=openat", "true"])
            .stderr(Stdio::null())
            .status();
        let there = probe.is_ok_and(|status| status.success());
        if !there {
            haft_testkit::skip("faults at system calls: no strace, or it may not trace");
        }
        there
    })
}

/// Says a line on standard output by a call that is not in any list here.
pub(crate) fn say(words: &str) {
    let line = format!("{}\n", words.replace('\n', " "));
    let out = std::os::fd::AsFd::as_fd(&std::io::stdout())
        .try_clone_to_owned()
        .unwrap();
    let bytes = [IoSlice::new(b"\n"), IoSlice::new(line.as_bytes())];
    let _ = File::from(out).write_vectored(&bytes).unwrap();
}

/// strace counts the calls of each thread by themselves, and the harness has a thread of its own:
/// the one that works must be ahead of it, so that a fault hits this one first.
pub(crate) fn get_ahead() {
    for _ in 0..30 {
        let mut null = File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .unwrap();
        null.write_all(b"x").unwrap();
        let _ = null.read(&mut [0]).unwrap();
        let _ = null.read_at(&mut [0], 0).unwrap();
        null.metadata().unwrap();
        fstat(&null).unwrap();
        statat(CWD, "/dev/null", AtFlags::empty()).unwrap();
    }
}

/// Runs a test of this binary with these injections (in strace's words).
pub(crate) fn run(test: &str, variables: &[(&str, &str)], injections: &[String]) -> Ran {
    traced(test, variables, injections, Path::new("/dev/null"), false)
}

/// Runs it to the end, and gives the steps it made.
pub(crate) fn steps(
    test: &str,
    variables: &[(&str, &str)],
    injections: &[String],
) -> (Ran, Vec<Step>) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let ran = traced(test, variables, injections, log.path(), true);
    (ran, parse(&fs::read_to_string(log.path()).unwrap()))
}

fn traced(
    test: &str,
    variables: &[(&str, &str)],
    injections: &[String],
    log: &Path,
    all: bool,
) -> Ran {
    let mut command = haft_testkit::command("strace");
    command.args(["-f", "-qq", "-e", "signal=none", "-o"]);
    command.arg(log);
    let mut names: Vec<&str> = injections
        .iter()
        .filter_map(|one| one.split(':').next())
        .collect();
    if all {
        names.extend(CHANGING.iter().chain(LOOKING));
        names.push("writev");
    }
    // `?`: not every machine has every call.
    command
        .arg("-e")
        .arg(format!("trace=?{}", names.join(",?")));
    for injection in injections {
        command.arg("-e").arg(format!("inject={injection}"));
    }
    command.arg(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--quiet"]);
    command.envs(variables.iter().copied());
    // The loader looks in all of these first, and makes calls that no one needs.
    command.env_remove("LD_LIBRARY_PATH");
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = said.lines().skip_while(|line| *line != "begin");
    let began = lines.next().is_some();
    let mut said: Vec<String> = lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    let end = said.iter().position(|line| line == "end");
    let killed = output.status.signal() == Some(9);
    assert!(
        killed || end.is_some(),
        "the child did not do its work: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    said.truncate(end.unwrap_or(said.len()));
    Ran {
        said,
        began,
        killed,
    }
}

/// The calls of the thread that said "begin", from there to its "end".
fn parse(log: &str) -> Vec<Step> {
    let calls: Vec<(&str, &str, &str)> = log
        .lines()
        .filter_map(|line| {
            let (thread, call) = line.split_once(' ')?;
            let (name, _) = call.trim_start().split_once('(')?;
            let is_name = name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            is_name.then_some((thread, name, call.trim_start()))
        })
        .collect();
    let says = |call: &(&str, &str, &str)| call.1 == "writev";
    let begin = calls
        .iter()
        .position(|call| says(call) && call.2.contains("\"begin\\n\""));
    let begin = begin.expect("the child never began");
    let thread = calls[begin].0;
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut steps = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        if call.0 != thread {
            continue;
        }
        if says(call) && call.2.contains("\"end\\n\"") {
            break;
        }
        if says(call) {
            continue;
        }
        let nth = counts.entry(call.1).or_default();
        *nth += 1;
        if at > begin {
            steps.push(Step {
                call: call.1.to_owned(),
                nth: *nth,
                line: call.2.to_owned(),
            });
        }
    }
    for step in &steps {
        let others = calls
            .iter()
            .filter(|call| call.0 != thread && call.1 == step.call)
            .count();
        assert!(others < step.nth, "{others} before {}: {step}", step.nth);
    }
    steps
}
