//! Rules: files in `.claude/rules`, some of them for certain files only.

use std::path::PathBuf;

use super::Owner;
use crate::patterns::Patterns;

/// A rule that waits for a file it is for.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) path: PathBuf,
    pub(super) owner: Owner,
    pub(super) written: Vec<String>,
    pub(super) patterns: Patterns,
    pub(super) text: String,
}
