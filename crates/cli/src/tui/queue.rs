//! Messages that have not been delivered to the model yet.

use haft_host::PromptDelivery;
use haft_terminal::{DraftPart, TextLine};
use uuid::Uuid;

use super::{cards::one_line, ui_style::UiStyle};

/// Queued messages, oldest first.
#[derive(Debug, Default)]
pub(crate) struct MessageQueue {
    messages: Vec<WaitingMessage>,
}

#[derive(Debug, Clone)]
pub(crate) struct WaitingMessage {
    pub(crate) id: Uuid,
    pub(crate) parts: Vec<DraftPart>,
    /// The text that is sent.
    pub(crate) text: String,
    pub(crate) time: PromptDelivery,
}

/// The maximum number of messages that are shown.
const MAX_SHOWN: usize = 3;

impl MessageQueue {
    pub(crate) fn push(&mut self, message: WaitingMessage) {
        self.messages.push(message);
    }

    /// Returns the newest message.
    pub(crate) fn newest(&self) -> Option<&WaitingMessage> {
        self.messages.last()
    }

    pub(crate) fn remove(&mut self, id: Uuid) -> Option<WaitingMessage> {
        let at = self.messages.iter().position(|message| message.id == id)?;
        Some(self.messages.remove(at))
    }

    /// Changes the id of a message.
    pub(crate) fn change_id(&mut self, id: Uuid, known_as: Uuid) {
        let message = self.messages.iter_mut().find(|message| message.id == id);
        if let Some(message) = message {
            message.id = known_as;
        }
    }

    /// Removes and returns all messages, oldest first.
    pub(crate) fn take_all(&mut self) -> Vec<WaitingMessage> {
        std::mem::take(&mut self.messages)
    }

    pub(crate) fn rows(&self, look: &UiStyle) -> Vec<TextLine> {
        let hidden = self.messages.len().saturating_sub(MAX_SHOWN);
        let mut rows = Vec::new();
        if hidden > 0 {
            let text = format!(" {} {hidden} more before", look.ellipsis());
            rows.push(TextLine::styled(&text, look.theme.faint));
        }
        let last = self.messages.len();
        for (number, message) in (1..).zip(&self.messages).skip(hidden) {
            let when = match message.time {
                PromptDelivery::Steer => "next",
                PromptDelivery::AfterRun => "later",
            };
            let mut line = TextLine::styled(&format!(" {when}: "), look.theme.faint);
            let hint = match number == last && !look.is_narrow() {
                true => "   (Up edits it)",
                false => "",
            };
            let room = look
                .size
                .row_width()
                .saturating_sub(line.width() + hint.len());
            let text = TextLine::styled(&one_line(&message.text), look.theme.faint);
            line.append(&text.truncated(room));
            line.push(hint, look.theme.faint);
            rows.push(line);
        }
        rows
    }
}
