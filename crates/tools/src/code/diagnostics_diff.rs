//! Comparison of problems before and after edits.

use std::collections::BTreeSet;

use haft_lsp::{position::lines, types::Diagnostic};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::setup::DiagnosticsFilter;

/// The problems and texts before and after edits.
pub(crate) struct DiagnosticsPair<'a> {
    /// The text before the edits.
    pub(crate) old_text: &'a str,
    /// The problems before; `None` if they are not known.
    pub(crate) old: Option<&'a [Diagnostic]>,
    /// The text now.
    pub(crate) new_text: &'a str,
    /// The problems now.
    pub(crate) new: &'a [Diagnostic],
}

/// The result of a comparison.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct DiagnosticsDiff {
    /// New problems, errors first.
    pub(crate) new: Vec<Diagnostic>,
    /// The number of resolved problems.
    pub(crate) resolved: usize,
}

/// Maps the lines of an old text to the new one.
struct LineMap {
    /// By old line; `None` if it was changed or removed.
    new_lines: Vec<Option<usize>>,
    /// New lines that do not exist in the old text.
    fresh: BTreeSet<usize>,
}

impl LineMap {
    fn new(old: &str, new: &str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) = (lines(old).collect(), lines(new).collect());
        let mut new_lines = vec![None; old.len()];
        let mut fresh: BTreeSet<usize> = (0..new.len()).collect();
        let (mut old_at, mut new_at) = (0, 0);
        for operation in capture_diff_slices(Algorithm::Myers, &old, &new) {
            // Only the lengths are used: in this version of `similar`, the offset of an empty side
            // can be wrong.
            let (old_length, new_length) =
                (operation.old_range().len(), operation.new_range().len());
            if matches!(operation, DiffOp::Equal { .. }) {
                for step in 0..old_length {
                    new_lines[old_at + step] = Some(new_at + step);
                    fresh.remove(&(new_at + step));
                }
            }
            (old_at, new_at) = (old_at + old_length, new_at + new_length);
        }
        Self { new_lines, fresh }
    }
}

/// Returns whether this problem is to be reported, according to the settings.
pub(crate) fn is_reported(problem: &Diagnostic, reported: DiagnosticsFilter) -> bool {
    let most = match reported {
        DiagnosticsFilter::New => 2,
        DiagnosticsFilter::Errors => 1,
        DiagnosticsFilter::Nothing => 0,
    };
    // 1 is unused code, 2 deprecated code.
    let is_hint = problem.tags.iter().any(|tag| matches!(tag, 1 | 2));
    problem.severity.unwrap_or(1) <= most && !is_hint
}

/// Compares the problems before and now.
pub(crate) fn compare(known: &DiagnosticsPair<'_>, reported: DiagnosticsFilter) -> DiagnosticsDiff {
    let map = LineMap::new(known.old_text, known.new_text);
    let mut left: Vec<&Diagnostic> = known
        .new
        .iter()
        .filter(|problem| is_reported(problem, reported))
        .collect();
    let line = |problem: &Diagnostic| problem.range.start.line as usize;
    let mut gone = 0;
    match known.old {
        // Without a baseline, only problems in changed lines can be attributed to the edit.
        None => left.retain(|problem| map.fresh.contains(&line(problem))),
        Some(old) => {
            for problem in old.iter().filter(|problem| is_reported(problem, reported)) {
                let there = map.new_lines.get(line(problem)).copied().flatten();
                let is_same = |other: &&Diagnostic| {
                    let same_place = match there {
                        Some(there) => line(other) == there,
                        None => map.fresh.contains(&line(other)),
                    };
                    same_place
                        && other.source == problem.source
                        && other.code == problem.code
                        && other.message == problem.message
                };
                match left.iter().position(is_same) {
                    Some(at) => {
                        left.remove(at);
                    }
                    None => gone += 1,
                }
            }
        }
    }
    let mut new: Vec<Diagnostic> = left.into_iter().cloned().collect();
    new.sort_by_key(|problem| (problem.severity.unwrap_or(1), problem.range.start));
    DiagnosticsDiff {
        new,
        resolved: gone,
    }
}

#[cfg(test)]
mod tests {
    use haft_lsp::types::diagnostics;
    use serde_json::json;

    use super::*;

    fn problem(line: u32, message: &str, severity: u32) -> Diagnostic {
        let range =
            json!({"start": {"line": line, "character": 0}, "end": {"line": line, "character": 1}});
        let list = json!([{"range": range, "message": message, "severity": severity}]);
        diagnostics(Some(&list)).remove(0)
    }

    fn difference(
        old_text: &str,
        old: Option<&[Diagnostic]>,
        new_text: &str,
        new: &[Diagnostic],
    ) -> (Vec<String>, usize) {
        let known = DiagnosticsPair {
            old_text,
            old,
            new_text,
            new,
        };
        let found = compare(&known, DiagnosticsFilter::New);
        let new = found.new.into_iter().map(|problem| problem.message);
        (new.collect(), found.resolved)
    }

    #[test]
    fn what_only_moved_is_not_new() {
        let old = [problem(1, "a", 1)];
        let new = [problem(4, "a", 1)];
        let found = difference("x\ny\nz\n", Some(&old), "1\n2\n3\nx\ny\nz\n", &new);
        assert_eq!(found, (vec![], 0));
    }

    #[test]
    fn new_ones_are_named_and_those_that_went_are_counted() {
        let old = [problem(0, "a", 1), problem(1, "b", 2)];
        let new = [problem(1, "b", 2), problem(1, "c", 1)];
        let found = difference("x\ny\n", Some(&old), "X\ny\n", &new);
        assert_eq!(found, (vec!["c".to_owned()], 1));
        // The same on a line that was written anew is the same.
        let still = [problem(0, "a", 1), problem(1, "b", 2)];
        assert_eq!(
            difference("x\ny\n", Some(&old), "X\ny\n", &still),
            (vec![], 0)
        );
    }

    #[test]
    fn without_a_beginning_only_changed_lines_count() {
        let new = [problem(0, "old", 1), problem(1, "mine", 1)];
        let found = difference("x\ny\n", None, "x\nY\n", &new);
        assert_eq!(found, (vec!["mine".to_owned()], 0));
    }

    #[test]
    fn hints_and_unused_code_are_never_told() {
        let mut unused = problem(0, "unused", 1);
        unused.tags = vec![1];
        let new = [
            problem(0, "hint", 4),
            unused,
            problem(0, "w", 2),
            problem(0, "e", 1),
        ];
        let found = difference("", Some(&[]), "x", &new);
        assert_eq!(found.0, ["e", "w"]);
    }
}
