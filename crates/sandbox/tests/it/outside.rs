//! What is to be seen of a sandbox from outside it.

use std::{
    collections::BTreeSet,
    fs,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use tokio::time::{sleep, timeout};

use crate::setting::LONG;

/// One process; the number alone may be another's later.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) zombie: bool,
    pub(crate) name: String,
    started: u64,
}

/// A text that no other process has in its command line or its environment.
pub(crate) fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("mark-{}-{next}-end", std::process::id())
}

/// A user that no one else is: limits are counted by user.
pub(crate) fn nobody() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    1_000_000 + std::process::id() * 8 + NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Every process of the machine.
pub(crate) fn all() -> Vec<Seen> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| see(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

fn see(pid: u32) -> Option<Seen> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (head, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Seen {
        pid,
        parent: fields[1].parse().unwrap(),
        zombie: matches!(fields[0], "Z" | "X"),
        name: head.split_once('(')?.1.to_owned(),
        started: fields[19].parse().unwrap(),
    })
}

/// Is this very process still there, and not merely as a zombie?
pub(crate) fn is_there(process: &Seen) -> bool {
    see(process.pid).is_some_and(|now| now.started == process.started && !now.zombie)
}

/// Is it not even a zombie any more?
pub(crate) fn is_forgotten(process: &Seen) -> bool {
    see(process.pid).is_none_or(|now| now.started != process.started)
}

/// What is below a process, zombies too.
pub(crate) fn below(root: u32) -> Vec<Seen> {
    let all = all();
    let mut known = BTreeSet::from([root]);
    let mut found = BTreeSet::new();
    loop {
        let more: Vec<&Seen> = all
            .iter()
            .filter(|seen| known.contains(&seen.parent) && !known.contains(&seen.pid))
            .collect();
        if more.is_empty() {
            return found.into_iter().collect();
        }
        for seen in more {
            known.insert(seen.pid);
            found.insert(seen.clone());
        }
    }
}

/// Processes with this text in their command line or their environment.
pub(crate) fn marked(mark: &str) -> Vec<Seen> {
    let has = |pid: u32, file: &str| {
        fs::read(format!("/proc/{pid}/{file}"))
            .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(mark))
    };
    // A mark is made by this process, so that no older one has it.
    let ours = see(std::process::id()).unwrap().started;
    all()
        .into_iter()
        .filter(|seen| seen.started >= ours)
        .filter(|seen| has(seen.pid, "cmdline") || has(seen.pid, "environ"))
        .collect()
}

/// Children of ours with this text in their command line: the waiters of a place's sandboxes.
pub(crate) fn waiters(path: &str) -> Vec<Seen> {
    let ours = std::process::id();
    marked(path)
        .into_iter()
        .filter(|seen| seen.parent == ours)
        .collect()
}

/// Waits until something is so. Nothing is measured: the limit is for what never comes.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let waiting = async {
        let mut pause = Duration::from_millis(1);
        while !so() {
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    };
    assert!(timeout(LONG, waiting).await.is_ok(), "never: {what}");
}
