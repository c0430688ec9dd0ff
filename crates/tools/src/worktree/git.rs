//! Runs git so that no program configured by the repository runs.

use std::{ffi::OsStr, path::Path, process::Stdio, time::Duration};

use haft_contract::CancellationToken;
use tokio::{io::AsyncReadExt, process::Command};

/// The time limit for git, longer than any reasonable checkout takes.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The maximum output that is read, in bytes.
const MAX_PRINTED: u64 = 1 << 20;

/// Settings that override the configuration of the repository.
const SAFE: [(&str, &str); 15] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.sshCommand", "false"),
    ("core.askPass", ""),
    ("core.editor", "false"),
    ("credential.helper", ""),
    ("submodule.recurse", "false"),
    // Checking a submodule for changes would run programs from its configuration.
    ("diff.ignoreSubmodules", "dirty"),
    ("status.submoduleSummary", "false"),
    ("protocol.allow", "never"),
    // The path of a worktree is compared with the path it was created at.
    ("worktree.useRelativePaths", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("advice.detachedHead", "false"),
];

/// Configuration keys with which a repository defines filter programs for its files.
const FILTERS: &str = r"^filter\..*\.(clean|smudge|process|required)$";

/// The settings for running git in a repository.
#[derive(Debug, Clone, Default)]
pub(super) struct GitRunner {
    /// Arguments before the subcommand.
    arguments: Vec<String>,
    /// Settings that override all configurations. Passed as environment variables, because a name
    /// may contain any character.
    settings: Vec<(String, String)>,
}

/// The output of git.
#[derive(Debug)]
pub(super) struct GitOutput {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) ok: bool,
}

impl GitRunner {
    /// Prepares to run git in a directory; filters from the configuration of its repository are
    /// disabled.
    pub(super) async fn for_directory(
        directory: &Path,
        cancel: &CancellationToken,
    ) -> Result<Self, String> {
        let mut git = Self::default();
        for (name, value) in SAFE {
            git.set(name, value);
        }
        // Filters from the user's configuration stay enabled: the user chose them.
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

    /// Overrides a setting.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// Returns the same settings for one worktree, with git's administrative folder for it.
    pub(super) fn in_worktree(&self, folder: &Path, path: &Path) -> Self {
        let mut git = self.clone();
        git.arguments
            .push(format!("--git-dir={}", folder.display()));
        git.arguments
            .push(format!("--work-tree={}", path.display()));
        git
    }

    /// Runs git and returns its output; the error is a message for the user.
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
            true => "git failed without a message".to_owned(),
            false => said.chars().take(2000).collect(),
        })
    }

    /// Runs git and returns its output and whether it succeeded. Fails only if git could not be
    /// started or did not finish.
    pub(super) async fn try_run(
        &self,
        directory: &Path,
        arguments: &[impl AsRef<OsStr>],
        cancel: &CancellationToken,
    ) -> Result<GitOutput, String> {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            // These variables could select another repository, or programs to run.
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
            GitOutput { stdout, stderr, ok }
        };
        tokio::select! {
            done = tokio::time::timeout(TIMEOUT, work) => {
                done.map_err(|_| format!("git did not end within {} s", TIMEOUT.as_secs()))
            }
            () = cancel.cancelled() => Err("it was interrupted".to_owned()),
        }
    }
}

async fn printed(from: Option<impl AsyncReadExt + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        let _ = (&mut from).take(MAX_PRINTED).read_to_end(&mut bytes).await;
        // The rest is read and discarded, so that git can finish.
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
