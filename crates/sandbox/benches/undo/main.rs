//! The cost of undo for commands, and undo of what real tools do: `cargo bench -p haft-sandbox --bench undo`.
//!
//! Each command runs in the sandbox with and without a witness, alternately. CPU time includes the command,
//! its guard and the comparison of log and disk after it. After each witnessed command the tree is restored
//! and compared with the tree before the command. The argument `calls` or `tools` selects a half.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

mod calls;
mod project;
mod tools;

use haft_testkit::measure::{self, millis, row};

use crate::project::{Cost, Project};

/// The number of measurements with and without a witness.
const ROUNDS: usize = 3;

fn main() {
    if calls::is_call_process() {
        calls::run();
        return;
    }
    if measure::is_test_run() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    measure::table();
    let selected: Vec<String> = std::env::args().skip(1).collect();
    let is_selected = |half: &str| {
        let mut halves = selected.iter().filter(|half| !half.starts_with('-'));
        halves.clone().next().is_none() || halves.any(|selected| selected == half)
    };
    runtime.block_on(async {
        if is_selected("calls") {
            calls::measure().await;
        }
        if is_selected("tools") {
            tools::measure().await;
        }
    });
}

/// The median costs of a command without and with a witness. Undoes each witnessed run.
async fn costs(project: &Project, command: &str) -> (Cost, Cost) {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        project.prepare();
        without.push(project.run(command).await);
        project.prepare();
        with.push(project.run_witnessed(command).await);
    }
    (Cost::median(without), Cost::median(with))
}

/// Prints the CPU time of a command's processes with a witness against that without.
fn row_of(what: &str, (without, with): (Cost, Cost), bound: Option<f64>) {
    let ratio = with.processes.as_secs_f64() / without.processes.as_secs_f64().max(1e-3);
    let measured = format!(
        "{ratio:.2}x CPU ({:.0} ms, {:.0} ms; journal {:.0} ms; wall {:.0} ms, {:.0} ms)",
        millis(with.processes),
        millis(without.processes),
        millis(with.journal),
        millis(with.wall),
        millis(without.wall)
    );
    let limit = bound.map_or_else(String::new, |bound| format!("≤ {bound}x"));
    row(
        what,
        &measured,
        &limit,
        bound.is_none_or(|bound| ratio <= bound),
    );
}
