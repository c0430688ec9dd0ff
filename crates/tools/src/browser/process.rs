//! The browser as a process: confined by us, or, where that cannot be had, in the sandbox that it has itself.
//!
//! Chromium's own sandbox holds pages, not the program around them: that sees what the user sees. It goes out through
//! the same gate, because it is told to, not because there is no other way. So it is the second choice, said once, and
//! none for root, for whom Chromium has no sandbox.

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
    network::{Gate, Proxy},
};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// Its pipe is where it expects it, and it says nothing anywhere else. It ends when its pipe does, as when our process
/// is killed; then its files are removed.
const WITH_ITS_PIPE: &str = "exec 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null; \"$@\" & exec 3<&- 4>&-; wait; \
     exec rm -rf -- \"$TMPDIR\"";

/// A browser that runs; all of it ends when this is dropped.
pub(super) enum BrowserProcess {
    /// In our sandbox.
    Confined(ConfinedProcess),
    /// In its own.
    InItsOwn(OwnSandbox),
}

/// What must live as long as a browser in its own sandbox.
pub(super) struct OwnSandbox {
    child: Child,
    scratch: PathBuf,
    _in_use: ScratchLease,
    /// Its way out.
    _proxy: Proxy,
}

impl BrowserProcess {
    /// Where its files are: profile, downloads.
    pub(super) fn scratch(&self) -> &Path {
        match self {
            Self::Confined(process) => process.scratch(),
            Self::InItsOwn(own) => &own.scratch,
        }
    }

    pub(super) fn kill(&self, grace: Duration) {
        match self {
            Self::Confined(process) => process.kill(grace),
            Self::InItsOwn(own) => own.kill(),
        }
    }

    /// All of its processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        match self {
            Self::Confined(process) => process.processes().iter().map(|one| one.pid).collect(),
            Self::InItsOwn(own) => own.child.id().map(below).unwrap_or_default(),
        }
    }

    pub(super) fn is_confined(&self) -> bool {
        matches!(self, Self::Confined(_))
    }
}

impl OwnSandbox {
    /// Starts a program in the sandbox that it makes itself. `arguments` is given the port of its proxy.
    pub(super) fn start(
        program: &Path,
        scratch: PathBuf,
        environment: Vec<(OsString, OsString)>,
        gate: Arc<dyn Gate>,
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
                let _ = fs::remove_dir_all(&scratch); // nothing is in it yet
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

    /// Its processes end by themselves when the first of them is gone.
    fn kill(&self) {
        let leader = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(leader) = leader.and_then(Pid::from_raw) {
            let _ = kill_process_group(leader, Signal::KILL); // it is gone
        }
    }
}

impl Drop for OwnSandbox {
    fn drop(&mut self) {
        self.kill();
        // What still ends may write there.
        for _ in 0..20 {
            if fs::remove_dir_all(&self.scratch).is_ok() || !self.scratch.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A process and all that came of it.
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

/// What of our environment it gets, with its home in its scratch folder.
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
