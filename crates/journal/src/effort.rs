//! How much a search works, counted in steps of about one byte looked at.
//!
//! Only tests count: whether work grows with the square of a text must not be told by a clock. What
//! loops over a text in `edit` and `lines` spends here what it looks at.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Counts what is looked at; nothing, outside of tests.
macro_rules! spend {
    ($steps:expr) => {{
        #[cfg(test)]
        $crate::effort::count($steps);
        #[cfg(not(test))]
        let _: usize = $steps;
    }};
}
pub(crate) use spend;

#[cfg(test)]
pub(crate) fn count(steps: usize) {
    STEPS.set(STEPS.get().saturating_add(steps));
}

/// The steps that this work takes.
#[cfg(test)]
pub(crate) fn steps_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = STEPS.replace(0);
    let result = work();
    (result, STEPS.replace(before))
}
