//! Diffs of files: for the model, for structured output, and for users.

use std::path::Path;

use haft_contract::{Card, CardSection, DiffHunk, ToolOutput};
use haft_journal::{ContentHash, Patch};
use serde_json::{Value, json};

use super::editor::SAVED_FIRST;

/// The maximum length of a diff in a result, in characters.
const DIFF_CHARS: usize = 4_000;
/// The maximum size of all hunks in structured output, in bytes.
pub(super) const HUNK_BYTES: usize = 256 << 10;
/// The maximum length of one of their lines, in characters.
const LINE_CHARS: usize = 4_000;
/// The maximum size of a previous file content in structured output, in bytes.
const FILE_BYTES: usize = 1 << 20;

/// Formats the numbers of added and removed lines: `(+3 −2)`.
pub(super) fn summary(patch: &Patch) -> String {
    format!("(+{} −{})", patch.added, patch.removed)
}

/// Formats the diff as text within the limit; empty if nothing changed.
pub(super) fn text(patch: &Patch) -> String {
    patch.render(DIFF_CHARS)
}

/// Formats a tag that identifies a state of a file; the shortened hash is long enough to be unique.
fn etag(hash: &ContentHash) -> String {
    let mut hash = hash.to_string();
    hash.truncate(16);
    format!("[etag {hash}]")
}

/// Formats the last lines of a result: the state of the file, and the id for undo.
pub(super) fn footer(hash: &ContentHash, unit: Option<&str>) -> String {
    let etag = etag(hash);
    match unit {
        Some(unit) => format!("{etag}\n[undo_id {unit}]"),
        None => etag,
    }
}

/// Returns a card that shows a planned change at its real line numbers; `None` if the file would
/// not change.
pub(super) fn preview(card: Card, patch: &Patch) -> Option<Card> {
    if patch.hunks.is_empty() {
        return None;
    }
    let card = Card {
        body: vec![CardSection::Diff(hunks(patch))],
        ..card
    };
    Some(card.with_summary(summary(patch)))
}

/// Returns the hunks for structured output, within a limit: a change of one line may have millions
/// of characters.
pub(super) fn hunks(patch: &Patch) -> Vec<DiffHunk> {
    hunks_within(patch, &mut HUNK_BYTES.clone())
}

/// Returns the schema of [`hunks`].
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

/// Like [`hunks`], but for one of several files that share a limit. Lines that are too long are cut
/// and marked; hunks beyond the limit are omitted.
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

/// Returns a whole file for structured output, within a limit.
pub(super) fn whole_file(text: String) -> String {
    if text.len() <= FILE_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(FILE_BYTES);
    format!("{}\n[cut: {} bytes in all]", &text[..end], text.len())
}

/// Returns the hunks of an output made with [`hunks`], and the numbers of added and removed lines.
pub(super) fn output_hunks(output: &ToolOutput) -> (Vec<DiffHunk>, String) {
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

/// Returns a note for the model about changes that an editor added when it wrote the file; empty if
/// it added none.
pub(super) fn formatted(formatted: Option<&Patch>) -> String {
    match formatted {
        Some(patch) => format!(
            "\nThe editor also changed the file when it saved it, for example by formatting. These changes are preserved:\n{}",
            text(patch)
        ),
        None => String::new(),
    }
}

/// Returns the subject of a card: the path, with a note if the editor saved changes first.
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
