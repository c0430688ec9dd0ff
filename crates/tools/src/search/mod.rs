//! Searching: `Glob` by name, `Grep` by content.
//!
//! What is found is the search engine's business; here are the words around it.

mod glob;
mod grep;

use std::{fmt::Write, path::Path, time::Duration};

use haft_contract::{Access, CallContext, Profile, ToolError};
use haft_search::{Completion, Skip, SkipReason, Skipped, Stop, StopReason};

pub(crate) use glob::Glob;
pub(crate) use grep::Grep;

use crate::names::shown;

/// How long one search may take; what was found until then is the answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How many files of each kind of trouble are named.
const NAMED_SKIPS: usize = 3;

/// What the tools of this family have in common.
fn profile(search_hint: &'static str) -> Profile {
    Profile {
        family: "search".into(),
        search_hint: search_hint.into(),
        access: Access::Reads,
        paths: &["path"],
        ..Profile::default()
    }
}

/// Ends a search when its time is over or the call is cancelled.
fn stop(cx: &CallContext, timeout: Duration) -> Stop {
    let cancel = cx.cancel.clone();
    Stop::after(timeout).or_when(move || cancel.is_cancelled())
}

/// Did the time run out? A cancelled search has no answer at all.
fn timed_out(completion: Completion) -> Result<bool, ToolError> {
    match completion {
        Completion::Stopped(StopReason::Cancelled) => Err(ToolError::Cancelled),
        Completion::Stopped(StopReason::Timeout) => Ok(true),
        Completion::Complete | Completion::Stopped(StopReason::Limit) => Ok(false),
    }
}

/// What an answer does not cover, one line each: skipped files, and whether the time ran out.
fn caveats(skipped: &Skipped, cwd: &Path, timed_out: bool, timeout: Duration) -> Vec<String> {
    let mut lines = Vec::new();
    if skipped.binary > 0 {
        let files = if skipped.binary == 1 { "file" } else { "files" };
        lines.push(format!("({} binary {files} not searched)", skipped.binary));
    }
    let kinds: [(usize, &str, fn(&SkipReason) -> bool); 3] = [
        (skipped.unreadable, "not readable", |reason| {
            matches!(reason, SkipReason::Unreadable { .. })
        }),
        (
            skipped.too_large,
            "too large for a multiline search",
            |reason| matches!(reason, SkipReason::TooLarge { .. }),
        ),
        (
            skipped.ignore_files,
            "ignore file only partly understood",
            |reason| matches!(reason, SkipReason::IgnoreFile { .. }),
        ),
    ];
    for (count, what, is) in kinds {
        if count > 0 {
            let samples = skipped.samples.iter().filter(|skip| is(&skip.reason));
            let named: Vec<String> = samples
                .take(NAMED_SKIPS)
                .map(|skip| sample(skip, cwd))
                .collect();
            let mut line = format!("({count} {what}: {}", named.join("; "));
            if count > named.len() {
                // Writing to a string cannot fail.
                let _ = write!(line, "; and {} more", count - named.len());
            }
            lines.push(line + ")");
        }
    }
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
