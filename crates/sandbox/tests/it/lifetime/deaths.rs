//! When one of those in the chain dies of itself.

use std::time::Duration;

use haft_sandbox::{CommandHandle, ExitKind, Mechanism, SandboxProfile};
use tokio::{task::JoinSet, time::timeout};

use super::{
    SOON, driver::Driver, everywhere, everywhere_with, gone, line, place_with, read_until,
};
use crate::{
    outside::{Seen, all, below, is_there, marked, until, waiters},
    setting::{LONG, Place},
};

const STRAYS: &str = "setsid sleep 1000 & (sleep 1000 >/dev/null &); trap '' TERM; echo ready; \
                      while :; do sleep 1; done";

async fn start(place: &Place, profile: &SandboxProfile) -> CommandHandle {
    let started = place.sandbox.start(profile, line(place, STRAYS)).await;
    let mut running = started.unwrap();
    read_until(&mut running, "ready\n").await;
    running
}

fn kill(process: &Seen, signal: &str) {
    let status = haft_testkit::command("kill")
        .args([signal, &process.pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

fn parent(child: u32) -> Seen {
    let all = all();
    let of = |pid: u32| all.iter().find(|seen| seen.pid == pid).unwrap();
    of(of(child).parent).clone()
}

/// The chain from a command's shell up to the child of ours: shell, guard, keeper, …, waiter.
fn chain(running: &CommandHandle) -> Vec<Seen> {
    let shell = running.processes();
    let all = all();
    // The shell is the one whose parent is none of the command's.
    let shell = shell
        .iter()
        .filter_map(|process| all.iter().find(|seen| seen.pid == process.pid))
        .find(|seen| seen.name == "bash" && !shell.iter().any(|other| other.pid == seen.parent))
        .unwrap();
    let mut chain = vec![shell.clone()];
    while let Some(last) = chain.last()
        && last.parent != std::process::id()
    {
        chain.push(parent(last.pid));
    }
    chain
}

#[tokio::test]
async fn the_shell_is_killed_and_what_it_left_is_counted() {
    for (place, profile) in everywhere().await {
        let mut running = start(&place, &profile).await;
        kill(&chain(&running)[0], "-KILL");
        let ended = timeout(LONG, running.wait_for_exit()).await.unwrap();
        assert_eq!(ended.how, ExitKind::Killed(9), "{}", profile.name());
        assert_eq!(ended.cwd, None);
        assert!(ended.left >= 2, "{}", ended.left);
        running.kill(Duration::ZERO);
        gone(&mut running).await;
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn one_in_the_chain_that_is_killed_takes_the_command_along() {
    let mut all = JoinSet::new();
    for (place, profile) in everywhere().await {
        all.spawn(dies_with_each(place, profile));
    }
    all.join_all().await;
}

async fn dies_with_each(place: Place, profile: SandboxProfile) {
    let path = place.dir.path().display().to_string();
    let chains = chain(&start(&place, &profile).await).len();
    // From the guard up to the waiter.
    for at in 1..chains {
        let mut running = start(&place, &profile).await;
        let chain = chain(&running);
        let below = below(chain[at].pid);
        assert!(below.len() > 3, "{below:?}");
        kill(&chain[at], "-KILL");
        let what = format!(
            "{at} of {chains}, {}, {:?}",
            profile.name(),
            running.mechanism()
        );
        gone(&mut running).await;
        // A guard whose keeper is killed may live long enough to report how its shell died.
        let how = running.wait_for_exit().await.how;
        let is_reported = at > 1 && how == ExitKind::Killed(9);
        assert!(how == ExitKind::Lost || is_reported, "{what}: {how:?}");
        until(&what, || !below.iter().any(is_there)).await;
        // The next command has a sandbox all the same.
        let outcome = place.run(&profile, "echo next").await;
        assert_eq!(outcome.text, "next\n", "{what}");
        until("no zombies", || {
            !waiters(&path).iter().any(|seen| seen.zombie)
                && !waiters(&path)
                    .iter()
                    .any(|root| self::below(root.pid).iter().any(|seen| seen.zombie))
        })
        .await;
    }
    place.sandbox.close().await;
    until("nothing left", || marked(&path).is_empty()).await;
    assert!(!place.dir.path().join("scratch").exists());
}

#[tokio::test]
async fn one_in_the_chain_that_is_stopped_does_not_save_the_command() {
    let mut all = JoinSet::new();
    for mechanism in [Mechanism::Namespaces, Mechanism::Reduced] {
        all.spawn(async move {
            let place = place_with(mechanism, SOON);
            let profile = place.workspace();
            // The guard, then the keeper too.
            for stopped in [1..2, 1..3] {
                let mut running = start(&place, &profile).await;
                let chain = chain(&running);
                let below = below(chain[1].pid);
                for process in &chain[stopped] {
                    kill(process, "-STOP");
                }
                running.kill(Duration::ZERO);
                gone(&mut running).await;
                until("all gone", || !below.iter().any(is_there)).await;
            }
            place.sandbox.close().await;
            let path = place.dir.path().display().to_string();
            assert_eq!(marked(&path), []);
        });
    }
    all.join_all().await;
}

#[tokio::test]
async fn a_keeper_that_is_stopped_costs_one_command() {
    let place = place_with(Mechanism::Namespaces, SOON);
    let profile = place.workspace();
    let running = start(&place, &profile).await;
    kill(&chain(&running)[2], "-STOP");
    // Those for which a shell waits still run.
    let error = loop {
        let started = place.sandbox.start(&profile, line(&place, "true")).await;
        match started {
            Ok(mut running) => gone(&mut running).await,
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("does not answer"), "{error}");
    drop(running);
    assert_eq!(place.run(&profile, "echo next").await.text, "next\n");
    place.sandbox.close().await;
    let path = place.dir.path().display().to_string();
    until("nothing left", || marked(&path).is_empty()).await;
}

#[tokio::test]
async fn a_command_that_kills_its_guard_or_all_it_sees_ends_with_it() {
    // Without a sandbox, the last would end everything of this user.
    let texts = [
        "setsid sleep 1000 & kill -KILL $PPID; sleep 1000",
        "setsid sleep 1000 & kill -STOP $PPID; sleep 1000",
        "setsid sleep 1000 & read -r _ _ _ keeper _ < /proc/$PPID/stat; kill -KILL $keeper; sleep 1000",
        "setsid sleep 1000 & kill -KILL -1; sleep 1000",
    ];
    let mut all = JoinSet::new();
    for (place, profile) in everywhere_with(SOON).await {
        all.spawn(async move {
            let path = place.dir.path().display().to_string();
            for text in texts {
                if text.contains("-1;") && profile == SandboxProfile::Full {
                    continue;
                }
                let started = place.sandbox.start(&profile, line(&place, text)).await;
                let mut running = started.unwrap();
                // It may have no effect: a stopped guard waits, and the first process of a space of
                // its own cannot be killed from within.
                let soon = timeout(Duration::from_millis(500), running.wait_until_finished()).await;
                if soon.is_err() {
                    running.kill(Duration::ZERO);
                }
                gone(&mut running).await;
                until(text, || {
                    !marked(&path).iter().any(|seen| seen.name == "sleep")
                })
                .await;
                assert_eq!(place.run(&profile, "echo next").await.text, "next\n");
            }
            place.sandbox.close().await;
            until("nothing left", || marked(&path).is_empty()).await;
        });
    }
    all.join_all().await;
}

#[tokio::test]
async fn nothing_outlives_our_process() {
    let mechanisms = [
        Mechanism::Namespaces,
        Mechanism::Bubblewrap,
        Mechanism::Reduced,
    ];
    let ends = mechanisms.map(|mechanism| async move {
        let mut driver = Driver::start("commands", mechanism);
        driver.running().await;
        let started = driver.below();
        assert!(started.len() > 50, "{}", started.len());
        assert!(driver.dir.path().join("scratch").exists());
        driver.child.kill().unwrap();
        driver.nothing_left(&started).await;
    });
    ends.into_iter().collect::<JoinSet<()>>().join_all().await;
}
