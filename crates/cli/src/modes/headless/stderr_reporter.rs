//! The progress display of `haft -p` on stderr while stdout waits for the answer.
//!
//! On a terminal it shows each finished call, each retry of a model request and each switch to a
//! fallback model. At the end, also without a terminal, one line lists the denied calls and the
//! options that would allow them.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use haft::{CallResult, DenialSource};
use haft_agent::{AgentEvent, AgentEventSink};

use crate::show::{self, ConsoleStyle, RunWatcher};

/// The maximum number of denied calls that the last line names.
const MAX_NAMED: usize = 3;

pub(super) struct StderrReporter {
    watch: Option<RunWatcher>,
    cwd: PathBuf,
    refused: Mutex<Vec<RefusedCall>>,
}

struct RefusedCall {
    call: String,
    remedy: Option<String>,
}

impl StderrReporter {
    /// Creates the display. Paths below `cwd` are shown relative to it.
    pub(super) fn new(cwd: &Path) -> Self {
        let style = ConsoleStyle::of_stderr();
        Self {
            watch: show::stderr_is_terminal().then(|| RunWatcher::on_stderr(style, cwd)),
            cwd: cwd.to_path_buf(),
            refused: Mutex::default(),
        }
    }

    pub(super) fn on_event(&self, event: &AgentEvent) {
        if let Some(watch) = &self.watch {
            watch.on_event(event);
        }
        match event {
            AgentEvent::CallFinished { finished, .. } => self.record_denial(finished),
            AgentEvent::Subagent { event, .. } => {
                if let AgentEvent::CallFinished { finished, .. } = &**event {
                    self.record_denial(finished);
                }
            }
            _ => {}
        }
    }

    fn record_denial(&self, finished: &CallResult) {
        // Denials by the user are not listed: the user knows them.
        let Some(DenialSource::Unasked { remedy, .. }) = &finished.metadata.denied else {
            return;
        };
        let subject = show::from_here(&finished.card.subject, &self.cwd);
        let call = format!("{} {subject}", finished.name);
        let call = call.lines().next().unwrap_or_default().trim().to_owned();
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.push(RefusedCall {
            call,
            remedy: remedy.clone(),
        });
    }

    /// Prints the line about denied calls, if any.
    pub(super) fn end(&self) {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = last_line(&refused) {
            show::warn(&format!("haft: {}", show::clean(&line).replace('\n', " ")));
        }
    }
}

fn last_line(refused: &[RefusedCall]) -> Option<String> {
    if refused.is_empty() {
        return None;
    }
    let (mut calls, mut remedies) = (Vec::new(), Vec::new());
    for one in refused {
        if !calls.contains(&one.call.as_str()) {
            calls.push(&one.call);
        }
        if let Some(remedy) = one.remedy.as_deref().filter(|one| !remedies.contains(one)) {
            remedies.push(remedy);
        }
    }
    let more = calls.len().saturating_sub(MAX_NAMED);
    calls.truncate(MAX_NAMED);
    let mut line = format!("refused: {}", calls.join("; "));
    if more > 0 {
        line += &format!("; and {more} more");
    }
    if !remedies.is_empty() {
        line += &format!(". What would allow it: {}", remedies.join("; "));
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_names_calls_and_what_would_allow_them_once() {
        let refused = |call: &str, remedy: Option<&str>| RefusedCall {
            call: call.to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        assert_eq!(last_line(&[]), None);
        let edits = Some("--permission-mode acceptEdits");
        let all = [
            refused("Write a.txt", edits),
            refused("Write a.txt", edits),
            refused("Bash npm i", Some("the allow rule Bash(npm i)")),
            refused("Read /etc/shadow", None),
            refused("Write b.txt", edits),
        ];
        insta::assert_snapshot!(last_line(&all).unwrap(), @"refused: Write a.txt; Bash npm i; Read /etc/shadow; and 1 more. What would allow it: --permission-mode acceptEdits; the allow rule Bash(npm i)");
    }
}
