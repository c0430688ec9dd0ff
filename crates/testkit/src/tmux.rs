//! A program in tmux: a real terminal with a size and scrollback, on a separate tmux server.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// The timeout of a wait, far longer than needed on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(90);

/// A tmux server with a shell. It is stopped on drop.
#[derive(Debug)]
pub struct TmuxServer {
    /// The folder with the socket and the output.
    folder: TempDir,
}

impl TmuxServer {
    /// Starts a server with this size and shell. If tmux is not installed, reports the test `what`
    /// as skipped and returns `None`.
    pub fn start(
        what: &str,
        [columns, rows]: [u16; 2],
        shell: impl FnOnce(&Path) -> String,
    ) -> Option<Self> {
        crate::bound_this_process();
        if crate::command("tmux").arg("-V").output().is_err() {
            crate::skip(&format!("{what} in tmux: tmux is not installed"));
            return None;
        }
        let tmux = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        let shell = shell(tmux.folder());
        let size = [columns.to_string(), rows.to_string()];
        let mut command = tmux.command();
        command.args(["-f", "/dev/null", "new-session", "-d"]);
        let started = command.args(["-x", &size[0], "-y", &size[1], &shell]);
        assert!(started.status().expect("tmux starts").success());
        tmux.wait_until("the shell", |screen| screen.contains('$'));
        Some(tmux)
    }

    /// Returns the server's own folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self) -> Command {
        let mut command = crate::command("tmux");
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command.arg("-S").arg(self.folder().join("socket"));
        command
    }

    /// Runs a tmux command.
    pub fn tmux(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().expect("tmux runs")
    }

    /// Runs a tmux command and returns its output.
    pub fn text(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.tmux(arguments).stdout).expect("tmux prints text")
    }

    /// Returns the visible screen.
    pub fn screen(&self) -> String {
        self.text(&["capture-pane", "-p"])
    }

    /// Returns all lines including the scrollback, with wrapped lines joined.
    pub fn lines(&self) -> Vec<String> {
        let text = self.text(&["capture-pane", "-p", "-J", "-S", "-"]);
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    /// Types a text.
    pub fn type_text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses a key by its name in tmux.
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Runs a command in the shell.
    pub fn run(&self, command: &str) {
        self.type_text(command);
        self.press("Enter");
    }

    /// Starts to record all bytes that are written to the terminal.
    pub fn record_bytes(&self) {
        let bytes = self.bytes_file();
        self.tmux(&["pipe-pane", &format!("cat >> {}", bytes.display())]);
    }

    /// Returns the recorded bytes.
    pub fn bytes(&self) -> Vec<u8> {
        fs::read(self.bytes_file()).unwrap_or_default()
    }

    fn bytes_file(&self) -> PathBuf {
        self.folder().join("bytes")
    }

    /// Runs a command in the shell and returns its output.
    pub fn shell(&self, command: &str) -> String {
        let (file, done) = (self.folder().join("output"), self.folder().join("done"));
        let _ = (fs::remove_file(&file), fs::remove_file(&done));
        self.run(&format!(
            "{command} > {}; touch {}",
            file.display(),
            done.display()
        ));
        self.wait_until("the shell's answer", |_| done.exists());
        fs::read_to_string(file).expect("the shell wrote it")
    }

    /// Resizes the window.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size = [columns.to_string(), rows.to_string()];
        self.tmux(&["resize-window", "-x", &size[0], "-y", &size[1]]);
    }

    /// Waits until the screen satisfies the condition, and returns it.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        // Each check starts a process, so the interval between checks grows.
        let mut pause = Duration::from_millis(20);
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(
                started.elapsed() < TIMEOUT,
                "waited in vain for {what}:\n{screen}"
            );
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(80));
        }
    }
}

impl Drop for TmuxServer {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").output();
    }
}
