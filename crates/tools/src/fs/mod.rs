//! The file tools: `Read`, `Write`, `Edit`, `NotebookEdit`, `LS`, `ReplaceInFiles`, `Undo`.
//!
//! The journal does the work on bytes; this module contains the tools' interfaces and texts.
//! `editor`: unsaved text of an editor has priority over the file on disk.

mod edit;
mod editor;
mod ls;
mod notebook_edit;
mod patch;
mod read;
#[cfg(feature = "search")]
mod replace_in_files;
mod undo;
mod write;

use std::{io, path::Path};

use haft_contract::{CallContext, PermissionMode, RuleMatch, ToolAccess, ToolError, ToolProfile};
use haft_journal::{
    FileTarget, Journal, JournalError, WriteGrant, looks_like, nearby, notebook::NotebookError,
    respelt,
};

pub(crate) use edit::Edit;
pub(crate) use ls::Ls;
pub(crate) use notebook_edit::NotebookEdit;
pub use read::PdfReader;
pub(crate) use read::Read;
#[cfg(feature = "fuzzing")]
pub use read::check_image;
#[cfg(feature = "web")]
pub(crate) use read::read_kept;
pub use read::{image_content, image_pixels};
#[cfg(feature = "code")]
pub(crate) use replace_in_files::{PlannedFileChange, keep_plan};
#[cfg(feature = "search")]
pub(crate) use replace_in_files::{ReplaceInFiles, ReplacePlans};
pub(crate) use undo::Undo;
pub(crate) use write::Write;

use crate::{
    blocking::blocking,
    paths::{escape_json, path_constraint, shown},
};

/// The matching of permission rules for `Edit` and similar tools: they apply to written files; deny
/// rules for reading apply, too.
const EDITS: RuleMatch = RuleMatch::Edits {
    held_by_reads: true,
};

/// The common profile of the file tools.
fn profile(
    access: ToolAccess,
    paths: &'static [&'static str],
    search_hint: &'static str,
) -> ToolProfile {
    ToolProfile {
        family: "files".into(),
        search_hint: search_hint.into(),
        access,
        paths,
        ..ToolProfile::default()
    }
}

/// Returns the write grant of a call: its id, its tool, and where it may write.
fn ticket(tool: &str, cx: &CallContext) -> WriteGrant {
    let call = cx.call.to_string();
    let permissions = &cx.permissions;
    let ticket = match permissions.mode {
        PermissionMode::BypassPermissions => WriteGrant::unconfined(call, tool),
        _ => {
            let within = permissions.directories.iter().chain(&*permissions.granted);
            WriteGrant::new(call, tool, within.cloned())
        }
    };
    shown_to_searches(ticket, cx)
}

/// Passes written contents on to the search engine, so that the next search need not read them.
#[cfg(feature = "search")]
fn shown_to_searches(ticket: WriteGrant, cx: &CallContext) -> WriteGrant {
    let Ok(engine) = cx.services.get::<haft_search::SearchEngine>() else {
        return ticket;
    };
    ticket.followed(move |path, content, stamp| {
        let identity = haft_search::FileIdentity {
            device: stamp.device,
            inode: stamp.inode,
            modified_ns: stamp.mtime_ns,
        };
        engine.on_file_written(path, content, &identity);
    })
}

#[cfg(not(feature = "search"))]
fn shown_to_searches(ticket: WriteGrant, _: &CallContext) -> WriteGrant {
    ticket
}

/// Returns the file that a call may open by this name.
fn target(path: &Path, cx: &CallContext) -> Result<FileTarget, ToolError> {
    Ok(match path_constraint(path, cx)? {
        Some(real) => FileTarget::authorized(path, real),
        None => FileTarget::unrestricted(path),
    })
}

/// Creates a file with these bytes, for a tool that may write there.
#[cfg(feature = "browser")]
pub(crate) async fn create(
    tool: &str,
    path: &Path,
    content: Vec<u8>,
    cx: &CallContext,
) -> Result<(), ToolError> {
    let (target, ticket) = (target(path, cx)?, ticket(tool, cx));
    let created =
        run_on_journal(cx, move |journal| journal.create(&ticket, target, content)).await?;
    match created.map_err(ToolError::Failed)? {
        true => Ok(()),
        false => Err(ToolError::Failed(format!(
            "{} already exists; choose another file name.",
            path.display()
        ))),
    }
}

/// Runs a journal function on a thread for blocking work. Returns its error as text, which the
/// caller reports as a refusal (before permission is granted) or as a failure (afterwards).
async fn run_on_journal<T: Send + 'static>(
    cx: &CallContext,
    question: impl FnOnce(&Journal) -> Result<T, JournalError> + Send + 'static,
) -> Result<Result<T, String>, ToolError> {
    let journal = cx.services.get::<Journal>()?;
    let cwd = cx.cwd.clone();
    blocking(move || question(&journal).map_err(|error| explain(error, &cwd))).await
}

/// Returns the text of a journal error, completed with what only the tools know: the working
/// directory, and which tool to use instead. Searches for similar names, so it accesses the disk.
fn explain(error: JournalError, cwd: &Path) -> String {
    match error {
        JournalError::DoesNotExist { path, .. } => missing(&path, cwd),
        JournalError::IsDirectory { path } => format!(
            "{} is a directory, not a file: use LS to list it, or name a file in it.",
            path.display()
        ),
        JournalError::Notebook {
            error: NotebookError::Json { .. },
            ..
        } => format!(
            "{error} Nothing was changed. Repair that place with a shell command, or write the \
             whole file again with Write."
        ),
        JournalError::Binary { .. } => {
            format!("{error} Use a shell command made for this type of file.")
        }
        error => error.to_string(),
    }
}

/// Returns whether the file is a notebook. The extension decides, because a notebook is also text.
fn is_notebook(path: &Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

/// Returns whether the path does not exist; a path below a regular file does not exist either.
fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// Returns the error text for a missing file, with similar names.
fn missing(path: &Path, cwd: &Path) -> String {
    if let Some(alike) = respelt(path) {
        return format!(
            "{} does not exist, but {} does: the same name in other Unicode characters. Write it \
             exactly like that, escapes included.",
            path.display(),
            escape_json(&alike.to_string_lossy())
        );
    }
    // The link exists, but its target does not: a closed stdin, or a file that was moved.
    if let Ok(target) = std::fs::read_link(path) {
        return format!(
            "{} is a symbolic link to {}, which does not exist or cannot be opened by its name. \
             Read the file that was meant by its own path.",
            path.display(),
            target.display()
        );
    }
    let near: Vec<String> = nearby(path, Some(cwd))
        .iter()
        .filter(|near| near.as_path() != path)
        .map(|near| match looks_like(near, path) {
            true => escape_json(&near.to_string_lossy()),
            false => shown(near, cwd),
        })
        .collect();
    let hint = if near.is_empty() {
        "Check the spelling, or search for it with Glob.".to_owned()
    } else {
        format!("Did you mean {}?", near.join(" or "))
    };
    format!(
        "{} does not exist. {hint} The working directory is {}.",
        path.display(),
        cwd.display()
    )
}
