//! The binary in tmux: a real terminal with real scrollback, on a server of its own.

use std::{
    fs,
    ops::Deref,
    path::{Path, PathBuf},
};

use haft_testkit::TmuxServer;
use serde_json::{Value, json};

/// A shell in a project of its own.
pub(super) struct Tmux(TmuxServer);

impl Deref for Tmux {
    type Target = TmuxServer;

    fn deref(&self) -> &TmuxServer {
        &self.0
    }
}

impl Tmux {
    /// `None`, visibly, where tmux is missing.
    pub(super) fn start(columns: u16, rows: u16) -> Option<Self> {
        let shell = |home: &Path| {
            let project = home.join("shop");
            fs::create_dir(&project).unwrap();
            format!(
                "cd {}; env -i HOME={} PATH=/usr/bin:/bin TERM=\"$TERM\" TMUX=\"$TMUX\" LC_ALL=C.UTF-8 PS1='$ ' \
                 bash --norc --noprofile",
                project.display(),
                home.display(),
            )
        };
        TmuxServer::start("the session", [columns, rows], shell).map(Self)
    }

    pub(super) fn project(&self) -> PathBuf {
        self.folder().join("shop")
    }

    pub(super) fn home(&self) -> &Path {
        self.folder()
    }

    /// Starts a session with this script, and waits until it is open.
    pub(super) fn haft(&self, arguments: &str, turns: &[Value]) {
        self.begin(arguments, turns);
        self.until("the session", |screen| screen.contains("scripted"));
    }

    /// Starts a session with this script; every byte that it writes is kept.
    pub(super) fn begin(&self, arguments: &str, turns: &[Value]) {
        let script = self.folder().join("script.json");
        fs::write(&script, json!({"turns": turns}).to_string()).unwrap();
        self.keep_bytes();
        self.run(&format!(
            "{} --still --script {} {arguments}",
            env!("CARGO_BIN_EXE_haft"),
            script.display()
        ));
    }

    /// Sends a message, key by key as a person would.
    pub(super) fn say(&self, text: &str) {
        self.types(text);
        self.until("the draft", |screen| screen.contains(text));
        self.press("Enter");
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
