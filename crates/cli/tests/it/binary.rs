//! Runs the built binary, away from the settings of the one who runs the tests.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

pub(crate) fn haft(cwd: &Path) -> Command {
    haft_testkit::bound_this_process();
    let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
    command
        .current_dir(cwd)
        .env_clear()
        .env("HOME", cwd)
        .env("PATH", "/usr/bin:/bin")
        // What tools there are must not depend on the machine.
        .env("HAFT_BROWSER", "off");
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
    let feeder = thread::spawn(move || {
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

/// As long as an answer is waited for. Far more than it takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A `haft exec` that is talked to line by line. It ends with this.
pub(crate) struct Conversation {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    /// What was said last.
    said: String,
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
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        // Beside, so that a line that never comes is waited for with an end.
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            said: String::new(),
        }
    }

    pub(crate) fn say(&mut self, line: &Value) {
        self.said = line.to_string();
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn hear(&mut self) -> Value {
        match self.lines.recv_timeout(TIMEOUT) {
            Ok(line) => serde_json::from_str(&line).unwrap(),
            Err(error) => panic!(
                "nothing came after {}: {error}; {}",
                self.said,
                self.state()
            ),
        }
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
        self.stdin = None;
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            let state = || self.state();
            assert!(since.elapsed() < TIMEOUT, "it does not end; {}", state());
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// What the process and those below it wait for, for who looks into a test that failed.
    fn state(&self) -> String {
        let listed = Command::new("ps")
            .args(["-eLo", "pid,ppid,tid,stat,wchan:24,comm"])
            .output();
        let listed = listed.map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned());
        let listed = listed.unwrap_or_default();
        let own = self.child.id().to_string();
        let is_of = |line: &&str| line.split_whitespace().take(2).any(|id| id == own);
        let lines: Vec<&str> = listed.lines().filter(is_of).collect();
        format!("process {own}:\n{}", lines.join("\n"))
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
