//! What ends handlers when our process is gone before they are: killed, it can end nothing itself.
//!
//! A handler has a session of its own, so nothing else would. Beside a session whose handlers run, a small shell
//! waits with the list of their process groups; our end, however it came, is the end of its input.

use std::{
    os::fd::OwnedFd,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::process::Pid;
use tokio::process::Command;

use super::run::SETSID;

/// By its place: a workspace may be in PATH.
const SHELL: &str = "/bin/sh";

/// What a handler is started through: it begins with the first line of its input, which we write once it is on the
/// list. Killed before that we leave a shell whose input ends, and so it does.
const GATE: &str = r#"read -r go && exec "$@""#;

/// Reads `+ GROUP` and `- GROUP`. When there is no more, what is left on the list is asked to end, then ended. Not
/// every shell takes `--` in front of a group.
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

/// Ends the handlers of a session that is gone. Nothing runs before the first of them does.
#[derive(Debug, Default)]
pub(super) struct Reaper(Mutex<ReaperState>);

#[derive(Debug, Default)]
enum ReaperState {
    #[default]
    NotStarted,
    /// Its input.
    Runs(OwnedFd),
    /// There is none here: handlers run all the same.
    Missing,
}

/// A process group on the list, until this is dropped.
#[derive(Debug)]
pub(super) struct ReapedGroup {
    reaper: Arc<Reaper>,
    group: Pid,
}

/// The arguments in front of a program that let it begin with the first line of its input; none where there is no shell,
/// and so no reaper either.
pub(super) fn gate() -> &'static [&'static str] {
    match std::path::Path::new(SHELL).exists() {
        true => &[SHELL, "-c", GATE, "sh"],
        false => &[],
    }
}

impl Reaper {
    /// Puts a group on the list.
    pub(super) fn watch(self: &Arc<Self>, group: Pid) -> ReapedGroup {
        self.say('+', group);
        ReapedGroup {
            reaper: Arc::clone(self),
            group,
        }
    }

    fn say(&self, what: char, group: Pid) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, ReaperState::NotStarted) {
            *state = start().map_or(ReaperState::Missing, ReaperState::Runs);
        }
        if let ReaperState::Runs(input) = &*state {
            let line = format!("{what} {}\n", group.as_raw_nonzero());
            // Short enough to go in one piece, or not at all: then someone ended it.
            let _ = rustix::io::write(input, line.as_bytes());
        }
    }
}

impl Drop for ReapedGroup {
    fn drop(&mut self) {
        self.reaper.say('-', self.group);
    }
}

/// In a session of its own, so that what ends all of ours at once does not end it.
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
