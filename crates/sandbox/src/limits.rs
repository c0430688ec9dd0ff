//! The resources that one command may use.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use serde::{Deserialize, Serialize};

/// The largest number of processes and threads of one command. The kernel's own limit for a sandbox
/// is higher, so that a command is ended with a message before its `fork` fails.
const MAX_TASKS: u64 = 4096;

/// The most memory and processes that one command may use at a time. A command that uses more is
/// ended with everything that it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Memory in bytes: resident and swapped, shared pages counted once.
    pub memory: u64,
    /// Processes and threads.
    pub tasks: u64,
}

impl Default for ResourceLimits {
    /// 75 % of the memory of this machine or container, and 4,096 processes and threads.
    fn default() -> Self {
        static MEMORY: OnceLock<u64> = OnceLock::new();
        Self {
            memory: *MEMORY.get_or_init(|| available_memory() / 4 * 3),
            tasks: MAX_TASKS,
        }
    }
}

/// The limit that a command exceeded, and what it used. Displayed as a clause with the command as
/// its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExceededLimit {
    /// Memory in bytes.
    Memory {
        /// The memory in use when it was measured.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// Processes and threads.
    Tasks {
        /// The number of processes and threads when they were counted.
        used: u64,
        /// The limit.
        limit: u64,
    },
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { used, limit } => write!(
                f,
                "it used {} of memory, and a command may use at most {}. Work on less data at a time, or with \
                 fewer jobs in parallel",
                format_bytes(*used),
                format_bytes(*limit)
            ),
            Self::Tasks { used, limit } => write!(
                f,
                "it ran {used} processes and threads at a time, and a command may run at most {limit}. Start \
                 fewer in parallel"
            ),
        }
    }
}

fn format_bytes(bytes: u64) -> String {
    const MEGABYTE: f64 = 1e6;
    let megabytes = bytes as f64 / MEGABYTE;
    if megabytes < 1000.0 {
        format!("{megabytes:.0} MB")
    } else {
        format!("{:.1} GB", megabytes / 1000.0)
    }
}

/// Returns the memory of this machine in bytes, or that of our cgroup if it is less. Returns the
/// largest number if neither can be read: the kernel's own limit remains.
fn available_memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| parse_kilobytes(&text, "MemTotal:"));
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = cgroup_files(&cgroups)
        .into_iter()
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    limits.chain(machine).min().unwrap_or(u64::MAX)
}

/// Returns the files that may limit the memory of our cgroup or of one above it, for both versions
/// of cgroups.
fn cgroup_files(cgroups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in cgroups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            continue;
        };
        let below_root = Path::new(path.trim_start_matches('/'));
        let levels = below_root.ancestors();
        files.extend(levels.map(|level| Path::new(root).join(level).join(file)));
    }
    files
}

/// Returns the value of a line like `MemTotal:  16384 kB`, in bytes.
pub(crate) fn parse_kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_limit_is_below_the_memory_of_the_machine() {
        let text = fs::read_to_string("/proc/meminfo").unwrap();
        let machine = parse_kilobytes(&text, "MemTotal:").unwrap();
        let limits = ResourceLimits::default();
        assert!(limits.memory <= machine / 4 * 3, "{limits:?}");
        assert!(limits.memory > 0);
    }

    #[test]
    fn every_cgroup_above_ours_may_limit_memory() {
        let both = "8:pids:/a\n4:cpu,memory:/job/1\n0::/user/me\n";
        let files = cgroup_files(both);
        let files: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
        assert_eq!(
            files,
            [
                "/sys/fs/cgroup/memory/job/1/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/job/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/user/me/memory.max",
                "/sys/fs/cgroup/user/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        assert!(cgroup_files("").is_empty());
    }

    #[test]
    fn the_message_names_the_limit_the_use_and_the_next_step() {
        let memory = ExceededLimit::Memory {
            used: 19_100_000_000,
            limit: 640_000_000,
        };
        assert_eq!(
            memory.to_string(),
            "it used 19.1 GB of memory, and a command may use at most 640 MB. Work on less data at a time, or \
             with fewer jobs in parallel"
        );
        let tasks = ExceededLimit::Tasks {
            used: 4200,
            limit: 4096,
        };
        assert_eq!(
            tasks.to_string(),
            "it ran 4200 processes and threads at a time, and a command may run at most 4096. Start fewer in \
             parallel"
        );
    }
}
