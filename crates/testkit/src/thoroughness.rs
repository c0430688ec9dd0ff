//! The switch for more test repetitions.

use std::env;

/// Returns whether tests should run their expensive variants: longer attacks, more rounds of random
/// input, the same attack as another user or with another network. `HAFT_TESTS_THOROUGH=1` enables
/// them, as `.ci/run` does. Every attack and every example also runs without it.
pub fn is_thorough() -> bool {
    env::var_os("HAFT_TESTS_THOROUGH").is_some_and(|value| value == "1")
}
