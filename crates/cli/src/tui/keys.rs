//! What keys do, in the order of who may have them: a view, a question, the program, the editor.

use std::time::{Duration, Instant};

use haft::PermissionMode;
use haft_terminal::{Chip, EditOutcome, Key, KeyCode, input::PasteResult};

use super::{
    app::{App, Effect, HintKind, Overlay},
    ask::{AskAnswer, AskOutcome, QuestionId},
    overlay::ViewOutcome,
    queue::DeliveryTime,
    whole::WholeView,
};

/// Two presses of Escape within this time are one gesture.
const TWICE: Duration = Duration::from_millis(600);

impl App {
    pub(super) fn on_key(&mut self, key: Key, read_at: Instant, in_read: usize, now: Instant) {
        // Every key counts for the question that is open, whoever gets it: what follows another too fast
        // answers nothing.
        let front = self.questions.front_mut();
        let takes = front.is_some_and(|front| front.gate.takes(read_at, in_read));
        self.last_key = Some(read_at);
        if self.overlay.is_some() {
            self.overlay_key(key);
            return;
        }
        if self.question_key(key, takes) {
            return;
        }
        let was_hint = self.hint.take();
        let hint = was_hint.map(|hint| hint.kind);
        if key != Key::ESCAPE {
            self.last_escape = None;
        }
        if self.program_key(key, hint, now) {
            return;
        }
        match self.editor.key(key) {
            EditOutcome::Submit => self.submit(now),
            EditOutcome::Above => self.above(),
            EditOutcome::Below => {
                if let Some(text) = self.inputs.newer() {
                    self.editor.set_text(&text);
                }
            }
            EditOutcome::Done => self.inputs_left(key),
            EditOutcome::Search | EditOutcome::Unused => {}
        }
    }

    /// What was brought back from the history is a draft as soon as it is changed.
    fn inputs_left(&mut self, key: Key) {
        if key.typed().is_some() {
            self.inputs.leave();
        }
    }

    /// `true`: the question has it.
    fn question_key(&mut self, key: Key, takes: bool) -> bool {
        let Some(front) = self.questions.front_mut() else {
            return false;
        };
        if !front.gate.has_focus() {
            if key == Key::plain(KeyCode::Tab) {
                front.focus();
                return true;
            }
            return false;
        }
        // What is not for the question, whenever it comes.
        let is_general =
            key == Key::control('c') || key == Key::control('z') || key == Key::control('o');
        if is_general {
            return false;
        }
        let is_way_out = key == Key::ESCAPE;
        if !takes && !front.is_editing() && !is_way_out {
            // It came before anyone could have read the question: it belongs to the draft.
            front.leave_for_typing();
            return false;
        }
        let id = front.id;
        match front.key(key) {
            AskOutcome::Stay => true,
            AskOutcome::Unused => true,
            AskOutcome::Leave => {
                front.leave();
                true
            }
            AskOutcome::ShowWhole => {
                let lines = front.whole(&self.look);
                self.overlay = Some(Overlay::Whole(WholeView::new(id, lines)));
                true
            }
            AskOutcome::Answer(answer) => {
                self.answer(answer);
                true
            }
        }
    }

    /// The first question is answered.
    pub(super) fn answer(&mut self, answer: AskAnswer) {
        let Some(id) = self.questions.front().map(|front| front.id) else {
            return;
        };
        self.questions.remove(id, self.last_key);
        match (id, answer) {
            (QuestionId::Session(id), AskAnswer::Approval(answer)) => {
                self.effect(Effect::Answer { id, answer });
            }
            (_, AskAnswer::Trust(trusted)) => self.effect(Effect::Trust(trusted)),
            (QuestionId::Trust, AskAnswer::Approval(_)) => {}
        }
    }

    fn overlay_key(&mut self, key: Key) {
        match self.overlay.take() {
            Some(Overlay::Whole(mut view)) => {
                if view.key(key, &self.look) {
                    self.overlay = Some(Overlay::Whole(view));
                } else {
                    let question = self.questions.front_mut();
                    if let Some(question) = question.filter(|question| question.id == view.question)
                        && view.end_was_shown()
                    {
                        question.was_seen();
                    }
                }
            }
            Some(Overlay::Other(mut view)) => match view.key(key) {
                ViewOutcome::Stay(_) => self.overlay = Some(Overlay::Other(view)),
                ViewOutcome::Close(_) => {}
            },
            None => {}
        }
    }

    /// Keys of the program's own. `true`: it was one.
    fn program_key(&mut self, key: Key, hint: Option<HintKind>, now: Instant) -> bool {
        let is_working = self.is_working();
        match key {
            Key::ESCAPE => return self.escape(now),
            _ if key == Key::control('c') => self.interrupt_key(hint, now),
            _ if key == Key::control('d') && self.editor.is_empty() => {
                match is_working && hint != Some(HintKind::LeaveByEnd) {
                    true => self.hint(
                        "something runs: Ctrl-D once more leaves",
                        HintKind::LeaveByEnd,
                        now,
                    ),
                    false => self.effect(Effect::Leave),
                }
            }
            _ if key == Key::control('z') => self.effect(Effect::Suspend),
            _ if key == Key::control('l') => self.effect(Effect::ScrollAway),
            _ if key == Key::control('b') && is_working && !self.calls.is_empty() => {
                self.effect(Effect::ToBackground);
            }
            _ if key == Key::plain(KeyCode::Tab) => self.tab(now),
            _ if key == Key::plain(KeyCode::Tab).with_shift() => self.next_mode(),
            _ => return false,
        }
        true
    }

    fn escape(&mut self, now: Instant) -> bool {
        if self
            .editor
            .vi_mode()
            .is_some_and(|mode| !matches!(mode, haft_terminal::editor::ViMode::Normal))
        {
            return false;
        }
        if self.is_working() {
            self.stop_run();
            return true;
        }
        let is_second = self.last_escape.is_some_and(|last| now < last + TWICE);
        self.last_escape = match is_second {
            true => None,
            false => Some(now),
        };
        if is_second && !self.editor.is_empty() {
            let text = self.editor.text();
            self.inputs.add(&text);
            self.editor.take();
        }
        true
    }

    fn interrupt_key(&mut self, hint: Option<HintKind>, now: Instant) {
        if self.is_working() {
            self.stop_run();
        } else if !self.editor.is_empty() {
            let text = self.editor.text();
            self.inputs.add(&text);
            self.editor.take();
        } else if hint == Some(HintKind::LeaveByInterrupt) {
            self.effect(Effect::Leave);
        } else {
            self.hint("Ctrl-C once more leaves", HintKind::LeaveByInterrupt, now);
        }
    }

    fn tab(&mut self, now: Instant) {
        if self.editor.unfold() {
            return;
        }
        if self.is_working() && !self.editor.is_empty() {
            self.say(DeliveryTime::AfterRun, now);
        }
    }

    /// Shift-Tab: the next mode.
    fn next_mode(&mut self) {
        let mode = match self.status.mode {
            PermissionMode::Default => PermissionMode::AcceptEdits,
            PermissionMode::AcceptEdits => PermissionMode::Plan,
            PermissionMode::Plan if self.may_bypass => PermissionMode::BypassPermissions,
            _ => PermissionMode::Default,
        };
        self.status.mode = mode;
        self.to_session(Effect::SetMode(mode));
    }

    /// Up from the first row: what waits comes back, the newest first; then what was said before.
    fn above(&mut self) {
        if let Some(newest) = self.queue.newest() {
            let id = newest.id;
            if let Some(message) = self.queue.remove(id) {
                self.editor.put_back(&message.parts);
                self.effect(Effect::TakeBack(id));
            }
            return;
        }
        let draft = self.editor.text();
        if let Some(text) = self.inputs.older(&draft) {
            let text = text.to_owned();
            self.editor.set_text(&text);
        }
    }

    fn submit(&mut self, now: Instant) {
        let text = self.editor.text();
        if text.trim().is_empty() {
            return;
        }
        self.say(DeliveryTime::Steer, now);
    }

    pub(super) fn on_paste(&mut self, paste: PasteResult, now: Instant) {
        let text = match paste {
            PasteResult::Text(text) => text,
            PasteResult::TooLong { bytes } => {
                let text = format!(
                    "! a paste of {} is more than 10 MB and was not taken; put it into a file and name the file",
                    super::words::bytes(bytes as u64)
                );
                self.warn(&text);
                return;
            }
        };
        self.last_key = Some(now);
        if self.overlay.is_some() {
            return;
        }
        if let Some(front) = self.questions.front_mut() {
            // Two keys at once: it answers nothing.
            front.gate.takes(now, 2);
            if front.gate.has_focus() {
                if front.is_editing() {
                    front.paste(&text);
                    return;
                }
                front.leave_for_typing();
            }
        }
        self.inputs.leave();
        if Chip::is_wanted_for(&text) {
            self.pastes += 1;
            self.editor.insert_chip(Chip::pasted(self.pastes, text));
        } else {
            self.editor.insert(&text);
        }
    }
}
