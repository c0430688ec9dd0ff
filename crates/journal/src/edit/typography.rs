//! Tier 2: equal apart from the kind of quotes, dashes and spaces.
//!
//! Each of these characters is treated as its ASCII form, one for one, so every match in the folded
//! texts corresponds to a range in the real ones.

use super::exact::NeedleOccurrences;
use super::fold::FoldedText;
use super::{EditSearch, MatchTier, TierMatch};

pub(super) fn find(search: &EditSearch<'_, '_>) -> Option<TierMatch> {
    let folded = search.typography();
    let breaks = FoldedText::breaks(search.change.old.as_bytes(), search.file.style);
    let needle = FoldedText::typography(&breaks.text);
    if folded.is_unchanged() && needle.is_unchanged() {
        return None; // tier 1 has already searched these texts
    }
    let ranges = NeedleOccurrences::new(&folded.text, &needle.text)
        .map(|start| search.original(start)..search.original(start + needle.text.len()))
        .filter(|range| !search.file.splits_character(range))
        .collect();
    search.matched(MatchTier::Typography, ranges)
}
