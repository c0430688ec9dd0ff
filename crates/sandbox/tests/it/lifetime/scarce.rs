//! Where the machine shows or gives less than usual.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use haft_sandbox::{ExitKind, Mechanism, SandboxError, ShellCommand};
use tokio::time::timeout;

use super::{
    driver::{Driver, profiles},
    read_until, sandbox,
};
use crate::{outside::nobody, setting::LONG};

/// Runs a driver as a user of its own, in a mount space of its own, set up by a line for the shell.
fn as_somebody(work: &str, best: Mechanism, line: &str) -> Option<Driver> {
    let user = nobody();
    let root = fs::read_to_string("/proc/self/status").unwrap();
    if !root.contains("\nUid:\t0\t0") {
        return None;
    }
    let line = format!("{line} exec setpriv --reuid={user} --regid={user} --clear-groups \"$@\"");
    let before = ["unshare", "--mount", "bash", "-c", &line, "bash"];
    Some(Driver::start_with(work, best, &before))
}

/// The driver's part: processes that `/proc` does not show, because they run a program that its own
/// user may not read.
pub(super) async fn hidden(dir: &Path, best: Mechanism) {
    let sandbox = sandbox(dir, best);
    let program = dir.join("unreadable");
    fs::copy("/bin/sleep", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o111)).unwrap();
    let line = || ShellCommand {
        text: "./unreadable 1000 & setsid ./unreadable 1000 & (setsid ./unreadable 1000 &) ; \
               sleep 0.2; ls -d /proc/$!; echo ready; wait"
            .to_owned(),
        cwd: dir.to_owned(),
        source_file: None,
        name_policy: None,
    };
    let mut kept = Vec::new();
    for profile in profiles(dir) {
        let mut running = sandbox.start(&profile, line()).await.unwrap();
        read_until(&mut running, "ready\n").await;
        running.kill(Duration::ZERO);
        timeout(LONG, running.wait_until_finished()).await.unwrap();
        let mut running = sandbox.start(&profile, line()).await.unwrap();
        read_until(&mut running, "ready\n").await;
        kept.push(running);
    }
    fs::write(dir.join("ready"), "").unwrap();
    std::future::pending::<()>().await;
}

/// The driver's part: a command in each profile, and how it ended.
pub(super) async fn heedless(dir: &Path, best: Mechanism) {
    let sandbox = sandbox(dir, best);
    for profile in profiles(dir) {
        let line = ShellCommand {
            text: "sleep 0.01 & wait $!; (exit 3); exit $(($? + 4))".to_owned(),
            cwd: dir.to_owned(),
            source_file: None,
            name_policy: None,
        };
        let mut running = sandbox.start(&profile, line).await.unwrap();
        let ended = timeout(LONG, running.wait_for_exit()).await.unwrap();
        assert_eq!(ended.how, ExitKind::Exited(7));
        timeout(LONG, running.wait_until_finished()).await.unwrap();
    }
    sandbox.close().await;
}

/// The driver's part: more commands than there may be processes.
pub(super) async fn crowded(dir: &Path, best: Mechanism) {
    let sandbox = sandbox(dir, best);
    let line = |text: &str| ShellCommand {
        text: text.to_owned(),
        cwd: dir.to_owned(),
        source_file: None,
        name_policy: None,
    };
    for profile in profiles(dir) {
        let mut running = Vec::new();
        let error = loop {
            assert!(running.len() < 100, "there is no limit");
            match sandbox.start(&profile, line("exec sleep 1000")).await {
                Ok(command) => running.push(command),
                Err(error) => break error,
            }
        };
        let text = error.to_string();
        assert!(matches!(error, SandboxError::Shell(_)), "{text}");
        assert!(text.contains("Resource temporarily unavailable"), "{text}");
        for mut command in running {
            command.kill(Duration::ZERO);
            timeout(LONG, command.wait_until_finished()).await.unwrap();
        }
        let mut command = sandbox.start(&profile, line("exit 7")).await.unwrap();
        assert_eq!(command.wait_for_exit().await.how, ExitKind::Exited(7));
        assert_eq!(command.mechanism(), best);
        command.wait_until_finished().await;
        sandbox.close().await;
    }
    assert_eq!(sandbox.failures().await, []);
}

#[tokio::test]
async fn what_proc_hides_is_ended_too() {
    for best in [Mechanism::Namespaces, Mechanism::Reduced] {
        let hide = "mount -t proc -o hidepid=2 proc /proc &&";
        let Some(mut driver) = as_somebody("hidden", best, hide) else {
            return;
        };
        driver.running().await;
        let started = driver.below();
        assert!(started.iter().any(|seen| seen.name == "unreadable"));
        driver.child.kill().unwrap();
        driver.nothing_left(&started).await;
    }
}

#[tokio::test]
async fn too_many_processes_are_an_error_that_says_so_and_confine_nobody_less() {
    for best in [Mechanism::Namespaces, Mechanism::Reduced] {
        let few = "ulimit -u 40;";
        let Some(mut driver) = as_somebody("crowded", best, few) else {
            return;
        };
        driver.finished().await;
        driver.nothing_left(&[]).await;
    }
}

#[tokio::test]
async fn how_a_command_ended_is_known_although_our_process_was_told_to_ignore_its_children() {
    let before = ["env", "--ignore-signal=CHLD"];
    let mut driver = Driver::start_with("heedless", Mechanism::Namespaces, &before);
    driver.finished().await;
    driver.nothing_left(&[]).await;
}
