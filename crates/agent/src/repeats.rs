//! Noticing that a model goes in circles.
//!
//! A round gets nowhere if every call in it was made before with the very same result. Any new call, and
//! any call with a new result (a test run after an edit), is progress and starts the count anew; so
//! circles of several calls are noticed like single ones.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use haft_contract::Content;
use serde_json::Value;

/// What was tried in one run.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    seen: HashSet<u64>,
    /// Rounds in a row that got nowhere.
    rounds: u32,
}

impl Repeats {
    /// Takes the calls of a round, each with its result. Gives how many rounds in a row got nowhere.
    pub(crate) fn note<'a>(
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
        let mut repeats = Repeats::default();
        let mut round = |name: &str, result: &str| {
            let (input, result) = (json!({"a": 1}), [Content::text(result)]);
            repeats.note([(name, &input, &result[..])])
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
