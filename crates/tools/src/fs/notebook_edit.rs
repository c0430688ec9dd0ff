//! `NotebookEdit`: replaces, inserts or deletes one cell of a notebook.

use std::{fmt::Write, path::PathBuf};

use haft_contract::{
    CallContext, Card, CardSection, CheckOutcome, Effects, RuleMatch, Tool, ToolAccess, ToolError,
    ToolOutput, ToolProfile,
};
use haft_journal::{
    NotebookEditReport, Patch,
    notebook::{CellChange, CellType, NotebookSplice},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    editor::{self, SavedFirst},
    is_notebook, patch, profile, run_on_journal, ticket,
};
use crate::paths::shown;

/// Changes one cell of a Jupyter notebook (.ipynb).
///
/// - The notebook must have been read first, and not changed since; Read shows the ids of its cells.
/// - `edit_mode` replace (the default) gives the cell `new_source` as its whole source; the outputs
///   of a code cell are cleared.
/// - `edit_mode` insert makes a new cell after `cell_id`, or the first one if that is left out; it
///   needs a `cell_type`.
/// - `edit_mode` delete removes the cell; `new_source` is ignored.
/// - Everything else in the file stays unchanged, byte for byte.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The notebook to change; best as an absolute path.
    notebook_path: PathBuf,
    /// The id of the cell, as Read shows it; or its place counted from 0, such as `cell-3`.
    #[serde(default)]
    cell_id: Option<String>,
    /// The whole new source of the cell.
    new_source: String,
    /// The type of the cell. Needed for insert; otherwise the cell keeps its type.
    #[serde(default)]
    cell_type: Option<Kind>,
    /// The kind of change.
    #[serde(default)]
    edit_mode: Mode,
}

/// The types a cell can be given.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Kind {
    Code,
    Markdown,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Mode {
    #[default]
    Replace,
    Insert,
    Delete,
}

impl Mode {
    fn done(self) -> &'static str {
        match self {
            Self::Replace => "Replaced",
            Self::Insert => "Inserted",
            Self::Delete => "Deleted",
        }
    }
}

impl Input {
    fn change(&self) -> CellChange {
        let kind = self.cell_type.map(|kind| match kind {
            Kind::Code => CellType::Code,
            Kind::Markdown => CellType::Markdown,
        });
        let (cell, source) = (self.cell_id.clone(), self.new_source.clone());
        match self.edit_mode {
            Mode::Replace => CellChange::Replace { cell, source, kind },
            Mode::Insert => CellChange::Insert {
                after: cell,
                source,
                kind,
            },
            Mode::Delete => CellChange::Delete { cell },
        }
    }
}

pub(crate) struct NotebookEdit;

impl Tool for NotebookEdit {
    type Input = Input;
    const NAME: &'static str = "NotebookEdit";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            deferred: true,
            rules: RuleMatch::Edits {
                held_by_reads: false,
            },
            ..profile(
                ToolAccess::Paths,
                &["notebook_path"],
                "change modify cell of a jupyter notebook ipynb",
            )
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        Effects::writing([input.notebook_path.clone()])
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        if !is_notebook(&input.notebook_path) {
            return Err(ToolError::Refused(format!(
                "{} is not a notebook: its name does not end in .ipynb. Use Edit for other files.",
                input.notebook_path.display()
            )));
        }
        if input.edit_mode == Mode::Insert && input.cell_type.is_none() {
            return Err(ToolError::Refused(
                "A new cell needs a type: give cell_type, \"code\" or \"markdown\".".to_owned(),
            ));
        }
        let target = editor::shown_target(&cx.cwd.join(&input.notebook_path), cx).await?;
        let (change, judged) = (input.change(), target.clone());
        run_on_journal(cx, move |journal| journal.check_notebook(judged, &change))
            .await?
            .map_err(ToolError::Refused)?;
        editor::refuse_unsaved(&target, cx).await?;
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let path = cx.cwd.join(&input.notebook_path);
        let name = shown(&path, &cx.cwd);
        let notebook_path = path.to_string_lossy().into_owned();
        let (change, ticket) = (input.change(), ticket(Self::NAME, cx));
        let wish = input.change();
        let (target, saved) = editor::saved_target(&path, &ticket, cx, move |journal, target| {
            journal.check_notebook(target, &wish).map(drop)
        })
        .await?;
        let ticket = editor::reviewed(ticket, cx);
        let edited = run_on_journal(cx, move |journal| {
            journal.edit_notebook(&ticket, target, &change)
        })
        .await?
        .map_err(ToolError::Failed)?;
        let spliced = &edited.spliced;
        let whole = |bytes| patch::whole_file(String::from_utf8_lossy(bytes).into_owned());
        let mut structured = json!({
            "new_source": input.new_source,
            "cell_id": spliced.cell,
            "cell_type": spliced.kind,
            "language": spliced.language.as_deref().unwrap_or("python"),
            "edit_mode": input.edit_mode,
            "notebook_path": notebook_path,
            "original_file": whole(&edited.old),
            "updated_file": whole(&spliced.content),
            "structuredPatch": patch::hunks(&edited.patch),
        });
        if let Some(old) = &spliced.old_source {
            structured["old_source"] = json!(patch::whole_file(old.clone()));
        }
        if saved == SavedFirst::Yes {
            structured["savedFirst"] = json!(true);
        }
        let text = text(&edited, input, &name) + saved.model_note();
        Ok(ToolOutput::text(text).with_structured(structured))
    }

    async fn preview(&self, input: &Input, cx: &CallContext) -> Option<Card> {
        let target = editor::shown_target(&cx.cwd.join(&input.notebook_path), cx)
            .await
            .ok()?;
        let change = input.change();
        let checked = run_on_journal(cx, move |journal| journal.check_notebook(target, &change));
        let spliced = checked.await.ok()?.ok()?;
        let source = source_patch(&spliced, input);
        let card = self.render_use(input)?;
        let summary = format!("{} {}", card.summary, patch::summary(&source));
        // The outputs are removed even if the source does not change.
        Some(patch::preview(card, &source)?.with_summary(summary))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let path = input.notebook_path.display().to_string();
        let cell = input.cell_id.as_deref().unwrap_or_default();
        let summary = match (input.edit_mode, cell) {
            (Mode::Insert, "") => "a new first cell".to_owned(),
            (Mode::Insert, cell) => format!("a new cell after {cell}"),
            (Mode::Replace, cell) => format!("cell {cell}"),
            (Mode::Delete, cell) => format!("delete cell {cell}"),
        };
        let card = Card::new(Self::NAME, path).with_summary(summary);
        Some(match input.edit_mode {
            Mode::Delete => card,
            _ => card.with(CardSection::Text(input.new_source.clone())),
        })
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let (hunks, summary) = patch::output_hunks(output);
        let cell = output.structured.as_ref()?["cell_id"].as_str()?;
        let path = patch::subject(&input.notebook_path, output);
        let done = input.edit_mode.done().to_lowercase();
        let card =
            Card::new(Self::NAME, path).with_summary(format!("{done} cell {cell} {summary}"));
        Some(card.with(CardSection::Diff(hunks)))
    }
}

/// Returns the change of the source, not of the JSON around it.
fn source_patch(spliced: &NotebookSplice, input: &Input) -> Patch {
    let old = spliced.old_source.as_deref().unwrap_or_default();
    let new = match input.edit_mode {
        Mode::Delete => "",
        Mode::Replace | Mode::Insert => input.new_source.as_str(),
    };
    // Cells seldom end with a line break, so a missing one is not reported.
    let lines = |source: &str| match source.trim_end_matches('\n') {
        "" => String::new(),
        source => format!("{source}\n"),
    };
    Patch::between(lines(old).as_bytes(), lines(new).as_bytes())
}

/// Returns the text for the model.
fn text(edited: &NotebookEditReport, input: &Input, name: &str) -> String {
    let spliced = &edited.spliced;
    let source = source_patch(spliced, input);
    let mut text = format!(
        "{} cell {} ({}) in {name} {}",
        input.edit_mode.done(),
        spliced.cell,
        spliced.kind,
        patch::summary(&source)
    );
    if input.edit_mode == Mode::Replace && spliced.kind == "code" {
        text.push_str("; its outputs are cleared");
    }
    if input.edit_mode != Mode::Replace && spliced.cell.starts_with("cell-") {
        text.push_str("; the cells after it have other places now (cell-N)");
    }
    // The model has just sent the new source, so it is not repeated.
    if input.edit_mode != Mode::Insert && !source.is_empty() {
        let _ = write!(text, "\n{}", patch::text(&source));
    }
    text.push_str(&patch::formatted(edited.formatted.as_ref()));
    let _ = write!(
        text,
        "\n{}",
        patch::footer(&edited.hash, edited.unit.as_deref())
    );
    text
}
