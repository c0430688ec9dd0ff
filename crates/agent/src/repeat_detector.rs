//! Detects a model that repeats the same calls.
//!
//! A turn makes no progress if every call in it was made before with exactly the same result. Any
//! new call, and any call with a new result (a test run after an edit), is progress and resets the
//! counter. So cycles of several calls are detected like single ones.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use haft_contract::Content;
use serde_json::Value;

/// The calls of one run, with their results.
#[derive(Debug, Default)]
pub(crate) struct RepeatDetector {
    seen: HashSet<u64>,
    /// The number of consecutive turns without progress.
    rounds: u32,
}

impl RepeatDetector {
    /// Adds the calls of a turn with their results. Returns the number of consecutive turns without
    /// progress.
    pub(crate) fn record_turn<'a>(
        &mut self,
        calls: impl IntoIterator<Item = (&'a str, &'a Value, &'a [Content])>,
    ) -> u32 {
        let mut is_new = false;
        for (name, input, result) in calls {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            input.to_string().hash(&mut hasher);
            for content in result {
                match content {
                    Content::Text { text } => text.hash(&mut hasher),
                    other => format!("{other:?}").hash(&mut hasher),
                }
            }
            is_new |= self.seen.insert(hasher.finish());
        }
        self.rounds = if is_new { 0 } else { self.rounds + 1 };
        self.rounds
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn circles_count_and_progress_starts_anew() {
        let mut repeats = RepeatDetector::default();
        let mut round = |name: &str, result: &str| {
            let (input, result) = (json!({"a": 1}), [Content::text(result)]);
            repeats.record_turn([(name, &input, &result[..])])
        };
        let rounds = [
            round("A", "1"),
            round("A", "1"),
            round("B", "1"),
            round("A", "1"),
            round("B", "1"),
            round("A", "2"),
            round("A", "2"),
        ];
        assert_eq!(rounds, [0, 1, 0, 1, 2, 0, 1]);
    }
}
