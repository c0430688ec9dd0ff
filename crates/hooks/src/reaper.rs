//! The reaper: kills handlers if our process dies before them. A process that is killed cannot do
//! that itself.
//!
//! Handlers run in their own sessions, so they do not end with ours. While handlers of a session
//! run, a small shell waits with the list of their process groups. When our process ends in any
//! way, the shell's input ends, and it kills the listed groups.

use std::{
    os::fd::OwnedFd,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::process::Pid;
use tokio::process::Command;

use super::process_hook::SETSID;

/// An absolute path: a directory in PATH may belong to a workspace.
const SHELL: &str = "/bin/sh";

/// The wrapper that starts a handler: it waits for the first line of its input, which we write
/// after the handler was added to the list. If we are killed before that, its input ends, and the
/// wrapper exits.
const GATE: &str = r#"read -r go && exec "$@""#;

/// The script reads `+ GROUP` and `- GROUP`. At the end of its input it sends SIGTERM to all groups
/// on the list, then SIGKILL. Not every shell supports `--` before a group.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
list=
while read -r what group; do
    case $what in
    +) list="$list $group" ;;
    -)
        rest=
        for one in $list; do [ "$one" = "$group" ] || rest="$rest $one"; done
        list=$rest
        ;;
    esac
done
[ -n "$list" ] || exit 0
for one in $list; do kill -TERM "-$one"; done
sleep 1
for one in $list; do kill -KILL "-$one"; done
"#;

/// Kills the handlers of a session whose process has died. It is started with the first handler.
#[derive(Debug, Default)]
pub(super) struct ProcessReaper(Mutex<ReaperState>);

#[derive(Debug, Default)]
enum ReaperState {
    #[default]
    NotStarted,
    /// The shell runs; this is its input.
    Runs(OwnedFd),
    /// The shell is not available: handlers run without it.
    Missing,
}

/// A process group that is on the list until this value is dropped.
#[derive(Debug)]
pub(super) struct ReapedGroup {
    reaper: Arc<ProcessReaper>,
    group: Pid,
}

/// Returns the wrapper arguments that make a program wait for the first line of its input; empty if
/// the shell, and thus the reaper, is missing.
pub(super) fn gate() -> &'static [&'static str] {
    match std::path::Path::new(SHELL).exists() {
        true => &[SHELL, "-c", GATE, "sh"],
        false => &[],
    }
}

impl ProcessReaper {
    /// Adds a group to the list.
    pub(super) fn register(self: &Arc<Self>, group: Pid) -> ReapedGroup {
        self.send_line('+', group);
        ReapedGroup {
            reaper: Arc::clone(self),
            group,
        }
    }

    fn send_line(&self, what: char, group: Pid) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, ReaperState::NotStarted) {
            *state = start().map_or(ReaperState::Missing, ReaperState::Runs);
        }
        if let ReaperState::Runs(input) = &*state {
            let line = format!("{what} {}\n", group.as_raw_nonzero());
            // The line is short enough to be written completely or not at all. It fails only if the
            // shell was killed.
            let _ = rustix::io::write(input, line.as_bytes());
        }
    }
}

impl Drop for ReapedGroup {
    fn drop(&mut self) {
        self.reaper.send_line('-', self.group);
    }
}

/// Starts the shell in its own session, so that it is not killed together with our process group.
fn start() -> Option<OwnedFd> {
    let setsid = SETSID
        .iter()
        .find(|place| std::path::Path::new(place).is_file())?;
    let mut child = Command::new(setsid)
        .args([SHELL, "-c", SCRIPT])
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/run/current-system/sw/bin")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take()?.into_owned_fd().ok()
}

#[cfg(test)]
mod tests {
    use std::{io::Write, process::Stdio};

    use super::*;

    /// What a program behind the gate prints when our end comes after so much was written.
    fn printed_after(written: &[u8]) -> String {
        let [shell, rest @ ..] = gate() else {
            return "skipped: there is no shell".to_owned();
        };
        let mut child = haft_testkit::command(shell)
            .args(rest)
            .args(["sh", "-c", "echo ran; cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(written).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_handler_does_not_begin_before_it_is_told_to() {
        for written in ["", "g", "go"] {
            assert_eq!(printed_after(written.as_bytes()), "", "{written:?}");
        }
        assert_eq!(printed_after(b"go\n{\"a\":1}\n"), "ran\n{\"a\":1}\n");
    }
}
