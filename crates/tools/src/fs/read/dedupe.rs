//! Repeated reads: if a Read would return the same content again, it returns a reference to the
//! earlier result instead.
//!
//! A reference is returned only if the hash proves that the earlier result showed the same content.
//! It is never returned twice in a row: a model that asks a third time has lost the result. The
//! structured output is the same in both cases.

use std::path::{Path, PathBuf};

use haft_contract::{CallContext, Content, ToolError, ToolOutput};
use haft_journal::Journal;

use crate::{AlwaysFullResults, paths::shown};

/// The result of a Read.
pub(super) struct ReadResult {
    pub(super) output: ToolOutput,
    /// The file that was read, with all links resolved.
    pub(super) real: PathBuf,
    /// The part of the file it shows, such as `lines 1–20`; `None` if it must not be replaced by a
    /// reference.
    pub(super) part: Option<String>,
}

/// Returns the output, or a reference to an earlier equal one.
pub(super) fn deduplicate(
    found: ReadResult,
    path: &Path,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let ReadResult {
        mut output,
        real,
        part,
    } = found;
    let Some(part) = part else {
        return Ok(output);
    };
    if cx.services.get::<AlwaysFullResults>().is_ok() {
        return Ok(output);
    }
    let journal = cx.services.get::<Journal>()?;
    let name = shown(path, &cx.cwd);
    // Under another name the result is a different one.
    let told = format!("{name}: {part}");
    if journal.ledger().may_point_to(&real, &told) {
        output.content = vec![Content::text(format!(
            "{name}: unchanged since your Read of {part}; that result is still valid. If you no longer \
             have it, make the same call again."
        ))];
    }
    Ok(output)
}
