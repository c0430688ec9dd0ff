//! Handles the results of background jobs.

use std::time::Instant;

use haft::Content;
use haft_host::PromptDelivery;
use haft_terminal::{DraftChip, DraftPart, HistoryItem, TextLine};
use uuid::Uuid;

use super::{App, AppEffect, HintKind, JobResult};
use crate::tui::queue::WaitingMessage;

impl App {
    pub(super) fn on_job_result(&mut self, found: JobResult, now: Instant) {
        match found {
            JobResult::Warning(text) => self.warn(&format!("! {text}")),
            JobResult::Remark(text) => self.remark(&format!("- {text}")),
            JobResult::Answer { line, answer } => {
                self.print_message(&line);
                self.command_answered(answer);
            }
            JobResult::Queued { id, line } => self.command_queued(id, line),
            JobResult::NoCommand(line) => {
                self.warn(&format!(
                    "! Unknown command {line}. (Start with a space to send it as text.)"
                ));
                self.editor.restore_parts(&[DraftPart::Text(line)]);
            }
            JobResult::Completions { number, found } => self.completions(number, found),
            JobResult::Drawn { number, item } => self.history.fill(number, item),
            JobResult::History(entries) => self.set_prompt_history(entries),
            JobResult::RecoveredDraft(text) => {
                self.stash = Some(vec![DraftPart::Text(text)]);
                self.remark("- an earlier draft was saved (Ctrl-S restores it)");
            }
            JobResult::Picture { picture, pasted } => self.picture(picture, pasted, now),
            JobResult::Copied { said, controls } => {
                self.hint(said, HintKind::Notice, now);
                self.effect(AppEffect::Terminal(controls));
            }
            JobResult::Edited(Ok(text)) => self.editor.set_text(&text),
            JobResult::Edited(Err(why)) => self.warn(&format!("! {why}")),
            JobResult::Theme(found) => {
                let (theme, problem) = *found;
                self.set_theme(theme);
                if let Some(problem) = problem {
                    self.warn(&format!("! {problem}"));
                }
            }
            JobResult::Keybindings(keybindings) => self.keybindings = keybindings,
            JobResult::StatusRows(rows) => self.status_rows = rows,
            JobResult::Exchanges(exchanges) => self.resumed(&exchanges),
            JobResult::NoKey(report) => self.no_key(&report),
            JobResult::Untrusted(facts) => self.questions.ask_trust(facts, self.last_key),
            JobResult::RuleTrial { id, rules, outcome } => {
                self.questions.trial_ended(id, &rules, outcome);
            }
            JobResult::ViewData(data) => self.view_data(data),
        }
    }

    /// Adds a command to the queue. If it has already been delivered, prints it instead.
    fn command_queued(&mut self, id: Uuid, line: String) {
        if self.delivered_early.contains(&id) {
            self.print_message(&line);
            return;
        }
        self.queue.push(WaitingMessage {
            id,
            parts: vec![DraftPart::Text(line.clone())],
            text: line,
            time: PromptDelivery::AfterRun,
        });
    }

    /// Prints the output of a session's slash command.
    pub(crate) fn command_answered(&mut self, answer: Result<String, String>) {
        match answer {
            Ok(text) => {
                let width = self.look.size.row_width();
                let lines = text.trim_end().lines();
                let more = lines.clone().count().saturating_sub(ANSWER_LINES);
                for line in lines.take(ANSWER_LINES) {
                    self.history.push(answer_line(line, width));
                }
                if more > 0 {
                    let text = format!(
                        "{} {more} more lines are not printed; /export FILE writes the conversation to a file",
                        self.look.ellipsis()
                    );
                    self.remark(&text);
                }
            }
            Err(why) => self.warn(&format!("! {why}")),
        }
    }

    pub(super) fn picture(
        &mut self,
        picture: Result<(String, Content), String>,
        pasted: Option<String>,
        now: Instant,
    ) {
        match (picture, pasted) {
            (Ok((label, content)), _) => {
                self.pictures_named += 1;
                let number = self.pictures_named;
                let chip = DraftChip {
                    label: format!("[Image {number}: {label}]"),
                    text: String::new(),
                    unfolds: false,
                };
                let id = self.editor.insert_chip(chip);
                self.images.insert(id, content);
            }
            (Err(_), Some(pasted)) => self.editor.insert(&pasted),
            (Err(why), None) => self.hint(why, HintKind::Notice, now),
        }
    }
}

/// The maximum number of output lines that are printed. A longer output would push other content
/// out of the scrollback.
const ANSWER_LINES: usize = 200;

/// Returns one line of a command's output. In a line of the form `name  description`, a description
/// that does not fit is continued below itself, not below the name.
fn answer_line(text: &str, width: usize) -> HistoryItem {
    let line = TextLine::plain(text);
    if line.width() <= width {
        return HistoryItem::Verbatim(line);
    }
    let start = text.len() - text.trim_start().len();
    let gap = text[start..].find("  ").map(|at| start + at);
    let Some(gap) = gap else {
        return HistoryItem::Verbatim(line);
    };
    let words = text.len() - text[gap..].trim_start().len();
    let column = TextLine::plain(&text[..words]).width();
    let indent = if column * 2 <= width { column } else { 4 };
    HistoryItem::Prose { line, indent }
}
