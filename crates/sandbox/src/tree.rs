//! Processes and who started them, as `/proc` tells.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::fd::{AsRawFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The name of its program, cut to 15 bytes by the system.
    pub name: String,
}

/// A process that was seen, held so that no other can be taken for it: as long as it [`is_there`](Self::is_there), its
/// number is its own.
#[derive(Debug)]
pub struct PinnedProcess(OwnedFd);

impl PinnedProcess {
    /// The process that has this number now; `None` if none has.
    pub fn of(pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(Self)
    }

    /// Does its number still belong to it?
    pub fn is_there(&self) -> bool {
        number(&self.0).is_some()
    }
}

#[derive(Debug)]
struct ProcessEntry {
    parent: u32,
    name: String,
    zombie: bool,
    /// In ticks since the machine started: tells a process from a later one with the same number.
    started: u64,
}

/// What runs below a process, without it and without what has ended.
pub(crate) fn below(root: u32) -> Vec<Process> {
    let all = all();
    let mut found: Vec<Process> = descendants(&all, root)
        .into_iter()
        .filter_map(|pid| {
            let entry = all.get(&pid).filter(|entry| !entry.zombie)?;
            Some(Process {
                pid,
                name: entry.name.clone(),
            })
        })
        .collect();
    found.sort_unstable_by_key(|process| process.pid);
    found
}

/// The numbers of all processes below a process, zombies included.
pub(crate) fn pids_below(root: u32) -> Vec<u32> {
    // All that the first process of a PID namespace sees is below it.
    if root == 1 && root == std::process::id() {
        return numbers().filter(|&pid| pid != root).collect();
    }
    descendants(&all(), root)
}

/// How long it is tried to end processes. It takes milliseconds, but for those that no one can end:
/// they became another user's, or hang in the kernel.
const TRYING: Duration = Duration::from_secs(10);

/// Ends all that runs below a process, but for `spared` and what is below those, and goes on until
/// nothing is left: a list of processes is never whole when they come and go. What forks faster than
/// it is killed is stopped first. `reap` takes note of children that ended; is none left but those
/// that are spared?
pub(crate) fn kill_below(root: u32, spared: &[u32], mut reap: impl FnMut() -> bool) {
    let began = Instant::now();
    for round in 0_u32.. {
        let nothing_left = reap();
        // Our own first, without looking at all others: what loses its parent becomes ours.
        let own: Vec<u32> = if root == std::process::id() {
            children()
        } else {
            Vec::new()
        };
        let own: Vec<u32> = own
            .into_iter()
            .filter(|pid| !spared.contains(pid))
            .collect();
        for &pid in &own {
            kill(pid);
        }
        let all = all();
        let kept: BTreeSet<u32> = spared
            .iter()
            .flat_map(|&pid| descendants(&all, pid).into_iter().chain([pid]))
            .collect();
        let doomed: Vec<(u32, u64)> = descendants(&all, root)
            .into_iter()
            .filter(|pid| !kept.contains(pid))
            .filter_map(|pid| {
                let entry = all.get(&pid).filter(|entry| !entry.zombie)?;
                Some((pid, entry.started))
            })
            .collect();
        if nothing_left && own.is_empty() && doomed.is_empty() {
            return;
        }
        if round > 0 {
            for &(pid, started) in &doomed {
                signal(pid, started, Signal::STOP);
            }
        }
        for &(pid, started) in &doomed {
            signal(pid, started, Signal::KILL);
        }
        if round > 2 {
            if began.elapsed() > TRYING {
                return;
            }
            // The dying need the processor that looking at all processes takes from them.
            std::thread::sleep(Duration::from_millis(1 << (round / 4).min(3)));
        }
    }
}

/// Ends a process whose number cannot be another's yet: a child that was not waited for, say.
pub(crate) fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// This process's own children, those included that `/proc` hides (mounted with `hidepid`, it does
/// not show a process that may not be looked into). Empty where the kernel does not tell.
fn children() -> Vec<u32> {
    let pid = std::process::id();
    fs::read_to_string(format!("/proc/self/task/{pid}/children"))
        .map(|list| list.split_ascii_whitespace().flat_map(str::parse).collect())
        .unwrap_or_default()
}

/// Asks all that runs below a process to end.
pub(crate) fn terminate_below(root: u32) {
    let all = all();
    for pid in descendants(&all, root) {
        if let Some(entry) = all.get(&pid) {
            signal(pid, entry.started, Signal::TERM);
            // A stopped process would not hear it.
            signal(pid, entry.started, Signal::CONT);
        }
    }
}

/// Signals a process if it is still the one that was seen. What is gone needs none.
fn signal(pid: u32, started: u64, signal: Signal) {
    let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    match pidfd_open(target, PidfdFlags::empty()) {
        Ok(handle) => {
            // Behind the handle stands one process for good; that it is the right one is asked now.
            if entry(pid).is_some_and(|entry| entry.started == started) {
                let _ = pidfd_send_signal(handle, signal);
            }
        }
        Err(Errno::NOSYS) => {
            let _ = kill_process(target, signal);
        }
        Err(_) => {}
    }
}

fn descendants(all: &BTreeMap<u32, ProcessEntry>, root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&pid, entry) in all {
        children.entry(entry.parent).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(pid) = next.pop() {
        for &child in children.get(&pid).into_iter().flatten() {
            found.push(child);
            next.push(child);
        }
    }
    found
}

fn all() -> BTreeMap<u32, ProcessEntry> {
    numbers()
        .filter_map(|pid| Some((pid, entry(pid)?)))
        .collect()
}

/// The numbers of all processes that `/proc` lists.
fn numbers() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|found| found.file_name().to_str()?.parse().ok())
}

fn entry(pid: u32) -> Option<ProcessEntry> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&stat))
}

/// `PID (NAME) STATE PARENT … STARTED …`; the name may hold anything, parentheses too.
fn parse(stat: &str) -> Option<ProcessEntry> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(ProcessEntry {
        parent,
        name: name.to_owned(),
        zombie: matches!(state, "Z" | "X"),
        started,
    })
}

/// The number of the process that a handle stands for; `None` when it is gone.
pub(crate) fn number(handle: &OwnedFd) -> Option<u32> {
    let place = format!("/proc/self/fdinfo/{}", handle.as_raw_fd());
    let text = fs::read_to_string(place).ok()?;
    let number = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    number.trim().parse().ok() // -1 when it is gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_confuse() {
        let rest = "S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let entry = parse(&format!("12 (a) b (c)) {rest}")).unwrap();
        assert_eq!(
            (entry.parent, entry.name.as_str(), entry.started),
            (7, "a) b (c)", 4711)
        );
        assert!(!entry.zombie);
        assert!(parse("12 (a").is_none());
    }

    #[test]
    fn a_handle_tells_its_process() {
        let own = pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).unwrap();
        assert_eq!(number(&own), Some(std::process::id()));
    }

    #[test]
    fn a_pinned_process_is_there_until_its_number_may_be_another_s() {
        let mut child = haft_testkit::command("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pinned = PinnedProcess::of(child.id()).unwrap();
        assert!(pinned.is_there());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!pinned.is_there());
        assert!(PinnedProcess::of(u32::MAX).is_none());
    }

    #[test]
    fn children_are_found_below_this_process() {
        let mut shell = haft_testkit::command("sh")
            .args(["-c", "sleep 1000 & wait"])
            .spawn()
            .unwrap();
        assert!(
            below(std::process::id())
                .iter()
                .any(|process| process.pid == shell.id())
        );
        while below(shell.id()).is_empty() {
            std::thread::yield_now();
        }
        kill_below(shell.id(), &[], || true);
        assert!(shell.wait().unwrap().success());
    }
}
