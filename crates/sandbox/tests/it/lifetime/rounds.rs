//! Our process dies at any moment.

use std::time::{Duration, SystemTime};

use haft_sandbox::Mechanism;
use tokio::{task::JoinSet, time::sleep};

use super::driver::Driver;

/// A moment no one chose.
fn moment(most: Duration) -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    most.mul_f64(f64::from(now.unwrap().subsec_nanos() % 1_000_003) / 1_000_003.0)
}

/// Kills a driver after a while, and looks for what is left.
async fn round(mechanism: Mechanism, after_ready: bool) {
    let mut driver = Driver::start("short", mechanism);
    if after_ready {
        driver.running().await;
    }
    sleep(moment(Duration::from_millis(80))).await;
    let started = driver.below();
    driver.child.kill().unwrap();
    driver.nothing_left(&started).await;
}

#[tokio::test]
async fn nothing_is_left_whenever_our_process_is_killed() {
    rounds(true).await;
}

/// Many rounds, some of them side by side: each of them mostly waits.
async fn rounds(after_ready: bool) {
    let rows = if haft_testkit::is_thorough() { 6 } else { 3 };
    let rows = (0..rows).map(|_| async move {
        for mechanism in [
            Mechanism::Namespaces,
            Mechanism::Reduced,
            Mechanism::Bubblewrap,
        ]
        .into_iter()
        .cycle()
        .take(10)
        {
            round(mechanism, after_ready).await;
        }
    });
    rows.collect::<JoinSet<()>>().join_all().await;
}

#[tokio::test]
async fn nothing_is_left_when_our_process_is_killed_while_it_sets_a_sandbox_up() {
    rounds(false).await;
}

#[tokio::test]
async fn a_signal_to_our_group_ends_our_process_and_so_everything() {
    for signal in ["-INT", "-TERM", "-HUP", "-KILL"] {
        ends_by(signal, Driver::start("short", Mechanism::Namespaces)).await;
    }
}

#[tokio::test]
async fn so_it_does_where_the_tests_run_with_signals_ignored() {
    let deaf = [
        "bash",
        "-c",
        "trap '' HUP INT QUIT TERM; exec \"$@\"",
        "bash",
    ];
    for signal in ["-INT", "-TERM", "-HUP"] {
        ends_by(
            signal,
            Driver::start_with("short", Mechanism::Namespaces, &deaf),
        )
        .await;
    }
}

async fn ends_by(signal: &str, mut driver: Driver) {
    driver.running().await;
    let started = driver.below();
    let kill = haft_testkit::command("kill")
        .args([signal, "--", &format!("-{}", driver.child.id())])
        .status();
    assert!(kill.unwrap().success());
    driver.nothing_left(&started).await;
}
