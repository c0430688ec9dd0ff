//! A second Read of the same: a pointer to the first answer in place of the text once more.
//!
//! Only where the content, judged by its hash, is what that answer showed, and never twice in a row:
//! who asks a third time has lost it. Programs get the same value either way.

use std::path::{Path, PathBuf};

use haft_contract::{CallContext, Content, ToolError, ToolOutput};
use haft_journal::Journal;

use crate::{WholeAnswers, paths::shown};

/// What a Read would answer.
pub(super) struct ReadAnswer {
    pub(super) output: ToolOutput,
    /// The file that was read, after all links.
    pub(super) real: PathBuf,
    /// What of the file it shows, such as `lines 1–20`; `None` if no one should be pointed to it.
    pub(super) part: Option<String>,
}

/// The answer, or a pointer to the same one given before.
pub(super) fn once(
    found: ReadAnswer,
    path: &Path,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let ReadAnswer {
        mut output,
        real,
        part,
    } = found;
    let Some(part) = part else {
        return Ok(output);
    };
    if cx.services.get::<WholeAnswers>().is_ok() {
        return Ok(output);
    }
    let journal = cx.services.get::<Journal>()?;
    let name = shown(path, &cx.cwd);
    // By another name it would be another answer.
    let told = format!("{name}: {part}");
    if journal.ledger().may_point_to(&real, &told) {
        output.content = vec![Content::text(format!(
            "{name}: unchanged since your Read of {part}; that answer still holds. If you no longer \
             have it, make the same call once more."
        ))];
    }
    Ok(output)
}
