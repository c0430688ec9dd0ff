//! A program in tmux: a real terminal with real sizes and real scrollback, on a server of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// Far more than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A tmux server with a shell. It ends with this.
#[derive(Debug)]
pub struct TmuxServer {
    /// Its socket, and what it writes.
    folder: TempDir,
}

impl TmuxServer {
    /// One of this size with this shell. `None`, visibly, where tmux is missing: `what` cannot be tried.
    pub fn start(
        what: &str,
        [columns, rows]: [u16; 2],
        shell: impl FnOnce(&Path) -> String,
    ) -> Option<Self> {
        crate::bound_this_process();
        if crate::command("tmux").arg("-V").output().is_err() {
            crate::skip(&format!("{what} in tmux: tmux is not here"));
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
        tmux.until("the shell", |screen| screen.contains('$'));
        Some(tmux)
    }

    /// A folder of its own.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self) -> Command {
        let mut command = crate::command("tmux");
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command.arg("-S").arg(self.folder().join("socket"));
        command
    }

    /// Runs a command of tmux.
    pub fn tmux(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().expect("tmux runs")
    }

    /// What a command of tmux prints.
    pub fn text(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.tmux(arguments).stdout).expect("tmux prints text")
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.text(&["capture-pane", "-p"])
    }

    /// Everything, scrolled away or not, wrapped lines joined.
    pub fn lines(&self) -> Vec<String> {
        let text = self.text(&["capture-pane", "-p", "-J", "-S", "-"]);
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    /// Types this.
    pub fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses a key that has a name.
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Types a command into the shell.
    pub fn run(&self, command: &str) {
        self.types(command);
        self.press("Enter");
    }

    /// From now on every byte that is written is kept.
    pub fn keep_bytes(&self) {
        let bytes = self.bytes_file();
        self.tmux(&["pipe-pane", &format!("cat >> {}", bytes.display())]);
    }

    /// Every byte that was written.
    pub fn bytes(&self) -> Vec<u8> {
        fs::read(self.bytes_file()).unwrap_or_default()
    }

    fn bytes_file(&self) -> PathBuf {
        self.folder().join("bytes")
    }

    /// What the shell prints for a command.
    pub fn shell(&self, command: &str) -> String {
        let (file, done) = (self.folder().join("output"), self.folder().join("done"));
        let _ = (fs::remove_file(&file), fs::remove_file(&done));
        self.run(&format!(
            "{command} > {}; touch {}",
            file.display(),
            done.display()
        ));
        self.until("the shell's answer", |_| done.exists());
        fs::read_to_string(file).expect("the shell wrote it")
    }

    /// Gives the window another size.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size = [columns.to_string(), rows.to_string()];
        self.tmux(&["resize-window", "-x", &size[0], "-y", &size[1]]);
    }

    /// Waits until the screen is so, and gives it.
    pub fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        // Each look is a process: what takes longer is looked for less often.
        let mut pause = Duration::from_millis(20);
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(
                started.elapsed() < PATIENCE,
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
