//! Why an undo is refused, shown: what the file was, what the call made of it,
//! and what it is now; and what a merge would give, where one is clear.

use std::fmt::Write;
use std::path::PathBuf;

use crate::patch::{Patch, differences};
use crate::text;

/// How much of each diff is shown.
const DIFF_CHARS: usize = 3_000;

/// A file that is not what the undo would take back. Each state is `None` if there was no file,
/// and `Some(None)` if its content is not kept.
pub(super) struct Conflict {
    pub(super) unit: String,
    pub(super) path: PathBuf,
    pub(super) was: Option<Option<Vec<u8>>>,
    pub(super) made: Option<Option<Vec<u8>>>,
    pub(super) now: Option<Vec<u8>>,
}

impl Conflict {
    /// All of them, as one refusal.
    pub(super) fn describe(all: &[Self]) -> String {
        let mut text = String::new();
        for conflict in all {
            conflict.write(&mut text);
        }
        text.push_str(
            "Nothing was undone. Change the file by hand (Read it, then Edit), or bring it back to \
             what the call made and undo then.",
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
            let shown = patch_of(now, &merged).render(DIFF_CHARS);
            let _ = writeln!(
                text,
                "The two do not touch. Taking back only the call's own lines would be this edit:\n{shown}"
            );
        }
    }
}

/// The difference for readers; of what is no text only the sizes.
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

/// `theirs` with the change from `base` to `ours` made in it, if the two are apart.
fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    if [base, ours, theirs]
        .iter()
        .any(|side| !side.contains(&b'\n'))
    {
        return None;
    }
    let (base_lines, our_lines, their_lines) = (lines(base), lines(ours), lines(theirs));
    let (mine, other) = (differences(base, ours), differences(base, theirs));
    let mut all: Vec<_> = mine
        .iter()
        .map(|change| (change, &our_lines))
        .chain(other.iter().map(|change| (change, &their_lines)))
        .collect();
    all.sort_by_key(|(change, _)| (change.old.start, change.old.end));
    let mut merged = Vec::new();
    let mut done = 0;
    for (at, (change, source)) in all.iter().enumerate() {
        // Touching changes have no certain order.
        if at > 0 && change.old.start <= all[at - 1].0.old.end {
            return None;
        }
        merged.extend(base_lines.get(done..change.old.start)?.concat());
        merged.extend(source.get(change.new.clone())?.concat());
        done = change.old.end;
    }
    merged.extend(base_lines.get(done..)?.concat());
    Some(merged)
}

fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|&byte| byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_do_not_touch_are_merged() {
        let cases: [(&str, &str, &str, Option<&str>); 5] = [
            // (base, ours, theirs, merged)
            (
                "a\nb\nc\nd\n",
                "A\nb\nc\nd\n",
                "a\nb\nc\nD\n",
                Some("A\nb\nc\nD\n"),
            ),
            (
                "a\nb\nc\nd\n",
                "b\nc\nd\n",
                "a\nb\nc\nd\ne\n",
                Some("b\nc\nd\ne\n"),
            ),
            ("a\nb\n", "A\nb\n", "X\nb\n", None),
            ("a\nb\n", "A\nb\n", "a\nB\n", None),
            ("a", "b", "a\n", None),
        ];
        for (base, ours, theirs, merged) in cases {
            let result = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
            assert_eq!(
                result.as_deref(),
                merged.map(str::as_bytes),
                "{base:?} {theirs:?}"
            );
        }
    }
}
