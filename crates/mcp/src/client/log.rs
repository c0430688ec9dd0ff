//! What a server says beside its answers, the last of it, for people.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::stdio;

/// So many lines are shown of what it writes, and of what it logs.
const SHOWN: usize = 20;
/// Of each no more than this, in characters.
const LONGEST: usize = 300;

/// What was written beside messages: the last bytes of it.
pub(crate) type Words = Arc<Mutex<VecDeque<u8>>>;

/// What a server says beside its answers. A flood of it passes by.
#[derive(Default)]
pub(crate) struct ServerLog {
    /// On its standard error, since it was started last, and before that.
    words: Mutex<[Option<Words>; 2]>,
    /// By messages of the protocol.
    logged: Mutex<VecDeque<String>>,
}

impl ServerLog {
    /// It was started anew, and writes here.
    pub(super) fn follow(&self, words: Option<Words>) {
        if words.is_some() {
            let mut known = lock(&self.words);
            let last = known[0].take();
            *known = [words, last];
        }
    }

    /// It logs something.
    pub(super) fn add(&self, level: &str, text: &str) {
        let level: String = level.chars().take(20).collect();
        let mut logged = lock(&self.logged);
        for line in text.lines().take(SHOWN) {
            logged.push_back(short(&format!("[{level}] {line}")));
        }
        let over = logged.len().saturating_sub(SHOWN);
        logged.drain(..over);
    }

    /// The last lines: what it wrote, and then what it logged.
    pub(super) fn lines(&self) -> Vec<String> {
        let known = lock(&self.words).clone();
        // One that was started anew and is silent yet: why it ended is of interest.
        let mut written = known.iter().flatten().map(|words| stdio::words(words));
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
    line.chars().take(LONGEST).collect()
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
        log.follow(Some(Arc::new(Mutex::new(flood.bytes().collect()))));
        // A transport that writes nothing beside messages takes nothing away.
        log.follow(None);
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
        assert!(lines.iter().all(|line| line.chars().count() <= LONGEST));
    }
}
