//! What changes outside while a sandbox stands.

use std::{
    fs, io::ErrorKind, os::unix::net::UnixListener, path::Path, process::Command, time::Duration,
};

use haft_sandbox::CommandOutput;
use tokio::{io::AsyncReadExt, time::timeout};

use super::{
    stand::{Around, Stand, finish},
    table::{View, everywhere},
};
use crate::setting::LONG;

/// As programs write a file that others read.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A command that goes on when [`go_on`] says so.
fn after(stand: &Stand<'_>, text: &str) -> String {
    let sign = stand.ground.project().join("go-on");
    let _ = fs::remove_file(&sign);
    format!(
        "until [ -e {} ]; do sleep 0.01; done; {text}",
        sign.display()
    )
}

fn go_on(stand: &Stand<'_>) {
    fs::write(stand.ground.project().join("go-on"), "").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_file_that_was_replaced_is_protected_again() {
    let test = "scenarios::meanwhile::a_control_file_that_was_replaced_is_protected_again";
    everywhere(test, Around::Control, &[View::Nobody], async |stand| {
        if stand.case.reduced() {
            return; // it protects none
        }
        let config = stand.ground.spots[0].inside.join(".git/config");
        let write = format!("echo command > {}", config.display());
        stand.run(&write).await;
        assert_eq!(read(&config), "[core]\n", "{}", stand.case);
        for text in ["first\n", "second\n", "third\n"] {
            replace(&config, text);
            stand.run(&write).await;
            assert_eq!(read(&config), text, "{}", stand.case);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_file_that_was_replaced_is_hidden_again() {
    let test = "scenarios::meanwhile::a_hidden_file_that_was_replaced_is_hidden_again";
    let views = [View::ReadOnly, View::Nobody];
    everywhere(test, Around::Hidden, &views, async |stand| {
        if stand.case.reduced() {
            return; // it hides none
        }
        let hidden = stand.ground.spots[0].outside.join("hidden");
        for _ in 0..3 {
            let said = stand.run(&format!("cat {}", hidden.display())).await;
            assert!(!said.contains("GOT"), "{}: {said}", stand.case);
            replace(&hidden, "GOT another\n");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_when_a_hidden_file_is_replaced_while_it_runs() {
    let test = "scenarios::meanwhile::a_command_ends_when_a_hidden_file_is_replaced_while_it_runs";
    let views = [View::ReadOnly, View::Nobody];
    everywhere(test, Around::Hidden, &views, async |stand| {
        if stand.case.reduced() {
            return; // it hides none
        }
        let hidden = stand.ground.spots[0].outside.join("hidden");
        let mut running = stand.start("echo go; sleep 1000").await;
        crate::lifetime::read_until(&mut running, "go").await;
        // Beside it, anything may happen.
        replace(&hidden.with_file_name("other"), "x");
        replace(&hidden, "GOT another\n");
        let ended = timeout(LONG, running.wait_for_exit())
            .await
            .expect("it goes on");
        assert_eq!(ended.uncovered, Some(hidden), "{}", stand.case);
        finish(running).await;
        assert_eq!(stand.run("echo next").await, "next\n", "{}", stand.case);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_wrote_is_read_only_when_its_guard_has_looked() {
    let test = "scenarios::meanwhile::what_a_command_wrote_is_read_only_when_its_guard_has_looked";
    let views = [View::ReadOnly, View::Nobody];
    everywhere(test, Around::Hidden, &views, async |stand| {
        if stand.case.reduced() {
            return; // it hides none
        }
        let hidden = stand.ground.spots[0].outside.join("hidden");
        let hides = hidden.display();
        let text = format!("echo go; until [ -s {hides} ]; do :; done; cat {hides}; kill -STOP $$");
        let mut running = stand.start(&text).await;
        crate::lifetime::read_until(&mut running, "go").await;
        let shell = running.processes()[0].pid;
        let guard = stat(shell).1;
        signal("STOP", guard);
        replace(&hidden, "GOT it\n");
        crate::outside::until("the command has read it", || stat(shell).0 == "T").await;
        let mut output = CommandOutput::take(&mut running.output);
        let mut buffer = [0; 4096];
        // The guard looks before anything can be read; it cannot yet.
        let early = timeout(Duration::from_millis(20), output.read(&mut buffer)).await;
        assert!(early.is_err(), "{}: {early:?}", stand.case);
        signal("CONT", guard);
        let read = timeout(LONG, output.read(&mut buffer))
            .await
            .expect("an answer");
        let kind = read.map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::PermissionDenied), "{}", stand.case);
        let ended = timeout(LONG, running.wait_for_exit())
            .await
            .expect("it goes on");
        assert_eq!(ended.uncovered, Some(hidden), "{}", stand.case);
        finish(running).await;
    })
    .await;
}

/// State and parent of a process.
fn stat(pid: u32) -> (String, u32) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let mut fields = stat.rsplit(')').next().unwrap().split_whitespace();
    let state = fields.next().unwrap().to_owned();
    (state, fields.next().unwrap().parse().unwrap())
}

fn signal(name: &str, pid: u32) {
    let mut kill = Command::new("kill");
    let status = kill.arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(status.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_file_that_is_replaced_while_a_command_runs_is_still_one() {
    let test =
        "scenarios::meanwhile::a_control_file_that_is_replaced_while_a_command_runs_is_still_one";
    everywhere(test, Around::Control, &[View::Nobody], async |stand| {
        let config = stand.ground.spots[0].inside.join(".git/config");
        let ways = [
            "echo command > FILE",
            "echo command >> FILE",
            ": > FILE",
            "truncate -s 0 FILE",
            "echo command > n; mv n FILE",
            "ln FILE l; echo command > l",
            "ln -s FILE s; echo command > s",
            "cp /etc/hostname FILE",
            "sed -i s/replaced/command/ FILE",
        ];
        let ways = ways
            .join("; ")
            .replace("FILE", &config.display().to_string());
        let text = after(
            stand,
            &format!("cd {}; {ways}", stand.ground.project().display()),
        );
        let running = stand.start(&text).await;
        replace(&config, "replaced\n");
        go_on(stand);
        finish(running).await;
        assert_eq!(read(&config), "replaced\n", "{}", stand.case);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_file_that_is_replaced_while_a_command_runs_is_not_removed() {
    let test =
        "scenarios::meanwhile::a_control_file_that_is_replaced_while_a_command_runs_is_not_removed";
    everywhere(test, Around::Control, &[View::Nobody], async |stand| {
        let git = stand.ground.spots[0].inside.join(".git");
        let config = git.join("config");
        let ways = [
            "rm -f GIT/config",
            "rm -rf GIT",
            "mv GIT/config c",
            "mv GIT g",
            "mv GIT/.. h",
            "cp --remove-destination /etc/hostname GIT/config",
            "find GIT -delete",
        ];
        let ways = ways.join("; ").replace("GIT", &git.display().to_string());
        let project = stand.ground.project();
        let text = after(stand, &format!("cd {}; {ways}", project.display()));
        // The file, and the directory it is in.
        for whole in [false, true] {
            let running = stand.start(&text).await;
            if whole {
                let new = stand.ground.spots[0].outside.join("new");
                fs::create_dir(&new).unwrap();
                fs::rename(&git, stand.ground.spots[0].outside.join("old")).unwrap();
                fs::rename(new, &git).unwrap();
            }
            replace(&config, "replaced\n");
            go_on(stand);
            finish(running).await;
            assert_eq!(read(&config), "replaced\n", "{}", stand.case);
            let _ = fs::remove_file(project.join("go-on"));
        }
        fs::remove_dir_all(stand.ground.spots[0].outside.join("old")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_file_that_was_missing_ends_a_command_when_it_comes_back() {
    let test =
        "scenarios::meanwhile::a_hidden_file_that_was_missing_ends_a_command_when_it_comes_back";
    let views = [View::ReadOnly, View::Nobody];
    everywhere(test, Around::Hidden, &views, async |stand| {
        if stand.case.reduced() {
            return; // it hides none
        }
        let hidden = stand.ground.spots[0].outside.join("hidden");
        fs::remove_file(&hidden).unwrap();
        let mut running = stand.start("echo go; sleep 1000").await;
        crate::lifetime::read_until(&mut running, "go").await;
        replace(&hidden, "GOT it\n");
        let ended = timeout(LONG, running.wait_for_exit())
            .await
            .expect("it goes on");
        assert_eq!(ended.uncovered, Some(hidden), "{}", stand.case);
        finish(running).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_starts_later_is_not_reached() {
    let test = "scenarios::meanwhile::a_daemon_that_starts_later_is_not_reached";
    if !Path::new("/usr/bin/python3").exists() {
        haft_testkit::skip("a daemon that starts later: no /usr/bin/python3");
        return;
    }
    let views = [View::ReadOnly, View::Open, View::Nobody];
    everywhere(test, Around::Files, &views, async |stand| {
        let path = stand.ground.spots[0].outside.join("later.sock");
        let connect = format!(
            "/usr/bin/python3 -I -S -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\")'",
            path.display()
        );
        stand.run("true").await;
        haft_testkit::bound_this_process();
        let daemon = UnixListener::bind(&path).unwrap();
        daemon.set_nonblocking(true).unwrap();
        stand.run(&connect).await;
        assert!(daemon.accept().is_err(), "{}", stand.case);
        // Nor if it starts while a command runs.
        drop(daemon);
        fs::remove_file(&path).unwrap();
        if stand.case.workspace() {
            let running = stand.start(&after(stand, &connect)).await;
            let daemon = UnixListener::bind(&path).unwrap();
            daemon.set_nonblocking(true).unwrap();
            go_on(stand);
            finish(running).await;
            assert!(daemon.accept().is_err(), "{}", stand.case);
        }
    })
    .await;
}
