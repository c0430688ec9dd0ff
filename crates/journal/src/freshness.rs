//! Detection of changes since this session last saw a file.
//!
//! The content decides. The stamp only saves hashing, and only if its times were old enough when it
//! was taken that any later write must change them.

use std::sync::Arc;

use crate::edit::{self, EditPlan, EditRequest, LineRange, MatchTier};
use crate::ledger::LedgerRecord;
use crate::open::FileSnapshot;
use crate::patch::{self, LineDifference};
use crate::stamp::ContentHash;

/// The distance from an edit, in lines, within which a change by another process makes the edit
/// unsafe.
const NEAR: u64 = 3;

#[derive(Debug)]
pub(crate) enum Freshness {
    Unseen,
    Fresh {
        partial: bool,
    },
    /// With the content seen then, if it is still cached.
    Changed {
        seen: Option<Arc<Vec<u8>>>,
    },
}

pub(crate) fn evaluate(seen: Option<LedgerRecord>, now: &FileSnapshot) -> Freshness {
    let Some(LedgerRecord {
        read_record: sight,
        content,
    }) = seen
    else {
        return Freshness::Unseen;
    };
    let unchanged = match sight.hash {
        _ if sight.settled && sight.stamp == now.stamp => true,
        Some(hash) => {
            sight.stamp.size == now.bytes.len() as u64 && ContentHash::compute(&now.bytes) == hash
        }
        None => sight.stamp.looks_like(&now.stamp),
    };
    if unchanged {
        Freshness::Fresh {
            partial: sight.partial,
        }
    } else {
        Freshness::Changed { seen: content }
    }
}

/// Returns whether a change planned on the present content is safe although the session saw another
/// content. The change is safe if its match is exact, the seen content has equally many exact
/// matches, and nothing changed near any of them.
pub(crate) fn merges_cleanly(
    seen: &[u8],
    now: &[u8],
    change: &EditRequest<'_>,
    plan: &EditPlan,
) -> bool {
    let Ok(earlier) = edit::find(seen, change) else {
        return false;
    };
    let differences = patch::differences(seen, now);
    earlier.tier == MatchTier::Exact
        && plan.tier == MatchTier::Exact
        && earlier.places.len() == plan.places.len()
        && !plan.places.iter().any(|place| {
            differences
                .iter()
                .any(|difference| is_near(difference, place.before))
        })
}

fn is_near(difference: &LineDifference, lines: LineRange) -> bool {
    let (start, end) = (difference.new.start as u64, difference.new.end as u64);
    // Lines are 1-based. A deletion is between two lines and is treated as touching both.
    let (first, last) = if start == end {
        (start, start + 1)
    } else {
        (start + 1, end)
    };
    first <= lines.last + NEAR && last + NEAR >= lines.first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_more_than_three_lines_away_are_harmless() {
        let numbered = |replace: usize, by: &str| -> Vec<u8> {
            (1..=20)
                .map(|line| {
                    if line == replace {
                        by.to_owned()
                    } else {
                        format!("line {line}\n")
                    }
                })
                .collect::<String>()
                .into_bytes()
        };
        let seen = numbered(0, "");
        let change = EditRequest {
            old: "line 10\n",
            new: "ten\n",
            replace_all: false,
        };
        let cases = [
            // (line changed outside, its new text, clean?)
            (6, "other\n", true),
            (7, "other\n", false),
            (10, "line 10\nmore\n", false),
            (13, "other\n", false),
            (14, "other\n", true),
            (14, "", false),
            (15, "", true),
            (1, "several\nmore\nlines\n", true),
        ];
        for (line, text, clean) in cases {
            let now = numbered(line, text);
            let plan = edit::plan(&now, &change).unwrap();
            assert_eq!(
                merges_cleanly(&seen, &now, &change, &plan),
                clean,
                "line {line} {text:?}"
            );
        }
    }
}
