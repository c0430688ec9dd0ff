//! The difference of two contents, as machine-readable hunks and as text.
//!
//! Lines are compared with their breaks, so a change of line breaks is a change; then the CR is
//! shown as `␍`. Encodings other than UTF-8 are decoded first, if they are certain.

use std::ops::Range;
use std::time::{Duration, Instant};

use memchr::memchr;

use crate::diff::runs;
use crate::text;

const CONTEXT: usize = 3;
/// The maximum number of differing lines of one side that are compared. Larger differences are
/// reported as one block: searching for the minimal form would take too long.
const COMPARED_LINES: usize = 50_000;
const DEADLINE: Duration = Duration::from_millis(300);
const NO_FINAL_BREAK: &str = "\\ No newline at end of file";

/// Adjacent changes with three lines of context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchHunk {
    /// The first line of the old content, 1-based. If the hunk has no old lines, the position where
    /// they would be.
    pub old_start: u64,
    /// The number of lines of the old content.
    pub old_lines: u64,
    /// Like `old_start`, but for the new content.
    pub new_start: u64,
    /// The number of lines of the new content.
    pub new_lines: u64,
    /// The lines, each starting with ' ', '+' or '-'; `\` marks a missing final line break.
    pub lines: Vec<String>,
}

/// The difference of two contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    /// The hunks, in ascending order.
    pub hunks: Vec<PatchHunk>,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

/// A range of old lines (0-based) that became a range of new lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineDifference {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

impl Patch {
    /// Computes the difference from `old` to `new`.
    pub fn between(old: &[u8], new: &[u8]) -> Self {
        let (old, new) = text::readable(old, new);
        let (old, new) = (real_lines(&old, &new), real_lines(&new, &old));
        let mut patch = Self::default();
        let differences = compare(&old, &new);
        let mut rest = differences.as_slice();
        while !rest.is_empty() {
            let near = |pair: &[LineDifference]| pair[1].old.start - pair[0].old.end <= 2 * CONTEXT;
            let count = 1 + rest.windows(2).take_while(|pair| near(pair)).count();
            let (group, further) = rest.split_at(count);
            patch.add_hunk(group, &old, &new);
            rest = further;
        }
        patch
    }

    /// Returns whether both contents are equal.
    pub fn is_empty(&self) -> bool {
        self.hunks.is_empty()
    }

    /// Formats a unified diff without file names, cut at a line boundary near `max_chars`.
    pub fn render(&self, max_chars: usize) -> String {
        let mut text = String::new();
        let mut left = max_chars;
        let headers = self.hunks.iter().map(PatchHunk::header);
        for (header, hunk) in headers.zip(&self.hunks) {
            for line in std::iter::once(&header).chain(&hunk.lines) {
                let length = line.chars().count() + 1;
                if length > left {
                    text.push_str(&format!(
                        "[diff cut: in all {} lines added, {} removed]",
                        self.added, self.removed
                    ));
                    return text;
                }
                left -= length;
                text.push_str(line);
                text.push('\n');
            }
        }
        text.pop();
        text
    }

    fn add_hunk(&mut self, group: &[LineDifference], old: &[&[u8]], new: &[&[u8]]) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            return;
        };
        let before = first.old.start.min(CONTEXT);
        let after = (old.len() - last.old.end).min(CONTEXT);
        let (old_start, new_start) = (first.old.start - before, first.new.start - before);
        let (old_end, new_end) = (last.old.end + after, last.new.end + after);
        let mut lines = Vec::new();
        let mut position = old_start;
        for difference in group {
            push_lines(&mut lines, ' ', &old[position..difference.old.start], false);
            let (removed, added) = (&old[difference.old.clone()], &new[difference.new.clone()]);
            let mark_breaks = breaks_differ(removed, added);
            push_lines(&mut lines, '-', removed, mark_breaks);
            push_lines(&mut lines, '+', added, mark_breaks);
            self.removed += removed.len() as u64;
            self.added += added.len() as u64;
            position = difference.old.end;
        }
        push_lines(&mut lines, ' ', &old[position..old_end], false);
        self.hunks.push(PatchHunk {
            old_start: old_start as u64 + 1,
            old_lines: (old_end - old_start) as u64,
            new_start: new_start as u64 + 1,
            new_lines: (new_end - new_start) as u64,
            lines,
        });
    }
}

impl PatchHunk {
    fn header(&self) -> String {
        // By convention the position of a side without lines is the line before it.
        let start = |start: u64, lines: u64| if lines == 0 { start - 1 } else { start };
        format!(
            "@@ -{},{} +{},{} @@",
            start(self.old_start, self.old_lines),
            self.old_lines,
            start(self.new_start, self.new_lines),
            self.new_lines
        )
    }
}

/// Returns all differences of two contents, ascending.
pub(crate) fn differences(old: &[u8], new: &[u8]) -> Vec<LineDifference> {
    let (old, new) = text::readable(old, new);
    compare(&real_lines(&old, &new), &real_lines(&new, &old))
}

/// Splits into lines with their breaks. CR ends a line only if neither side has an LF.
fn real_lines<'a>(content: &'a [u8], other: &[u8]) -> Vec<&'a [u8]> {
    let has_lf = |bytes: &[u8]| memchr(b'\n', bytes).is_some();
    let end = if has_lf(content) || has_lf(other) {
        b'\n'
    } else {
        b'\r'
    };
    content.split_inclusive(|&byte| byte == end).collect()
}

fn compare(old: &[&[u8]], new: &[&[u8]]) -> Vec<LineDifference> {
    let prefix = old
        .iter()
        .zip(new)
        .take_while(|(left, right)| left == right)
        .count();
    let (old_rest, new_rest) = (&old[prefix..], &new[prefix..]);
    let suffix = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(|(left, right)| left == right)
        .count();
    let old_middle = &old_rest[..old_rest.len() - suffix];
    let new_middle = &new_rest[..new_rest.len() - suffix];
    if old_middle.is_empty() && new_middle.is_empty() {
        return Vec::new();
    }
    if old_middle.len().max(new_middle.len()) > COMPARED_LINES {
        return vec![LineDifference {
            old: prefix..prefix + old_middle.len(),
            new: prefix..prefix + new_middle.len(),
        }];
    }
    let deadline = Some(Instant::now() + DEADLINE);
    let shift = |range: Range<usize>| range.start + prefix..range.end + prefix;
    runs(old_middle, new_middle, deadline)
        .into_iter()
        .filter(|run| !run.equal)
        .map(|run| LineDifference {
            old: shift(run.old),
            new: shift(run.new),
        })
        .collect()
}

/// Returns whether removed and added lines have different kinds of breaks.
fn breaks_differ(removed: &[&[u8]], added: &[&[u8]]) -> bool {
    let kinds = |lines: &[&[u8]]| {
        let ends = |end: &[u8]| lines.iter().any(|line| line.ends_with(end));
        (
            ends(b"\r\n"),
            lines
                .iter()
                .any(|line| line.ends_with(b"\n") && !line.ends_with(b"\r\n")),
        )
    };
    !removed.is_empty() && !added.is_empty() && kinds(removed) != kinds(added)
}

fn push_lines(lines: &mut Vec<String>, sign: char, source: &[&[u8]], mark_breaks: bool) {
    for line in source {
        let (text, mark, ended) = match line {
            [text @ .., b'\r', b'\n'] => (text, if mark_breaks { "␍" } else { "" }, true),
            [text @ .., b'\n' | b'\r'] => (text, "", true),
            text => (*text, "", false),
        };
        lines.push(format!("{sign}{}{mark}", String::from_utf8_lossy(text)));
        if !ended {
            lines.push(NO_FINAL_BREAK.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_read_like_unified_diffs() {
        let cases = [
            // (what it shows, old, new, text)
            ("nothing", "a\n", "a\n", ""),
            (
                "one line",
                "a\nb\nc\n",
                "a\nB\nc\n",
                "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c",
            ),
            (
                "line end only",
                "a\r\nb\n",
                "a\nb\n",
                "@@ -1,2 +1,2 @@\n-a␍\n+a\n b",
            ),
            (
                "crlf kept",
                "a\r\nb\r\n",
                "a\r\nc\r\n",
                "@@ -1,2 +1,2 @@\n a\n-b\n+c",
            ),
            (
                "final newline",
                "a\nb",
                "a\nb\n",
                "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b",
            ),
            ("from nothing", "", "a\n", "@@ -0,0 +1,1 @@\n+a"),
            ("to nothing", "a\n", "", "@@ -1,1 +0,0 @@\n-a"),
            (
                "insertion",
                "a\nb\n",
                "a\nx\nb\n",
                "@@ -1,2 +1,3 @@\n a\n+x\n b",
            ),
        ];
        for (what, old, new, text) in cases {
            let patch = Patch::between(old.as_bytes(), new.as_bytes());
            assert_eq!(patch.render(4_000), text, "{what}");
        }
    }

    #[test]
    fn distant_changes_are_separate_hunks_and_near_ones_are_not() {
        let numbered = |changed: &[usize]| -> String {
            (1..=30)
                .map(|number| match changed.contains(&number) {
                    true => format!("changed {number}\n"),
                    false => format!("{number}\n"),
                })
                .collect()
        };
        let hunks = |changed: &[usize]| {
            let patch = Patch::between(numbered(&[]).as_bytes(), numbered(changed).as_bytes());
            (patch.added, patch.removed, patch.hunks.len())
        };
        assert_eq!(hunks(&[5, 12]), (2, 2, 1));
        assert_eq!(hunks(&[5, 13]), (2, 2, 2));
    }

    #[test]
    fn a_huge_difference_is_bounded_in_work_and_in_text() {
        let old: String = (0..60_000)
            .map(|number| format!("old {number}\n"))
            .collect();
        let new: String = (0..60_000)
            .map(|number| format!("new {number}\n"))
            .collect();
        let patch = Patch::between(old.as_bytes(), new.as_bytes());
        assert_eq!(
            (patch.added, patch.removed, patch.hunks.len()),
            (60_000, 60_000, 1)
        );
        let text = patch.render(500);
        assert!(text.len() < 700 && text.contains("[diff cut"), "{text}");
    }
}
