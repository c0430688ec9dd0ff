//! The binary in tmux: a real terminal with real scrollback, on a server of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Far more than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A tmux server of its own, with a shell in a project of its own.
pub(super) struct Tmux {
    /// Its socket, the home of the person, and the project.
    folder: TempDir,
}

impl Tmux {
    /// `None`, visibly, where tmux is missing.
    pub(super) fn start(columns: u16, rows: u16) -> Option<Self> {
        haft_testkit::bound_this_process();
        if haft_testkit::command("tmux").arg("-V").output().is_err() {
            haft_testkit::skip("the session in tmux: tmux is not here");
            return None;
        }
        let tmux = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(tmux.project()).unwrap();
        let size = [columns.to_string(), rows.to_string()];
        let shell = format!(
            "cd {}; env -i HOME={} PATH=/usr/bin:/bin TERM=\"$TERM\" TMUX=\"$TMUX\" LC_ALL=C.UTF-8 PS1='$ ' \
             bash --norc --noprofile",
            tmux.project().display(),
            tmux.folder.path().display(),
        );
        let mut command = tmux.command();
        command.args(["-f", "/dev/null", "new-session", "-d"]);
        let started = command.args(["-x", &size[0], "-y", &size[1], &shell]);
        assert!(started.status().unwrap().success());
        tmux.until("the shell", |screen| screen.contains('$'));
        Some(tmux)
    }

    pub(super) fn project(&self) -> PathBuf {
        self.folder.path().join("shop")
    }

    pub(super) fn home(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self) -> Command {
        let mut command = haft_testkit::command("tmux");
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command.arg("-S").arg(self.folder.path().join("socket"));
        command
    }

    pub(super) fn tmux(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    fn text(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.tmux(arguments).stdout).unwrap()
    }

    pub(super) fn screen(&self) -> String {
        self.text(&["capture-pane", "-p"])
    }

    pub(super) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    pub(super) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    pub(super) fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "waited in vain for {what}:\n{screen}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(super) fn run(&self, command: &str) {
        self.types(command);
        self.press("Enter");
    }

    /// Starts a session with this script, and waits until it is open.
    pub(super) fn haft(&self, arguments: &str, turns: &[Value]) {
        self.begin(arguments, turns);
        self.until("the session", |screen| screen.contains("scripted"));
    }

    /// Starts a session with this script; every byte that it writes is kept.
    pub(super) fn begin(&self, arguments: &str, turns: &[Value]) {
        let script = self.folder.path().join("script.json");
        fs::write(&script, json!({"turns": turns}).to_string()).unwrap();
        let bytes = self.folder.path().join("bytes");
        self.tmux(&["pipe-pane", &format!("cat >> {}", bytes.display())]);
        self.run(&format!(
            "{} --still --script {} {arguments}",
            env!("CARGO_BIN_EXE_haft"),
            script.display()
        ));
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("bytes")).unwrap_or_default()
    }

    /// Sends a message, key by key as a person would.
    pub(super) fn say(&self, text: &str) {
        self.types(text);
        self.until("the draft", |screen| screen.contains(text));
        self.press("Enter");
    }

    /// What the shell prints for a command.
    pub(super) fn shell(&self, command: &str) -> String {
        let file = self.folder.path().join("output");
        let done = self.folder.path().join("done");
        let _ = (fs::remove_file(&file), fs::remove_file(&done));
        self.run(&format!(
            "{command} > {}; touch {}",
            file.display(),
            done.display()
        ));
        self.until("the shell's answer", |_| done.exists());
        fs::read_to_string(file).unwrap()
    }

    /// The process that runs in the foreground of the terminal.
    pub(super) fn pid(&self) -> i32 {
        let shell = self.text(&["display-message", "-p", "#{pane_pid}"]);
        let mut newest = shell.trim().to_owned();
        // The shell may be the child of another that started it.
        loop {
            let children = haft_testkit::command("pgrep")
                .args(["-P", &newest])
                .output()
                .unwrap();
            let children = String::from_utf8(children.stdout).unwrap();
            match children.lines().next() {
                Some(child) => newest = child.to_owned(),
                None => return newest.parse().unwrap(),
            }
            let name = fs::read_to_string(format!("/proc/{newest}/comm")).unwrap_or_default();
            if name.trim() == "haft" {
                return newest.parse().unwrap();
            }
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
