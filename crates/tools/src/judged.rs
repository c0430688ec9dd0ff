//! Which file or directory a call may open: what its path led to when the call was judged.

use std::path::{Path, PathBuf};

use haft_contract::{CallContext, MustLead, ToolError};

/// Where a path of the call must lead; `None` where nothing was judged.
pub(crate) fn must_lead(path: &Path, cx: &CallContext) -> Result<Option<PathBuf>, ToolError> {
    match cx.permissions.judged.must_lead(path) {
        MustLead::Anywhere => Ok(None),
        MustLead::To(real) => Ok(Some(real)),
        MustLead::Nowhere => Err(ToolError::Failed(format!(
            "{} was not part of what this call was permitted, so it was not opened.",
            path.display()
        ))),
    }
}
