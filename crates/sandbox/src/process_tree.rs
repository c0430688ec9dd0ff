//! The tree of processes, as `/proc` shows it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::fd::{AsRawFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The process ID.
    pub pid: u32,
    /// The name of its program, cut to 15 bytes by the system.
    pub name: String,
}

/// A process that is pinned by a pidfd, so that a later one cannot be mistaken for it: while it
/// [`is_alive`](Self::is_alive), its process ID is not reused.
#[derive(Debug)]
pub struct PinnedProcess(OwnedFd);

impl PinnedProcess {
    /// Returns the process with this process ID, if any.
    pub fn from_pid(pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(Self)
    }

    /// Returns whether the process still exists.
    pub fn is_alive(&self) -> bool {
        number(&self.0).is_some()
    }

    /// Waits until the process has exited, at most this long.
    pub(crate) async fn wait_until_ended(self, limit: Duration) {
        let limit = Timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        // A pidfd becomes readable when its process exits.
        let waiting = tokio::task::spawn_blocking(move || {
            poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit))
        });
        let _ = waiting.await;
    }
}

#[derive(Debug)]
struct ProcessEntry {
    parent: u32,
    name: String,
    zombie: bool,
    /// The start time in ticks since boot: distinguishes a process from a later one with the same
    /// process ID.
    started: u64,
}

/// Returns the processes below a process, without itself and without zombies.
pub(crate) fn below(root: u32) -> Vec<ProcessInfo> {
    let all = all();
    let mut found: Vec<ProcessInfo> = descendants(&all, root)
        .into_iter()
        .filter_map(|pid| {
            let entry = all.get(&pid).filter(|entry| !entry.zombie)?;
            Some(ProcessInfo {
                pid,
                name: entry.name.clone(),
            })
        })
        .collect();
    found.sort_unstable_by_key(|process| process.pid);
    found
}

/// Returns the process IDs of all processes below a process, including zombies.
pub(crate) fn pids_below(root: u32) -> Vec<u32> {
    // All other processes that the first process of a PID namespace sees are below it.
    if root == 1 && root == std::process::id() {
        return numbers().filter(|&pid| pid != root).collect();
    }
    descendants(&all(), root)
}

/// The time limit for ending processes. It usually takes milliseconds, except for processes that
/// cannot be ended: those that belong to another user now, or hang in the kernel.
const TRYING: Duration = Duration::from_secs(10);

/// Kills all processes below a process, except `spared` and those below them. Repeats until none is
/// left, because a list of processes is never complete while processes start and exit. Processes
/// that fork faster than they are killed are stopped first. `reap` reaps children that ended and
/// returns whether none but the spared ones is left.
pub(crate) fn kill_below(root: u32, spared: &[u32], mut reap: impl FnMut() -> bool) {
    let began = Instant::now();
    for round in 0_u32.. {
        let nothing_left = reap();
        // Direct children first, without scanning all processes: orphans become children of this
        // process.
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
            // The dying processes need the processor time that scanning takes.
            std::thread::sleep(Duration::from_millis(1 << (round / 4).min(3)));
        }
    }
}

/// Kills a process whose process ID cannot be reused yet, such as a child that was not waited for.
pub(crate) fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Returns this process's own children, including those that `/proc` hides (mounted with `hidepid`,
/// it does not show processes that may not be inspected). Empty if the kernel does not list
/// children.
fn children() -> Vec<u32> {
    let pid = std::process::id();
    fs::read_to_string(format!("/proc/self/task/{pid}/children"))
        .map(|list| list.split_ascii_whitespace().flat_map(str::parse).collect())
        .unwrap_or_default()
}

/// Asks all processes below a process to exit.
pub(crate) fn terminate_below(root: u32) {
    let all = all();
    for pid in descendants(&all, root) {
        if let Some(entry) = all.get(&pid) {
            signal(pid, entry.started, Signal::TERM);
            // A stopped process would not handle the signal.
            signal(pid, entry.started, Signal::CONT);
        }
    }
}

/// Sends a signal to a process if it is still the one that was seen.
fn signal(pid: u32, started: u64, signal: Signal) {
    let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    match pidfd_open(target, PidfdFlags::empty()) {
        Ok(handle) => {
            // The pidfd always refers to the same process; the start time confirms that it is the
            // right one.
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

/// Returns the process IDs that `/proc` lists.
fn numbers() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|found| found.file_name().to_str()?.parse().ok())
}

fn entry(pid: u32) -> Option<ProcessEntry> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&stat))
}

/// Parses `PID (NAME) STATE PARENT … STARTED …`. The name may contain any character, even
/// parentheses.
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

/// Returns the process ID for a pidfd; `None` when the process has exited.
pub(crate) fn number(handle: &OwnedFd) -> Option<u32> {
    let place = format!("/proc/self/fdinfo/{}", handle.as_raw_fd());
    let text = fs::read_to_string(place).ok()?;
    let number = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    number.trim().parse().ok() // -1 when it has exited
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
        let pinned = PinnedProcess::from_pid(child.id()).unwrap();
        assert!(pinned.is_alive());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!pinned.is_alive());
        assert!(PinnedProcess::from_pid(u32::MAX).is_none());
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
