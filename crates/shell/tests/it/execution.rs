//! What is judged read-only is run, and must have changed nothing.

use std::{
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use haft_shell::EffectVerdict;

use crate::{
    corpus::{Line, Truth, judge, lines},
    fixture::{Fixture, differences},
};

/// Seconds a line may take; none needs them, a pager or a loop would.
const TIMEOUT: &str = "10";

/// Classes that talk to a service; where the network cannot be taken away they are left out.
const SERVICES: &[&str] = &[
    "docker",
    "kubectl",
    "gh",
    "services and logs",
    "local inventory",
    "tools",
];

/// How a line is started: without network, and with everything it leaves behind ended with it.
struct Cage(Option<&'static [&'static str]>);

impl Cage {
    fn find() -> Self {
        const WAYS: [&[&str]; 2] = [
            &["--net", "--pid", "--fork", "--kill-child"],
            &[
                "--user",
                "--map-root-user",
                "--net",
                "--pid",
                "--fork",
                "--kill-child",
            ],
        ];
        let works = |way: &&[&str]| {
            let tried = haft_testkit::command("unshare")
                .args(*way)
                .arg("true")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            tried.is_ok_and(|status| status.success())
        };
        Self(WAYS.into_iter().find(works))
    }

    fn command(&self, line: &str) -> Command {
        let mut command = haft_testkit::command("timeout");
        command.args(["-k", "1", TIMEOUT]);
        if let Some(way) = self.0 {
            command.arg("unshare").args(way);
        }
        command.args(["bash", "-c", line]);
        command
    }

    fn admits(&self, line: &Line) -> bool {
        self.0.is_some() || !SERVICES.contains(&line.class.as_str())
    }
}

#[test]
fn what_is_judged_read_only_changes_nothing() {
    let cage = Cage::find();
    // Never a line that is known to do harm: a wrong verdict fails a bar, it must not fire here.
    let lines: Vec<_> = lines()
        .into_iter()
        .filter(|line| matches!(line.truth, Truth::ReadOnly | Truth::Open))
        .filter(|line| judge(&line.text) == EffectVerdict::ReadOnly && cage.admits(line))
        .collect();
    let next = AtomicUsize::new(0);
    let succeeded = AtomicUsize::new(0);
    let work = || {
        let fixture = Fixture::new();
        let mut before = fixture.picture();
        let mut changes = Vec::new();
        while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut command = cage.command(&line.text);
            fixture.set_up(&mut command);
            let status = command.status().expect("timeout is installed");
            if status.success() {
                succeeded.fetch_add(1, Ordering::Relaxed);
            }
            let after = fixture.picture();
            let different = differences(&before, &after);
            if !different.is_empty() {
                changes.push(format!("{}: {}", line.shown(), different.join(", ")));
                before = after;
            }
        }
        changes
    };
    let workers = thread::available_parallelism()
        .map_or(2, usize::from)
        .min(4);
    let changes: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("no worker panics"))
            .collect()
    });
    let succeeded = succeeded.into_inner();
    eprintln!("{succeeded} of {} lines ran and succeeded", lines.len());
    assert!(
        changes.is_empty(),
        "lines changed the project:\n{}",
        changes.join("\n")
    );
    // A machine without any of the tools would prove nothing.
    assert!(
        succeeded >= 500,
        "only {succeeded} of {} lines succeeded",
        lines.len()
    );
}
