//! Converts session events to lines. The first word of each line names its source.

use std::{collections::HashMap, path::PathBuf};

use haft::{CallId, Card, CardSection, TaskEvent};
use haft_agent::{AgentEvent, CompactionTrigger, EndReason, NoticeLevel, RunResult};
use haft_host::SessionEvent;
use haft_models::{Block, ModelEvent};
use haft_terminal::{HistoryItem, MarkdownCommitter, MarkdownLook};

use crate::show;

/// The maximum number of lines shown of a result.
const MAX_LINES: usize = 10;

/// The maximum number of lines shown of a diff.
const MAX_DIFF_LINES: usize = 20;

/// The line width. Practically unlimited: the terminal or the screen reader wraps lines.
const NO_EDGE: usize = 100_000;

/// Converts the events of a session to lines, in order.
pub(super) struct PlainLines {
    /// The working directory; paths below it are shown relative to it.
    cwd: PathBuf,
    reply: MarkdownCommitter,
    /// Whether a part of this run's reply has been shown.
    has_spoken: bool,
    /// Whether the model's failure has been reported.
    has_failed: bool,
    /// The headings of calls that have not reported progress yet, by call id.
    silent: HashMap<CallId, String>,
}

impl PlainLines {
    pub(super) fn new(cwd: PathBuf) -> Self {
        let look = MarkdownLook {
            hyperlinks: false,
            unicode: true,
            columns: NO_EDGE,
            ..MarkdownLook::default()
        };
        Self {
            cwd,
            reply: MarkdownCommitter::new(look),
            has_spoken: false,
            has_failed: false,
            silent: HashMap::new(),
        }
    }

    /// Returns the lines for an event.
    pub(super) fn lines_for(&mut self, event: &SessionEvent) -> Vec<String> {
        match event {
            SessionEvent::Warning(text) => prefixed("haft:", text),
            SessionEvent::Notice { level, text } => notice(*level, text),
            SessionEvent::RulesKept { file, problem } => match problem {
                None => vec![format!("haft: the rule is saved in {}", file.display())],
                Some(problem) => vec![format!(
                    "haft: {}: the rule could not be saved ({problem}); it applies to this session only",
                    file.display()
                )],
            },
            SessionEvent::Ready(facts) => {
                // Missing trust is reported elsewhere: by a question or a warning.
                let warning = facts.sandbox_warning.as_deref().unwrap_or_default();
                prefixed("haft:", warning)
            }
            SessionEvent::Agent(event) => self.agent(event),
            SessionEvent::Result(result) => self.result(&result.run),
            SessionEvent::Scheduled { prompt, .. } => {
                let mut lines = self.finish();
                lines.push(format!("scheduled: {}, {}", prompt.id, prompt.words));
                lines.extend(beginning("scheduled:", &prompt.prompt));
                lines
            }
            SessionEvent::Task(TaskEvent::Reported(notice)) => {
                let mut lines = self.finish();
                lines.extend(beginning(&format!("{}:", notice.id), &notice.result));
                lines
            }
            SessionEvent::Notification { text, .. } => {
                let mut lines = self.finish();
                lines.extend(beginning("haft:", text));
                lines
            }
            _ => Vec::new(),
        }
    }

    fn agent(&mut self, event: &AgentEvent) -> Vec<String> {
        match event {
            AgentEvent::RunStarted(_) => {
                self.has_spoken = false;
                Vec::new()
            }
            AgentEvent::Model(ModelEvent::Text { text, .. }) => {
                let done = self.reply.push(text);
                self.reply_lines(&done)
            }
            AgentEvent::Model(ModelEvent::Discard) => match self.reply.discard() {
                true => vec!["agent: (trying again)".to_owned()],
                false => Vec::new(),
            },
            AgentEvent::BlockCompleted(said) => match &said.block {
                Block::Text { .. } => self.finish(),
                _ => Vec::new(),
            },
            AgentEvent::CallBound { call, card, .. } => {
                self.silent.insert(*call, self.heading(card, None));
                Vec::new()
            }
            // A long call is announced when its first progress arrives.
            AgentEvent::Progress { call, .. } => match self.silent.remove(call) {
                Some(heading) => {
                    let mut lines = self.finish();
                    lines.push(format!("tool: {heading}; runs"));
                    lines
                }
                None => Vec::new(),
            },
            AgentEvent::CallFinished { finished, .. } => {
                self.silent.remove(&finished.call);
                let mut lines = self.finish();
                lines.extend(self.result_lines(&finished.card, finished.is_error, None));
                lines
            }
            AgentEvent::Subagent { agent, event } => match &**event {
                AgentEvent::CallFinished { finished, .. } => {
                    let kind = Some(agent.kind.as_str());
                    self.result_lines(&finished.card, finished.is_error, kind)
                }
                _ => Vec::new(),
            },
            AgentEvent::ModelFailed(error) => {
                // The result will repeat the error.
                (self.has_spoken, self.has_failed) = (true, true);
                let mut lines = self.finish();
                lines.extend(prefixed("agent: failed:", &error.to_string()));
                lines
            }
            AgentEvent::Compacting { trigger } => vec![match trigger {
                CompactionTrigger::Manual => "agent: (compacts the conversation)".to_owned(),
                CompactionTrigger::Auto => {
                    "agent: (the conversation is long: it is compacted)".to_owned()
                }
            }],
            AgentEvent::Notice { level, text } => notice(*level, text),
            _ => Vec::new(),
        }
    }

    /// Ends the open reply and returns its remaining lines.
    fn finish(&mut self) -> Vec<String> {
        let done = self.reply.finish();
        self.reply_lines(&done)
    }

    fn reply_lines(&mut self, items: &[HistoryItem]) -> Vec<String> {
        let mut lines = Vec::new();
        for item in items {
            if let HistoryItem::Verbatim(line) | HistoryItem::Prose { line, .. } = item
                && !line.text().trim().is_empty()
            {
                self.has_spoken = true;
                lines.push(format!("agent: {}", line.text()));
            }
        }
        lines
    }

    /// Handles the result of a run.
    fn result(&mut self, run: &RunResult) -> Vec<String> {
        let mut lines = self.finish();
        if !self.has_spoken && !run.text.trim().is_empty() {
            lines.extend(prefixed("agent:", &run.text));
        }
        if matches!(
            run.reason,
            EndReason::AbortedStreaming | EndReason::AbortedTools
        ) {
            lines.push("agent: (interrupted; what now?)".to_owned());
        } else if !self.has_failed {
            let errors = run.errors.iter();
            lines.extend(errors.flat_map(|error| prefixed("haft:", error)));
        }
        (self.has_spoken, self.has_failed) = (false, false);
        self.silent.clear();
        lines
    }
}

fn notice(level: NoticeLevel, text: &str) -> Vec<String> {
    match level {
        NoticeLevel::Info => prefixed("haft:", text),
        NoticeLevel::Warning => prefixed("haft: warning:", text),
    }
}

fn prefixed(beginning: &str, text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("{beginning} {line}")).collect()
}

/// Like [`prefixed`], but for a text that may be long: returns only its beginning.
fn beginning(beginning: &str, text: &str) -> Vec<String> {
    let mut lines = prefixed(beginning, text);
    if lines.len() > MAX_LINES {
        let more = lines.len() - MAX_LINES;
        lines.truncate(MAX_LINES);
        lines.push(format!("{beginning} … and {more} more lines"));
    }
    lines
}

impl PlainLines {
    fn heading(&self, card: &Card, agent: Option<&str>) -> String {
        let subject = show::from_here(&card.subject, &self.cwd).replace('\n', " ");
        let mut heading = format!("{} {subject}", card.title);
        if let Some(agent) = agent {
            heading = format!("[{agent}] {heading}");
        }
        heading.trim_end().to_owned()
    }

    /// Returns the heading of a finished call and the beginning of its result.
    fn result_lines(&self, card: &Card, is_error: bool, agent: Option<&str>) -> Vec<String> {
        let beginning = if is_error { "tool error:" } else { "tool:" };
        let mut first = format!("{beginning} {}", self.heading(card, agent));
        if !card.summary.is_empty() {
            first += &format!("; {}", card.summary.replace('\n', " "));
        }
        let mut lines = vec![first];
        for piece in &card.body {
            let (body, most): (Vec<&str>, usize) = match piece {
                CardSection::Text(text) | CardSection::Muted(text) | CardSection::Alarm(text) => {
                    (text.lines().collect(), MAX_LINES)
                }
                CardSection::Diff(hunks) => {
                    let changed = hunks.iter().flat_map(|hunk| &hunk.lines);
                    (changed.map(String::as_str).collect(), MAX_DIFF_LINES)
                }
            };
            let shown = body.iter().take(most);
            lines.extend(shown.map(|line| format!("{beginning}   {}", line.trim_end())));
            if body.len() > most {
                lines.push(format!("{beginning}   {} more lines", body.len() - most));
            }
        }
        lines
    }
}
