//! The last output of a server besides its answers, for the user.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::stdio;

/// The number of lines to show of what a server writes, and of what it logs.
const SHOWN: usize = 20;
/// The maximum length of a line in characters.
const MAX_LENGTH: usize = 300;

/// The last bytes of a server's standard error.
pub(crate) type StderrTail = Arc<Mutex<VecDeque<u8>>>;

/// The output of a server besides its answers. Only the last part of it is stored.
#[derive(Default)]
pub(crate) struct ServerLog {
    /// The standard error since the last start, and of the start before.
    stderr: Mutex<[Option<StderrTail>; 2]>,
    /// The log messages of the protocol.
    logged: Mutex<VecDeque<String>>,
}

impl ServerLog {
    /// Records the buffer of the standard error after a start of the server.
    pub(super) fn set_stderr(&self, words: Option<StderrTail>) {
        if words.is_some() {
            let mut known = lock(&self.stderr);
            let last = known[0].take();
            *known = [words, last];
        }
    }

    /// Adds a log message.
    pub(super) fn add(&self, level: &str, text: &str) {
        let level: String = level.chars().take(20).collect();
        let mut logged = lock(&self.logged);
        for line in text.lines().take(SHOWN) {
            logged.push_back(short(&format!("[{level}] {line}")));
        }
        let over = logged.len().saturating_sub(SHOWN);
        logged.drain(..over);
    }

    /// Returns the last lines: first what the server wrote, then what it logged.
    pub(super) fn lines(&self) -> Vec<String> {
        let known = lock(&self.stderr).clone();
        // If a restarted server has not written anything yet, the output of the previous start is
        // shown, because it may show why it ended.
        let mut written = known
            .iter()
            .flatten()
            .map(|words| stdio::decode_stderr(words));
        let written = written.find(|text| !text.trim().is_empty());
        let written = written.unwrap_or_default();
        let written: Vec<&str> = written
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .collect();
        let first = written.len().saturating_sub(SHOWN);
        let mut lines: Vec<String> = written[first..].iter().map(|line| short(line)).collect();
        lines.extend(lock(&self.logged).iter().cloned());
        lines
    }
}

fn short(line: &str) -> String {
    line.chars().take(MAX_LENGTH).collect()
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_flood_is_shown_and_each_line_is_bounded() {
        let log = ServerLog::default();
        assert!(log.lines().is_empty());
        let flood: String = (0..1_000).map(|at| format!("line {at}\n\n")).collect();
        log.set_stderr(Some(Arc::new(Mutex::new(flood.bytes().collect()))));
        // A transport that writes nothing beside messages takes nothing away.
        log.set_stderr(None);
        let lines = log.lines();
        assert_eq!(lines.len(), SHOWN);
        assert_eq!(lines.last().unwrap(), "line 999");
        for _ in 0..100 {
            log.add("info", &"x\n".repeat(1_000));
        }
        log.add(&"l".repeat(1_000), &"long ".repeat(1_000));
        let lines = log.lines();
        assert_eq!(lines.len(), 2 * SHOWN);
        assert_eq!(lines[SHOWN], "[info] x");
        assert!(lines.iter().all(|line| line.chars().count() <= MAX_LENGTH));
    }
}
