//! How much tests repeat.

use std::env;

/// Do tests take the time for what is the same once more: attacks that go on for longer, more rounds of what
/// is drawn by lot, settings that are nearly alike? So it is where changes are let in
/// (`HAFT_TESTS_THOROUGH=1`, set by `.ci/run`). What is tried at all is tried without it, too.
pub fn is_thorough() -> bool {
    env::var_os("HAFT_TESTS_THOROUGH").is_some_and(|value| value == "1")
}
