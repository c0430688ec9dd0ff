//! The cost of a search, counted in steps of about one processed byte.
//!
//! Only tests count steps: a test whether the cost grows with the square of a text must not depend
//! on a clock. Loops over a text in `edit` and `lines` report the bytes that they process here.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Counts processed bytes; does nothing outside of tests.
macro_rules! spend {
    ($steps:expr) => {{
        #[cfg(test)]
        $crate::step_counter::count($steps);
        #[cfg(not(test))]
        let _: usize = $steps;
    }};
}
pub(crate) use spend;

#[cfg(test)]
pub(crate) fn count(steps: usize) {
    STEPS.set(STEPS.get().saturating_add(steps));
}

/// Runs `work` and returns its result and its number of steps.
#[cfg(test)]
pub(crate) fn steps_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = STEPS.replace(0);
    let result = work();
    (result, STEPS.replace(before))
}
