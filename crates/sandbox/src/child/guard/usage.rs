//! Measures the memory and processes of a command, and finds out when they exceed its limits.
//!
//! No cgroup is needed, and a short command is never measured: the first measurement comes after
//! [`FIRST_PAUSE`]. From then on the pause depends on how soon the command could reach the limit.

use std::{
    fs, process,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

use crate::{ExceededLimit, ResourceLimits, limits::parse_kilobytes, process_tree};

/// The time from the start of a command to its first measurement.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// The fastest growth per second that is expected: as much as several processors can allocate and
/// fork.
const MEMORY_GROWTH: u64 = 8 << 30;
const TASK_GROWTH: u64 = 8192;
/// A pause is at least this multiple of the processor time of the preceding measurement.
const PAUSE_PER_COST: u32 = 10;

/// Measures one command from its start to its end.
pub(super) struct UsageMonitor {
    limits: ResourceLimits,
    pause: Duration,
    /// The time of the next measurement; `None` before the command starts.
    due: Option<Instant>,
}

/// The memory and processes of a command.
#[derive(Default)]
struct CommandUsage {
    memory: u64,
    tasks: u64,
}

impl UsageMonitor {
    pub(super) fn new(limits: ResourceLimits) -> Self {
        Self {
            limits,
            pause: FIRST_PAUSE,
            due: None,
        }
    }

    /// Schedules the first measurement. Must be called when the command starts.
    pub(super) fn start(&mut self) {
        self.due = Some(Instant::now() + self.pause);
    }

    /// Returns the time until the next measurement; `None` before the command starts.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let due = self.due?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Measures the command if it is time to, and returns the limit that it exceeds.
    pub(super) fn measure_when_due(&mut self) -> Option<ExceededLimit> {
        if self.due.is_none_or(|due| due > Instant::now()) {
            return None;
        }
        let before = processor_time();
        let usage = self.measure();
        let cost = processor_time().saturating_sub(before);
        let ResourceLimits { memory, tasks } = self.limits;
        let headroom = time_to_grow(usage.memory, memory, MEMORY_GROWTH).min(time_to_grow(
            usage.tasks,
            tasks,
            TASK_GROWTH,
        ));
        let pause = headroom.clamp(MIN_PAUSE, MAX_PAUSE).min(self.pause * 2);
        self.pause = pause.max(cost * PAUSE_PER_COST);
        self.due = Some(Instant::now() + self.pause);
        if usage.tasks > tasks {
            let (used, limit) = (usage.tasks, tasks);
            return Some(ExceededLimit::Tasks { used, limit });
        }
        let (used, limit) = (usage.memory, memory);
        (used > limit).then_some(ExceededLimit::Memory { used, limit })
    }

    fn measure(&self) -> CommandUsage {
        let pids = process_tree::pids_below(process::id());
        let count = u64::try_from(pids.len()).unwrap_or(u64::MAX);
        if count > self.limits.tasks {
            return CommandUsage {
                memory: 0,
                tasks: count,
            };
        }
        let mut usage = CommandUsage::default();
        for &pid in &pids {
            // A process without a status has exited in the meantime.
            let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
                continue;
            };
            usage.memory += resident_memory(&status);
            usage.tasks += parse_threads(&status);
        }
        // Pages that several processes share were counted for each of them.
        if usage.memory > self.limits.memory {
            usage.memory = pids.iter().map(|&pid| proportional_memory(pid)).sum();
        }
        usage
    }
}

/// Returns the time until a value can reach its limit.
fn time_to_grow(used: u64, limit: u64, growth: u64) -> Duration {
    let left = limit.saturating_sub(used).min(growth);
    Duration::from_millis(left * 1000 / growth)
}

fn resident_memory(status: &str) -> u64 {
    let bytes = |name| parse_kilobytes(status, name).unwrap_or(0);
    bytes("VmRSS:") + bytes("VmSwap:")
}

fn parse_threads(status: &str) -> u64 {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"));
    line.and_then(|number| number.trim().parse().ok())
        .unwrap_or(1)
}

/// Returns the memory of a process, with its share of pages that others use too. A process that
/// hides its memory is charged for shared pages in full.
fn proportional_memory(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    if let Ok(rollup) = rollup
        && let Some(pss) = parse_kilobytes(&rollup, "Pss:")
    {
        return pss + parse_kilobytes(&rollup, "SwapPss:").unwrap_or(0);
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    status.map_or(0, |status| resident_memory(&status))
}

/// Returns the processor time that this process has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or(0),
        time.tv_nsec.try_into().unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_is_short_where_the_limit_is_near() {
        assert_eq!(time_to_grow(0, 1 << 50, 1 << 30), Duration::from_secs(1));
        let half = time_to_grow(1 << 29, 1 << 30, 1 << 30);
        assert_eq!(half, Duration::from_millis(500));
        assert_eq!(time_to_grow(9, 8, 1 << 30), Duration::ZERO);
    }

    #[test]
    fn status_tells_resident_and_swapped_memory_and_threads() {
        let status =
            "Name:\tVmRSS: 5 kB\nVmRSS:\t    2048 kB\nVmSwap:\t       8 kB\nThreads:\t12\n";
        assert_eq!(resident_memory(status), 2056 * 1024);
        assert_eq!(parse_threads(status), 12);
        assert_eq!(parse_threads("Name:\tx\n"), 1);
    }

    #[test]
    fn nothing_is_measured_before_the_command_starts() {
        let mut monitor = UsageMonitor::new(ResourceLimits {
            memory: 0,
            tasks: 0,
        });
        assert_eq!(monitor.time_left(), None);
        assert_eq!(monitor.measure_when_due(), None);
        monitor.start();
        assert!(monitor.time_left().is_some());
    }
}
