//! When someone wants a command, or a sandbox, to end.

use std::{fs, time::Duration};

use haft_sandbox::{CommandHandle, ExitKind, Mechanism, SandboxProfile};
use tokio::{io::AsyncReadExt, time::timeout};

use super::{everywhere, gone, line, nasty, place, read_until};
use crate::{
    outside::{Seen, all, below, is_forgotten, is_there, mark, marked, until, waiters},
    setting::{LONG, Place},
};

/// Starts a script whose processes all carry the mark, and waits until it is under way.
async fn start(place: &Place, profile: &SandboxProfile, mark: &str, script: &str) -> CommandHandle {
    fs::write(place.project().join(mark), script).unwrap();
    let text = format!("MARK={mark} bash ./{mark}");
    let started = place.sandbox.start(profile, line(place, &text)).await;
    let mut running = started.unwrap();
    read_until(&mut running, "ready\n").await;
    running
}

#[tokio::test]
async fn what_is_killed_is_gone_with_all_that_came_of_it() {
    for (place, profile) in everywhere().await {
        for (what, script) in nasty::RUN_ON {
            let grace = Duration::from_millis(if what.len() % 2 == 0 { 0 } else { 100 });
            let mark = mark();
            let mut running = start(&place, &profile, &mark, script).await;
            until(what, || !marked(&mark).is_empty()).await;
            assert!(!running.processes().is_empty(), "{what}");
            running.kill(grace);
            gone(&mut running).await;
            assert_eq!(marked(&mark), [], "{what}, {}", profile.name());
            assert_eq!(running.processes(), [], "{what}");
            let how = running.wait_for_exit().await.how;
            assert!(
                matches!(how, ExitKind::Killed(9 | 15) | ExitKind::Exited(_)),
                "{how:?}"
            );
        }
        no_zombies(&place).await;
        place.sandbox.close().await;
        assert_eq!(marked(&place.dir.path().display().to_string()), []);
    }
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_counted_and_ended() {
    for (place, profile) in everywhere().await {
        for (what, script) in nasty::LEAVE {
            let mark = mark();
            let mut running = start(&place, &profile, &mark, script).await;
            let ended = timeout(LONG, running.wait_for_exit()).await.unwrap();
            assert_eq!(ended.how, ExitKind::Exited(0), "{what}");
            assert_eq!(ended.cwd, Some(place.project()), "{what}");
            assert!(ended.left > 0, "{what}");
            // One that is just starting a program shows its mark a moment later.
            until(what, || marked(&mark).len() == ended.left as usize).await;
            // Nothing ends it by itself.
            let early = timeout(Duration::from_millis(20), running.wait_until_finished()).await;
            assert!(early.is_err(), "{what}");
            running.kill(Duration::from_millis(50));
            gone(&mut running).await;
            assert_eq!(marked(&mark), [], "{what}, {}", profile.name());
            let mut rest = Vec::new();
            let read = timeout(LONG, running.output.read_to_end(&mut rest)).await;
            read.expect("the pipe is still held").unwrap();
        }
        no_zombies(&place).await;
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn what_is_asked_to_end_may_tidy_up_within_its_grace() {
    let place = place(Mechanism::Namespaces);
    let profile = place.workspace();
    // One in the shell's group and one far from it.
    let tidies = |name: &str| {
        format!(
            "trap 'echo > tidied-{name}; exit' TERM; echo > up-{name}; while :; do sleep 0.05; done"
        )
    };
    let script = format!(
        "setsid bash -c \"{}\" & until [ -e up-far ]; do sleep 0.01; done; echo ready; {}",
        tidies("far"),
        tidies("near")
    );
    let mut running = start(&place, &profile, &mark(), &script).await;
    until("both can hear it", || {
        place.project().join("up-near").exists()
    })
    .await;
    running.kill(LONG);
    gone(&mut running).await;
    for name in ["near", "far"] {
        assert!(
            place.project().join(format!("tidied-{name}")).exists(),
            "{name}"
        );
    }
    place.sandbox.close().await;
}

#[tokio::test]
async fn a_second_shorter_grace_counts() {
    let place = place(Mechanism::Namespaces);
    let profile = place.workspace();
    let mark = mark();
    let script = "trap '' TERM; echo ready; while :; do sleep 1; done";
    let mut running = start(&place, &profile, &mark, script).await;
    running.kill(Duration::MAX);
    running.kill(Duration::ZERO);
    gone(&mut running).await;
    running.kill(Duration::ZERO); // no one is there to hear it
    assert_eq!(marked(&mark), []);
    place.sandbox.close().await;
}

#[tokio::test]
async fn dropping_a_command_ends_it() {
    for (place, profile) in everywhere().await {
        for (what, script) in nasty::RUN_ON.iter().chain(nasty::LEAVE) {
            let mark = mark();
            drop(start(&place, &profile, &mark, script).await);
            until(what, || marked(&mark).is_empty()).await;
        }
        no_zombies(&place).await;
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn dropping_the_sandbox_and_its_commands_ends_all_and_removes_its_files() {
    for (place, profile) in everywhere().await {
        let Place { dir, sandbox } = place;
        let place = Place {
            sandbox: sandbox.clone(),
            dir,
        };
        let script =
            "mkdir -p $TMPDIR/a/b; while :; do date >$TMPDIR/a/b/$RANDOM; done & echo ready; wait";
        let script = match profile {
            SandboxProfile::Full => "echo ready; sleep 1000",
            _ => script,
        };
        let mark = mark();
        let running = start(&place, &profile, &mark, script).await;
        let other = start(
            &place,
            &profile,
            &mark,
            "setsid sleep 1000 & echo ready; wait",
        )
        .await;
        let Place { dir, sandbox: last } = place;
        let path = dir.path().display().to_string();
        let waiters = waiters(&path);
        assert_eq!(waiters.len(), 1);
        drop(sandbox);
        drop(last);
        // A command keeps the sandbox it runs in.
        drop(other);
        assert!(!marked(&mark).is_empty());
        drop(running);
        until("all ended", || marked(&path).is_empty()).await;
        until("no zombie", || waiters.iter().all(is_forgotten)).await;
        until("no files", || !dir.path().join("scratch").exists()).await;
    }
}

#[tokio::test]
async fn closing_ends_what_runs_and_a_later_command_gets_a_new_sandbox() {
    for (place, profile) in everywhere().await {
        let path = place.dir.path().display().to_string();
        let mark = mark();
        let mut commands = Vec::new();
        for (_, script) in nasty::RUN_ON.iter().chain(nasty::LEAVE).take(6) {
            commands.push(start(&place, &profile, &mark, script).await);
        }
        let began: Vec<Seen> = waiters(&path);
        assert_eq!(began.len(), 1);
        place.sandbox.close().await;
        assert_eq!(marked(&path), [], "{}", profile.name());
        assert!(!began.iter().any(is_there));
        assert!(!place.dir.path().join("scratch").exists());
        for running in &mut commands {
            gone(running).await;
            // Its shell ended by itself, or no one saw how.
            let how = running.wait_for_exit().await.how;
            assert!(!matches!(how, ExitKind::Exited(1..)), "{how:?}");
        }
        let outcome = place.run(&profile, "echo again").await;
        assert_eq!(outcome.text, "again\n");
        place.sandbox.close().await;
        assert_eq!(marked(&path), []);
    }
}

#[tokio::test]
async fn closing_ends_sandboxes_that_another_one_has_replaced() {
    let place = place(Mechanism::Namespaces);
    let path = place.dir.path().display().to_string();
    for round in 0..6 {
        let profile = place.workspace();
        let running = start(&place, &profile, &mark(), "echo ready; sleep 1000").await;
        let mut other = profile.clone();
        if let SandboxProfile::Workspace(workspace) = &mut other {
            workspace.hidden.push(place.path("hidden"));
        }
        assert_eq!(place.run(&other, "echo replaced").await.text, "replaced\n");
        // Its owner has given the old sandbox up, or still has it.
        let kept = (round % 2 == 0).then_some(running);
        place.sandbox.close().await;
        assert_eq!(marked(&path), [], "round {round}");
        assert!(!place.dir.path().join("scratch").exists());
        drop(kept);
    }
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_nothing() {
    let place = place(Mechanism::Namespaces);
    let path = place.dir.path().display().to_string();
    let profile = place.workspace();
    for round in 0..60 {
        let starting = place.sandbox.start(
            &profile,
            line(&place, &format!("sleep 1000; : {}", "x".repeat(500_000))),
        );
        // At whatever point it is.
        let _ = timeout(Duration::from_micros(round * 100), starting).await;
    }
    until("only shells that wait", || {
        !marked(&path).iter().any(|seen| seen.name == "sleep")
    })
    .await;
    assert_eq!(place.run(&profile, "echo on").await.text, "on\n");
    no_zombies(&place).await;
    place.sandbox.close().await;
    assert_eq!(marked(&path), []);
}

/// Below the sandboxes of this place, everything that ended was taken note of.
async fn no_zombies(place: &Place) {
    let path = place.dir.path().display().to_string();
    until("no zombies", || {
        let roots = waiters(&path);
        !roots
            .iter()
            .any(|root| below(root.pid).iter().any(|seen| seen.zombie))
    })
    .await;
    assert!(all().len() > 1);
}
