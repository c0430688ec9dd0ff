//! What changed in a file, for the model, for programs and for people.

use haft_contract::{Card, CardPiece, DiffHunk, ToolOutput};
use haft_journal::{ContentHash, Patch};

/// How much of a diff an answer carries (spec file-tools.md §2.4).
const DIFF_CHARS: usize = 4_000;

/// `(+3 −2)`.
pub(super) fn summary(patch: &Patch) -> String {
    format!("(+{} −{})", patch.added, patch.removed)
}

/// The diff as text, bounded; empty if nothing changed.
pub(super) fn text(patch: &Patch) -> String {
    patch.render(DIFF_CHARS)
}

/// Names one state of a file; enough of the hash to tell any two states apart.
fn etag(hash: &ContentHash) -> String {
    let mut hash = hash.to_string();
    hash.truncate(16);
    format!("[etag {hash}]")
}

/// The last line of an answer: what the file is now, and how to take the change back.
pub(super) fn footer(hash: &ContentHash, unit: Option<&str>) -> String {
    let etag = etag(hash);
    match unit {
        Some(unit) => format!("{etag}\n[undo_id {unit}]"),
        None => etag,
    }
}

/// A card that shows a change to a file as it would be made, at its real lines; `None` where nothing of a
/// file would change.
pub(super) fn preview(card: Card, patch: &Patch) -> Option<Card> {
    if patch.hunks.is_empty() {
        return None;
    }
    let card = Card {
        body: vec![CardPiece::Diff(hunks(patch))],
        ..card
    };
    Some(card.with_summary(summary(patch)))
}

/// The hunks in the shape programs read.
pub(super) fn hunks(patch: &Patch) -> Vec<DiffHunk> {
    patch
        .hunks
        .iter()
        .map(|hunk| DiffHunk {
            old_start: hunk.old_start,
            old_lines: hunk.old_lines,
            new_start: hunk.new_start,
            new_lines: hunk.new_lines,
            lines: hunk.lines.clone(),
        })
        .collect()
}

/// The hunks of an output made with [`hunks`], and how many lines they add and remove.
pub(super) fn of_output(output: &ToolOutput) -> (Vec<DiffHunk>, String) {
    let hunks: Vec<DiffHunk> = output
        .structured
        .as_ref()
        .and_then(|value| serde::Deserialize::deserialize(&value["structuredPatch"]).ok())
        .unwrap_or_default();
    let lines = |sign| {
        let all = hunks.iter().flat_map(|hunk| &hunk.lines);
        all.filter(|line| line.starts_with(sign)).count()
    };
    let summary = format!("(+{} −{})", lines('+'), lines('-'));
    (hunks, summary)
}
