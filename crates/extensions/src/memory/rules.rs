//! Rules: files in `.claude/rules`. Some of them apply only to certain files.

use std::path::PathBuf;

use super::MemoryOwner;
use crate::patterns::PathPatterns;

/// A rule that waits for a matching file.
#[derive(Debug, Clone)]
pub(super) struct ConditionalRule {
    pub(super) path: PathBuf,
    pub(super) owner: MemoryOwner,
    pub(super) written: Vec<String>,
    pub(super) patterns: PathPatterns,
    pub(super) text: String,
}
