//! The binary in tmux: a real terminal with real scrollback, on a server of its own.

use std::{
    fs,
    ops::Deref,
    path::{Path, PathBuf},
};

use haft_testkit::TmuxServer;
use serde_json::{Value, json};

/// A reply in words, streamed.
pub(super) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "pieces": 7})
}

/// Words, and no end.
pub(super) fn hanging(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "hangs": true})
}

pub(super) fn call(name: &str, input: Value) -> Value {
    json!({"content": [{"type": "tool_use", "name": name, "input": input}]})
}

/// A command line that takes a moment, in which something can be typed.
pub(super) fn pause() -> Value {
    call("Bash", json!({"command": "sleep 1"}))
}

/// Nothing runs, and the draft is empty.
pub(super) fn is_idle(screen: &str) -> bool {
    screen.lines().any(|line| line == "›") && !screen.contains("Esc to stop")
}

/// The rows from the first that begins with this.
pub(super) fn from(screen: &str, first: &str) -> String {
    let rows: Vec<&str> = screen
        .lines()
        .skip_while(|row| !row.starts_with(first))
        .collect();
    rows.join("\n").trim_end().to_owned()
}

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
        self.wait_until("the session", |screen| screen.contains("scripted"));
    }

    /// Starts a session with this script; every byte that it writes is kept.
    pub(super) fn begin(&self, arguments: &str, turns: &[Value]) {
        let script = self.folder().join("script.json");
        fs::write(&script, json!({"turns": turns}).to_string()).unwrap();
        self.record_bytes();
        self.run(&format!(
            "{} --still --script {} {arguments}",
            env!("CARGO_BIN_EXE_haft"),
            script.display()
        ));
    }

    /// Sends a message, key by key as a person would.
    pub(super) fn say(&self, text: &str) {
        self.type_text(text);
        self.wait_until("the draft", |screen| screen.contains(text));
        self.press("Enter");
    }

    /// Waits until an answer with these words is there, and nothing runs.
    pub(super) fn answered(&self, words: &str) -> String {
        self.wait_until(words, |screen| screen.contains(words) && is_idle(screen))
    }

    /// Waits for a question and until it can be answered: its options are not faint any more.
    pub(super) fn armed(&self, option: &str) -> String {
        self.wait_until("the question is armed", |_| {
            let coloured = self.text(&["capture-pane", "-e", "-p"]);
            let options = coloured.lines().find(|line| line.contains(option));
            options.is_some_and(|line| !line.contains("\x1b[2m"))
        })
    }

    /// Bytes as a terminal sends them, in one piece.
    pub(super) fn raw(&self, bytes: &[u8]) {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut arguments = vec!["send-keys", "-H"];
        arguments.extend(hex.iter().map(String::as_str));
        self.tmux(&arguments);
    }

    /// The column of the cursor, from 0.
    pub(super) fn column(&self) -> usize {
        let column = self.text(&["display-message", "-p", "#{cursor_x}"]);
        column.trim().parse().unwrap()
    }

    /// What was written so far, as text.
    pub(super) fn written(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// The lines of the newest transcript.
    pub(super) fn transcript(&self) -> String {
        let found = haft_testkit::command("find")
            .arg(self.home().join(".claude/projects"))
            .args(["-name", "*.jsonl"])
            .output()
            .unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        let texts = found.lines().map(|path| fs::read_to_string(path).unwrap());
        texts.collect()
    }

    /// Leaves the session.
    pub(super) fn leave(&self) {
        self.press("C-d");
        self.wait_until("the end", |screen| screen.contains("haft -r "));
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
