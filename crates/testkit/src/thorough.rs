//! How much tests repeat.

use std::env;

/// Do tests take the time for what is nearly the same once more: attacks that go on for longer, more rounds of
/// what is drawn by lot, the same attack by another user or beside another network? So it is where
/// `HAFT_TESTS_THOROUGH=1`, as in `.ci/run`. Every attack and every example is made without it, too.
pub fn is_thorough() -> bool {
    env::var_os("HAFT_TESTS_THOROUGH").is_some_and(|value| value == "1")
}
