//! Key handling. A key goes to the first of these that uses it: a view, the history search, a
//! question, the user's key bindings, completions, the application, the editor.

use std::time::{Duration, Instant};

use haft::PermissionMode;
use haft_host::PromptDelivery;
use haft_terminal::{
    DraftChip, DraftPart, EditCommand, EditOutcome, Key, KeyCode, editor::ViMode,
    input::PasteResult,
};

use super::{
    app::{App, AppEffect, AppOverlay, HintKind, ViewKind},
    ask::{AskAnswer, AskOutcome, QuestionId},
    full_question::FullQuestionView,
    jobs::picture_path,
    keybindings::{KeyBinding, KeyContext},
    overlay::ViewOutcome,
};

/// Two presses of Escape within this time form one gesture.
const TWICE: Duration = Duration::from_millis(600);

impl App {
    pub(super) fn on_key(&mut self, key: Key, read_at: Instant, in_read: usize, now: Instant) {
        // Every key resets the gate of the open question, regardless of where the key goes: keys in
        // quick succession cannot answer it.
        let front = self.questions.front_mut();
        let takes = front.is_some_and(|front| front.gate.accepts_key(read_at, in_read));
        self.last_key = Some(read_at);
        let Some(key) = self.translated(key) else {
            return;
        };
        if self.overlay.is_some() {
            self.overlay_key(key);
            return;
        }
        if self.search_key(key, now) || self.question_key(key, takes) {
            return;
        }
        let hint = self.hint.take().map(|hint| hint.kind);
        if key != Key::ESCAPE {
            self.last_escape = None;
        }
        if self.bound_key(key, hint, now) {
            return;
        }
        if self.popup_key(key) || self.program_key(key, hint, now) {
            return;
        }
        self.editor_key(key, now);
    }

    /// Translates a user's binding to the default key of its action, in questions, the transcript
    /// and the history search. Returns `None` if the user removed the binding. The gate of a
    /// question applies to translated keys, too.
    fn translated(&self, key: Key) -> Option<Key> {
        let question = self.questions.front();
        let context = match &self.overlay {
            Some(AppOverlay::Other(view)) if view.is_transcript() => KeyContext::Transcript,
            Some(_) => return Some(key),
            None if self.search.is_some() => KeyContext::HistorySearch,
            None if question.is_some_and(|front| front.gate.has_focus() && !front.is_editing()) => {
                KeyContext::Confirmation
            }
            None => return Some(key),
        };
        match self.keybindings.binding(context, &[key]) {
            KeyBinding::Action(action) => Some(usual_key(&action).unwrap_or(key)),
            KeyBinding::Taken => None,
            KeyBinding::Prefix | KeyBinding::Usual => Some(key),
        }
    }

    fn editor_key(&mut self, key: Key, now: Instant) {
        match self.editor.key(key) {
            EditOutcome::Submit => self.submit(now),
            EditOutcome::Above => self.above(),
            EditOutcome::Below => {
                if let Some(text) = self.inputs.newer() {
                    self.editor.set_text(&text);
                }
            }
            // An entry from the history becomes a draft with the first edit.
            EditOutcome::Done if key.typed().is_some() => self.inputs.leave(),
            EditOutcome::Done => {}
            EditOutcome::Search => self.begin_search(),
            EditOutcome::Unused => {}
        }
        self.edited(now);
    }

    /// Handles a key for the first question. Returns whether it was used.
    fn question_key(&mut self, key: Key, takes: bool) -> bool {
        let Some(front) = self.questions.front_mut() else {
            return false;
        };
        if !front.gate.has_focus() {
            // An open completion list takes precedence, and in a note (`#`) Tab selects the memory
            // file.
            let is_tab = key == Key::plain(KeyCode::Tab);
            if is_tab && !self.popup.is_open() && !self.editor.text().starts_with('#') {
                front.focus();
                return true;
            }
            return false;
        }
        // These keys are never for the question.
        let general = ['c', 'z', 'o', 'l'].map(Key::control);
        let is_mode = key == Key::plain(KeyCode::Tab).with_shift();
        let is_general = is_mode || general.contains(&key);
        if key == Key::control('c') || (is_general && !front.is_editing()) {
            return false;
        }
        if !takes && !front.is_editing() && key != Key::ESCAPE {
            // The key came before the user could have read the question, so it belongs to the
            // draft.
            front.leave_for_typing();
            return false;
        }
        let id = front.id;
        match front.key(key) {
            AskOutcome::Stay | AskOutcome::Unused => {
                if let (QuestionId::Session(id), Some(rules)) = (id, front.take_wanted_trial()) {
                    self.effect(AppEffect::TryRules { id, rules });
                }
            }
            AskOutcome::Leave => front.leave(),
            AskOutcome::ShowWhole => {
                let lines = front.full_rows(&self.look);
                self.overlay = Some(AppOverlay::FullQuestion(FullQuestionView::new(
                    Some(id),
                    lines,
                )));
            }
            AskOutcome::Answer(answer) => self.answer(answer),
        }
        true
    }

    /// Answers the first question.
    pub(super) fn answer(&mut self, answer: AskAnswer) {
        let Some(id) = self.questions.front().map(|front| front.id) else {
            return;
        };
        self.questions.remove(id, self.last_key);
        match (id, answer) {
            (QuestionId::Session(id), AskAnswer::Approval(answer)) => {
                self.effect(AppEffect::Answer { id, answer });
            }
            (_, AskAnswer::AddDirectory(path)) => {
                self.queue_for_session(AppEffect::Command(format!("/add-dir {path}")));
            }
            (QuestionId::Directory, AskAnswer::Trust(_)) => self.remark("- not added"),
            (_, AskAnswer::Trust(trusted)) => self.effect(AppEffect::Trust(trusted)),
            (QuestionId::Trust | QuestionId::Directory, AskAnswer::Approval(_)) => {}
        }
    }

    fn overlay_key(&mut self, key: Key) {
        match self.overlay.take() {
            Some(AppOverlay::FullQuestion(mut view)) => {
                if view.key(key, &self.look) {
                    self.overlay = Some(AppOverlay::FullQuestion(view));
                } else {
                    let question = self.questions.front_mut();
                    if let Some(question) =
                        question.filter(|question| Some(question.id) == view.question)
                        && view.end_was_shown()
                    {
                        question.was_seen();
                    }
                }
            }
            Some(AppOverlay::Other(mut view)) => {
                let outcome = view.key(key);
                self.overlay = Some(AppOverlay::Other(view));
                self.view_outcome(outcome);
            }
            None => {}
        }
    }

    fn view_outcome(&mut self, outcome: ViewOutcome) {
        let effects = match outcome {
            ViewOutcome::Stay(effects) => effects,
            ViewOutcome::Close(effects) => {
                self.overlay = None;
                effects
            }
        };
        for effect in effects {
            self.effect(AppEffect::RunViewEffect(effect));
        }
    }

    /// Passes the result of a view's job to the view.
    pub(super) fn view_data(&mut self, data: Box<dyn std::any::Any + Send>) {
        if let Some(AppOverlay::Other(view)) = &mut self.overlay {
            let outcome = view.loaded(data);
            self.view_outcome(outcome);
        }
    }

    /// Handles a key bound by the user. Returns whether it was one.
    fn bound_key(&mut self, key: Key, hint: Option<HintKind>, now: Instant) -> bool {
        let context = match (self.popup.is_open(), self.is_working()) {
            (true, _) => KeyContext::Autocomplete,
            (false, true) if !self.calls.is_empty() => KeyContext::Task,
            _ => KeyContext::Chat,
        };
        let mut keys = std::mem::take(&mut self.pending_keys);
        keys.push(key);
        let mut binding = self.keybindings.binding(context, &keys);
        if binding == KeyBinding::Usual && context != KeyContext::Chat {
            binding = self.keybindings.binding(KeyContext::Chat, &keys);
        }
        match binding {
            KeyBinding::Action(action) => self.action(&action, hint, now),
            KeyBinding::Taken => {}
            KeyBinding::Prefix => self.pending_keys = keys,
            KeyBinding::Usual => return self.chord(&keys, hint, now),
        }
        true
    }

    /// Handles Ctrl-X sequences. Returns whether the key was used.
    fn chord(&mut self, keys: &[Key], hint: Option<HintKind>, now: Instant) -> bool {
        let x = Key::control('x');
        match keys {
            [first] if *first == x => self.pending_keys = vec![x],
            [first, second] if *first == x => {
                let action = match *second {
                    key if key == Key::control('b') => "task:background",
                    key if key == Key::control('e') => "chat:externalEditor",
                    key if key == Key::control('y') => "chat:copyAnswer",
                    _ => return true,
                };
                self.action(action, hint, now);
            }
            _ => return false,
        }
        true
    }

    /// Runs an action of the key bindings.
    fn action(&mut self, action: &str, hint: Option<HintKind>, now: Instant) {
        match action {
            "app:exit" => self.effect(AppEffect::Leave),
            "app:interrupt" => self.interrupt_key(hint, now),
            "app:redraw" => self.effect(AppEffect::ScrollAway),
            "app:toggleTodos" => self.todos.is_hidden = !self.todos.is_hidden,
            "app:toggleTranscript" => self.effect(AppEffect::Show(ViewKind::Transcript)),
            "autocomplete:accept" => drop(self.popup_key(Key::plain(KeyCode::Tab))),
            "autocomplete:dismiss" => drop(self.popup_key(Key::ESCAPE)),
            "autocomplete:next" => drop(self.popup_key(Key::plain(KeyCode::Down))),
            "autocomplete:previous" => drop(self.popup_key(Key::plain(KeyCode::Up))),
            "chat:cancel" => drop(self.escape(now)),
            "chat:copyAnswer" => self.copy_answer(""),
            "chat:cycleMode" => self.next_mode(),
            "chat:externalEditor" => {
                let text = self.editor.text();
                self.effect(AppEffect::EditDraft(text));
            }
            "chat:imagePaste" => self.effect(AppEffect::ClipboardPicture),
            "chat:modelPicker" => self.editor.set_text("/model "),
            "chat:newline" => drop(self.editor.perform(EditCommand::NewLine)),
            "chat:stash" => self.toggle_stash(),
            "chat:submit" => self.submit(now),
            "chat:thinkingToggle" => self.toggle_thinking(now),
            "chat:undo" => drop(self.editor.perform(EditCommand::Undo)),
            "history:next" => self.editor_key(Key::plain(KeyCode::Down), now),
            "history:previous" => self.editor_key(Key::plain(KeyCode::Up), now),
            "history:search" => self.begin_search(),
            "task:background" => self.send_to_background(now),
            other => {
                if let Some(name) = other.strip_prefix("command:") {
                    self.command(&format!("/{name}"), now);
                }
            }
        }
        self.edited(now);
    }

    /// Handles the default keys of the application. Returns whether it was one.
    fn program_key(&mut self, key: Key, hint: Option<HintKind>, now: Instant) -> bool {
        let is_working = self.is_working();
        let is_free = self.editor.is_empty();
        match key {
            Key::ESCAPE => return self.escape(now),
            _ if key == Key::control('c') => self.interrupt_key(hint, now),
            _ if key == Key::control('d') && is_free => {
                match is_working && hint != Some(HintKind::LeaveByEnd) {
                    true => self.hint(
                        "still working: Ctrl-D again exits",
                        HintKind::LeaveByEnd,
                        now,
                    ),
                    false => self.effect(AppEffect::Leave),
                }
            }
            _ if key == Key::control('z') => self.effect(AppEffect::Suspend),
            _ if key == Key::control('l') => self.effect(AppEffect::ScrollAway),
            _ if key == Key::control('o') => self.effect(AppEffect::Show(ViewKind::Transcript)),
            _ if key == Key::control('t') => self.todos.is_hidden = !self.todos.is_hidden,
            _ if key == Key::control('b') && is_working && !self.calls.is_empty() => {
                self.send_to_background(now);
            }
            _ if key == Key::control('g') => self.action("chat:externalEditor", hint, now),
            _ if key == Key::control('r') && self.editor.vi_mode() != Some(ViMode::Normal) => {
                self.begin_search();
            }
            _ if key == Key::control('s') => self.toggle_stash(),
            _ if key == Key::control('v') => self.effect(AppEffect::ClipboardPicture),
            _ if key == Key::char('p').with_alt() => self.action("chat:modelPicker", hint, now),
            _ if key == Key::char('t').with_alt() => self.toggle_thinking(now),
            _ if key == Key::char('?') && is_free => self.effect(AppEffect::Show(ViewKind::Keys)),
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
            .is_some_and(|mode| mode != ViMode::Normal)
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
        match (is_second, self.editor.is_empty()) {
            (true, false) => drop(self.take_draft()),
            (true, true) => self.effect(AppEffect::Show(ViewKind::Rewind)),
            _ => {}
        }
        true
    }

    fn interrupt_key(&mut self, hint: Option<HintKind>, now: Instant) {
        if self.is_working() {
            self.stop_run();
        } else if !self.editor.is_empty() {
            self.take_draft();
        } else if hint == Some(HintKind::LeaveByInterrupt) {
            self.effect(AppEffect::Leave);
        } else {
            self.hint("Ctrl-C again exits", HintKind::LeaveByInterrupt, now);
        }
    }

    fn tab(&mut self, now: Instant) {
        if self.editor.unfold() {
            return;
        }
        if self.editor.text().starts_with('#') {
            self.memory_place += 1;
        } else if self.is_working() && !self.editor.is_empty() {
            self.send_message(PromptDelivery::AfterRun, now);
        }
    }

    fn send_to_background(&mut self, now: Instant) {
        match self.calls.is_empty() {
            true => self.hint(
                "nothing runs that could move to the background",
                HintKind::Notice,
                now,
            ),
            false => self.effect(AppEffect::ToBackground),
        }
    }

    fn toggle_thinking(&mut self, now: Instant) {
        self.is_thinking_enabled = !self.is_thinking_enabled;
        let text = match self.is_thinking_enabled {
            true => "thinking is on, from the next message",
            false => "thinking is off",
        };
        self.hint(text, HintKind::Notice, now);
        self.queue_for_session(AppEffect::SetThinking(self.is_thinking_enabled));
    }

    /// Stashes the draft, or restores the stashed one.
    fn toggle_stash(&mut self) {
        match (self.editor.is_empty(), self.stash.take()) {
            (true, Some(parts)) => self.editor.restore_parts(&parts),
            (true, None) => {}
            (false, _) => self.stash = Some(self.editor.take()),
        }
    }

    /// Switches to the next permission mode (Shift-Tab).
    fn next_mode(&mut self) {
        let mode = match self.status.mode {
            PermissionMode::Default => PermissionMode::AcceptEdits,
            PermissionMode::AcceptEdits => PermissionMode::Plan,
            PermissionMode::Plan if !self.auto_refused => PermissionMode::Auto,
            PermissionMode::Plan | PermissionMode::Auto if self.may_bypass => {
                PermissionMode::BypassPermissions
            }
            _ => PermissionMode::Default,
        };
        self.status.mode = mode;
        self.queue_for_session(AppEffect::SetMode(mode));
        self.effect(AppEffect::Status);
    }

    /// Handles Up in the first row: withdraws the newest queued message, or shows the previous
    /// history entry.
    fn above(&mut self) {
        if let Some(newest) = self.queue.newest() {
            let id = newest.id;
            if let Some(message) = self.queue.remove(id) {
                self.editor.restore_parts(&message.parts);
                self.effect(AppEffect::Withdraw(id));
            }
            return;
        }
        let draft = self.editor.text();
        if let Some(text) = self.inputs.older(&draft) {
            let text = text.to_owned();
            self.editor.set_text(&text);
        }
    }

    pub(super) fn submit(&mut self, now: Instant) {
        let text = self.editor.text();
        let line = text.trim_end();
        if line.trim().is_empty() {
            return;
        }
        match line.as_bytes()[0] {
            b'/' if is_command(line) => {
                self.take_draft();
                self.command(line, now);
            }
            b'!' if line.len() > 1 => self.shell(line[1..].trim(), now),
            b'#' if line.len() > 1 && !self.memory.is_empty() => {
                self.take_draft();
                let place = self.memory_place % self.memory.len();
                let text = line[1..].trim().to_owned();
                self.queue_for_session(AppEffect::SaveNote { text, place });
            }
            _ => self.send_message(PromptDelivery::Steer, now),
        }
    }

    pub(super) fn on_paste(&mut self, paste: PasteResult, now: Instant) {
        let text = match paste {
            PasteResult::Text(text) => text,
            PasteResult::TooLong { bytes } => {
                let text = format!(
                    "! a paste of {} is more than 10 MB and was dropped; put it into a file and name the file",
                    super::number_format::bytes(bytes as u64)
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
            // Treated as two keys in one read, so that a paste cannot answer the question.
            front.gate.accepts_key(now, 2);
            if front.gate.has_focus() {
                if front.is_editing() {
                    front.paste(&text);
                    return;
                }
                front.leave_for_typing();
            }
        }
        self.inputs.leave();
        if let Some(path) = picture_path(&text, &self.cwd) {
            self.effect(AppEffect::LoadPicture { path, pasted: text });
        } else if DraftChip::is_needed_for(&text) {
            self.pastes += 1;
            self.editor
                .insert_chip(DraftChip::pasted(self.pastes, text));
        } else {
            self.editor.insert(&text);
        }
        self.edited(now);
    }

    /// Inserts a text before the current draft.
    pub(crate) fn set_draft(&mut self, text: &str) {
        self.editor
            .restore_parts(&[DraftPart::Text(text.to_owned())]);
    }
}

/// Returns the default key of an action.
fn usual_key(action: &str) -> Option<Key> {
    Some(match action {
        "confirm:yes" => Key::char('y'),
        "confirm:no" => Key::char('n'),
        "confirm:always" => Key::char('a'),
        "confirm:previous" => Key::plain(KeyCode::Up),
        "confirm:next" => Key::plain(KeyCode::Down),
        "confirm:nextField" => Key::plain(KeyCode::Tab),
        "confirm:toggle" => Key::char(' '),
        "confirm:toggleExplanation" => Key::char('v'),
        "confirm:cycleMode" => Key::plain(KeyCode::Tab).with_shift(),
        "historySearch:accept" => Key::plain(KeyCode::Tab),
        "historySearch:cancel" => Key::ESCAPE,
        "historySearch:execute" => Key::RETURN,
        "historySearch:next" => Key::control('r'),
        "transcript:exit" => Key::char('q'),
        "transcript:toggleShowAll" => Key::RETURN,
        _ => return None,
    })
}

/// Returns whether a line is a command such as `/name` or `/name arguments`. `/usr/bin is …` is a
/// message.
fn is_command(line: &str) -> bool {
    let name = line[1..].split_whitespace().next().unwrap_or_default();
    !name.is_empty() && !name.contains('/') && line[1..].starts_with(|c: char| c.is_alphanumeric())
}
