//! Tier 5: line numbers that the model copied from the output of Read.
//!
//! Every line of `old_string` begins with a number and a tab (or `→`), the numbers are consecutive,
//! and the file has the text at exactly these lines. So the numbers are not part of the text, and
//! only one match is possible. `new_string` has numbers starting with the same one, or none at all.

use memchr::memchr_iter;

use super::fold::FoldedText;
use super::{EditSearch, MatchTier, TierMatch};

pub(super) fn find(search: &EditSearch<'_, '_>) -> Option<TierMatch> {
    let file = search.file;
    let (first, old) = without_numbers(search.change.old)?;
    let new = match without_numbers(search.change.new) {
        Some((start, new)) if start == first => new,
        None if !lines(search.change.new).any(|line| numbered(line).is_some()) => {
            search.change.new.to_owned()
        }
        _ => return None,
    };
    let text = &search.breaks.text;
    let start = match usize::try_from(first).ok()?.checked_sub(2) {
        None => file.mark_length(),
        Some(breaks) => memchr_iter(b'\n', text).nth(breaks)? + 1,
    };
    let needle = FoldedText::breaks(old.as_bytes(), file.style);
    if needle.text.is_empty() || !text[start..].starts_with(&needle.text) {
        return None;
    }
    let original = |offset| search.breaks.original(offset);
    let range = original(start)..original(start + needle.text.len());
    drop(needle);
    Some(TierMatch {
        tier: MatchTier::LineNumbers,
        ranges: vec![range],
        old,
        new,
    })
}

/// Returns the first number and the text without numbers, if all lines are numbered consecutively.
fn without_numbers(text: &str) -> Option<(u64, String)> {
    let mut first = None;
    let mut stripped = String::with_capacity(text.len());
    for (index, line) in (0..).zip(lines(text)) {
        let (number, rest) = numbered(line)?;
        let start = *first.get_or_insert(number);
        if number.checked_sub(index) != Some(start) {
            return None;
        }
        stripped.push_str(rest);
    }
    // Line numbers start at 1.
    first
        .filter(|&first| first > 0)
        .map(|first| (first, stripped))
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}

/// Splits `··12→text` into the number and the text.
fn numbered(line: &str) -> Option<(u64, &str)> {
    let line = line.trim_start_matches([' ', '\t']);
    let digits = line.len()
        - line
            .trim_start_matches(|character: char| character.is_ascii_digit())
            .len();
    let rest = line[digits..].strip_prefix(['\t', '→'])?;
    Some((line[..digits].parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_must_be_on_every_line_and_in_order() {
        let cases = [
            ("     2\tb", Some((2, "b"))),
            ("9→a\n10→\n11→ c\n", Some((9, "a\n\n c\n"))),
            ("1\ta\r\n2\tb", Some((1, "a\r\nb"))),
            ("2\ta\n4\tb", None),
            ("2\ta\nb", None),
            ("2 a", None),
            ("\ta", None),
            ("0\ta", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let found = without_numbers(text);
            let found = found.as_ref().map(|(first, text)| (*first, text.as_str()));
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
