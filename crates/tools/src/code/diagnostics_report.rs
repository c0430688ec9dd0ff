//! The text about new problems after edits.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use haft_lsp::types::Diagnostic;

use crate::{paths::shown, plural::counted};

/// The maximum number of reported problems. `MAX_REPORTED_ELSEWHERE` is the maximum for a file that
/// was not edited.
const MAX_REPORTED: usize = 20;
const MAX_REPORTED_ELSEWHERE: usize = 5;
/// The maximum length of each problem, in characters.
const MAX_CHARACTERS: usize = 300;

/// The report for the model.
#[derive(Default)]
pub(super) struct ProblemReport {
    pub(super) servers: BTreeSet<String>,
    pub(super) files: Vec<ReportedFile>,
    pub(super) resolved: usize,
}

/// A file with new problems.
pub(super) struct ReportedFile {
    pub(super) path: PathBuf,
    pub(super) edited: bool,
    /// Line, column, problem.
    pub(super) problems: Vec<(usize, usize, Diagnostic)>,
}

impl ProblemReport {
    pub(super) fn text(mut self, cwd: &Path) -> Option<String> {
        if self.files.is_empty() && self.resolved == 0 {
            return None;
        }
        self.files
            .sort_by(|a, b| (!a.edited, &a.path).cmp(&(!b.edited, &b.path)));
        let mut lines = Vec::new();
        let mut left_out = 0;
        for file in &self.files {
            let most = if file.edited {
                MAX_REPORTED
            } else {
                MAX_REPORTED_ELSEWHERE
            };
            for (at, (line, character, problem)) in file.problems.iter().enumerate() {
                if at >= most || lines.len() >= MAX_REPORTED {
                    left_out += 1;
                    continue;
                }
                let name = shown(&file.path, cwd);
                lines.push(format!(
                    "{name}:{line}:{character} {}",
                    super::render::problem(problem, MAX_CHARACTERS)
                ));
            }
        }
        let mut text = "The edits above are in place.".to_owned();
        if !lines.is_empty() {
            let names: Vec<String> = self.servers.into_iter().collect();
            text += &format!(
                " New problems reported by {}:\n{}",
                names.join(", "),
                lines.join("\n")
            );
        }
        if left_out > 0 {
            text += &format!("\n… and {left_out} more.");
        }
        if self.resolved > 0 {
            let verb = if self.resolved == 1 { "is" } else { "are" };
            let separator = if lines.is_empty() { ' ' } else { '\n' };
            let count = counted(self.resolved as u64, "earlier problem");
            text += &format!("{separator}{count} {verb} gone.");
        }
        Some(text)
    }
}
