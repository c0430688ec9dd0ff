//! `Edit`: replaces a text in a file with another.

use std::{borrow::Cow, fmt::Write, path::PathBuf};

use haft_contract::{
    CallContext, Card, CardSection, CheckOutcome, DiffHunk, Effects, Tool, ToolAccess, ToolError,
    ToolOutput, ToolProfile,
};
use haft_journal::{
    EditReport,
    edit::{EditRequest, LineRange, MatchTier},
    readable_text,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    EDITS,
    editor::{self, SavedFirst},
    is_notebook, patch, profile, run_on_journal, ticket,
};
use crate::{paths::shown, plural::counted};

/// The maximum number of places that a result lists.
const NAMED_PLACES: usize = 10;

/// Replaces a text in a file with another, literally.
///
/// - The file must have been read first, and not changed near the place since.
/// - `old_string` must be copied exactly from the file, with its indentation, but without the line
///   numbers and tabs that Read puts before each line.
/// - It must occur exactly once: add lines around it until it does, or set `replace_all` to change
///   every occurrence.
/// - Line breaks follow the file (write `\n` also for CRLF files); everything else stays unchanged,
///   byte for byte.
/// - An empty `old_string` creates a missing file with `new_string` as its content.
/// - Returns the changed lines as a diff. If it fails, nothing was changed and the error says why.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file to change; best as an absolute path.
    file_path: PathBuf,
    /// The text to replace.
    old_string: String,
    /// The new text; empty to delete the old one.
    new_string: String,
    /// Replace every occurrence, not just one.
    #[serde(default)]
    replace_all: bool,
}

impl Input {
    fn change(&self) -> EditRequest<'_> {
        EditRequest {
            old: &self.old_string,
            new: &self.new_string,
            replace_all: self.replace_all,
        }
    }
}

pub(crate) struct Edit;

impl Tool for Edit {
    type Input = Input;
    const NAME: &'static str = "Edit";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            rules: EDITS,
            basic: true,
            output_schema: Some(output_schema()),
            ..profile(
                ToolAccess::Paths,
                &["file_path"],
                "change modify replace text in a file",
            )
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        Effects::writing([input.file_path.clone()])
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        if input.old_string == input.new_string {
            return Err(ToolError::Refused(
                "old_string and new_string are identical: there is nothing to change.".to_owned(),
            ));
        }
        if is_notebook(&input.file_path) {
            return Err(ToolError::Refused(format!(
                "{} is a notebook: use NotebookEdit, which changes cells and leaves the rest of \
                 its JSON unchanged.",
                input.file_path.display()
            )));
        }
        let target = editor::shown_target(&cx.cwd.join(&input.file_path), cx).await?;
        let (input, judged) = (input.clone(), target.clone());
        run_on_journal(cx, move |journal| {
            journal.check_edit(judged, &input.change())
        })
        .await?
        .map_err(ToolError::Refused)?;
        editor::refuse_unsaved(&target, cx).await?;
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let path = cx.cwd.join(&input.file_path);
        let name = shown(&path, &cx.cwd);
        let structured_path = path.to_string_lossy().into_owned();
        let (owned, ticket) = (input.clone(), ticket(Self::NAME, cx));
        let wish = input.clone();
        let (target, saved) = editor::saved_target(&path, &ticket, cx, move |journal, target| {
            journal.check_edit(target, &wish.change()).map(drop)
        })
        .await?;
        let ticket = editor::reviewed(ticket, cx);
        let edited = run_on_journal(cx, move |journal| {
            journal.edit(&ticket, target, &owned.change())
        })
        .await?
        .map_err(ToolError::Failed)?;
        let mut structured = json!({
            "filePath": structured_path,
            "oldString": input.old_string,
            "newString": input.new_string,
            "originalFile": patch::whole_file(readable_text(&edited.old)),
            "structuredPatch": patch::hunks(&edited.patch),
            "userModified": false,
            "replaceAll": input.replace_all,
        });
        if saved == SavedFirst::Yes {
            structured["savedFirst"] = json!(true);
        }
        let text = text(&edited, input, &name) + saved.model_note();
        Ok(ToolOutput::text(text).with_structured(structured))
    }

    async fn preview(&self, input: &Input, cx: &CallContext) -> Option<Card> {
        let target = editor::shown_target(&cx.cwd.join(&input.file_path), cx)
            .await
            .ok()?;
        let owned = input.clone();
        let checked = run_on_journal(cx, move |journal| {
            let checked = journal.check_edit(target, &owned.change())?;
            Ok(checked.patch())
        });
        patch::preview(self.render_use(input)?, &checked.await.ok()?.ok()?)
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let card = Card::new(Self::NAME, input.file_path.display().to_string());
        let card = if input.replace_all {
            card.with_summary("every occurrence")
        } else {
            card
        };
        Some(card.with(CardSection::Diff(vec![requested_hunk(input)])))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let (hunks, summary) = patch::output_hunks(output);
        if hunks.is_empty() {
            return Some(self.render_use(input)?.with_summary("created"));
        }
        let card = Card::new(Self::NAME, patch::subject(&input.file_path, output));
        Some(card.with_summary(summary).with(CardSection::Diff(hunks)))
    }
}

/// Returns the requested change as a hunk before its location is known; lines are counted from 1.
fn requested_hunk(input: &Input) -> DiffHunk {
    let old = input.old_string.lines().map(|line| format!("-{line}"));
    let new = input.new_string.lines().map(|line| format!("+{line}"));
    DiffHunk {
        old_start: 1,
        old_lines: input.old_string.lines().count() as u64,
        new_start: 1,
        new_lines: input.new_string.lines().count() as u64,
        lines: old.chain(new).collect(),
    }
}

/// Returns the schema of the structured output.
fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "filePath": {"type": "string"},
            "oldString": {"type": "string"},
            "newString": {"type": "string"},
            "originalFile": {"type": ["string", "null"], "description": "Null if it is long"},
            "structuredPatch": patch::hunks_schema(),
            "userModified": {"type": "boolean"},
            "replaceAll": {"type": "boolean"},
            "savedFirst": {"type": "boolean", "description": "The editor saved the user's changes before"},
        },
        "required": ["filePath", "oldString", "newString", "originalFile", "structuredPatch", "userModified", "replaceAll"],
    })
}

fn text(edited: &EditReport, input: &Input, name: &str) -> String {
    // Writing to a string cannot fail.
    let mut text = String::new();
    if edited.created {
        let lines = input.new_string.lines().count() as u64;
        let bytes = counted(input.new_string.len() as u64, "byte");
        let _ = write!(text, "Created {name}: {}, {bytes}", counted(lines, "line"));
    } else {
        let places = edited.places.len() as u64;
        let ranges: Vec<LineRange> = edited.places.iter().map(|place| place.after).collect();
        let _ = write!(
            text,
            "Edited {name}: {}, {} {}",
            counted(places, "place"),
            lines(&ranges),
            patch::summary(&edited.patch)
        );
    }
    if let Some(tolerance) = tolerance(edited.tier) {
        let _ = write!(text, "\n{tolerance}");
    }
    let diff = patch::text(&edited.patch);
    if !diff.is_empty() {
        let _ = write!(text, "\n{diff}");
    }
    if let Some(outside) = &edited.outside {
        let _ = write!(
            text,
            "\nSince you read it, the file has also changed in other places. These changes are preserved:\n{}",
            patch::text(outside)
        );
    }
    text.push_str(&patch::formatted(edited.formatted.as_ref()));
    let _ = write!(
        text,
        "\n{}",
        patch::footer(&edited.hash, edited.unit.as_deref())
    );
    text
}

/// Returns a note about how the place was found, if old_string does not match exactly.
fn tolerance(tier: MatchTier) -> Option<Cow<'static, str>> {
    Some(Cow::Borrowed(match tier {
        MatchTier::Typography => {
            "Matched ignoring typography (kinds of quotes, dashes, spaces); unchanged text kept as in the file."
        }
        MatchTier::TrailingBlanks => {
            "Matched ignoring whitespace at line ends; unchanged text kept as in the file."
        }
        MatchTier::EndOfFile => {
            "Matched without the line break at the end: the file ends without one, and still does."
        }
        MatchTier::LineNumbers => {
            "Matched without the line numbers, which are not part of the file."
        }
        MatchTier::Indentation => {
            "Matched ignoring indentation; new_string was written with that of the file. Check the diff."
        }
        MatchTier::IndentationShift(shift) => {
            let text = format!(
                "Matched ignoring indentation; new_string was {shift} to fit the file. Check the diff."
            );
            return Some(Cow::Owned(text));
        }
        _ => return None,
    }))
}

/// Formats `line 3`, `lines 1, 4–5 and 9`.
fn lines(ranges: &[LineRange]) -> String {
    let mut names: Vec<String> = ranges
        .iter()
        .take(NAMED_PLACES)
        .map(|range| match range.first == range.last {
            true => range.first.to_string(),
            false => format!("{}–{}", range.first, range.last),
        })
        .collect();
    names.dedup();
    let more = ranges.len().saturating_sub(NAMED_PLACES);
    let noun = match names.as_slice() {
        [only] if !only.contains('–') => "line",
        _ => "lines",
    };
    match (names.as_slice(), more) {
        ([rest @ .., last], 0) if !rest.is_empty() => {
            format!("{noun} {} and {last}", rest.join(", "))
        }
        (_, 0) => format!("{noun} {}", names.concat()),
        _ => format!("{noun} {} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_named_up_to_ten() {
        let range = |first, last| LineRange { first, last };
        let cases = [
            (vec![range(3, 3)], "line 3"),
            (vec![range(12, 14)], "lines 12–14"),
            (vec![range(3, 3), range(3, 3)], "line 3"),
            (
                vec![range(1, 1), range(4, 5), range(9, 9)],
                "lines 1, 4–5 and 9",
            ),
            (
                (1..=12).map(|line| range(line, line)).collect(),
                "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more",
            ),
        ];
        for (ranges, expected) in cases {
            assert_eq!(lines(&ranges), expected);
        }
    }
}
