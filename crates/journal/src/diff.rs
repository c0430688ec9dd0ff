//! A minimal line diff.

use std::hash::Hash;
use std::ops::Range;
use std::time::Instant;

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// A range of old lines that became a range of new lines. Both are the same if `equal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineRun {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
    pub(crate) equal: bool,
}

/// Compares all lines of both sides in order; runs that are equal and runs that are not alternate.
/// If the deadline passes, the diff may not be minimal.
pub(crate) fn runs<L: Hash + Ord>(old: &[L], new: &[L], deadline: Option<Instant>) -> Vec<LineRun> {
    let mut runs: Vec<LineRun> = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    for operation in capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline) {
        // Only the lengths are used: if one side is empty, the offset that similar 2.7 reports for
        // it can be wrong (`ba` to `aaac`).
        let equal = matches!(operation, DiffOp::Equal { .. });
        let old_end = old_at + operation.old_range().len();
        let new_end = new_at + operation.new_range().len();
        match runs.last_mut() {
            Some(last) if last.equal == equal => {
                last.old.end = old_end;
                last.new.end = new_end;
            }
            _ => runs.push(LineRun {
                old: old_at..old_end,
                new: new_at..new_end,
                equal,
            }),
        }
        (old_at, new_at) = (old_end, new_end);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_comes_and_goes_has_its_place() {
        let run = |old, new, equal| LineRun { old, new, equal };
        assert_eq!(
            runs(b"ba", b"aaac", None),
            [
                run(0..1, 0..0, false),
                run(1..2, 0..1, true),
                run(2..2, 1..4, false),
            ]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn runs_cover_both_sides_and_are_what_they_say(old in "[abc]{0,12}", new in "[abc]{0,12}") {
            let (old, new) = (old.as_bytes(), new.as_bytes());
            let (mut old_at, mut new_at, mut before) = (0, 0, None);
            for run in runs(old, new, None) {
                prop_assert_eq!((run.old.start, run.new.start), (old_at, new_at));
                prop_assert_ne!(before, Some(run.equal));
                prop_assert_eq!(run.equal, old[run.old.clone()] == new[run.new.clone()]);
                (old_at, new_at, before) = (run.old.end, run.new.end, Some(run.equal));
            }
            prop_assert_eq!((old_at, new_at), (old.len(), new.len()));
        }
    }
}
