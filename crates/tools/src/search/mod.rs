//! Searching: `Glob` by name, `Grep` by content.
//!
//! The search engine does the work; this module contains the tools' interfaces and texts.

mod glob;
mod grep;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use haft_contract::{CallContext, HiddenFilter, RuleMatch, ToolAccess, ToolError, ToolProfile};
use haft_search::{
    Exclusions, SearchCompletion, SearchEngine, SearchError, SearchStop, Skip, SkipReason,
    SkipSummary, StopCondition,
};

pub(crate) use glob::Glob;
pub(crate) use grep::Grep;

use crate::{blocking::blocking, paths::shown, plural::counted};

/// The time limit of a search; the result then has what was found so far.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The number of skipped files that are named for each reason.
const NAMED_SKIPS: usize = 3;

/// The common profile of the search tools.
fn profile(search_hint: &'static str) -> ToolProfile {
    ToolProfile {
        family: "search".into(),
        search_hint: search_hint.into(),
        access: ToolAccess::Reads,
        paths: &["path"],
        rules: RuleMatch::Reads,
        searches: true,
        ..ToolProfile::default()
    }
}

/// Returns a stop condition: the time limit is reached or the call is cancelled.
pub(crate) fn stop(cx: &CallContext, timeout: Duration) -> StopCondition {
    let cancel = cx.cancel.clone();
    StopCondition::after(timeout).or_if(move || cancel.is_cancelled())
}

/// Returns a filter for paths that a search below `root` must skip, by their names and their real
/// paths: paths that rules hide, and stores of keys, unless the search was permitted to begin
/// inside one. `real` is the real path of the root.
pub(crate) fn leave_out(
    hidden: &HiddenFilter,
    stores: &[PathBuf],
    root: &Path,
    real: Option<&Path>,
) -> Exclusions {
    let real = match real {
        Some(real) => real.to_path_buf(),
        None => root.canonicalize().unwrap_or_else(|_| root.to_path_buf()),
    };
    // Only stores below the root can be found; usually none is.
    let below = |store: &&PathBuf| store.starts_with(&real) && **store != real;
    let stores: Vec<PathBuf> = stores.iter().filter(below).cloned().collect();
    if hidden.is_empty() && stores.is_empty() {
        return Exclusions::default();
    }
    let hidden = hidden.clone();
    let root = root.to_path_buf();
    Exclusions::from_fn(move |path| {
        let real = match path.strip_prefix(&root) {
            Ok(below) if root != real => Some(real.join(below)),
            _ => None,
        };
        let mut names = [Some(path), real.as_deref()].into_iter().flatten();
        names.any(|path| hidden.hides(path) || stores.iter().any(|store| is_store(path, store)))
    })
}

/// Returns whether a path is in this store. Some file systems ignore case.
fn is_store(path: &Path, store: &Path) -> bool {
    let folded = |path: &Path| path.to_string_lossy().to_lowercase();
    let same = |path: &Path| path.as_os_str().len() == store.as_os_str().len();
    path.starts_with(store)
        || path
            .ancestors()
            .find(|above| same(above))
            .is_some_and(|above| folded(above) == folded(store))
}

/// Calls the search engine on a thread for blocking work. Returns its error as text, which the
/// caller reports as a refusal (before permission is granted) or as a failure (afterwards).
async fn ask<T: Send + 'static>(
    cx: &CallContext,
    question: impl FnOnce(&SearchEngine) -> Result<T, SearchError> + Send + 'static,
) -> Result<Result<T, String>, ToolError> {
    let engine = cx.services.get::<SearchEngine>()?;
    let answer = blocking(move || question(&engine)).await?;
    Ok(answer.map_err(|error| explain(error, &cx.cwd)))
}

/// Returns the text of an error, completed with what only a tool knows.
fn explain(error: SearchError, cwd: &Path) -> String {
    match error {
        SearchError::PathMissing { .. } => {
            format!("{error}. The working directory is {}.", cwd.display())
        }
        error => error.to_string(),
    }
}

/// Returns whether the time limit was reached. A cancelled search has no result.
pub(crate) fn timed_out(completion: SearchCompletion) -> Result<bool, ToolError> {
    match completion {
        SearchCompletion::Stopped(SearchStop::Cancelled) => Err(ToolError::Cancelled),
        SearchCompletion::Stopped(SearchStop::Timeout) => Ok(true),
        SearchCompletion::Complete | SearchCompletion::Stopped(SearchStop::Limit) => Ok(false),
    }
}

/// Returns the limitations of a result, one line each: skipped files, and whether the time limit
/// was reached.
fn caveats(skipped: &SkipSummary, cwd: &Path, timed_out: bool, timeout: Duration) -> Vec<String> {
    let mut lines = Vec::new();
    if skipped.binary > 0 {
        let files = counted(skipped.binary as u64, "binary file");
        lines.push(format!("({files} skipped)"));
    }
    let trouble = |count: usize, what: &str, is: fn(&SkipReason) -> bool| {
        let samples = skipped.samples.iter().filter(|skip| is(&skip.reason));
        let named: Vec<String> = samples
            .take(NAMED_SKIPS)
            .map(|skip| sample(skip, cwd))
            .collect();
        let more = match count - named.len().min(count) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        (count > 0).then(|| format!("({count} {what}: {}{more})", named.join("; ")))
    };
    lines.extend(trouble(skipped.unreadable, "not readable", |reason| {
        matches!(reason, SkipReason::Unreadable { .. })
    }));
    lines.extend(trouble(
        skipped.too_large,
        "too large for a multiline search",
        |reason| matches!(reason, SkipReason::TooLarge { .. }),
    ));
    lines.extend(trouble(
        skipped.ignore_files,
        "ignore file only partly understood",
        |reason| matches!(reason, SkipReason::IgnoreFile { .. }),
    ));
    if timed_out {
        let seconds = timeout.as_secs_f64();
        lines.push(format!(
            "(stopped after {seconds} s: results are partial; narrow the path or the pattern)"
        ));
    }
    lines
}

fn sample(skip: &Skip, cwd: &Path) -> String {
    let reason = match &skip.reason {
        SkipReason::Unreadable { message } | SkipReason::IgnoreFile { message } => message.clone(),
        SkipReason::TooLarge { bytes } => format!("{bytes} bytes"),
        other => other.to_string(),
    };
    match &skip.path {
        Some(path) => format!("{}: {reason}", shown(path, cwd)),
        None => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_does_not_cover_is_said() {
        let skip = |path: &str, reason| Skip {
            path: Some(path.into()),
            reason,
        };
        let denied = || SkipReason::Unreadable {
            message: "Permission denied (os error 13)".to_owned(),
        };
        let skipped = SkipSummary {
            binary: 2,
            unreadable: 4,
            too_large: 1,
            ignore_files: 1,
            samples: vec![
                skip("/w/a", denied()),
                skip("/w/b", denied()),
                skip("/w/c", denied()),
                skip("/w/d", denied()),
                skip("/w/big", SkipReason::TooLarge { bytes: 9 }),
                skip(
                    "/w/.gitignore",
                    SkipReason::IgnoreFile {
                        message: "line 3: bad glob".to_owned(),
                    },
                ),
            ],
        };
        let lines = caveats(&skipped, Path::new("/w"), true, Duration::from_millis(1500));
        assert_eq!(
            lines,
            [
                "(2 binary files skipped)",
                "(4 not readable: a: Permission denied (os error 13); b: Permission denied (os error \
                 13); c: Permission denied (os error 13); and 1 more)",
                "(1 too large for a multiline search: big: 9 bytes)",
                "(1 ignore file only partly understood: .gitignore: line 3: bad glob)",
                "(stopped after 1.5 s: results are partial; narrow the path or the pattern)",
            ]
        );
        let nothing = caveats(&SkipSummary::default(), Path::new("/w"), false, TIMEOUT);
        assert!(nothing.is_empty());
    }
}
