//! A terminal that no program reads any longer.

use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::tempdir;

use super::{
    pty::{Input, Screen},
    script_in,
};
use crate::binary::haft;

/// So much of what is shown fits into a terminal at least.
const FULL: u64 = 4_000;
/// Far more than the end takes.
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn a_session_ends_by_a_signal_although_its_terminal_is_full() {
    if haft_testkit::command("setsid")
        .arg("--version")
        .output()
        .is_err()
    {
        haft_testkit::skip("a session on a terminal of its own: no setsid");
        return;
    }
    let dir = tempdir().unwrap();
    let script = script_in(
        dir.path(),
        &[json!({"type": "text", "text": "word ".repeat(400_000)})],
    );
    let plain = haft(dir.path());
    let mut command = Command::new("setsid");
    command
        .arg("--ctty")
        .arg(plain.get_program())
        .current_dir(dir.path())
        .env_clear()
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("TERM", "xterm-256color")
        .arg("--script")
        .arg(script)
        .arg("go");
    let mut running = Screen::new().run(&mut command, Input::Terminal);
    running.until("go");
    running.types("\r"); // the directory is trusted
    running.until("word");
    haft_testkit::until_blocking("a full terminal", || running.unread() >= FULL);
    // It writes until nothing more fits anywhere.
    thread::sleep(Duration::from_secs(1));
    let process = Pid::from_child(&running.child);
    kill_process(process, Signal::TERM).unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = running.child.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < TIMEOUT, "it does not end");
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(143));
}
