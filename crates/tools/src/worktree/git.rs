//! Running git so that nothing of the repository's own runs with it.

use std::{ffi::OsStr, path::Path, process::Stdio, time::Duration};

use haft_contract::CancellationToken;
use tokio::{io::AsyncReadExt, process::Command};

/// Longer than any checkout takes that someone waits for.
const LONGEST: Duration = Duration::from_secs(600);

/// More of what it prints is not read.
const MOST_PRINTED: u64 = 1 << 20;

/// What a repository's configuration may not choose here.
const SAFE: [(&str, &str); 15] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.sshCommand", "false"),
    ("core.askPass", ""),
    ("core.editor", "false"),
    ("credential.helper", ""),
    ("submodule.recurse", "false"),
    // A look into a submodule would run what its configuration names.
    ("diff.ignoreSubmodules", "dirty"),
    ("status.submoduleSummary", "false"),
    ("protocol.allow", "never"),
    // Where a worktree is, is compared with where it was made.
    ("worktree.useRelativePaths", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("advice.detachedHead", "false"),
];

/// Keys by which a repository names programs that see its files.
const FILTERS: &str = r"^filter\..*\.(clean|smudge|process|required)$";

/// A repository, and how git is run in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Git {
    /// In front of every command.
    arguments: Vec<String>,
    /// In place of what configurations say. As variables: a name may hold any character.
    settings: Vec<(String, String)>,
}

/// What git printed.
#[derive(Debug)]
pub(super) struct Printed {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) ok: bool,
}

impl Git {
    /// Runs git in a directory; filters of the configuration of its repository are switched off.
    pub(super) async fn of(directory: &Path, cancel: &CancellationToken) -> Result<Self, String> {
        let mut git = Self::default();
        for (name, value) in SAFE {
            git.set(name, value);
        }
        // Those of the person's own configuration stay: they are the person's choice.
        let listed = git
            .try_run(
                directory,
                &[
                    "config",
                    "--local",
                    "--includes",
                    "--null",
                    "--name-only",
                    "--get-regexp",
                    FILTERS,
                ],
                cancel,
            )
            .await?;
        let names = listed.stdout.split('\0').filter(|name| !name.is_empty());
        for name in names {
            let value = if name.ends_with(".required") {
                "false"
            } else {
                ""
            };
            git.set(name, value);
        }
        Ok(git)
    }

    /// The same with this setting.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// The same for one worktree, by the folder that git keeps of it.
    pub(super) fn in_worktree(&self, folder: &Path, path: &Path) -> Self {
        let mut git = self.clone();
        git.arguments
            .push(format!("--git-dir={}", folder.display()));
        git.arguments
            .push(format!("--work-tree={}", path.display()));
        git
    }

    /// What it printed; the error is what went wrong, for the one who asked.
    pub(super) async fn run(
        &self,
        directory: &Path,
        arguments: &[impl AsRef<OsStr>],
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let printed = self.try_run(directory, arguments, cancel).await?;
        if printed.ok {
            return Ok(printed.stdout);
        }
        let said = printed.stderr.trim();
        Err(match said.is_empty() {
            true => "git failed without a word".to_owned(),
            false => said.chars().take(2000).collect(),
        })
    }

    /// The same, whatever it says. The error: it could not be run to its end.
    pub(super) async fn try_run(
        &self,
        directory: &Path,
        arguments: &[impl AsRef<OsStr>],
        cancel: &CancellationToken,
    ) -> Result<Printed, String> {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            // They would say which repository is meant, or what is run.
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(&name);
            }
        }
        command.env("GIT_CONFIG_COUNT", self.settings.len().to_string());
        for (at, (name, value)) in self.settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{at}"), name);
            command.env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        command
            .args(&self.arguments)
            .args(arguments)
            .current_dir(directory)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_ADVICE", "0")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "git is not installed here".to_owned(),
            _ => format!("git cannot be started: {error}"),
        })?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let work = async {
            let (stdout, stderr) = tokio::join!(printed(stdout), printed(stderr));
            let status = child.wait().await;
            let ok = status.is_ok_and(|status| status.success());
            Printed { stdout, stderr, ok }
        };
        tokio::select! {
            done = tokio::time::timeout(LONGEST, work) => {
                done.map_err(|_| format!("git did not end within {} s", LONGEST.as_secs()))
            }
            () = cancel.cancelled() => Err("it was interrupted".to_owned()),
        }
    }
}

async fn printed(from: Option<impl AsyncReadExt + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        let _ = (&mut from).take(MOST_PRINTED).read_to_end(&mut bytes).await;
        // The rest is read and dropped, so that it ends by itself.
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
