//! A line diff of old and new text in bounded time.

use std::ops::Range;

use crate::diff::{self, LineRun};
use crate::lines::Line;
use crate::step_counter::spend;

/// The maximum number of lines, old and new together, between the common beginning and the common
/// end that are compared one by one. More lines are treated as one changed run, because the
/// minimal diff takes time proportional to their square. The result is then coarser: less of the
/// text is recognized as unchanged.
const COMPARED: usize = 4_000;

pub(super) fn texts<'a>(lines: &[Line<'a>]) -> Vec<&'a [u8]> {
    lines.iter().map(|line| line.text).collect()
}

/// Compares all lines of both sides in order; runs that are not equal are never adjacent.
pub(super) fn runs(old: &[&[u8]], new: &[&[u8]]) -> Vec<LineRun> {
    let equal_pairs = |(left, right): &(&&[u8], &&[u8])| left == right;
    let head = old.iter().zip(new).take_while(equal_pairs).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let ends = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = ends.take_while(equal_pairs).count();
    spend!(head + tail + 1);
    let old_middle = &old_rest[..old_rest.len() - tail];
    let new_middle = &new_rest[..new_rest.len() - tail];
    let middle = if old_middle.len() + new_middle.len() > COMPARED {
        vec![LineRun {
            old: 0..old_middle.len(),
            new: 0..new_middle.len(),
            equal: false,
        }]
    } else {
        compared(old_middle, new_middle)
    };

    let mut found: Vec<LineRun> = Vec::new();
    let mut add = |run: LineRun| match found.last_mut() {
        _ if run.old.is_empty() && run.new.is_empty() => {}
        Some(last) if last.equal == run.equal => {
            last.old.end = run.old.end;
            last.new.end = run.new.end;
        }
        _ => found.push(run),
    };
    let equal = |old: Range<usize>, new: Range<usize>| LineRun {
        old,
        new,
        equal: true,
    };
    add(equal(0..head, 0..head));
    let shift = |range: Range<usize>| range.start + head..range.end + head;
    for run in middle {
        add(LineRun {
            old: shift(run.old),
            new: shift(run.new),
            equal: run.equal,
        });
    }
    add(equal(
        old.len() - tail..old.len(),
        new.len() - tail..new.len(),
    ));
    found
}

fn compared(old: &[&[u8]], new: &[&[u8]]) -> Vec<LineRun> {
    let runs = diff::runs(old, new, None);
    let changed = runs.iter().filter(|run| !run.equal);
    let changed: usize = changed.map(|run| run.old.len() + run.new.len()).sum();
    spend!((old.len() + new.len()) * changed);
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_both_sides() {
        let lines = |text: &'static str| text.split(' ').map(str::as_bytes).collect::<Vec<_>>();
        let found = runs(&lines("a b c d"), &lines("a x c y z d"));
        let run = |old, new, equal| LineRun { old, new, equal };
        let expected = [
            run(0..1, 0..1, true),
            run(1..2, 1..2, false),
            run(2..3, 2..3, true),
            run(3..3, 3..5, false),
            run(3..4, 5..6, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_huge_change_is_one_run() {
        let old: Vec<String> = (0..9_000).map(|number| format!("o{number}")).collect();
        let new: Vec<String> = (0..9_000).map(|number| format!("n{number}")).collect();
        let bytes =
            |lines: &'static [String]| lines.iter().map(String::as_bytes).collect::<Vec<_>>();
        let found = runs(&bytes(old.leak()), &bytes(new.leak()));
        assert_eq!(found.len(), 1);
    }
}
