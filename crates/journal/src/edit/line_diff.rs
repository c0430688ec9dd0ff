//! Which typed lines stay and which change, in bounded time.

use std::ops::Range;

use crate::changed::changed;
use crate::effort::spend;
use crate::lines::Line;

/// Changes of more lines, old and new together, count as one block: the search for
/// the smallest difference takes their square. It only makes the comparison coarser,
/// less of the file's own text is recognised as unchanged.
const COMPARED: usize = 4_000;

/// These old lines became those new ones; unchanged if `equal`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
    pub(super) equal: bool,
}

pub(super) fn texts<'a>(lines: &[Line<'a>]) -> Vec<&'a [u8]> {
    lines.iter().map(|line| line.text).collect()
}

/// All lines of both sides in order; blocks that are not equal never touch.
pub(super) fn blocks(old: &[&[u8]], new: &[&[u8]]) -> Vec<Block> {
    let equal_pairs = |(left, right): &(&&[u8], &&[u8])| left == right;
    let head = old.iter().zip(new).take_while(equal_pairs).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let ends = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = ends.take_while(equal_pairs).count();
    spend(head + tail + 1);
    let old_middle = &old_rest[..old_rest.len() - tail];
    let new_middle = &new_rest[..new_rest.len() - tail];

    let changes = if old_middle.len() + new_middle.len() > COMPARED {
        vec![(0..old_middle.len(), 0..new_middle.len())]
    } else {
        let changes = changed(old_middle, new_middle, None);
        // What the search for the smallest difference is multiplied by.
        let edited: usize = changes.iter().map(|(old, new)| old.len() + new.len()).sum();
        spend((old_middle.len() + new_middle.len()) * edited);
        changes
    };
    let shift = |range: Range<usize>| range.start + head..range.end + head;
    let mut found: Vec<Block> = Vec::new();
    let (mut old_end, mut new_end) = (0, 0);
    let mut add = |old: Range<usize>, new: Range<usize>, equal: bool| {
        if !old.is_empty() || !new.is_empty() {
            found.push(Block { old, new, equal });
        }
    };
    for (of_old, of_new) in changes {
        let (of_old, of_new) = (shift(of_old), shift(of_new));
        add(old_end..of_old.start, new_end..of_new.start, true);
        (old_end, new_end) = (of_old.end, of_new.end);
        add(of_old, of_new, false);
    }
    add(old_end..old.len(), new_end..new.len(), true);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_both_sides() {
        let lines = |text: &'static str| text.split(' ').map(str::as_bytes).collect::<Vec<_>>();
        let found = blocks(&lines("a b c d"), &lines("a x c y z d"));
        let block = |old, new, equal| Block { old, new, equal };
        let expected = [
            block(0..1, 0..1, true),
            block(1..2, 1..2, false),
            block(2..3, 2..3, true),
            block(3..3, 3..5, false),
            block(3..4, 5..6, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_huge_change_is_one_block() {
        let old: Vec<String> = (0..9_000).map(|number| format!("o{number}")).collect();
        let new: Vec<String> = (0..9_000).map(|number| format!("n{number}")).collect();
        let bytes =
            |lines: &'static [String]| lines.iter().map(String::as_bytes).collect::<Vec<_>>();
        let found = blocks(&bytes(old.leak()), &bytes(new.leak()));
        assert_eq!(found.len(), 1);
    }
}
