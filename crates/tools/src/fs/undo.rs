//! `Undo`: undoes a change of this session.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use haft_contract::{
    CallContext, Card, CardSection, CheckOutcome, Effects, Idempotency, PermissionMode, Tool,
    ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use haft_journal::{ChangeKind, Journal, UndoMode, UndoOutcome, UndoSelection, WriteGrant};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{EDITS, editor, patch, profile, run_on_journal, ticket};
use crate::{paths::shown, plural::counted};

/// The maximum number of files that a question lists.
const NAMED_FILES: usize = 10;
/// The maximum number of files that a result lists: a command may have changed thousands.
const TOLD_FILES: usize = 50;

/// Undoes a change that a file tool or a command made in this session.
///
/// - `undo_id` is in the result of the Edit, Write, NotebookEdit, ReplaceInFiles or Bash call.
///   Without it, the last change that is not undone yet is undone; called again, the one before it.
/// - All files of the call get their previous content back, byte for byte; a file that it created is
///   deleted. All or nothing: if any of them was changed since, nothing is touched and the result
///   shows both changes. Changes of a command whose previous state was not saved are listed and stay.
/// - An undo can be undone by its own `undo_id`.
/// - `preview` only shows what would change.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The change to undo; the last one if omitted.
    undo_id: Option<String>,
    /// Only show what would be done.
    #[serde(default)]
    preview: bool,
}

impl Input {
    fn which(&self) -> UndoSelection {
        match &self.undo_id {
            Some(id) => UndoSelection::Unit(id.trim().to_owned()),
            None => UndoSelection::Last,
        }
    }

    fn mode(&self) -> UndoMode {
        if self.preview {
            UndoMode::Preview
        } else {
            UndoMode::Apply
        }
    }
}

pub(crate) struct Undo;

impl Tool for Undo {
    type Input = Input;
    const NAME: &'static str = "Undo";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            deferred: true,
            rules: EDITS,
            ..profile(
                haft_contract::ToolAccess::Anything,
                &[],
                "undo revert restore roll back a change",
            )
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        if input.preview {
            return Effects::READS;
        }
        // Only the journal knows which files change.
        Effects {
            patches: false,
            repeat: Idempotency::Never,
            ..Effects::EXCLUSIVE
        }
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        let which = input.which();
        let anywhere = WriteGrant::unconfined(cx.call.to_string(), Self::NAME);
        let undone = run_on_journal(cx, move |journal| {
            journal.undo(&anywhere, &which, UndoMode::Preview)
        })
        .await?
        .map_err(ToolError::Refused)?;
        if input.preview {
            return Ok(CheckOutcome::Pass);
        }
        if let Some(conflict) = undone.conflict {
            return Err(ToolError::Refused(conflict));
        }
        // The last three modes ask anyway; this question lists the files.
        match cx.permissions.mode {
            PermissionMode::BypassPermissions | PermissionMode::DontAsk => Ok(CheckOutcome::Pass),
            PermissionMode::AcceptEdits | PermissionMode::Auto if self.stays_inside(input, cx) => {
                Ok(CheckOutcome::Pass)
            }
            PermissionMode::Default
            | PermissionMode::AcceptEdits
            | PermissionMode::Auto
            | PermissionMode::Plan => Ok(CheckOutcome::Ask(question(&undone, &cx.cwd))),
        }
    }

    fn permission(&self, input: &Input, cx: &CallContext) -> ToolPermission {
        // An undo must not change files that rules protect, nor show files that rules hide.
        let kept_from = if input.preview {
            &cx.permissions.hidden
        } else {
            &cx.permissions.locked
        };
        if let Some(file) = self
            .files(input, cx)
            .into_iter()
            .flatten()
            .find(|file| kept_from.hides(file))
        {
            let file = shown(&file, &cx.cwd);
            return ToolPermission::Deny(format!("it is about {file}, which a rule denies"));
        }
        // If the user accepts edits, an undo inside the working directories is one, too. Only the
        // journal knows its files.
        let accepted = cx.permissions.mode == PermissionMode::AcceptEdits;
        if accepted && self.stays_inside(input, cx) {
            ToolPermission::Allow
        } else {
            ToolPermission::ByEffects
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let (which, mode) = (input.which(), input.mode());
        if mode == UndoMode::Apply {
            let files = self.files(input, cx).unwrap_or_default();
            editor::refuse_any_unsaved(files, cx).await?;
        }
        let mut ticket = ticket(Self::NAME, cx);
        // The user has approved these files. Without an id this does not hold: "the last change"
        // may be another one now.
        let shown = input.undo_id.is_some() && cx.permissions.mode != PermissionMode::DontAsk;
        let undone = run_on_journal(cx, move |journal| {
            if mode == UndoMode::Preview {
                ticket = WriteGrant::unconfined(ticket.call, ticket.tool);
            } else if shown
                && let Ok(files) = journal
                    .required_history()
                    .and_then(|history| history.files_of(&which))
            {
                let beyond: Vec<PathBuf> = files
                    .into_iter()
                    .map(|file| file.real)
                    .filter(|file| !ticket.covers(file))
                    .collect();
                ticket = ticket.with_paths(beyond);
            }
            journal.undo(&ticket, &which, mode)
        })
        .await?
        .map_err(ToolError::Failed)?;
        Ok(ToolOutput::text(text(&undone, &cx.cwd)).with_structured(structured(&undone)))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let subject = input.undo_id.as_deref().unwrap_or("the last change");
        let card = Card::new(Self::NAME, subject);
        Some(if input.preview {
            card.with_summary("preview")
        } else {
            card
        })
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let files = output.structured.as_ref()?["files"].as_array()?.clone();
        let mut card = self.render_use(input)?;
        if !input.preview {
            card = card.with_summary(counted(files.len() as u64, "file"));
        }
        for file in files {
            let path = file["filePath"].as_str().unwrap_or_default().to_owned();
            let hunks = Deserialize::deserialize(&file["structuredPatch"]).unwrap_or_default();
            card = card
                .with(CardSection::Muted(path))
                .with(CardSection::Diff(hunks));
        }
        Some(card)
    }
}

impl Undo {
    /// Returns whether the undo changes only files in the working directories.
    fn stays_inside(&self, input: &Input, cx: &CallContext) -> bool {
        let ticket = ticket(Self::NAME, cx);
        self.files(input, cx)
            .is_some_and(|files| files.iter().all(|file| ticket.covers(file)))
    }

    /// Returns the files that the undo would change, if the journal knows them.
    fn files(&self, input: &Input, cx: &CallContext) -> Option<Vec<PathBuf>> {
        let journal = cx.services.get::<Journal>().ok()?;
        let history = journal.required_history().ok()?;
        let files = history.files_of(&input.which()).ok()?;
        Some(files.into_iter().map(|file| file.real).collect())
    }
}

fn question(undone: &UndoOutcome, cwd: &Path) -> String {
    let names: Vec<String> = undone
        .files
        .iter()
        .take(NAMED_FILES)
        .map(|file| shown(&file.real, cwd))
        .collect();
    let more = match undone.files.len().saturating_sub(NAMED_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("it undoes {} in {}{more}", calls(undone), names.join(", "))
}

/// Formats the undone calls: `Edit 0190…`, `Edit 0190… and Write 0190…`.
fn calls(undone: &UndoOutcome) -> String {
    let names: Vec<String> = undone
        .undid
        .iter()
        .map(|(id, tool)| format!("{tool} {id}"))
        .collect();
    names.join(" and ")
}

fn text(undone: &UndoOutcome, cwd: &Path) -> String {
    let verb = if undone.unit.is_some() {
        "Undid"
    } else {
        "Would undo"
    };
    let count = counted(undone.files.len() as u64, "file");
    let mut text = match &undone.conflict {
        Some(conflict) => format!("{} cannot be undone now.\n{conflict}", calls(undone)),
        None => format!("{verb} {}: {count}", calls(undone)),
    };
    // Writing to a string cannot fail.
    for file in undone.files.iter().take(TOLD_FILES) {
        let done = match file.change {
            ChangeKind::Created => "restored",
            ChangeKind::Changed => "changed back",
            ChangeKind::Removed => "deleted",
        };
        let summary = patch::summary(&file.patch);
        let _ = write!(text, "\n{}: {done} {summary}", shown(&file.real, cwd));
        let diff = patch::text(&file.patch);
        if file.change == ChangeKind::Changed && !diff.is_empty() {
            let _ = write!(text, "\n{diff}");
        }
    }
    let more = |count: usize| match count.saturating_sub(TOLD_FILES) {
        0 => String::new(),
        more => format!("\nand {more} more"),
    };
    text += &more(undone.files.len());
    if !undone.left.is_empty() {
        text += "\nNot restored:";
        for (path, why) in undone.left.iter().take(TOLD_FILES) {
            let _ = write!(text, "\n{}: {why}", shown(path, cwd));
        }
        text += &more(undone.left.len());
    }
    if let Some(unit) = &undone.unit {
        let _ = write!(text, "\n[undo_id {unit}]");
    }
    text
}

fn structured(undone: &UndoOutcome) -> Value {
    let mut room = patch::HUNK_BYTES;
    let files: Vec<Value> = undone
        .files
        .iter()
        .map(|file| {
            json!({
                "filePath": file.real.to_string_lossy(),
                "change": match file.change {
                    ChangeKind::Created => "restored",
                    ChangeKind::Changed => "changed",
                    ChangeKind::Removed => "deleted",
                },
                "structuredPatch": patch::hunks_within(&file.patch, &mut room),
            })
        })
        .collect();
    let not_restored: Vec<Value> = undone
        .left
        .iter()
        .map(|(path, why)| json!({ "filePath": path.to_string_lossy(), "why": why }))
        .collect();
    let undid: Vec<&String> = undone.undid.iter().map(|(id, _)| id).collect();
    json!({
        "undid": undid,
        "undoId": undone.unit,
        "preview": undone.unit.is_none(),
        "conflict": undone.conflict,
        "files": files,
        "notRestored": not_restored,
    })
}
