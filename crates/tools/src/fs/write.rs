//! `Write`: creates a file or replaces its whole content.

use std::{fmt::Write as _, path::PathBuf};

use haft_contract::{
    CallContext, Card, CardSection, CheckOutcome, Effects, Tool, ToolAccess, ToolError, ToolOutput,
    ToolProfile,
};
use haft_journal::{WriteOutcome, WriteReport, readable_text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    EDITS,
    editor::{self, SavedFirst},
    patch, profile, run_on_journal, ticket,
};
use crate::{paths::shown, plural::counted};

/// The number of lines of the content that the user sees before deciding.
const PREVIEW_LINES: usize = 20;

/// Writes a whole file: creates it, with any missing directories, or replaces all of its content.
///
/// - `content` is written literally, all of it: never leave parts out with a remark such as
///   `... rest unchanged`.
/// - An existing file must have been read completely first, and not changed since; otherwise
///   nothing is written.
/// - A file's byte order mark and CRLF line breaks are kept.
/// - For a change to part of a file use Edit: it is shorter and cannot lose the rest.
/// - Returns the size and, when a file was replaced, what changed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file to write; best as an absolute path.
    file_path: PathBuf,
    /// The complete new content.
    content: String,
}

pub(crate) struct Write;

impl Tool for Write {
    type Input = Input;
    const NAME: &'static str = "Write";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            rules: EDITS,
            basic: true,
            output_schema: Some(output_schema()),
            ..profile(
                ToolAccess::Paths,
                &["file_path"],
                "create save overwrite new file",
            )
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        Effects::writing([input.file_path.clone()])
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        let target = editor::shown_target(&cx.cwd.join(&input.file_path), cx).await?;
        let judged = target.clone();
        run_on_journal(cx, move |journal| journal.check_write(judged))
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
        let (content, ticket) = (input.content.clone(), ticket(Self::NAME, cx));
        let (target, saved) = editor::saved_target(&path, &ticket, cx, |journal, target| {
            journal.check_write(target)
        })
        .await?;
        let ticket = editor::reviewed(ticket, cx);
        let written = run_on_journal(cx, move |journal| journal.write(&ticket, target, &content))
            .await?
            .map_err(ToolError::Failed)?;
        let kind = match written.outcome {
            WriteOutcome::Created => "create",
            WriteOutcome::Overwritten => "update",
        };
        let original = written.old.as_deref().map(readable_text);
        let original = original.map(patch::whole_file);
        let mut structured = json!({
            "type": kind,
            "filePath": structured_path,
            "content": input.content,
            "structuredPatch": patch::hunks(&written.patch),
            "originalFile": original,
        });
        if saved == SavedFirst::Yes {
            structured["savedFirst"] = json!(true);
        }
        let text = text(&written, &name) + saved.model_note();
        Ok(ToolOutput::text(text).with_structured(structured))
    }

    async fn preview(&self, input: &Input, cx: &CallContext) -> Option<Card> {
        let target = editor::shown_target(&cx.cwd.join(&input.file_path), cx)
            .await
            .ok()?;
        let content = input.content.clone();
        let patch = run_on_journal(cx, move |journal| journal.preview_write(target, &content));
        let patch = patch.await.ok()?.ok()??;
        patch::preview(self.render_use(input)?, &patch)
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let lines: Vec<&str> = input.content.lines().take(PREVIEW_LINES).collect();
        let total = input.content.lines().count();
        let card = Card::new(Self::NAME, input.file_path.display().to_string())
            .with_summary(counted(total as u64, "line"))
            .with(CardSection::Text(lines.join("\n")));
        Some(match total - lines.len() {
            0 => card,
            more => card.with(CardSection::Muted(format!("… {more} more"))),
        })
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let (hunks, summary) = patch::output_hunks(output);
        if output.structured.as_ref()?["type"] == "create" {
            let summary = format!(
                "created, {}",
                counted(input.content.lines().count() as u64, "line")
            );
            return Some(self.render_use(input)?.with_summary(summary));
        }
        let card = Card::new(Self::NAME, patch::subject(&input.file_path, output));
        Some(card.with_summary(summary).with(CardSection::Diff(hunks)))
    }
}

/// Returns the schema of the structured output.
fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["create", "update"]},
            "filePath": {"type": "string"},
            "content": {"type": "string"},
            "structuredPatch": patch::hunks_schema(),
            "originalFile": {"type": ["string", "null"], "description": "Null if the file is new or its content is long"},
            "savedFirst": {"type": "boolean", "description": "The editor saved the user's changes before"},
        },
        "required": ["type", "filePath", "content", "structuredPatch", "originalFile"],
    })
}

fn text(written: &WriteReport, name: &str) -> String {
    let size = format!(
        "{}, {}",
        counted(written.lines, "line"),
        counted(written.bytes, "byte")
    );
    let mut text = match written.outcome {
        WriteOutcome::Created => format!("Created {name}: {size}"),
        WriteOutcome::Overwritten if written.patch.is_empty() => {
            format!("{name} already has exactly this content ({size}); nothing was written")
        }
        WriteOutcome::Overwritten => {
            format!(
                "Overwrote {name}: {size} {}",
                patch::summary(&written.patch)
            )
        }
    };
    // Writing to a string cannot fail.
    if written.crlf_kept {
        text.push_str("\nIts CRLF line breaks were kept.");
    }
    match written.encoding_kept {
        Some(encoding) => {
            let _ = write!(text, "\nIts encoding was kept: {encoding}.");
        }
        None if written.bom_kept => text.push_str("\nIts byte order mark was kept."),
        None => {}
    }
    if let Some(line) = &written.elision {
        let _ = write!(
            text,
            "\nWARNING: most of the file was removed, and the content has the line `{line}`. It was written \
             literally. If it is a placeholder for text you omitted, write the whole file again; the \
             diff below shows what was removed."
        );
    }
    let diff = patch::text(&written.patch);
    if !diff.is_empty() {
        let _ = write!(text, "\n{diff}");
    }
    text.push_str(&patch::formatted(written.formatted.as_ref()));
    let _ = write!(
        text,
        "\n{}",
        patch::footer(&written.hash, written.unit.as_deref())
    );
    text
}
