//! What changed in a file, for the model, for programs and for people.

use haft_contract::{Hunk, ToolOutput};
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
pub(super) fn etag(hash: &ContentHash) -> String {
    let mut hash = hash.to_string();
    hash.truncate(16);
    format!("[etag {hash}]")
}

/// The hunks in the shape programs read.
pub(super) fn hunks(patch: &Patch) -> Vec<Hunk> {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    patch
        .hunks
        .iter()
        .map(|hunk| Hunk {
            old_start: size(hunk.old_start),
            old_lines: size(hunk.old_lines),
            new_start: size(hunk.new_start),
            new_lines: size(hunk.new_lines),
            lines: hunk.lines.clone(),
        })
        .collect()
}

/// The hunks of an output made with [`hunks`], and how many lines they add and remove.
pub(super) fn of_output(output: &ToolOutput) -> (Vec<Hunk>, String) {
    let hunks: Vec<Hunk> = output
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
