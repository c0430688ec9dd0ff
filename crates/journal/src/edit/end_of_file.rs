//! Tier 4: `old_string` ends with a line break, and the file ends without one.
//!
//! The final break of `new_string` is then dropped like that of `old_string`, so that the file
//! still ends without a break.

use std::iter;

use super::fold::FoldedText;
use super::{EditSearch, MatchTier, TierMatch};
use crate::lines::BreakStyle;

pub(super) fn find(search: &EditSearch<'_, '_>) -> Option<TierMatch> {
    let (file, text) = (search.file, &search.breaks.text);
    let old = FoldedText::breaks(search.change.old.as_bytes(), file.style);
    let needle = old.text.strip_suffix(b"\n")?;
    if needle.is_empty() || text.ends_with(b"\n") || !text.ends_with(needle) {
        return None;
    }
    let start = search.breaks.original(text.len() - needle.len());
    let range = start..file.text().len();
    if file.splits_character(&range) {
        return None;
    }
    let without_break = |text| without_final_break(text, file.style).to_owned();
    Some(TierMatch {
        tier: MatchTier::EndOfFile,
        ranges: iter::once(range).collect(),
        old: without_break(search.change.old),
        new: without_break(search.change.new),
    })
}

fn without_final_break(text: &str, style: BreakStyle) -> &str {
    match text.strip_suffix('\n') {
        Some(text) => text.strip_suffix('\r').unwrap_or(text),
        None if style == BreakStyle::Cr => text.strip_suffix('\r').unwrap_or(text),
        None => text,
    }
}
