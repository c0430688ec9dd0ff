//! References to elements. A ref belongs to one node of one document and is never reused, so an old
//! ref either means the same element or is an error.

use std::collections::HashMap;

/// The target of a ref.
#[derive(Debug, Clone)]
pub(crate) struct RefEntry {
    pub(crate) tab: u32,
    pub(crate) frame: String,
    /// The document's loader id: in the next document, the same node id may belong to another node.
    pub(crate) loader: String,
    /// The address of the tab when the ref was created.
    pub(crate) url: String,
    pub(crate) node: i64,
}

/// All refs of a browser.
#[derive(Default)]
pub(crate) struct RefTable {
    entries: HashMap<u32, RefEntry>,
    numbers: HashMap<(String, i64), u32>,
    last: u32,
}

/// The maximum number of refs. Beyond it, the refs of other documents are dropped; using one is
/// then an error.
const MAX_REFS: usize = 100_000;

impl RefTable {
    pub(crate) fn assign(&mut self, entry: RefEntry) -> u32 {
        let key = (entry.loader.clone(), entry.node);
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        if self.entries.len() >= MAX_REFS {
            let loader = entry.loader.clone();
            self.entries.retain(|_, kept| kept.loader == loader);
            if self.entries.len() >= MAX_REFS {
                self.entries.clear();
            }
            let entries = &self.entries;
            self.numbers
                .retain(|_, number| entries.contains_key(number));
        }
        self.last += 1;
        self.entries.insert(self.last, entry);
        self.numbers.insert(key, self.last);
        self.last
    }

    pub(crate) fn get(&self, number: u32) -> Option<&RefEntry> {
        self.entries.get(&number)
    }

    /// Returns whether the ref was ever created.
    pub(crate) fn was_assigned(&self, number: u32) -> bool {
        (1..=self.last).contains(&number)
    }
}

/// Parses a ref such as `e12` into its number.
#[must_use]
pub fn ref_number(text: &str) -> Option<u32> {
    let text = text.trim().trim_matches(['[', ']']);
    let text = text.strip_prefix("ref=").unwrap_or(text);
    let digits = text.strip_prefix('e')?;
    if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(loader: &str, node: i64) -> RefEntry {
        RefEntry {
            tab: 1,
            frame: "f".to_owned(),
            loader: loader.to_owned(),
            url: String::new(),
            node,
        }
    }

    #[test]
    fn a_node_keeps_its_ref_and_no_ref_is_given_twice() {
        let mut refs = RefTable::default();
        assert_eq!(refs.assign(entry("a", 7)), 1);
        assert_eq!(
            refs.assign(entry("b", 7)),
            2,
            "the same number in another document is another node"
        );
        assert_eq!(refs.assign(entry("a", 7)), 1);
        for node in 0..120_000 {
            refs.assign(entry("c", node));
        }
        assert!(refs.entries.len() <= MAX_REFS);
        assert_eq!(refs.numbers.len(), refs.entries.len());
        assert_eq!(refs.assign(entry("a", 7)), 120_003);
        assert!(refs.get(1).is_none() && refs.was_assigned(1) && !refs.was_assigned(0));
    }

    #[test]
    fn refs_are_read_strictly() {
        assert_eq!(ref_number("e12"), Some(12));
        assert_eq!(ref_number("[ref=e12]"), Some(12));
        for wrong in ["", "e", "12", "e0", "e-1", "e1x", "e99999999999"] {
            assert_eq!(ref_number(wrong), None, "{wrong}");
        }
    }
}
