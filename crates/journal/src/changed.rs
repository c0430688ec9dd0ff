//! Where two sequences differ.
//!
//! Of a diff by `similar` only the equal runs are used: where it moves changes about to join them
//! (version 2.7), it leaves the positions of the others as they were, and they no longer fit together.

use std::hash::Hash;
use std::ops::Range;
use std::time::Instant;

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// These of the old became those of the new, ascending; no two of them touch. After the deadline
/// they may be larger than they had to be.
pub(crate) fn changed<T: Hash + Eq + Ord>(
    old: &[T],
    new: &[T],
    deadline: Option<Instant>,
) -> Vec<(Range<usize>, Range<usize>)> {
    let operations = capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline);
    let runs = operations.iter().filter_map(|operation| match operation {
        DiffOp::Equal {
            old_index,
            new_index,
            len,
        } => Some((*old_index, *new_index, *len)),
        _ => None,
    });
    let mut found = Vec::new();
    let (mut old_end, mut new_end) = (0, 0);
    for (old_start, new_start, length) in runs.chain([(old.len(), new.len(), 0)]) {
        if old_end < old_start || new_end < new_start {
            found.push((old_end..old_start, new_end..new_start));
        }
        (old_end, new_end) = (old_start + length, new_start + length);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn items() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..3_u8, 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn between_the_changes_both_are_the_same(old in items(), new in items()) {
            let (mut old_end, mut new_end) = (0, 0);
            let mut is_first = true;
            for (of_old, of_new) in changed(&old, &new, None) {
                prop_assert!(is_first || of_old.start > old_end);
                prop_assert!(!of_old.is_empty() || !of_new.is_empty());
                prop_assert_eq!(&old[old_end..of_old.start], &new[new_end..of_new.start]);
                (old_end, new_end) = (of_old.end, of_new.end);
                is_first = false;
            }
            prop_assert_eq!(&old[old_end..], &new[new_end..]);
        }
    }
}
