//! Calls in progress: subject, elapsed time, and the last lines of their output.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use haft::{Card, ProgressUpdate};
use haft_terminal::{TextLine, TextStyle};

use super::{cards, number_format, ui_style::UiStyle};

/// The maximum number of output lines shown for a running call.
const TAIL_LINES: usize = 5;
/// The maximum amount of output stored for a running call, in bytes. The complete output is in the
/// transcript or in a file.
const TAIL_BYTES: usize = 64 * 1024;

/// Calls in progress, in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls {
    calls: Vec<RunningCall>,
    /// The number of finished calls of the run, shown after an interrupt.
    pub(crate) finished: usize,
}

#[derive(Debug)]
struct RunningCall {
    tool_use_id: String,
    card: Card,
    since: Instant,
    bytes: u64,
    tail: String,
    note: String,
    agent: Option<AgentProgress>,
    /// Whether a question about the call is open. The call does not run yet, and the question shows
    /// it.
    is_held: bool,
}

/// The progress of a subagent.
#[derive(Debug, Default)]
struct AgentProgress {
    calls: u64,
    tokens: u64,
    last: Option<Card>,
}

impl RunningCalls {
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a call. A second report of the same call replaces its card.
    pub(crate) fn begin(&mut self, tool_use_id: &str, card: Card, now: Instant) {
        if let Some(call) = self.find(tool_use_id) {
            call.card = card;
            return;
        }
        self.calls.push(RunningCall {
            tool_use_id: tool_use_id.to_owned(),
            card,
            since: now,
            bytes: 0,
            tail: String::new(),
            note: String::new(),
            agent: None,
            is_held: false,
        });
    }

    /// Marks the calls for which `is_held` is true as waiting for an answer. Their time starts when
    /// they are allowed.
    pub(crate) fn hold(&mut self, is_held: impl Fn(&str) -> bool, now: Instant) {
        for call in &mut self.calls {
            // A call that has printed output is already running, even if it asks another question.
            call.is_held = call.bytes == 0 && is_held(&call.tool_use_id);
            if call.is_held {
                call.since = now;
            }
        }
    }

    pub(crate) fn progress(&mut self, tool_use_id: &str, update: &ProgressUpdate) {
        let Some(call) = self.find(tool_use_id) else {
            return;
        };
        match update {
            ProgressUpdate::Text { text } => call.print(text),
            ProgressUpdate::Note { text } => call.note.clone_from(text),
            ProgressUpdate::Step { done, total } => {
                call.note = match total {
                    Some(total) => format!("{done} of {total}"),
                    None => done.to_string(),
                };
            }
        }
    }

    /// Records a call that the subagent of this call made.
    pub(crate) fn agent_calls(&mut self, tool_use_id: &str, card: Card) {
        if let Some(call) = self.find(tool_use_id) {
            let agent = call.agent.get_or_insert_default();
            agent.calls += 1;
            agent.last = Some(card);
        }
    }

    pub(crate) fn agent_spent(&mut self, tool_use_id: &str, tokens: u64) {
        if let Some(call) = self.find(tool_use_id) {
            call.agent.get_or_insert_default().tokens = tokens;
        }
    }

    /// Removes a finished call.
    pub(crate) fn end(&mut self, tool_use_id: &str) {
        self.calls.retain(|call| call.tool_use_id != tool_use_id);
        self.finished += 1;
    }

    /// Removes all calls and returns their number.
    pub(crate) fn clear(&mut self) -> usize {
        let count = self.calls.len();
        self.calls.clear();
        self.finished = 0;
        count
    }

    fn find(&mut self, tool_use_id: &str) -> Option<&mut RunningCall> {
        self.calls
            .iter_mut()
            .find(|call| call.tool_use_id == tool_use_id)
    }

    /// Returns at most `most` rows. If there is not enough room, output is dropped first; then the
    /// oldest calls are only counted.
    pub(crate) fn rows(&self, frame: &CallFrame<'_>, most: usize) -> Vec<TextLine> {
        let running = || self.calls.iter().filter(|call| !call.is_held);
        let count = running().count();
        if count == 0 || most == 0 {
            return Vec::new();
        }
        let shown = count.min(most);
        let hidden = count - shown;
        let tail = (most - shown) / shown;
        let mut rows = Vec::new();
        for call in running().skip(hidden) {
            call.rows(frame, tail.min(TAIL_LINES), &mut rows);
        }
        if hidden > 0 {
            let text = format!("{} {hidden} more calls", frame.look.spinner(frame.step));
            rows[0] = TextLine::styled(&text, frame.look.theme.faint);
        }
        rows
    }
}

/// The parameters that all calls of a frame share.
pub(crate) struct CallFrame<'a> {
    pub(crate) look: &'a UiStyle,
    pub(crate) cwd: &'a Path,
    pub(crate) now: Instant,
    pub(crate) step: usize,
}

impl RunningCall {
    fn print(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.tail.push_str(text);
        if self.tail.len() > TAIL_BYTES {
            let mut from = self.tail.len() - TAIL_BYTES / 2;
            while !self.tail.is_char_boundary(from) {
                from += 1;
            }
            self.tail.drain(..from);
        }
    }

    fn rows(&self, frame: &CallFrame<'_>, tail: usize, rows: &mut Vec<TextLine>) {
        let look = frame.look;
        let mut line = TextLine::styled(look.spinner(frame.step), look.theme.accent);
        let mut facts = self.facts(frame);
        if tail > 0 && self.bytes > 0 && !look.is_narrow() {
            facts += "  (Ctrl-B: background)";
        }
        // The subject is truncated rather than the progress.
        let room = look.size.row_width().saturating_sub(facts.len() + 3);
        let words = cards::card_text(&self.card, frame.cwd, look);
        line.append(&cards::cut(&words, room, look));
        if !facts.is_empty() {
            line.push(&format!("  {facts}"), look.theme.faint);
        }
        rows.push(line);
        if let Some(card) = self.agent.as_ref().and_then(|agent| agent.last.as_ref())
            && tail > 0
        {
            let mut row = TextLine::plain("   ");
            row.append(&cards::card_text(card, frame.cwd, look));
            rows.push(row.restyled(|style| style.faint()));
            return;
        }
        let lines: Vec<&str> = last_lines(&self.tail, tail);
        for text in lines {
            let mut row = TextLine::plain("    ");
            row.push(text, TextStyle::new().faint());
            rows.push(row);
        }
    }

    fn facts(&self, frame: &CallFrame<'_>) -> String {
        let mut facts = Vec::new();
        let elapsed = frame.now.saturating_duration_since(self.since);
        if frame.look.is_still || elapsed >= Duration::from_secs(1) {
            facts.push(number_format::seconds(elapsed, frame.look));
        }
        if frame.look.is_narrow() {
            return facts.join(", ");
        }
        if let Some(agent) = &self.agent {
            facts.push(number_format::counted(agent.calls, "call"));
            if agent.tokens > 0 {
                facts.push(format!("{} tokens", number_format::thousands(agent.tokens)));
            }
        }
        if self.bytes > 0 {
            facts.push(number_format::bytes(self.bytes));
        }
        if !self.note.is_empty() {
            facts.push(cards::one_line(&self.note));
        }
        facts.join(", ")
    }
}

/// Returns the last non-empty lines of a text. A line that was overwritten with `\r` appears in its
/// last version.
fn last_lines(text: &str, most: usize) -> Vec<&str> {
    let became = |line: &'_ str| -> usize {
        let line = line.trim_end_matches('\r');
        line.rfind('\r').map_or(0, |at| at + 1)
    };
    let lines = text
        .rsplit('\n')
        .map(|line| line[became(line)..].trim_end());
    let mut lines: Vec<&str> = lines.filter(|line| !line.is_empty()).take(most).collect();
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_those_that_say_something() {
        assert_eq!(last_lines("a\nb\n\nc\n", 2), ["b", "c"]);
        assert_eq!(last_lines("10 %\r20 %\r\ndone", 5), ["20 %", "done"]);
        assert_eq!(last_lines("", 3), [""; 0]);
    }

    #[test]
    fn output_of_a_call_is_bounded() {
        let mut calls = RunningCalls::default();
        calls.begin("a", Card::new("Bash", "yes"), Instant::now());
        let text = "é".repeat(2048);
        for _ in 0..1000 {
            calls.progress("a", &ProgressUpdate::Text { text: text.clone() });
        }
        assert!(calls.calls[0].tail.len() <= TAIL_BYTES + text.len());
        assert_eq!(calls.calls[0].bytes, 1000 * 4096);
    }
}
