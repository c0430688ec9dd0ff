//! Another process of ours, which can be killed: this test program, started again.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};

use haft_sandbox::{
    ClosedDirectories, GuardedNames, Mechanism, SandboxNetwork, SandboxProfile, ShellCommand,
    WorkspaceProfile,
};
use rustix::process::{Pid, Signal, getpid, kill_process};
use tempfile::TempDir;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};

use super::{abandoned, nasty, read_until, sandbox, scarce};
use crate::{
    confined,
    outside::{Seen, below, is_there, marked, until},
    setting::{LONG, Place},
    soak,
};

/// What the driver does; unset in a run of the tests.
const WORK: &str = "SANDBOX_DRIVER";
const FOLDER: &str = "SANDBOX_DRIVER_FOLDER";
const BEST: &str = "SANDBOX_DRIVER_BEST";

/// A driver that runs.
pub(crate) struct Driver {
    pub(crate) dir: TempDir,
    pub(crate) child: Child,
}

impl Driver {
    pub(crate) fn start(work: &str, best: Mechanism) -> Self {
        Self::start_with(work, best, &[])
    }

    /// With words before the command line, which become another program that starts it.
    pub(crate) fn start_with(work: &str, best: Mechanism, before: &[&str]) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("driver-")
            .tempdir()
            .unwrap();
        if !before.is_empty() {
            let everyone = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777);
            fs::set_permissions(dir.path(), everyone).unwrap();
        }
        let mut words: Vec<PathBuf> = before.iter().map(PathBuf::from).collect();
        words.push(std::env::current_exe().unwrap());
        let said = fs::File::create(dir.path().join("said")).unwrap();
        let child = haft_testkit::command(&words[0])
            .args(&words[1..])
            .args(["--exact", "lifetime::driver::driver", "--ignored"])
            .args(["--nocapture", "--test-threads=1"])
            .env(WORK, work)
            .env(FOLDER, dir.path())
            .env(BEST, best.name())
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .process_group(0)
            .spawn()
            .unwrap();
        Self { dir, child }
    }

    pub(crate) fn path(&self) -> String {
        self.dir.path().display().to_string()
    }

    /// Like [`start`](Self::start), but its folder `tmp` leads to this one.
    pub(crate) fn start_in(work: &str, best: Mechanism, tmp: &Path) -> Self {
        let link = format!("ln -s '{}' \"${FOLDER}/tmp\"; exec \"$@\"", tmp.display());
        Self::start_with(work, best, &["sh", "-c", &link, "sh"])
    }

    /// Kills it with everything that it started: first those closest to it, which would tidy up.
    pub(crate) fn kill_all(&mut self) {
        let mut doomed = self.below();
        doomed.sort_by_key(|seen| seen.parent != self.child.id());
        for seen in &doomed {
            let pid = Pid::from_raw(seen.pid.cast_signed()).unwrap();
            let _ = kill_process(pid, Signal::KILL); // its parent was killed before
        }
        self.child.kill().unwrap();
    }

    /// Waits until it says that its commands run.
    pub(crate) async fn running(&mut self) {
        let ready = self.dir.path().join("ready");
        until("the driver's commands run", || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the driver ended: {status}\n{}", self.said());
            }
            ready.exists()
        })
        .await;
    }

    /// Waits until it has done its work.
    pub(crate) async fn finished(&mut self) {
        let ended = async {
            loop {
                match self.child.try_wait().unwrap() {
                    Some(status) => return status,
                    None => sleep(Duration::from_millis(50)).await,
                }
            }
        };
        // What it waits for has limits; this one is for what no one thought of.
        let status = timeout(10 * LONG, ended).await.unwrap();
        assert!(status.success(), "{status}\n{}", self.said());
    }

    fn said(&self) -> String {
        fs::read_to_string(self.dir.path().join("said")).unwrap()
    }

    /// Waits until nothing is left of it and what it started, files included.
    pub(crate) async fn nothing_left(mut self, started: &[Seen]) {
        self.child.wait().unwrap();
        until("none of its processes is there", || {
            !started.iter().any(is_there)
        })
        .await;
        let path = self.path();
        until("nothing carries its mark", || marked(&path).is_empty()).await;
        let scratch = self.dir.path().join("scratch");
        until("its temporary files are gone", || !scratch.exists()).await;
    }

    pub(crate) fn below(&self) -> Vec<Seen> {
        below(self.child.id())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Gone already, but where a test fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by other tests, in a process that they may kill"]
async fn driver() {
    let Some(work) = std::env::var_os(WORK) else {
        return;
    };
    let dir = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let best = std::env::var_os(BEST).unwrap();
    let best = [
        Mechanism::Namespaces,
        Mechanism::Bubblewrap,
        Mechanism::Reduced,
    ]
    .into_iter()
    .find(|mechanism| best == mechanism.name())
    .unwrap();
    obey_signals();
    match work.to_str().unwrap() {
        "commands" => commands(&dir, best).await,
        "programs" => confined::programs(&dir, best).await,
        "short" => short(&dir, best).await,
        "hidden" => scarce::hidden(&dir, best).await,
        "heedless" => scarce::heedless(&dir, best).await,
        "crowded" => scarce::crowded(&dir, best).await,
        "hold_scratch" => abandoned::hold_scratch(&dir, best).await,
        "soak" => soak::work(&dir, best).await,
        other => panic!("no such work: {other}"),
    }
}

/// The tests may be run with signals ignored, as by `nohup`. Here each of them ends the
/// process at once, as it does by default.
fn obey_signals() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    for kind in [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::terminate(),
    ] {
        if ignored >> (kind.as_raw_value() - 1) & 1 == 0 {
            continue;
        }
        // What is handled is not ignored by the processes that are started later either.
        let mut arrived = signal(kind).unwrap();
        tokio::spawn(async move {
            arrived.recv().await;
            kill_process(getpid(), Signal::KILL).unwrap();
        });
    }
}

/// Commands of all kinds in each profile, until it is killed.
async fn commands(dir: &Path, best: Mechanism) {
    let sandbox = sandbox(dir, best);
    let mut running = Vec::new();
    for profile in profiles(dir) {
        for (_, script) in nasty::RUN_ON.iter().chain(nasty::LEAVE) {
            let line = ShellCommand {
                text: (*script).to_owned(),
                cwd: dir.to_owned(),
                source_file: None,
                name_policy: None,
            };
            let mut command = sandbox.start(&profile, line).await.unwrap();
            read_until(&mut command, "ready\n").await;
            running.push(command);
        }
    }
    fs::write(dir.join("ready"), "").unwrap();
    std::future::pending::<()>().await;
}

/// Short commands, one after the other, until it is killed: at any moment something begins or ends.
async fn short(dir: &Path, best: Mechanism) {
    loop {
        let sandbox = sandbox(dir, best);
        for profile in profiles(dir) {
            let line = ShellCommand {
                text: "setsid sleep 1000 & (sleep 1000 >/dev/null &); \
                       mktemp -p \"${TMPDIR:-$PLACE}\"; echo ready"
                    .to_owned(),
                cwd: dir.to_owned(),
                source_file: None,
                name_policy: None,
            };
            let mut command = sandbox.start(&profile, line).await.unwrap();
            read_until(&mut command, "ready\n").await;
            command.kill(Duration::ZERO);
            command.wait_until_finished().await;
        }
        fs::write(dir.join("ready"), "").unwrap();
        sandbox.close().await;
    }
}

pub(crate) fn profiles(dir: &Path) -> [SandboxProfile; 3] {
    let project = fs::canonicalize(dir).unwrap().join("project");
    let workspace = SandboxProfile::Workspace(WorkspaceProfile {
        writable: vec![project],
        protected: Vec::new(),
        hidden: Vec::new(),
        guarded: Some(GuardedNames::default()),
        closed: ClosedDirectories::default(),
        network: SandboxNetwork::None,
    });
    [Place::readonly(), workspace, SandboxProfile::Full]
}
