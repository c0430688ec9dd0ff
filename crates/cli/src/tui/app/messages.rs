//! Sends messages to the session and withdraws queued ones.

use std::time::Instant;

use haft::{ApprovalAnswer, Content};
use haft_agent::{Prompt, mentioned};
use haft_host::PromptDelivery;
use haft_terminal::{
    DraftPart, HistoryItem, TextLine, TextStyle, image::ImageProtocol, paint::PromptMark,
};
use uuid::Uuid;

use super::{App, AppEffect, AppSessionState, RunState};
use crate::tui::{ask::QuestionId, history_file::PromptHistoryEntry, queue::WaitingMessage};

/// The maximum number of remembered messages that were delivered before their ids were known.
const MAX_EARLY_DELIVERIES: usize = 16;

impl App {
    /// Sends the draft as a message.
    pub(crate) fn send_message(&mut self, time: PromptDelivery, now: Instant) {
        let text = self.editor.text();
        let parts = self.take_draft();
        let images = parts.iter().filter_map(|part| match part {
            DraftPart::Chip(id) => self.images.get(id).cloned(),
            DraftPart::Text(_) => None,
        });
        let mut content = vec![Content::text(text.clone())];
        content.extend(images);
        self.send(text, parts, content, time, now);
    }

    /// Removes the draft from the editor and adds it to the history.
    pub(crate) fn take_draft(&mut self) -> Vec<DraftPart> {
        let text = self.editor.text();
        if self.inputs.add(&text) {
            let session = self.status.session.clone().unwrap_or_default();
            self.add_to_prompt_history(PromptHistoryEntry {
                text: text.clone(),
                project: self.cwd.clone(),
                session,
                time_ms: 0,
            });
            self.effects.push(AppEffect::SaveHistory(text));
        }
        self.effects.push(AppEffect::SaveDraft(String::new()));
        self.draft_due = None;
        let parts = self.editor.take();
        self.request_completions();
        parts
    }

    /// Runs a shell command line that the user typed.
    pub(crate) fn shell(&mut self, command: &str, now: Instant) {
        let text = self.editor.text();
        let parts = self.take_draft();
        let id = haft::CallId::new().0;
        self.wake_session();
        self.queue.push(WaitingMessage {
            id,
            parts,
            text,
            time: PromptDelivery::AfterRun,
        });
        if self.run.is_none() {
            self.delivered(id);
            self.begin_run(now);
        }
        let command = command.to_owned();
        self.queue_for_session(AppEffect::Shell { command, id });
    }

    pub(super) fn begin_run(&mut self, now: Instant) {
        self.run = Some(RunState {
            since: now,
            tokens: 0,
            compacting: false,
            is_stopping: false,
        });
    }

    pub(super) fn wake_session(&mut self) {
        if matches!(
            self.session,
            AppSessionState::Missing | AppSessionState::Over
        ) {
            // Opening may succeed now, for example because a key was set or a file was repaired.
            self.session = AppSessionState::Opening;
            self.effects.push(AppEffect::Open);
        }
    }

    /// Like [`Self::send_message`], but for a text that was not typed.
    pub(crate) fn send_text(&mut self, text: &str, now: Instant) {
        let parts = vec![DraftPart::Text(text.to_owned())];
        let content = vec![Content::text(text)];
        self.send(text.to_owned(), parts, content, PromptDelivery::Steer, now);
    }

    pub(super) fn send(
        &mut self,
        text: String,
        parts: Vec<DraftPart>,
        content: Vec<Content>,
        time: PromptDelivery,
        now: Instant,
    ) {
        self.wake_session();
        if self.window_subject.is_empty() {
            self.window_subject.clone_from(&text);
        }
        let id = haft::CallId::new().0;
        let prompt = Prompt {
            content,
            uuid: Some(id),
            origin: None,
            mentions: mentioned(&text),
        };
        self.queue.push(WaitingMessage {
            id,
            parts,
            text,
            time,
        });
        if self.run.is_none() {
            // Without a run, the message is delivered immediately.
            self.delivered(id);
            self.begin_run(now);
        }
        self.queue_for_session(AppEffect::SendPrompt { prompt, time });
    }

    /// Sends an effect to the session. Until the session is open, the effect is queued.
    pub(crate) fn queue_for_session(&mut self, effect: AppEffect) {
        match self.session {
            AppSessionState::Opening => self.unsent.push(effect),
            _ => self.effects.push(effect),
        }
    }

    /// Handles the delivery of a message to the model: prints it and removes it from the queue.
    pub(crate) fn delivered(&mut self, id: Uuid) {
        match self.queue.remove(id) {
            Some(message) => {
                let shown = self.folded(&message);
                self.print_message(&shown);
                self.show_pictures(&message.parts);
                self.remove_chip_contents(&message.parts);
            }
            None => {
                self.delivered_early.truncate(MAX_EARLY_DELIVERIES - 1);
                self.delivered_early.insert(0, id);
            }
        }
    }

    /// Returns a message as the editor displayed it: with the labels of chips instead of pasted
    /// text, which may be very long.
    fn folded(&self, message: &WaitingMessage) -> String {
        let parts = message.parts.iter().map(|part| match part {
            DraftPart::Text(text) => text.as_str(),
            DraftPart::Chip(id) => self.editor.chip(*id).map_or("", |chip| &chip.label),
        });
        let folded: String = parts.collect();
        match folded.is_empty() {
            true => message.text.clone(),
            false => folded,
        }
    }

    /// Removes the contents of a message's chips. The session has them now.
    fn remove_chip_contents(&mut self, parts: &[DraftPart]) {
        self.editor.clear_sent_chips(parts);
        for part in parts {
            if let DraftPart::Chip(id) = part {
                self.images.remove(id);
            }
        }
    }

    /// Prints the images of a message. If the terminal can show only names, the message text
    /// contains them already.
    fn show_pictures(&mut self, parts: &[DraftPart]) {
        if self.capabilities.images == ImageProtocol::Name {
            return;
        }
        let images = parts.iter().filter_map(|part| match part {
            DraftPart::Chip(id) => self.images.get(id).cloned(),
            DraftPart::Text(_) => None,
        });
        let images: Vec<Content> = images.collect();
        for image in &images {
            self.show_picture("picture", image);
        }
    }

    pub(crate) fn print_message(&mut self, text: &str) {
        let items = self.message_items(text);
        self.history.extend(items);
        self.reply.begin(&self.look);
    }

    /// Returns a user message as history items.
    pub(crate) fn message_items(&self, text: &str) -> Vec<HistoryItem> {
        let mut items = vec![HistoryItem::Mark(PromptMark::Start)];
        for (number, line) in text.lines().enumerate() {
            let mark = match number {
                0 => format!("{} ", self.look.angle()),
                _ => "  ".to_owned(),
            };
            let mut shown = TextLine::styled(&mark, self.look.theme.accent);
            shown.push(line, TextStyle::new().bold());
            items.push(HistoryItem::Prose {
                line: shown,
                indent: 2,
            });
        }
        items.push(HistoryItem::Mark(PromptMark::Output));
        items
    }

    /// Stops the run. Undelivered messages return to the editor and are not sent.
    pub(crate) fn stop_run(&mut self) {
        let Some(run) = &mut self.run else {
            return;
        };
        run.is_stopping = true;
        for message in self.queue.take_all().into_iter().rev() {
            self.editor.restore_parts(&message.parts);
            self.effects.push(AppEffect::Withdraw(message.id));
        }
        // The interrupt precedes the denials: after a denial alone, the model would be asked how to
        // continue.
        self.effects.push(AppEffect::Interrupt);
        for id in self.questions.drain() {
            if let QuestionId::Session(id) = id {
                let answer = ApprovalAnswer::Deny { reason: None };
                self.effects.push(AppEffect::Answer { id, answer });
            }
        }
    }
}
