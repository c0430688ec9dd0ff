//! What commands cost: `cargo bench -p haft-cli --bench commands`.
//!
//! Every time stands beside that of the peer, taken in turn with it in the same run.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use haft::{
    Haft, PermissionMode,
    engine::permissions::{List, PatternBases, RuleSet, RuleSource, SettingsScope},
    tools::ShellProgram,
};
use haft_sandbox::{
    ExitKind, Mechanism, ResourceLimits, Sandbox, SandboxProfile, SandboxSetup, ShellCommand,
};
use haft_testkit::measure::{self, median, row};
use serde_json::json;

const BINARY: &str = env!("CARGO_BIN_EXE_haft");
const ROUNDS: usize = 300;

fn main() {
    if measure::is_test_run() {
        return;
    }
    measure::table();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let dir = std::env::temp_dir().join(format!("haft-bench-{}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    runtime.block_on(async {
        starting(&dir).await;
        together(&dir).await;
        throughput(&dir).await;
        build(&dir).await;
        interrupt(&dir).await;
    });
    fs::remove_dir_all(&dir).unwrap();
}

async fn session(dir: &Path, mode: PermissionMode) -> Haft {
    let program = ShellProgram::new(BINARY.into());
    Haft::builder(dir)
        .permission_mode(mode)
        .service(Arc::new(program))
        .session_folder(dir.join("session"))
        .build()
        .await
        .unwrap()
}

/// The call and its answer, through the whole pipeline.
async fn bash(haft: &mut Haft, command: &str) -> Duration {
    let start = Instant::now();
    let finished = haft.call("Bash", json!({ "command": command })).await;
    let took = start.elapsed();
    assert!(!finished.is_error, "{finished:?}");
    took
}

/// Shells as Bash uses them, without anything around.
fn shells(dir: &Path) -> Sandbox {
    Sandbox::new(SandboxSetup {
        program: BINARY.into(),
        shell: haft_sandbox::system_shell().unwrap(),
        environment: Arc::new(|_| Vec::new()),
        scratch: dir.join("scratch"),
        snapshot: None,
        gate: None,
        strictest_mechanism: Mechanism::Namespaces,
        resource_limits: ResourceLimits::default(),
    })
}

async fn warm(sandbox: &Sandbox, dir: &Path) -> Duration {
    let line = ShellCommand {
        text: "true".to_owned(),
        cwd: dir.to_path_buf(),
        source_file: None,
        name_policy: None,
    };
    let start = Instant::now();
    let mut running = sandbox.start(&SandboxProfile::Full, line).await.unwrap();
    assert_eq!(running.wait_for_exit().await.how, ExitKind::Exited(0));
    start.elapsed()
}

fn plain() -> Duration {
    let start = Instant::now();
    let status = Command::new("bash").args(["-c", "true"]).status().unwrap();
    assert!(status.success());
    start.elapsed()
}

/// What bubblewrap needs for the same: files read-only, no network, processes of its own.
fn bubblewrap() -> Option<Duration> {
    let start = Instant::now();
    let status = Command::new("bwrap")
        .args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"])
        .args(["--tmpfs", "/tmp", "--unshare-user", "--unshare-pid"])
        .args(["--unshare-ipc", "--unshare-net", "--unshare-cgroup-try"])
        .args(["--die-with-parent", "bash", "-c", "true"])
        .stderr(Stdio::null())
        .status()
        .ok()?;
    status.success().then(|| start.elapsed())
}

async fn starting(dir: &Path) {
    let mut confined = session(dir, PermissionMode::Default).await;
    let mut open = session(dir, PermissionMode::BypassPermissions).await;
    let sandbox = shells(dir);
    // No reading command: files are looked at before and after it, so that it can be undone.
    let changing = "export A=1";
    let (mut here, mut free, mut undone) = (vec![], vec![], vec![]);
    let (mut there, mut wrapped) = (vec![], vec![]);
    for _ in 0..20 {
        bash(&mut confined, "true").await;
        bash(&mut open, changing).await;
        warm(&sandbox, dir).await;
    }
    for _ in 0..ROUNDS {
        here.push(bash(&mut confined, "true").await);
        there.push(plain());
        free.push(warm(&sandbox, dir).await);
        undone.push(bash(&mut open, changing).await);
        wrapped.extend(bubblewrap());
    }
    sandbox.close().await;
    let (here, free, there) = (median(here), median(free), median(there));
    ratio(
        "`true` through Bash, readonly, against a spawn of bash",
        here,
        there,
        2.5,
    );
    if wrapped.is_empty() {
        println!(
            "| `true` through Bash, readonly, against bubblewrap | there is none here | ≤ 0.5x | |"
        );
    } else {
        let wrapped = median(wrapped);
        ratio(
            "`true` through Bash, readonly, against bubblewrap",
            here,
            wrapped,
            0.5,
        );
    }
    ratio(
        // No shell waits where another command could reach it.
        "`true` without isolation, against a spawn of bash",
        free,
        there,
        2.0,
    );
    let undone = median(undone).as_secs_f64() * 1e3;
    row(
        "a command that can be undone, through Bash, in a small directory",
        &format!("{undone:.2} ms"),
        "",
        true,
    );
}

async fn together(dir: &Path) {
    let mut haft = session(dir, PermissionMode::Default).await;
    bash(&mut haft, "true").await;
    let mut samples = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        let calls = (0..10).map(|number| haft::ToolUse {
            id: number.to_string(),
            name: "Bash".to_owned(),
            input: json!({ "command": "sleep 0.3" }),
        });
        for finished in haft.run(calls).await {
            assert!(!finished.is_error, "{finished:?}");
        }
        samples.push(start.elapsed());
    }
    let took = median(samples).as_secs_f64();
    row(
        "10 `sleep 0.3` side by side",
        &format!("{took:.2} s"),
        "≤ 0.45 s",
        took <= 0.45,
    );
}

async fn throughput(dir: &Path) {
    const SIZE: u64 = 60 * 1024 * 1024; // what is kept of an output
    let mut haft = session(dir, PermissionMode::Default).await;
    bash(&mut haft, "true").await;
    let command = format!("yes 0123456789abcdef0123456789abcdef0123456789abcdef | head -c {SIZE}");
    let mut samples = Vec::new();
    for _ in 0..9 {
        samples.push(bash(&mut haft, &command).await);
    }
    let rate = SIZE as f64 / 1e6 / median(samples).as_secs_f64();
    row(
        "output into the result store",
        &format!("{rate:.0} MB/s"),
        "≥ 300 MB/s",
        rate >= 300.0,
    );
}

/// Measures a build that writes 10,000 files in 500 processes, confined in `workspace` and unconfined.
async fn build(dir: &Path) {
    const BUILD: &str = "rm -rf out && mkdir out && seq 10000 | \
        xargs -n 20 sh -c 'for n; do echo \"$n\" >out/$n.o; done; cksum compiler >/dev/null' sh";
    let mut confined = Vec::new();
    let mut unconfined = Vec::new();
    let folders = [dir.join("confined"), dir.join("unconfined")];
    for folder in &folders {
        fs::create_dir(folder).unwrap();
        // About as large as what a small compiler reads.
        fs::copy("/bin/bash", folder.join("compiler")).unwrap();
    }
    let program = ShellProgram::new(BINARY.into());
    let bases = PatternBases {
        home: dir.to_path_buf(),
        slash: dir.to_path_buf(),
        cwd: dir.to_path_buf(),
    };
    let mut rules = RuleSet::default();
    let source = RuleSource::from_scope(SettingsScope::User);
    rules.add(List::Allow, "Bash", source, &bases).unwrap();
    let mut haft = Haft::builder(&folders[0])
        .rules(rules)
        .service(Arc::new(program))
        .session_folder(dir.join("build-session"))
        .build()
        .await
        .unwrap();
    for _ in 0..5 {
        confined.push(bash(&mut haft, BUILD).await);
        let start = Instant::now();
        let mut peer = Command::new("bash");
        let status = peer.args(["-c", BUILD]).current_dir(&folders[1]).status();
        assert!(status.unwrap().success());
        unconfined.push(start.elapsed());
    }
    ratio(
        "a build that writes 10,000 files in 500 processes, against the same unconfined",
        median(confined),
        median(unconfined),
        1.6,
    );
}

async fn interrupt(dir: &Path) {
    let mut samples = Vec::new();
    for _ in 0..11 {
        let mut haft = session(dir, PermissionMode::Default).await;
        bash(&mut haft, "true").await;
        let cancel = haft.session_token();
        let interrupted = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            cancel.cancel();
            Instant::now()
        });
        let finished = haft.call("Bash", json!({ "command": "sleep 600" })).await;
        let answered = Instant::now();
        assert!(finished.is_error);
        samples.push(answered - interrupted.await.unwrap());
    }
    let took = median(samples).as_secs_f64() * 1e3;
    row(
        "an interrupted command is answered",
        &format!("{took:.1} ms"),
        "≤ 100 ms",
        took <= 100.0,
    );
}

fn ratio(promise: &str, ours: Duration, peer: Duration, most: f64) {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let ratio = millis(ours) / millis(peer);
    let measured = format!(
        "{ratio:.2}x ({:.2} ms, {:.2} ms)",
        millis(ours),
        millis(peer)
    );
    row(promise, &measured, &format!("≤ {most}x"), ratio <= most);
}
