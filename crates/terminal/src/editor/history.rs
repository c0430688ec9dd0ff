//! Earlier inputs: stepping through them, and searching.

/// The maximum number of bytes to store; the oldest entries are dropped first.
const MAX_BYTES: usize = 16 << 20;

/// Earlier inputs, oldest first, and the entry that is in the editor now.
#[derive(Debug, Clone, Default)]
pub struct InputHistory {
    entries: Vec<String>,
    /// The total size of all entries.
    bytes: usize,
    /// The index of the shown entry, and the draft that it replaced.
    shown: Option<(usize, String)>,
}

impl InputHistory {
    /// Creates a history from these entries, oldest first.
    pub fn new(entries: Vec<String>) -> Self {
        let mut history = Self {
            bytes: entries.iter().map(String::len).sum(),
            entries,
            shown: None,
        };
        history.shorten();
        history
    }

    /// Drops the oldest entries until the size limit holds. The newest entry stays, however long it
    /// is.
    fn shorten(&mut self) {
        let mut bytes = self.bytes;
        let too_many = |entry: &&String| {
            let is_too_much = bytes > MAX_BYTES;
            bytes -= if is_too_much { entry.len() } else { 0 };
            is_too_much
        };
        let older = self.entries.len().saturating_sub(1);
        let gone = self.entries[..older].iter().take_while(too_many).count();
        for entry in self.entries.drain(..gone) {
            self.bytes -= entry.len();
        }
    }

    /// Adds an entry. An entry that repeats the last one, is empty or starts with a space is not
    /// stored. Returns `true` if it was stored.
    pub fn add(&mut self, entry: &str) -> bool {
        self.shown = None;
        let is_kept = !entry.trim().is_empty()
            && !entry.starts_with(' ')
            && self.entries.last().is_none_or(|last| last != entry);
        if is_kept {
            self.bytes += entry.len();
            self.entries.push(entry.to_owned());
            self.shorten();
        }
        is_kept
    }

    /// Returns the entries, oldest first.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Returns the next older entry. The draft is stored, to return to it later.
    pub fn older(&mut self, draft: &str) -> Option<&str> {
        let next = match &self.shown {
            Some((at, _)) => at.checked_sub(1)?,
            None => self.entries.len().checked_sub(1)?,
        };
        let draft = self
            .shown
            .take()
            .map_or_else(|| draft.to_owned(), |(_, draft)| draft);
        self.shown = Some((next, draft));
        self.entries.get(next).map(String::as_str)
    }

    /// Returns the next newer entry, and after the newest the draft.
    pub fn newer(&mut self) -> Option<String> {
        let (at, draft) = self.shown.take()?;
        match self.entries.get(at + 1) {
            Some(entry) => {
                let entry = entry.clone();
                self.shown = Some((at + 1, draft));
                Some(entry)
            }
            None => Some(draft),
        }
    }

    /// Treats the content of the editor as a draft again, because the user changed or sent it.
    pub fn leave(&mut self) {
        self.shown = None;
    }
}

/// A backward search through the entries.
#[derive(Debug, Clone, Default)]
pub struct HistorySearch {
    query: String,
    /// The number of newer matches to skip.
    skipped: usize,
}

impl HistorySearch {
    /// Creates a search with an empty query.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the query.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Adds a letter to the query.
    pub fn push(&mut self, letter: char) {
        self.query.push(letter);
        self.skipped = 0;
    }

    /// Removes the last letter of the query.
    pub fn pop(&mut self) {
        self.query.pop();
        self.skipped = 0;
    }

    /// Moves to the next older match, if any.
    pub fn older(&mut self, entries: &[String]) {
        self.skipped += 1;
        if self.found(entries).is_none() {
            self.skipped -= 1;
        }
    }

    /// Returns the matching entry. Equal entries are found only once.
    pub fn found<'a>(&self, entries: &'a [String]) -> Option<&'a str> {
        let query = self.query.to_lowercase();
        let mut seen = Vec::new();
        for entry in entries.iter().rev() {
            if !entry.to_lowercase().contains(&query) || seen.contains(&entry) {
                continue;
            }
            if seen.len() == self.skipped {
                return Some(entry);
            }
            seen.push(entry);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|&entry| entry.to_owned()).collect()
    }

    #[test]
    fn the_draft_comes_back() {
        let mut history = InputHistory::new(entries(&["one", "two"]));
        assert_eq!(history.older("draft"), Some("two"));
        assert_eq!(history.older("two"), Some("one"));
        assert_eq!(history.older("one"), None);
        assert_eq!(history.newer().as_deref(), Some("two"));
        assert_eq!(history.newer().as_deref(), Some("draft"));
        assert_eq!(history.newer(), None);
    }

    #[test]
    fn the_oldest_go_when_they_are_too_much_text() {
        let mut history = InputHistory::new(entries(&["old", "older"]));
        let long = |letter: &str| letter.repeat(MAX_BYTES / 2 - 3);
        assert!(history.add(&long("a")) && history.add(&long("b")));
        assert_eq!(history.entries().len(), 3, "one of the short ones went");
        assert!(history.add(&"c".repeat(MAX_BYTES + 1)));
        assert_eq!(history.entries().len(), 1, "the newest stays");
        assert_eq!(history.bytes, MAX_BYTES + 1);
    }

    #[test]
    fn what_begins_with_a_blank_or_repeats_is_not_kept() {
        let mut history = InputHistory::default();
        assert!(
            history.add("one")
                && !history.add("one")
                && !history.add(" secret")
                && !history.add("  ")
        );
        assert_eq!(history.entries(), ["one"]);
    }

    #[test]
    fn a_search_goes_to_older_matches_and_finds_each_once() {
        let all = entries(&["cargo test", "ls", "cargo build", "cargo test"]);
        let mut search = HistorySearch::new();
        "CARGO".chars().for_each(|letter| search.push(letter));
        assert_eq!(search.found(&all), Some("cargo test"));
        search.older(&all);
        assert_eq!(search.found(&all), Some("cargo build"));
        search.older(&all);
        assert_eq!(
            search.found(&all),
            Some("cargo build"),
            "there is no older one"
        );
        search.push('x');
        assert_eq!(search.found(&all), None);
    }
}
