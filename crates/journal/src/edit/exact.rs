//! Tier 1: all exact occurrences, overlapping ones included, in linear time.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use super::File;
use crate::lines::BreakStyle;
use crate::text::Encoding;

/// Ranges of the file that equal the searched text, ascending.
pub(super) struct Candidates {
    pub(super) ranges: Vec<Range<usize>>,
    /// Where the first match lies that was passed over as half a character.
    pub(super) first_inside_character: Option<usize>,
}

/// `literally`: breaks are compared as they are, else CRLF equals LF.
pub(super) fn candidates(file: &File<'_>, old: &str, literally: bool) -> Candidates {
    let (view, needle) = if literally {
        (
            View {
                text: Cow::Borrowed(file.bytes),
                dropped: Vec::new(),
            },
            Cow::Borrowed(old.as_bytes()),
        )
    } else {
        (
            View::folded(file.bytes, file.style),
            View::folded(old.as_bytes(), file.style).text,
        )
    };
    let mut found = Candidates {
        ranges: Vec::new(),
        first_inside_character: None,
    };
    for start in Occurrences::new(&view.text, &needle) {
        let range = view.original(start)..view.original(start + needle.len());
        if literally
            && (splits_break(file.bytes, range.start) || splits_break(file.bytes, range.end))
        {
            continue;
        }
        if file.encoding == Encoding::Legacy && may_be_second_half(file.bytes, range.start) {
            found.first_inside_character.get_or_insert(range.start);
            continue;
        }
        found.ranges.push(range);
    }
    found
}

fn splits_break(bytes: &[u8], position: usize) -> bool {
    position > 0 && bytes[position - 1] == b'\r' && bytes.get(position) == Some(&b'\n')
}

/// In double-byte code pages these bytes also occur as the second of a pair.
fn may_be_second_half(bytes: &[u8], position: usize) -> bool {
    position > 0 && bytes[position - 1] >= 0x80 && (0x40..=0x7e).contains(&bytes[position])
}

/// Bytes with every break as LF, and the way back to the original offsets.
pub(super) struct View<'a> {
    pub(super) text: Cow<'a, [u8]>,
    /// Offsets in `text` of the LFs whose CR was dropped.
    dropped: Vec<usize>,
}

impl<'a> View<'a> {
    pub(super) fn folded(bytes: &'a [u8], style: BreakStyle) -> Self {
        let unchanged = Self {
            text: Cow::Borrowed(bytes),
            dropped: Vec::new(),
        };
        if memchr::memchr(b'\r', bytes).is_none() {
            return unchanged;
        }
        let mut text = Vec::with_capacity(bytes.len());
        let mut dropped = Vec::new();
        let mut copied = 0;
        for position in memchr::memchr_iter(b'\r', bytes) {
            let before_lf = bytes.get(position + 1) == Some(&b'\n');
            if !before_lf && style != BreakStyle::Cr {
                continue; // a lone CR is data
            }
            text.extend_from_slice(&bytes[copied..position]);
            copied = position + 1;
            if before_lf {
                dropped.push(text.len());
            } else {
                text.push(b'\n');
            }
        }
        text.extend_from_slice(&bytes[copied..]);
        Self {
            text: Cow::Owned(text),
            dropped,
        }
    }

    /// A boundary before an LF maps to before its CR, so no CRLF is ever split.
    pub(super) fn original(&self, offset: usize) -> usize {
        offset + self.dropped.partition_point(|&dropped| dropped < offset)
    }
}

/// All starts of `needle` in `text`, overlapping ones included.
///
/// After a match the next one is tried at the needle's smallest period, which
/// costs only that many comparisons; a full search is needed again only when
/// that fails, and then the next match is at least half a needle away. So
/// `aaaa` in a sea of `a` stays linear.
pub(super) struct Occurrences<'t, 'n> {
    text: &'t [u8],
    needle: &'n [u8],
    finder: memmem::Finder<'n>,
    /// Computed at the first match; most searches need none.
    period: Option<usize>,
    last: Option<usize>,
}

impl<'t, 'n> Occurrences<'t, 'n> {
    /// `needle` must not be empty.
    pub(super) fn new(text: &'t [u8], needle: &'n [u8]) -> Self {
        debug_assert!(!needle.is_empty());
        Self {
            text,
            needle,
            finder: memmem::Finder::new(needle),
            period: None,
            last: None,
        }
    }
}

impl Iterator for Occurrences<'_, '_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let Some(last) = self.last else {
            self.last = self.finder.find(self.text);
            return self.last;
        };
        let length = self.needle.len();
        let period = *self
            .period
            .get_or_insert_with(|| smallest_period(self.needle));
        let after = self.text.get(last + length..last + length + period);
        self.last = if period < length && after == Some(&self.needle[length - period..]) {
            Some(last + period)
        } else {
            let from = last + period;
            self.text
                .get(from..)
                .and_then(|rest| self.finder.find(rest))
                .map(|position| from + position)
        };
        if self.last.is_none() {
            self.text = &[];
        }
        self.last
    }
}

/// The smallest shift at which the needle agrees with itself.
fn smallest_period(needle: &[u8]) -> usize {
    let mut border = vec![0; needle.len()];
    let mut matched = 0;
    for position in 1..needle.len() {
        while matched > 0 && needle[position] != needle[matched] {
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
            let found: Vec<_> = Occurrences::new(text.as_bytes(), needle.as_bytes()).collect();
            assert_eq!(found, expected, "{needle} in {text}");
        }
    }

    #[test]
    fn a_long_needle_in_a_sea_of_its_own_kind_stays_linear() {
        let text = vec![b'a'; 2 << 20];
        let needle = vec![b'a'; 1 << 20];
        assert_eq!(Occurrences::new(&text, &needle).count(), (1 << 20) + 1);
    }

    proptest! {
        #[test]
        fn occurrences_agree_with_the_naive_search(text in "[ab]{0,60}", needle in "[ab]{1,9}") {
            let found: Vec<_> = Occurrences::new(text.as_bytes(), needle.as_bytes()).collect();
            let naive: Vec<_> =
                (0..text.len()).filter(|&at| text[at..].starts_with(&needle)).collect();
            prop_assert_eq!(found, naive);
        }
    }
}
