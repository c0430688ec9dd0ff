//! The browser process: confined by haft, or, if that is not possible, in Chromium's own sandbox.
//!
//! Chromium's own sandbox confines pages, but not the browser program, which sees everything that
//! the user sees. The program uses haft's gate only because it is configured to; it could make
//! other connections. So this sandbox is the second choice, and its use is reported once. It is not
//! available for root, for whom Chromium has no sandbox.

use std::{
    env,
    ffi::OsString,
    fs,
    io::Error,
    net::{Ipv4Addr, TcpListener},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use haft_contract::ToolError;
use haft_sandbox::{
    ConfinedProcess, ScratchLease,
    network::{NetworkGate, Proxy},
};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// Connects Chromium's control pipe and discards its other output. Chromium exits when the pipe is
/// closed, for example because haft was killed; the shell then removes Chromium's files.
const WITH_ITS_PIPE: &str = "exec 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null; \"$@\" & exec 3<&- 4>&-; wait; \
     exec rm -rf -- \"$TMPDIR\"";

/// A running browser; all of its processes end when this is dropped.
pub(super) enum BrowserProcess {
    /// In haft's sandbox.
    Confined(ConfinedProcess),
    /// In Chromium's own sandbox.
    OwnSandbox(OwnSandbox),
}

/// A browser in Chromium's own sandbox, with everything that must live as long.
pub(super) struct OwnSandbox {
    child: Child,
    scratch: PathBuf,
    _in_use: ScratchLease,
    /// The proxy for its network connections.
    _proxy: Proxy,
}

impl BrowserProcess {
    /// Returns the folder of its files: profile and downloads.
    pub(super) fn scratch(&self) -> &Path {
        match self {
            Self::Confined(process) => process.scratch(),
            Self::OwnSandbox(own) => &own.scratch,
        }
    }

    pub(super) fn kill(&self, grace: Duration) {
        match self {
            Self::Confined(process) => process.kill(grace),
            Self::OwnSandbox(own) => own.kill(),
        }
    }

    /// Returns the ids of all of its processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        match self {
            Self::Confined(process) => process.processes().iter().map(|one| one.pid).collect(),
            Self::OwnSandbox(own) => own.child.id().map(below).unwrap_or_default(),
        }
    }

    pub(super) fn is_confined(&self) -> bool {
        matches!(self, Self::Confined(_))
    }
}

impl OwnSandbox {
    /// Starts a program that makes its own sandbox. `arguments` is called with the port of its
    /// proxy.
    pub(super) fn start(
        program: &Path,
        scratch: PathBuf,
        environment: Vec<(OsString, OsString)>,
        gate: Arc<dyn NetworkGate>,
        pipe: (OwnedFd, OwnedFd),
        arguments: impl FnOnce(u16) -> Vec<OsString>,
    ) -> Result<Self, ToolError> {
        let failed = |error: Error| {
            ToolError::Failed(format!("{} was not started: {error}", program.display()))
        };
        let in_use = ScratchLease::create_at(scratch.clone()).map_err(failed)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let proxy = Proxy::serve(listener, gate).map_err(failed)?;
        let (commands, answers) = pipe;
        let child = Command::new("/bin/sh")
            .args(["-c", WITH_ITS_PIPE, "sh"])
            .arg(program)
            .args(arguments(port))
            .env_clear()
            .envs(environment)
            .env("TMPDIR", &scratch)
            .current_dir("/")
            .stdin(Stdio::from(commands))
            .stdout(Stdio::from(answers))
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) => {
                let _ = fs::remove_dir_all(&scratch); // it is still empty
                return Err(failed(error));
            }
        };
        Ok(Self {
            child,
            scratch,
            _in_use: in_use,
            _proxy: proxy,
        })
    }

    /// Kills the process group. Chromium's other processes exit when the first one does.
    fn kill(&self) {
        let leader = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(leader) = leader.and_then(Pid::from_raw) {
            let _ = kill_process_group(leader, Signal::KILL); // it may have exited
        }
    }
}

impl Drop for OwnSandbox {
    fn drop(&mut self) {
        self.kill();
        // Processes that are still exiting may write there.
        for _ in 0..20 {
            if fs::remove_dir_all(&self.scratch).is_ok() || !self.scratch.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns a process and all of its descendants.
fn below(first: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit(") ").next()?.split_whitespace();
        fields.nth(1)?.parse().ok()
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: Vec<(u32, u32)> = numbers
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect();
    let mut found = vec![first];
    let mut at = 0;
    while let Some(&of) = found.get(at) {
        found.extend(
            all.iter()
                .filter(|(_, parent)| *parent == of)
                .map(|(pid, _)| pid),
        );
        at += 1;
    }
    found
}

/// Returns the environment of the browser: a few of our variables, with the home directory in its
/// scratch folder.
pub(super) fn environment(scratch: &Path, headed: bool) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"]
        .map(|name| (name.into(), scratch.into()))
        .into();
    let mut passed = vec!["PATH", "LANG", "TZ"];
    if headed {
        passed.extend([
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "XAUTHORITY",
            "XDG_RUNTIME_DIR",
        ]);
    }
    for name in passed {
        all.extend(env::var_os(name).map(|value| (name.into(), value)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_with_what_it_started() {
        let mut child = haft_testkit::command("sh")
            .args(["-c", "sleep 600 & wait"])
            .spawn()
            .unwrap();
        haft_testkit::until_blocking("the sleep", || below(child.id()).len() == 2);
        let all = below(child.id());
        assert_eq!(all[0], child.id());
        for pid in &all {
            let pid = Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        child.wait().unwrap();
    }
}
