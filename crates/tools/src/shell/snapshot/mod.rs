//! A snapshot of the user's own shell: functions, aliases, safe options and PATH from their rc
//! file.
//!
//! The rc file runs once, in an interactive bash without a terminal and without input, for a
//! limited time. Its definitions are read back and filtered ([`filter`]). The result is a script
//! that every command can load quickly. If the rc file prints, waits, exits or becomes another
//! shell, only the snapshot is lost.

mod filter;
#[cfg(test)]
mod tests;

use std::{path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
    time::timeout,
};

/// The definitions that a command's shell loads before it runs the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShellSnapshot {
    /// A script that only contains definitions. It must be sourced, and the command run by `eval`
    /// afterwards, because an alias only applies to text that bash reads later.
    pub(crate) text: String,
    /// PATH as the rc file leaves it.
    pub(crate) path: String,
    /// The names of the functions and aliases that were rejected.
    pub(crate) left_out: Vec<String>,
}

/// The reason why there is no snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotError {
    /// Bash could not be started without a terminal.
    NotStarted,
    /// The rc file took too long.
    Slow,
    /// The rc file exited the shell, or replaced it.
    NoAnswer,
    /// The rc file defines too much.
    Long,
}

/// The maximum size of the output and the definitions, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// The definitions that were read back.
#[derive(Debug, Default, PartialEq, Eq)]
struct ShellDefinitions {
    /// The options of `set -o` and `shopt` that are on.
    options: Vec<String>,
    path: String,
    /// Name and value of each alias.
    aliases: Vec<(String, String)>,
    /// Name and definition of each function.
    functions: Vec<(String, String)>,
}

/// The possible paths of `setsid`, which starts a program in a new session.
const SETSID: [&str; 3] = [
    "/usr/bin/setsid",
    "/bin/setsid",
    "/run/current-system/sw/bin/setsid",
];

/// Runs the user's rc file (`rc`, or the one in their home) and returns a snapshot of its
/// definitions. The shell inherits haft's environment unchanged, as in a terminal. Of the
/// environment, only PATH is read back. `mark` must be plain text that the rc file cannot guess.
/// After `limit`, the shell is killed.
pub(crate) async fn take(
    home: &Path,
    rc: Option<&Path>,
    mark: &str,
    limit: Duration,
) -> Result<ShellSnapshot, SnapshotError> {
    // Use fixed paths: PATH may contain the workspace, and no program of the workspace may run
    // here.
    let shell = haft_sandbox::system_shell().ok_or(SnapshotError::NotStarted)?;
    let setsid = SETSID.iter().map(Path::new).find(|place| place.is_file());
    let mut command = Command::new(setsid.ok_or(SnapshotError::NotStarted)?);
    command.arg(shell);
    if let Some(rc) = rc {
        command.arg("--rcfile").arg(rc);
    }
    command
        .args(["-i", "-c", &script(mark)])
        // Not the workspace, so that its contents cannot affect the rc file.
        .current_dir(home)
        .env("HISTFILE", "/dev/null")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut shell = SnapshotShell(command.spawn().map_err(|_| SnapshotError::NotStarted)?);
    let answer = timeout(limit, shell.answer(mark)).await;
    shell.end();
    // The shell is dead or about to be. Wait for it, so that it does not remain a zombie.
    let _ = timeout(limit, shell.0.wait()).await;
    let answer = answer.map_err(|_| SnapshotError::Slow)??;
    let defined = read_back(&answer, mark).ok_or(SnapshotError::NoAnswer)?;
    Ok(filter::snapshot(defined))
}

/// A shell in a new session (`setsid`). Without a new session, an interactive bash would compete
/// for our terminal. Dropping the value kills the shell and its process group.
struct SnapshotShell(Child);

impl SnapshotShell {
    async fn answer(&mut self, mark: &str) -> Result<Vec<u8>, SnapshotError> {
        let output = self.0.stdout.as_mut().ok_or(SnapshotError::NotStarted)?;
        let end = [mark.as_bytes(), b"\0"].concat();
        let mut answer = Vec::new();
        let mut marks = 0;
        let mut chunk = [0; 8192];
        // Read up to the mark and not to the end: a process that the rc file started may hold the
        // pipe open.
        loop {
            let length = output.read(&mut chunk).await;
            let length = length.map_err(|_| SnapshotError::NoAnswer)?;
            let from = (answer.len() + 1).saturating_sub(end.len());
            answer.extend_from_slice(&chunk[..length]);
            marks += memchr::memmem::find_iter(&answer[from..], &end).count();
            if length == 0 || marks >= 2 {
                return Ok(answer);
            }
            if answer.len() > MAX_BYTES {
                return Err(SnapshotError::Long);
            }
        }
    }

    fn end(&mut self) {
        // A shell without an id was already reaped, and its number may belong to another process.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = id.and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.0.start_kill();
    }
}

impl Drop for SnapshotShell {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the script that the shell runs after the rc file. Bash reads each line separately, so
/// that aliases of the rc file no longer apply once they are switched off. The first lines are
/// written so that they cannot be aliased.
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

/// Parses the shell's output between the marks. Output of the rc file precedes the first mark.
fn read_back(answer: &[u8], mark: &str) -> Option<ShellDefinitions> {
    let answer = String::from_utf8_lossy(answer);
    let marked = format!("{mark}\0");
    let (_, behind) = answer.split_once(&marked)?;
    let (said, _) = behind.rsplit_once(&marked)?;
    let mut words = said.split_terminator('\0');
    let options = words.next()?;
    let mut defined = ShellDefinitions {
        options: options.split(':').map(str::to_owned).collect(),
        path: words.next()?.to_owned(),
        ..ShellDefinitions::default()
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
