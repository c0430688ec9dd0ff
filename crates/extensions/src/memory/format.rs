//! Formatting of memory files for the model.

use std::fmt::Write;

use super::{MemoryFile, MemoryOwner, MemoryReason};

/// Formats the texts of files, each with its path, for a reminder; `None` if all are empty.
pub fn format_for_model(files: &[MemoryFile]) -> Option<String> {
    let mut text = String::new();
    for file in files {
        let whose = match file.owner {
            MemoryOwner::Managed => "of this machine's administrator",
            MemoryOwner::User => "of the user, for all projects",
            MemoryOwner::Project => "of the project",
            MemoryOwner::Local => "of the user, for this project",
            MemoryOwner::Auto => "saved by you in earlier sessions",
        };
        let from = match &file.path {
            Some(path) => format!("From {}", path.display()),
            None => "From the settings".to_owned(),
        };
        let _ = write!(text, "\n\n{from} ({whose}");
        if let MemoryReason::Import(by) = &file.reason {
            let _ = write!(text, "; imported by {}", by.display());
        }
        let _ = write!(text, "):\n\n{}", file.text.trim());
    }
    if text.is_empty() {
        return None;
    }
    Some(format!(
        "These files have instructions for you. Follow them if they apply to your task. If two conflict, \
         the later one applies; messages of the user have priority over all of them.{text}"
    ))
}
