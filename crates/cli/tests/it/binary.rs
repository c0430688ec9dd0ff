//! Runs the built binary, away from the settings of the one who runs the tests.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::Value;

pub(crate) fn haft(cwd: &Path) -> Command {
    haft_testkit::bound_this_process();
    let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
    command
        .current_dir(cwd)
        .env_clear()
        .env("HOME", cwd)
        .env("PATH", "/usr/bin:/bin");
    command
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs to the end with this on stdin.
pub(crate) fn run(command: &mut Command, stdin: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    // The child may answer before it has read everything: feed it from the side.
    let feeder = std::thread::spawn(move || {
        let _ = pipe.write_all(&stdin);
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `haft exec` over these lines; every answer as JSON.
pub(crate) fn exec(cwd: &Path, flags: &[&str], lines: &str) -> Vec<Value> {
    let ran = run(haft(cwd).args(flags).arg("exec"), lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr, "");
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A `haft exec` that is talked to line by line.
pub(crate) struct Conversation {
    pub(crate) child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Conversation {
    pub(crate) fn new(cwd: &Path) -> Self {
        Self::of(&mut haft(cwd))
    }

    /// With these flags already on the command line.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::start(command.arg("exec"))
    }

    /// With the whole command line.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
        }
    }

    pub(crate) fn say(&mut self, line: &Value) {
        self.stdin
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    pub(crate) fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn ask(&mut self, line: &Value) -> Value {
        self.say(line);
        self.hear()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Closes stdin and waits for the end.
    pub(crate) fn end(mut self) -> i32 {
        drop(self.stdin);
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}
