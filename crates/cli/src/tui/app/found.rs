//! What was found out in the background.

use std::time::Instant;

use haft::Content;
use haft_host::Delivery;
use haft_terminal::{Chip, DraftPart, HistoryItem, TextLine};
use uuid::Uuid;

use super::{App, Effect, Found, HintKind};
use crate::tui::queue::WaitingMessage;

impl App {
    pub(super) fn found(&mut self, found: Found, now: Instant) {
        match found {
            Found::Warning(text) => self.warn(&format!("! {text}")),
            Found::Remark(text) => self.remark(&format!("- {text}")),
            Found::Answer { line, answer } => {
                self.print_message(&line);
                self.command_answered(answer);
            }
            Found::Queued { id, line } => self.command_queued(id, line),
            Found::NoCommand(line) => {
                self.warn(&format!(
                    "! there is no command {line}; a blank before it sends it as a message"
                ));
                self.editor.put_back(&[DraftPart::Text(line)]);
            }
            Found::Completions { number, found } => self.completions(number, found),
            Found::Drawn { number, item } => self.history.fill(number, item),
            Found::Said(entries) => self.set_said(entries),
            Found::KeptDraft(text) => {
                self.stash = Some(vec![DraftPart::Text(text)]);
                self.remark("- a draft of yours was kept (Ctrl-S brings it back)");
            }
            Found::Picture { picture, pasted } => self.picture(picture, pasted, now),
            Found::Copied { said, controls } => {
                self.hint(said, HintKind::Said, now);
                self.effect(Effect::Terminal(controls));
            }
            Found::Edited(Ok(text)) => self.editor.set_text(&text),
            Found::Edited(Err(why)) => self.warn(&format!("! {why}")),
            Found::Theme(found) => {
                let (theme, problem) = *found;
                self.set_theme(theme);
                if let Some(problem) = problem {
                    self.warn(&format!("! {problem}"));
                }
            }
            Found::Keybindings(keybindings) => self.keybindings = keybindings,
            Found::StatusRows(rows) => self.status_rows = rows,
            Found::Exchanges(exchanges) => self.resumed(&exchanges),
            Found::NoKey(report) => self.no_key(&report),
            Found::Untrusted(facts) => self.questions.ask_trust(facts, self.last_key),
            Found::ViewData(data) => self.view_data(data),
        }
    }

    /// A command waits for its turn, unless that has come already.
    fn command_queued(&mut self, id: Uuid, line: String) {
        if self.early.contains(&id) {
            self.print_message(&line);
            return;
        }
        self.queue.push(WaitingMessage {
            id,
            parts: vec![DraftPart::Text(line.clone())],
            text: line,
            time: Delivery::AfterRun,
        });
    }

    /// What a command of the session's answered.
    pub(crate) fn command_answered(&mut self, answer: Result<String, String>) {
        match answer {
            Ok(text) => {
                for line in text.trim_end().lines() {
                    let line = TextLine::plain(line);
                    self.history.push(HistoryItem::Verbatim(line));
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
                let chip = Chip {
                    label: format!("[Image {number}: {label}]"),
                    text: String::new(),
                    unfolds: false,
                };
                let id = self.editor.insert_chip(chip);
                self.images.insert(id, content);
            }
            (Err(_), Some(pasted)) => self.editor.insert(&pasted),
            (Err(why), None) => self.hint(why, HintKind::Said, now),
        }
    }
}
