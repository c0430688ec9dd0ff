//! Tier 1: all exact occurrences, including overlapping ones, in linear time.

use std::ops::Range;

use memchr::memmem;

use super::fold::FoldedText;
use super::{EditFile, EditSearch, MatchTier, TierMatch};
use crate::step_counter::spend;

/// Ranges of the file that equal the old text, ascending.
pub(super) struct ExactCandidates {
    pub(super) ranges: Vec<Range<usize>>,
    /// The offset of the first match that was skipped because it may cut a character.
    pub(super) first_inside_character: Option<usize>,
}

pub(super) fn find(search: &EditSearch<'_, '_>) -> Option<TierMatch> {
    let found = if search.conversion {
        literal_candidates(search.file, search.change.old)
    } else {
        candidates(search.file, search.breaks, search.change.old)
    };
    search.inside_character.set(found.first_inside_character);
    search.matched(MatchTier::Exact, found.ranges)
}

/// Finds matches with CRLF and LF treated as equal; `folded` is the file with its breaks folded.
pub(super) fn candidates(
    file: &EditFile<'_>,
    folded: &FoldedText<'_>,
    old: &str,
) -> ExactCandidates {
    let needle = FoldedText::breaks(old.as_bytes(), file.style);
    let occurrences = NeedleOccurrences::new(&folded.text, &needle.text);
    let ranges =
        occurrences.map(|start| folded.original(start)..folded.original(start + needle.text.len()));
    whole_characters(file, ranges)
}

/// Finds matches with breaks compared literally; a match does not begin or end inside a CRLF.
fn literal_candidates(file: &EditFile<'_>, old: &str) -> ExactCandidates {
    let splits = |position: usize| {
        position > 0
            && file.text()[position - 1] == b'\r'
            && file.text().get(position) == Some(&b'\n')
    };
    let ranges = NeedleOccurrences::new(file.text(), old.as_bytes())
        .map(|start| start..start + old.len())
        .filter(|range| !splits(range.start) && !splits(range.end));
    whole_characters(file, ranges)
}

fn whole_characters(
    file: &EditFile<'_>,
    ranges: impl Iterator<Item = Range<usize>>,
) -> ExactCandidates {
    let mut first_inside_character = None;
    let ranges = ranges
        .filter(|range| {
            let inside = file.splits_character(range);
            if inside {
                first_inside_character.get_or_insert(range.start);
            }
            !inside
        })
        .collect();
    ExactCandidates {
        ranges,
        first_inside_character,
    }
}

/// All offsets of `needle` in `text`, including overlapping ones.
///
/// After a match the next candidate is the needle's smallest period further on, which costs only as
/// many comparisons as the period is long. Only if that fails a full search is needed, and then the
/// next match is at least half a needle away. So searching `aaaa` in a long run of `a` is linear.
pub(super) struct NeedleOccurrences<'t, 'n> {
    text: &'t [u8],
    needle: &'n [u8],
    finder: memmem::Finder<'n>,
    /// Computed at the first match; most searches do not need it.
    period: Option<usize>,
    last: Option<usize>,
}

impl<'t, 'n> NeedleOccurrences<'t, 'n> {
    /// Starts a search; an empty needle occurs nowhere.
    pub(super) fn new(text: &'t [u8], needle: &'n [u8]) -> Self {
        Self {
            text: if needle.is_empty() { &[] } else { text },
            needle,
            finder: memmem::Finder::new(needle),
            period: None,
            last: None,
        }
    }

    /// Finds the next match in time linear in its distance and the needle's length, regardless of
    /// their contents.
    fn search(&self, from: usize) -> Option<usize> {
        let rest = self.text.get(from..)?;
        let found = self.finder.find(rest);
        spend!(found.map_or(rest.len(), |distance| distance + self.needle.len()));
        found.map(|distance| from + distance)
    }
}

impl Iterator for NeedleOccurrences<'_, '_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let Some(last) = self.last else {
            if self.text.is_empty() {
                return None;
            }
            self.last = self.search(0);
            return self.last;
        };
        let length = self.needle.len();
        let period = *self
            .period
            .get_or_insert_with(|| smallest_period(self.needle));
        spend!(period);
        let after = self.text.get(last + length..last + length + period);
        self.last = if period < length && after == Some(&self.needle[length - period..]) {
            Some(last + period)
        } else {
            self.search(last + period)
        };
        if self.last.is_none() {
            self.text = &[];
        }
        self.last
    }
}

/// Returns the smallest shift at which the needle matches itself.
fn smallest_period(needle: &[u8]) -> usize {
    let mut border = vec![0; needle.len()];
    let mut matched = 0;
    for position in 1..needle.len() {
        spend!(1);
        while matched > 0 && needle[position] != needle[matched] {
            spend!(1);
            matched = border[matched - 1];
        }
        if needle[position] == needle[matched] {
            matched += 1;
        }
        border[position] = matched;
    }
    needle.len() - matched
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn overlapping_occurrences_are_all_found() {
        let cases: [(&str, &str, &[usize]); 6] = [
            ("ooo", "oo", &[0, 1]),
            ("abab ababab", "abab", &[0, 5, 7]),
            ("aabaabaa", "aabaa", &[0, 3]),
            ("xyz", "q", &[]),
            ("aaaa", "aaaa", &[0]),
            ("abaXaba", "aba", &[0, 4]),
        ];
        for (text, needle, expected) in cases {
            let found: Vec<_> =
                NeedleOccurrences::new(text.as_bytes(), needle.as_bytes()).collect();
            assert_eq!(found, expected, "{needle} in {text}");
        }
    }

    #[test]
    fn a_long_needle_in_a_sea_of_its_own_kind_stays_linear() {
        let text = vec![b'a'; 2 << 20];
        let needle = vec![b'a'; 1 << 20];
        assert_eq!(
            NeedleOccurrences::new(&text, &needle).count(),
            (1 << 20) + 1
        );
    }

    proptest! {
        #[test]
        fn occurrences_agree_with_the_naive_search(text in "[ab]{0,60}", needle in "[ab]{1,9}") {
            let found: Vec<_> = NeedleOccurrences::new(text.as_bytes(), needle.as_bytes()).collect();
            let naive: Vec<_> =
                (0..text.len()).filter(|&at| text[at..].starts_with(&needle)).collect();
            prop_assert_eq!(found, naive);
        }
    }
}
