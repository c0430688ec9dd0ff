//! The user's own shell, taken over: functions, aliases, harmless options and PATH from their rc file.
//!
//! The rc file runs once, in an interactive bash without a terminal and without input, for a bounded
//! time. What it defines is read back, sifted ([`keep`]), and becomes a text that every command can
//! load in no time. Whatever the rc file does instead (prints, waits, ends, becomes another shell)
//! costs no more than the snapshot.

mod keep;
#[cfg(test)]
mod tests;

use std::{path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
    time::timeout,
};

/// What a command's shell loads before it runs the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// A script that only defines: to be sourced, and the command to be run by `eval` after it,
    /// since aliases count only in what is read later.
    pub(crate) text: String,
    /// PATH as the rc file leaves it.
    pub(crate) path: String,
    /// Functions and aliases that were not taken over, by name.
    pub(crate) left_out: Vec<String>,
}

/// Why there is no snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Bash could not be started without a terminal.
    NotStarted,
    /// The rc file took too long.
    Slow,
    /// It ended the shell, or became another one.
    NoAnswer,
    /// It defines too much.
    Long,
}

/// How much it may print and define, in bytes.
const MOST: usize = 4 << 20;

/// What was read back.
#[derive(Debug, Default, PartialEq, Eq)]
struct Defined {
    /// Of `set -o` and `shopt`, those that are on.
    options: Vec<String>,
    path: String,
    /// Name and value.
    aliases: Vec<(String, String)>,
    /// Name and definition.
    functions: Vec<(String, String)>,
}

/// Where the program is found that starts another in a session of its own.
const SETSID: [&str; 3] = [
    "/usr/bin/setsid",
    "/bin/setsid",
    "/run/current-system/sw/bin/setsid",
];

/// Runs the user's rc file (`rc`, or the one in their home) and takes over what it defines.
/// It gets our environment as it is, as in any terminal; nothing of it comes back but PATH.
/// `mark` is a plain word that no one can guess; five seconds are a good limit.
pub(crate) async fn take(
    home: &Path,
    rc: Option<&Path>,
    mark: &str,
    limit: Duration,
) -> Result<Snapshot, Absent> {
    // By their places: a workspace may be in PATH, and nothing of it may run for this.
    let shell = haft_sandbox::system_shell().ok_or(Absent::NotStarted)?;
    let setsid = SETSID.iter().map(Path::new).find(|place| place.is_file());
    let mut command = Command::new(setsid.ok_or(Absent::NotStarted)?);
    command.arg(shell);
    if let Some(rc) = rc {
        command.arg("--rcfile").arg(rc);
    }
    command
        .args(["-i", "-c", &script(mark)])
        // Not the workspace: whatever it holds is none of the rc file's business.
        .current_dir(home)
        .env("HISTFILE", "/dev/null")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut shell = Group(command.spawn().map_err(|_| Absent::NotStarted)?);
    let answer = timeout(limit, shell.answer(mark)).await;
    shell.end();
    // It is dead, or about to be; waited for, so that it does not stay as a zombie.
    let _ = timeout(limit, shell.0.wait()).await;
    let answer = answer.map_err(|_| Absent::Slow)??;
    let defined = read_back(&answer, mark).ok_or(Absent::NoAnswer)?;
    Ok(keep::snapshot(defined))
}

/// A shell in a session of its own, `setsid`: an interactive bash would otherwise fight for our
/// terminal. Ends with everything it started.
struct Group(Child);

impl Group {
    async fn answer(&mut self, mark: &str) -> Result<Vec<u8>, Absent> {
        let output = self.0.stdout.as_mut().ok_or(Absent::NotStarted)?;
        let end = [mark.as_bytes(), b"\0"].concat();
        let mut answer = Vec::new();
        let mut marks = 0;
        let mut chunk = [0; 8192];
        // To the mark and not to the end: what the rc file started may hold the pipe open.
        loop {
            let length = output.read(&mut chunk).await;
            let length = length.map_err(|_| Absent::NoAnswer)?;
            let from = (answer.len() + 1).saturating_sub(end.len());
            answer.extend_from_slice(&chunk[..length]);
            marks += memchr::memmem::find_iter(&answer[from..], &end).count();
            if length == 0 || marks >= 2 {
                return Ok(answer);
            }
            if answer.len() > MOST {
                return Err(Absent::Long);
            }
        }
    }

    fn end(&mut self) {
        // Without an id it was waited for, and the number may be someone else's.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = id.and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.0.start_kill();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the shell runs behind the rc file. Each line is read on its own, so that the aliases of the rc
/// file do not count once they are switched off; the first lines are written so that they cannot
/// be aliased.
fn script(mark: &str) -> String {
    format!(
        r#"\unset -f unset builtin printf trap set shopt compgen declare
\builtin trap - DEBUG RETURN ERR EXIT
\builtin printf '%s\0' {mark} "$SHELLOPTS:$BASHOPTS" "$PATH"
\builtin set +eux -f
\builtin shopt -u expand_aliases
IFS=$' \t\n'
for haft_name in "${{!BASH_ALIASES[@]}}"; do
  builtin printf 'alias\0%s\0%s\0' "$haft_name" "${{BASH_ALIASES[$haft_name]}}"
done
for haft_name in $(builtin compgen -A function); do
  builtin printf 'function\0%s\0' "$haft_name"
  builtin declare -f -- "$haft_name"
  builtin printf '\0'
done
builtin printf '%s\0' {mark}
"#
    )
}

/// What the shell said between the marks; what the rc file printed stands before them.
fn read_back(answer: &[u8], mark: &str) -> Option<Defined> {
    let answer = String::from_utf8_lossy(answer);
    let marked = format!("{mark}\0");
    let (_, behind) = answer.split_once(&marked)?;
    let (said, _) = behind.rsplit_once(&marked)?;
    let mut words = said.split_terminator('\0');
    let options = words.next()?;
    let mut defined = Defined {
        options: options.split(':').map(str::to_owned).collect(),
        path: words.next()?.to_owned(),
        ..Defined::default()
    };
    while let Some(kind) = words.next() {
        let pair = (words.next()?.to_owned(), words.next()?.to_owned());
        match kind {
            "alias" => defined.aliases.push(pair),
            "function" => defined.functions.push(pair),
            _ => return None,
        }
    }
    Some(defined)
}
