//! Finds the individual matches in a text that the caller has read.
//!
//! Grep reports which lines match; a replacement needs the positions inside them. Both use the same
//! regex in the same way: one line at a time without its line feed, or in multiline mode the whole
//! text.

use std::ops::Range;

use grep_matcher::{Captures, Match, Matcher};
use grep_regex::{RegexCaptures, RegexMatcher};

use super::{GrepQuery, matcher};
use crate::SearchError;

const NEVER_FAILS: &str = "a compiled regex cannot fail";

/// A pattern with the semantics of Grep, for texts in memory.
#[derive(Clone, Debug)]
pub struct TextMatcher {
    matcher: RegexMatcher,
    multiline: bool,
}

/// The groups of one match; the first is the match itself. A group that did not take part has no
/// range.
pub type MatchGroups = [Option<Range<usize>>];

impl TextMatcher {
    /// Builds the pattern; returns the same errors as Grep.
    pub fn new(pattern: &str, multiline: bool) -> Result<Self, SearchError> {
        let query = GrepQuery {
            multiline,
            ..GrepQuery::new(pattern, "/")
        };
        Ok(Self {
            matcher: matcher::build(&query)?,
            multiline,
        })
    }

    /// Calls `each` for every match in `text`. For the same matches as Grep, `text` must have no byte
    /// order mark.
    pub fn each(&self, text: &[u8], mut each: impl FnMut(&MatchGroups)) {
        let mut captures = self.matcher.new_captures().expect(NEVER_FAILS);
        if self.multiline {
            // The empty rest after the last line feed is not a line.
            let ends_open = text.last().is_some_and(|last| *last != b'\n');
            self.each_in(text, 0, &mut captures, &mut |groups| {
                if ends_open || groups[0] != Some(text.len()..text.len()) {
                    each(groups);
                }
            });
            return;
        }
        let mut start = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let content = line.strip_suffix(b"\n").unwrap_or(line);
            self.each_in(content, start, &mut captures, &mut each);
            start += line.len();
        }
    }

    fn each_in(
        &self,
        piece: &[u8],
        offset: usize,
        captures: &mut RegexCaptures,
        each: &mut impl FnMut(&MatchGroups),
    ) {
        let mut groups = Vec::new();
        let searched = self.matcher.captures_iter(piece, captures, |found| {
            groups.clear();
            groups.extend((0..found.len()).map(|group| {
                let range = found.get(group)?;
                Some(range.start() + offset..range.end() + offset)
            }));
            each(&groups);
            true
        });
        searched.expect(NEVER_FAILS);
    }

    /// Parses a replacement: `$1` and `${name}` refer to groups, `$$` is a dollar sign.
    pub fn template(&self, replacement: &str) -> Vec<TemplatePart> {
        // Each group is interpolated as its number after a byte that never occurs in UTF-8.
        let count = self.matcher.capture_count();
        let numbers: Vec<u8> = (0..count).flat_map(group_number).collect();
        let index = |name: &str| self.matcher.capture_index(name);
        let mut filled = Vec::new();
        NumberedGroups(count).interpolate(index, &numbers, replacement.as_bytes(), &mut filled);
        let mut parts = Vec::new();
        for (position, piece) in filled.split(|byte| *byte == GROUP).enumerate() {
            let text = match piece {
                [high, low, text @ ..] if position > 0 => {
                    let number = usize::from(*high) << 7 | usize::from(*low);
                    parts.push(TemplatePart::Group(number));
                    text
                }
                text => text,
            };
            if !text.is_empty() {
                let text = String::from_utf8_lossy(text).into_owned();
                parts.push(TemplatePart::Text(text));
            }
        }
        parts
    }
}

/// A part of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// This text.
    Text(String),
    /// The text of the group with this number; 0 is the whole match.
    Group(usize),
}

const GROUP: u8 = 0xff;

fn group_number(group: usize) -> [u8; 3] {
    [GROUP, (group >> 7 & 0x7f) as u8, (group & 0x7f) as u8]
}

struct NumberedGroups(usize);

impl Captures for NumberedGroups {
    fn len(&self) -> usize {
        self.0
    }

    fn get(&self, index: usize) -> Option<Match> {
        (index < self.0).then(|| Match::new(3 * index, 3 * index + 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, multiline: bool, text: &str) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let matcher = TextMatcher::new(pattern, multiline).unwrap();
        matcher.each(text.as_bytes(), |groups| ranges.extend(groups[0].clone()));
        ranges
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "lists of ranges")]
    fn matches_are_those_of_lines_or_of_the_text() {
        let cases: [(&str, bool, &str, &[Range<usize>]); 9] = [
            ("a", false, "a\nba\n", &[0..1, 3..4]),
            ("^", false, "a\nb\n", &[0..0, 2..2]),
            ("^", true, "a\nb\n", &[0..0, 2..2]),
            ("$", true, "a\nb", &[1..1, 3..3]),
            ("x*", false, "", &[]),
            ("x*", true, "", &[]),
            (r"a\sb", false, "a\nb a b", &[4..7]),
            (r"a\sb", true, "a\nb", &[0..3]),
            (r"\Ab", false, "a\nb", &[2..3]),
        ];
        for (pattern, multiline, text, expected) in cases {
            assert_eq!(
                found(pattern, multiline, text),
                expected,
                "{pattern:?} in {text:?}"
            );
        }
    }

    #[test]
    fn replacements_are_taken_apart() {
        let matcher = TextMatcher::new(r"(a)(?<b>b)?", false).unwrap();
        let text = |text: &str| TemplatePart::Text(text.to_owned());
        let group = TemplatePart::Group;
        let cases = [
            ("", vec![]),
            ("é$$x", vec![text("é$x")]),
            (
                "<$1${b}$0>",
                vec![text("<"), group(1), group(2), group(0), text(">")],
            ),
            ("$9-$none-$", vec![text("--$")]),
        ];
        for (replacement, parts) in cases {
            assert_eq!(matcher.template(replacement), parts, "{replacement}");
        }
    }
}
