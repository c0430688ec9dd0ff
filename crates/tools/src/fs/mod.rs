//! Files: `Read`, `Write`, `Edit`, `LS`.
//!
//! What is done to bytes is the journal's; here are the words around it.

mod edit;
mod ls;
mod patch;
mod read;
mod write;

use std::{io, path::Path};

use haft_contract::{Access, Profile};
use haft_journal::{JournalError, nearby};

pub(crate) use edit::Edit;
pub(crate) use ls::Ls;
pub(crate) use read::Read;
pub(crate) use write::Write;

use crate::paths::shown;

/// What the tools of this family have in common.
fn profile(access: Access, paths: &'static [&'static str], search_hint: &'static str) -> Profile {
    Profile {
        family: "files".into(),
        search_hint: search_hint.into(),
        access,
        paths,
        ..Profile::default()
    }
}

/// The text of a journal's error, completed with what only a tool knows: the working directory, and
/// which tool to use instead. Looks for near names, so it may wait for the disk.
fn explain(error: JournalError, cwd: &Path) -> String {
    match error {
        JournalError::DoesNotExist { path, .. } => missing(&path, cwd),
        JournalError::IsDirectory { path } => format!(
            "{} is a directory, not a file: use LS to list it, or name a file in it.",
            path.display()
        ),
        JournalError::Binary { kind, .. } => {
            let advice = match kind {
                Some("PDF document") => {
                    " PDFs are not read yet: extract the text with a shell command such as pdftotext."
                }
                Some(kind) if kind.ends_with("image") => " Images are not shown yet.",
                _ => " Use a shell command made for this type of file.",
            };
            format!("{error}{advice}")
        }
        error => error.to_string(),
    }
}

/// Is nothing there? Below a file there is nothing either.
fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// A missing file, with the names that may have been meant.
fn missing(path: &Path, cwd: &Path) -> String {
    let near: Vec<String> = nearby(path, Some(cwd))
        .iter()
        .map(|near| shown(near, cwd))
        .collect();
    let hint = if near.is_empty() {
        "Check the spelling, or look for it with Glob.".to_owned()
    } else {
        format!("Did you mean {}?", near.join(" or "))
    };
    format!(
        "{} does not exist. {hint} The working directory is {}.",
        path.display(),
        cwd.display()
    )
}
