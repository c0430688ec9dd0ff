//! What changed in a file, for the model, for programs and for people.

use std::path::Path;

use haft_contract::{Card, CardPiece, DiffHunk, ToolOutput};
use haft_journal::{ContentHash, Patch};
use serde_json::{Value, json};

use super::editor::SAVED_FIRST;

/// How much of a diff an answer carries (spec file-tools.md §2.4).
const DIFF_CHARS: usize = 4_000;
/// How much of all hunks together programs get.
pub(super) const HUNK_BYTES: usize = 256 << 10;
/// How much of one line of them.
const LINE_CHARS: usize = 4_000;
/// How much of a file as it was before.
const FILE_BYTES: usize = 1 << 20;

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

/// The hunks in the shape programs read, within a bound: a change of one line may be a change of
/// millions of characters.
pub(super) fn hunks(patch: &Patch) -> Vec<DiffHunk> {
    hunks_within(patch, &mut HUNK_BYTES.clone())
}

/// The schema of [`hunks`].
pub(super) fn hunks_schema() -> Value {
    let number = || json!({"type": "integer"});
    json!({"type": "array", "items": {
        "type": "object",
        "properties": {
            "oldStart": number(),
            "oldLines": number(),
            "newStart": number(),
            "newLines": number(),
            "lines": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["oldStart", "oldLines", "newStart", "newLines", "lines"],
    }})
}

/// As [`hunks`], for one of several files that share the room. Lines that are too long are cut
/// and say so; hunks for which no room is left are missing.
pub(super) fn hunks_within(patch: &Patch, room: &mut usize) -> Vec<DiffHunk> {
    let mut hunks = Vec::new();
    for hunk in &patch.hunks {
        if *room == 0 {
            break;
        }
        let lines = hunk.lines.iter().map_while(|line| {
            let line = (*room > 0).then(|| cut_line(line))?;
            *room = room.saturating_sub(line.len());
            Some(line)
        });
        hunks.push(DiffHunk {
            old_start: hunk.old_start,
            old_lines: hunk.old_lines,
            new_start: hunk.new_start,
            new_lines: hunk.new_lines,
            lines: lines.collect(),
        });
    }
    hunks
}

fn cut_line(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        None => line.to_owned(),
        Some((end, _)) => {
            let length = line.chars().count() - 1;
            format!("{}… [cut: {length} characters]", &line[..end])
        }
    }
}

/// A whole file as programs read it, within a bound.
pub(super) fn whole_file(text: String) -> String {
    if text.len() <= FILE_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(FILE_BYTES);
    format!("{}\n[cut: {} bytes in all]", &text[..end], text.len())
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

/// What an editor changed on top of a change when it wrote the file, for the model; empty for nothing.
pub(super) fn formatted(formatted: Option<&Patch>) -> String {
    match formatted {
        Some(patch) => format!(
            "\nThe editor that wrote the file changed it further (it formats what it saves). This is kept:\n{}",
            text(patch)
        ),
        None => String::new(),
    }
}

/// What a change is about, as a person reads it.
pub(super) fn subject(path: &Path, output: &ToolOutput) -> String {
    let saved = output
        .structured
        .as_ref()
        .is_some_and(|structured| structured["savedFirst"] == true);
    match saved {
        true => format!("{} ({SAVED_FIRST})", path.display()),
        false => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_get_is_bounded() {
        let line = |sign: &str| [sign.repeat(8 << 20), "\n".to_owned()].concat();
        let patch = Patch::between(line("a").as_bytes(), line("b").as_bytes());
        let size = |hunks: &[DiffHunk]| {
            let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.map(String::len).sum::<usize>()
        };
        let cut = hunks(&patch);
        assert!(size(&cut) < 3 * LINE_CHARS, "{}", size(&cut));
        assert!(cut[0].lines[0].ends_with("… [cut: 8388608 characters]"));
        let numbers =
            |from: u32| -> String { (from..from + 200_000).map(|n| format!("{n}\n")).collect() };
        let patch = Patch::between(numbers(0).as_bytes(), numbers(1_000_000).as_bytes());
        assert!(size(&hunks(&patch)) <= HUNK_BYTES + LINE_CHARS);
        assert!(whole_file(line("é")).len() < FILE_BYTES + 100);
        assert_eq!(whole_file("é".to_owned()), "é");
    }
}
