//! Copies text to the clipboard by the first method that works. It waits for other programs, so it
//! must not run on the drawing thread.

use std::{
    fs::OpenOptions,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use haft_host::Environment;
use haft_terminal::paint::{MAX_FOR_CLIPBOARD, TerminalControl};

/// The timeout of a clipboard program. After it, the next method is tried.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The outcome of copying a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CopyOutcome {
    /// The message for the user.
    pub(crate) message: String,
    /// Control sequences to send to the terminal, if it should copy the text.
    pub(crate) controls: Vec<TerminalControl>,
}

/// Copies a text with tmux, a clipboard program of the desktop, or the terminal. A text that is too
/// long for the terminal is saved in a file.
pub(crate) fn copy(text: &str, environment: &Environment) -> CopyOutcome {
    let said = |said: String| CopyOutcome {
        message: said,
        controls: Vec::new(),
    };
    let count = match text.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    };
    for (program, arguments, place) in programs(environment) {
        if run_program(program, arguments, text, environment) {
            return said(format!("copied {count} {place}"));
        }
    }
    // The encoded length: base64 takes four characters for three bytes.
    if text.len().div_ceil(3) * 4 <= MAX_FOR_CLIPBOARD {
        return CopyOutcome {
            message: format!("copied {count} through the terminal (OSC 52)"),
            controls: vec![TerminalControl::Clipboard(text.to_owned())],
        };
    }
    let folder = environment.variable("TMPDIR").map(PathBuf::from);
    match save_text(text, &folder.unwrap_or_else(|| PathBuf::from("/tmp"))) {
        Ok(file) => said(format!(
            "too long for the terminal's clipboard: {count} are saved in {}",
            file.display()
        )),
        Err(error) => said(format!("could not be copied: {error}")),
    }
}

type CopyProgram = (&'static str, &'static [&'static str], &'static str);

/// Returns the programs to try and a description of where each puts the text.
fn programs(environment: &Environment) -> Vec<CopyProgram> {
    let has = |name: &str| environment.variable(name).is_some();
    let mut programs: Vec<CopyProgram> = Vec::new();
    if has("TMUX") {
        programs.push((
            "tmux",
            &["load-buffer", "-w", "-"],
            "to tmux and the clipboard",
        ));
    }
    // Over SSH, these programs would use the clipboard of the remote machine.
    let is_remote = has("SSH_TTY") || has("SSH_CONNECTION");
    if !is_remote && has("WAYLAND_DISPLAY") {
        programs.push(("wl-copy", &[], "to the clipboard (wl-copy)"));
    }
    if !is_remote && has("DISPLAY") {
        let arguments = &["-selection", "clipboard"];
        programs.push(("xclip", arguments, "to the clipboard (xclip)"));
    }
    programs
}

fn run_program(program: &str, arguments: &[&str], text: &str, environment: &Environment) -> bool {
    let mut command = Command::new(program);
    if let Some(path) = environment.variable("PATH") {
        command.env("PATH", path);
    }
    let child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return false;
    };
    let text = text.as_bytes().to_vec();
    if let Some(mut stdin) = child.stdin.take() {
        thread::spawn(move || {
            let _ = stdin.write_all(&text);
        });
    }
    let until = Instant::now() + TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(2)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// Writes the text to a file that only the user can read.
fn save_text(text: &str, folder: &Path) -> std::io::Result<PathBuf> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let moment = since.unwrap_or_default().as_nanos();
    let path = folder.join(format!("haft-copy-{}-{moment}.txt", process::id()));
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(text.as_bytes())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    /// A program that keeps what it is given.
    fn program(dir: &Path, name: &str, ends: &str) {
        let path = dir.join(name);
        let text = format!(
            "#!/bin/sh\n/bin/cat > {}/{name}.got\n{ends}\n",
            dir.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn environment(dir: &Path, more: &[&str]) -> Environment {
        let dir = dir.to_str().unwrap();
        let given = [("PATH", dir), ("TMPDIR", dir)];
        let more = more.iter().map(|name| (*name, "1"));
        Environment::from_variables(given.into_iter().chain(more))
    }

    #[test]
    fn the_first_way_that_there_is_is_taken_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        program(dir, "tmux", "exit 1");
        program(dir, "xclip", "");
        let all = ["TMUX", "WAYLAND_DISPLAY", "DISPLAY"];
        let copied = copy("one\ntwo\n", &environment(dir, &all));
        assert_eq!(copied.message, "copied 2 lines to the clipboard (xclip)");
        assert_eq!(
            fs::read_to_string(dir.join("xclip.got")).unwrap(),
            "one\ntwo\n"
        );
        program(dir, "tmux", "");
        let copied = copy("x", &environment(dir, &all));
        assert_eq!(copied.message, "copied 1 line to tmux and the clipboard");
    }

    #[test]
    fn at_the_other_end_of_a_network_the_terminal_takes_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        program(dir, "xclip", "");
        let copied = copy("x", &environment(dir, &["DISPLAY", "SSH_TTY"]));
        assert_eq!(
            copied.controls,
            [TerminalControl::Clipboard("x".to_owned())]
        );
        assert!(!dir.join("xclip.got").exists());
    }

    #[test]
    fn what_is_too_long_for_a_terminal_goes_into_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let text = "x".repeat(MAX_FOR_CLIPBOARD);
        let copied = copy(&text, &environment(dir, &[]));
        assert_eq!(copied.controls, []);
        let file = copied.message.rsplit(' ').next().unwrap();
        assert_eq!(fs::read_to_string(file).unwrap(), text);
        assert_eq!(
            fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
