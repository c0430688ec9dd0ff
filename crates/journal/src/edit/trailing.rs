//! Tier 3: like tier 2, but spaces and tabs at line ends are ignored.
//!
//! All whitespace of the file between the matched text and the next break is part of the match;
//! `projection` decides what happens to it. If `old_string` itself ends with whitespace, the match
//! must end at the end of a line, so that `ca  ` is not found in `car`.
//!
//! Whitespace at the border of a match may be unintended. If that matters (the match is deleted, or
//! begins with whitespace and a break), the edit fails.

use super::exact::NeedleOccurrences;
use super::fold::{FoldedText, trailing_blanks};
use super::{EditError, EditSearch, MatchTier, TierMatch, places};
use crate::step_counter::spend;

pub(super) fn find(search: &EditSearch<'_, '_>) -> Result<Option<TierMatch>, EditError> {
    let signs = search.typography();
    let lines = FoldedText::trailing_blanks(&signs.text);
    let old_breaks = FoldedText::breaks(search.change.old.as_bytes(), search.file.style);
    let old_signs = FoldedText::typography(&old_breaks.text);
    let old_lines = FoldedText::trailing_blanks(&old_signs.text);
    let last_blanks = trailing_blanks(&old_lines.text);
    if lines.is_unchanged() && old_lines.is_unchanged() && last_blanks == 0 {
        return Ok(None); // tier 2 has already searched these texts
    }
    let needle = &old_lines.text[..old_lines.text.len() - last_blanks];
    let begins_with_break = needle.first() == Some(&b'\n');
    let first_blanks = blanks(&old_signs.text);

    let mut ranges = Vec::new();
    let mut doubt = None;
    for place in NeedleOccurrences::new(&lines.text, needle) {
        let start = lines.original(place);
        let mut end = lines.original(place + needle.len());
        let behind = match needle.last() {
            Some(b'\n') => 0,
            _ => blanks(&signs.text[end..]),
        };
        if matches!(signs.text.get(end + behind), None | Some(b'\n')) {
            end += behind;
        } else if last_blanks > 0 {
            continue;
        }
        let range = search.original(start)..search.original(end);
        if search.file.splits_character(&range) {
            continue;
        }
        let deleted = search.change.new.is_empty();
        if deleted && doubt.is_none() && last_blanks != behind {
            doubt = Some((search.original(end), behind, last_blanks));
        }
        if begins_with_break && doubt.is_none() {
            // Only whitespace before the break: is this an empty line, or the end of any line?
            let at_line_start =
                start == search.file.mark_length() || signs.text[start - 1] == b'\n';
            let there = blanks(&signs.text[start..]);
            if (first_blanks > 0 && !at_line_start) || (deleted && there != first_blanks) {
                doubt = Some((range.start, there, first_blanks));
            }
        }
        ranges.push(range);
    }
    match doubt {
        Some((position, there, typed)) if ranges.len() == 1 || search.change.replace_all => {
            Err(EditError::BlanksInDoubt {
                line: places::line_of(search.file, position),
                file: " ".repeat(there),
                old: " ".repeat(typed),
            })
        }
        _ => Ok(search.matched(MatchTier::TrailingBlanks, ranges)),
    }
}

/// Returns the number of spaces and tabs at the start.
fn blanks(text: &[u8]) -> usize {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let blanks = text.iter().take_while(is_blank).count();
    spend!(blanks + 1);
    blanks
}
