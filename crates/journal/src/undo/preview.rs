//! The text of an undo conflict: the content before the call, after the call, and now; and the
//! result of a merge, if there is a clear one.

use std::fmt::Write;
use std::ops::Range;
use std::path::PathBuf;

use crate::patch::{LineDifference, Patch, differences};
use crate::text;

/// The maximum length of each diff, in characters.
const DIFF_CHARS: usize = 3_000;

/// A file that does not have the content which the undo would revert. Each state is `None` if the
/// file did not exist, and `Some(None)` if its content is not stored.
pub(super) struct UndoConflict {
    pub(super) unit: String,
    pub(super) path: PathBuf,
    pub(super) was: Option<Option<Vec<u8>>>,
    pub(super) made: Option<Option<Vec<u8>>>,
    pub(super) now: Option<Vec<u8>>,
}

impl UndoConflict {
    /// Describes all conflicts in one error text.
    pub(super) fn describe(all: &[Self]) -> String {
        let mut text = String::new();
        for conflict in all {
            conflict.write(&mut text);
        }
        text.push_str(
            "Nothing was undone. Change the file by hand (Read it, then Edit), or restore \
             what the call wrote and then undo.",
        );
        text
    }

    fn write(&self, text: &mut String) {
        let (path, unit) = (self.path.display(), &self.unit);
        // Writing to a string cannot fail.
        let _ = match (&self.made, &self.now) {
            (_, None) => writeln!(text, "{path} no longer exists; {unit} had left it there."),
            (None, Some(_)) => writeln!(text, "{path} exists again, but {unit} had removed it."),
            _ => writeln!(
                text,
                "{path} was changed after {unit}; undoing that would lose the later change."
            ),
        };
        let diff = |old: &Option<Option<Vec<u8>>>, new: &Option<Option<Vec<u8>>>| {
            let side = |state: &Option<Option<Vec<u8>>>| match state {
                None => Some(Vec::new()),
                Some(content) => content.clone(),
            };
            Some(patch_of(&side(old)?, &side(new)?).render(DIFF_CHARS))
        };
        let now = self.now.clone().map(Some);
        let sections = [
            ("What the call had changed:", diff(&self.was, &self.made)),
            ("What was changed since:", diff(&self.made, &now)),
        ];
        for (title, shown) in sections {
            if let Some(shown) = shown.filter(|shown| !shown.is_empty()) {
                let _ = writeln!(text, "{title}\n{shown}");
            }
        }
        if self.made == Some(None)
            && let Some(shown) = diff(&self.was, &now).filter(|shown| !shown.is_empty())
        {
            let _ = writeln!(text, "From what it was to what it is now:\n{shown}");
        }
        if let (Some(Some(was)), Some(Some(made)), Some(now)) = (&self.was, &self.made, &self.now)
            && let Some(merged) = merge(made, was, now)
        {
            let shown = patch_of(now, &merged.text).render(DIFF_CHARS);
            let title = match merged.conflicts {
                0 => {
                    "The two changes do not overlap. This edit would revert only the lines of the call:"
                }
                _ => {
                    "The two changes overlap. This is the merge; between the marks, choose the present \
                     version or the one before the call:"
                }
            };
            let _ = writeln!(text, "{title}\n{shown}");
        }
    }
}

/// Returns the diff for readers; of binary contents only the sizes.
pub(super) fn patch_of(old: &[u8], new: &[u8]) -> Patch {
    if text::is_binary(old) || text::is_binary(new) {
        let line = format!("Binary content: {} bytes, then {}.", old.len(), new.len());
        return Patch {
            hunks: vec![crate::patch::PatchHunk {
                old_start: 1,
                old_lines: 1,
                new_start: 1,
                new_lines: 1,
                lines: vec![format!(" {line}")],
            }],
            added: 0,
            removed: 0,
        };
    }
    Patch::between(old, new)
}

/// A merge with the number of its conflicts.
#[derive(Debug, PartialEq, Eq)]
struct MergedText {
    text: Vec<u8>,
    conflicts: usize,
}

/// Applies the change from `base` to `ours` to `theirs`. If the changes touch, both versions are
/// shown between marks. `None` for text that is not UTF-8.
fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<MergedText> {
    if [base, ours, theirs]
        .iter()
        .any(|side| std::str::from_utf8(side).is_err())
    {
        return None;
    }
    let base_lines = lines(base);
    let ours = MergeSide::new(base, ours);
    let theirs = MergeSide::new(base, theirs);
    let mut all: Vec<&LineDifference> = ours.changes.iter().chain(&theirs.changes).collect();
    all.sort_by_key(|change| (change.old.start, change.old.end));
    // The order of changes that touch is uncertain, so they are merged into one place.
    let mut places: Vec<Range<usize>> = Vec::new();
    for change in all {
        match places.last_mut() {
            Some(last) if change.old.start <= last.end => last.end = last.end.max(change.old.end),
            _ => places.push(change.old.clone()),
        }
    }
    let (mut text, mut conflicts, mut done) = (Vec::new(), 0, 0);
    for place in places {
        text.extend(base_lines.get(done..place.start)?.concat());
        let before = base_lines.get(place.clone())?.concat();
        let mine = ours.within(&place, &base_lines)?;
        let other = theirs.within(&place, &base_lines)?;
        if other == before || mine == other {
            text.extend(mine);
        } else if mine == before {
            text.extend(other);
        } else {
            conflicts += 1;
            for (mark, side) in [("<<<<<<< now", &other), ("======= before the call", &mine)] {
                text.extend_from_slice(format!("{mark}\n").as_bytes());
                text.extend_from_slice(side);
                if !side.is_empty() && !side.ends_with(b"\n") {
                    text.push(b'\n');
                }
            }
            text.extend_from_slice(b">>>>>>>\n");
        }
        done = place.end;
    }
    text.extend(base_lines.get(done..)?.concat());
    Some(MergedText { text, conflicts })
}

/// One side of a merge: its lines and its changes of the base.
struct MergeSide<'a> {
    lines: Vec<&'a [u8]>,
    changes: Vec<LineDifference>,
}

impl<'a> MergeSide<'a> {
    fn new(base: &[u8], side: &'a [u8]) -> Self {
        Self {
            lines: lines(side),
            changes: differences(base, side),
        }
    }

    /// Returns the text of these base lines on this side.
    fn within(&self, place: &Range<usize>, base: &[&[u8]]) -> Option<Vec<u8>> {
        let (mut text, mut done) = (Vec::new(), place.start);
        let inside = |change: &&LineDifference| {
            place.start <= change.old.start && change.old.end <= place.end
        };
        for change in self.changes.iter().filter(inside) {
            text.extend(base.get(done..change.old.start)?.concat());
            text.extend(self.lines.get(change.new.clone())?.concat());
            done = change.old.end;
        }
        text.extend(base.get(done..place.end)?.concat());
        Some(text)
    }
}

fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|&byte| byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_merged_and_touching_ones_are_shown_both() {
        let cases: [(&str, &str, &str, &str, usize); 6] = [
            // (base, ours, theirs, merged, conflicts)
            (
                "a\nb\nc\nd\n",
                "A\nb\nc\nd\n",
                "a\nb\nc\nD\n",
                "A\nb\nc\nD\n",
                0,
            ),
            (
                "a\nb\nc\nd\n",
                "b\nc\nd\n",
                "a\nb\nc\nd\ne\n",
                "b\nc\nd\ne\n",
                0,
            ),
            ("a\nb\n", "A\nb\n", "A\nb\n", "A\nb\n", 0),
            (
                "a\nb\n",
                "A\nb\n",
                "X\nb\n",
                "<<<<<<< now\nX\n======= before the call\nA\n>>>>>>>\nb\n",
                1,
            ),
            (
                "a\nb\n",
                "A\nb\n",
                "a\nB\n",
                "<<<<<<< now\na\nB\n======= before the call\nA\nb\n>>>>>>>\n",
                1,
            ),
            (
                "a",
                "b",
                "a\n",
                "<<<<<<< now\na\n======= before the call\nb\n>>>>>>>\n",
                1,
            ),
        ];
        for (base, ours, theirs, merged, conflicts) in cases {
            let result = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()).unwrap();
            let text = String::from_utf8(result.text).unwrap();
            assert_eq!((text.as_str(), result.conflicts), (merged, conflicts));
        }
        assert_eq!(merge(b"\xff\n", b"a\n", b"b\n"), None);
    }
}
