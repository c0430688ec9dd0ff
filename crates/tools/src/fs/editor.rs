//! Editors that drive a session (over ACP): their unsaved text has priority over the file on disk.
//!
//! `Read` shows it. `Edit`, `Write` and `NotebookEdit` let the editor save it before they change
//! the file. `Undo` and `ReplaceInFiles` refuse to change files with unsaved changes, because with
//! many files it would be unclear which ones were saved.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{CallContext, CancellationToken, EditorFiles, ToolError};
use haft_journal::{BUFFER_LIMIT, FileTarget, Journal, JournalError, WriteGrant, WriteThrough};
use tokio::{runtime::Handle, task::JoinSet};

use super::{run_on_journal, target};
use crate::paths::shown;

type SharedEditor = Arc<dyn EditorFiles>;

fn editor(cx: &CallContext) -> Option<SharedEditor> {
    let service = cx.services.get::<SharedEditor>().ok()?;
    Some(Arc::clone(&service))
}

/// Returns the file that a call may open by this name, with the unsaved text of its editor, if any.
pub(super) async fn shown_target(path: &Path, cx: &CallContext) -> Result<FileTarget, ToolError> {
    let target = target(path, cx)?;
    with_unsaved(target, cx).await
}

/// Adds the unsaved text of the editor, if any, to a target.
pub(super) async fn with_unsaved(
    target: FileTarget,
    cx: &CallContext,
) -> Result<FileTarget, ToolError> {
    let Some(editor) = editor(cx) else {
        return Ok(target);
    };
    let Some(real) = editor_path(&target, cx) else {
        return Ok(target);
    };
    let Some(text) = editor.text(&real).await else {
        return Ok(target);
    };
    let asked = target.clone();
    let unsaved = run_on_journal(cx, move |journal| journal.unsaved(&asked, &text)).await?;
    // If the unsaved text cannot be checked, the file is read from disk, which reports the reason.
    Ok(match unsaved {
        Ok(Some(unsaved)) => target.unsaved(Arc::new(unsaved)),
        Ok(None) | Err(_) => target,
    })
}

/// Returns the real path if editors are asked about the file: a short file in the working
/// directories that may be read.
fn editor_path(target: &FileTarget, cx: &CallContext) -> Option<PathBuf> {
    let real = target.resolve().ok()?.real;
    let is_short = real
        .symlink_metadata()
        .is_ok_and(|is| is.is_file() && is.len() <= BUFFER_LIMIT);
    (is_short && is_inside(&real, cx)).then_some(real)
}

fn is_inside(real: &Path, cx: &CallContext) -> bool {
    let permissions = &cx.permissions;
    let mut roots = permissions.directories.iter();
    let inside = roots.any(|root| {
        real.starts_with(root) || root.canonicalize().is_ok_and(|root| real.starts_with(root))
    });
    inside && !permissions.hidden.hides(real)
}

/// Fails, before permission is requested, if only the user can resolve the problem: if the editor
/// cannot be asked to save its changes, or the file exists only in the editor.
pub(super) async fn refuse_unsaved(target: &FileTarget, cx: &CallContext) -> Result<(), ToolError> {
    let Some(editor) = editor(cx) else {
        return Ok(());
    };
    if target.unsaved_text().is_some() && !editor.can_write() {
        return Err(ToolError::Refused(unsaved_words(target.path(), cx)));
    }
    let Ok(resolved) = target.resolve() else {
        return Ok(());
    };
    if resolved.exists || !is_inside(&resolved.real, cx) {
        return Ok(());
    }
    match editor.text(&resolved.real).await {
        Some(text) if !text.is_empty() => Err(ToolError::Refused(format!(
            "{} is not on disk, but the editor has an unsaved text of that name. Nothing was changed. Ask the user to \
             save it, then Read it.",
            shown(target.path(), &cx.cwd)
        ))),
        _ => Ok(()),
    }
}

fn unsaved_words(path: &Path, cx: &CallContext) -> String {
    format!(
        "{} has unsaved changes in the editor. Nothing was changed. Ask the user to save the file, then retry.",
        shown(path, &cx.cwd)
    )
}

/// Returns whether an editor drives the session.
pub(super) fn has_editor(cx: &CallContext) -> bool {
    editor(cx).is_some()
}

/// Whether the editor saved the user's changes before the file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SavedFirst {
    Yes,
    No,
}

/// The note on a card that the editor saved the user's changes first.
pub(super) const SAVED_FIRST: &str = "saved your changes first";

impl SavedFirst {
    /// Returns the note for the model.
    pub(super) fn model_note(self) -> &'static str {
        match self {
            Self::Yes => {
                "\nSaved your changes first: the user had unsaved changes of this file in the editor, which the editor \
                 saved before this change was made. Undo goes back to them."
            }
            Self::No => "",
        }
    }
}

/// Returns the file that a call may change by this name. Unsaved changes of its editor are saved
/// first, but only if `can_apply` confirms that the change can be made then.
pub(super) async fn saved_target(
    path: &Path,
    ticket: &WriteGrant,
    cx: &CallContext,
    can_apply: impl FnOnce(&Journal, FileTarget) -> Result<(), JournalError> + Send + 'static,
) -> Result<(FileTarget, SavedFirst), ToolError> {
    let found = shown_target(path, cx).await?;
    let (Some(unsaved), Some(editor)) = (found.unsaved_text().map(Arc::clone), editor(cx)) else {
        return Ok((found, SavedFirst::No));
    };
    if !editor.can_write() {
        return Err(ToolError::Failed(unsaved_words(path, cx)));
    }
    let (ticket, asked) = (ticket.clone(), found);
    run_on_journal(cx, move |journal| {
        journal.check_save(&ticket, &asked)?;
        can_apply(journal, asked)
    })
    .await?
    .map_err(ToolError::Failed)?;
    if cx.cancel.is_cancelled() {
        return Err(ToolError::Cancelled);
    }
    let saved = tokio::select! {
        saved = editor.write(&unsaved.real, &unsaved.text) => saved,
        () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
    };
    saved.map_err(|why| {
        ToolError::Failed(format!(
            "{} has unsaved changes in the editor, and the editor did not save them ({why}). Nothing was changed. Ask the \
             user to save the file, then retry.",
            shown(path, &cx.cwd)
        ))
    })?;
    run_on_journal(cx, move |journal| journal.saved(&unsaved))
        .await?
        .map_err(ToolError::Failed)?;
    Ok((target(path, cx)?, SavedFirst::Yes))
}

/// Lets an editor write the file of a call, if the user reviews changes there and no command could
/// change the file concurrently.
pub(super) fn reviewed(ticket: WriteGrant, cx: &CallContext) -> WriteGrant {
    let Some(editor) = editor(cx).filter(|editor| editor.reviews_changes() && editor.can_write())
    else {
        return ticket;
    };
    let runs = cx.services.get::<Journal>();
    if runs.is_ok_and(|journal| journal.runs_commands()) {
        return ticket;
    }
    ticket.through(Arc::new(EditorWriter {
        editor,
        runtime: Handle::current(),
        cancel: cx.cancel.clone(),
        roots: cx.permissions.directories.to_vec(),
    }))
}

/// Calls an asynchronous editor from blocking code.
struct EditorWriter {
    editor: SharedEditor,
    runtime: Handle,
    cancel: CancellationToken,
    roots: Vec<PathBuf>,
}

impl fmt::Debug for EditorWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EditorWriter").finish_non_exhaustive()
    }
}

impl WriteThrough for EditorWriter {
    fn covers(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| {
            real.starts_with(root) || root.canonicalize().is_ok_and(|root| real.starts_with(root))
        })
    }

    fn write(&self, real: &Path, text: &str) -> Result<(), String> {
        self.runtime.block_on(async {
            tokio::select! {
                written = self.editor.write(real, text) => written,
                () = self.cancel.cancelled() => Err("the call was cancelled".to_owned()),
            }
        })
    }
}

/// Fails if the editor has unsaved changes in any of these files, given as real paths.
pub(super) async fn refuse_any_unsaved(
    files: Vec<PathBuf>,
    cx: &CallContext,
) -> Result<(), ToolError> {
    let Some(editor) = editor(cx) else {
        return Ok(());
    };
    let mut asking = JoinSet::new();
    for file in files {
        let target = FileTarget::unrestricted(&file);
        if let Some(real) = editor_path(&target, cx) {
            let editor = Arc::clone(&editor);
            asking.spawn(async move { (target, editor.text(&real).await) });
        }
    }
    let mut found: Vec<(FileTarget, String)> = Vec::new();
    while let Some(asked) = asking.join_next().await {
        if let Ok((target, Some(text))) = asked {
            found.push((target, text));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.path().cmp(other.path()));
    if found.is_empty() {
        return Ok(());
    }
    let unsaved = run_on_journal(cx, move |journal| {
        let mut unsaved = Vec::new();
        for (target, text) in found {
            if journal.unsaved(&target, &text)?.is_some() {
                unsaved.push(target.path().to_path_buf());
            }
        }
        Ok(unsaved)
    })
    .await?
    .map_err(ToolError::Failed)?;
    if unsaved.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = unsaved.iter().map(|path| shown(path, &cx.cwd)).collect();
    Err(ToolError::Failed(format!(
        "the editor has unsaved changes in {}. Nothing was changed in any file. Ask the user to save or discard them, then \
         retry.",
        names.join(", ")
    )))
}
