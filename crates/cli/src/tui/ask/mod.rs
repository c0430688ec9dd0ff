//! Questions to the user. They cannot be answered by accident: a question takes the focus only
//! while nothing is being typed, and a key answers it only some time after it became visible
//! ([`AnswerGate`]).
//!
//! - `answers`: answers that do more than allow or deny
//! - `choice`: questions that are answered by a letter: permissions, plans, trust
//! - `user`: questions that the model asks
//! - `trials`: the trials of rules on past questions
//! - `content`: the content that must be seen before it can be allowed

mod answers;
mod choice;
mod content;
mod edited_line;
mod trials;
mod user;

use std::{path::Path, time::Instant};

use haft::{ApprovalAnswer, ApprovalKind, ApprovalRequest};
use haft_terminal::{Key, KeyCode, TextLine, input::AnswerGate};

pub(crate) use self::{
    choice::{ChoiceAsk, TrustFacts, TrustPurpose},
    trials::TrialOutcome,
    user::UserAsk,
};
use super::ui_style::UiStyle;

/// Unanswered questions in their order of arrival.
#[derive(Default)]
pub(crate) struct OpenQuestions {
    questions: Vec<WaitingQuestion>,
}

pub(crate) struct WaitingQuestion {
    pub(crate) id: QuestionId,
    pub(crate) gate: AnswerGate,
    /// The first region that showed the question with the focus.
    stamp: Option<u64>,
    /// The user returned to the draft; the question takes the focus only on request.
    was_left: bool,
    /// The provider's id of the call that waits for the answer. Not set for calls of subagents.
    call: Option<String>,
    ask: AskKind,
}

/// The origin of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionId {
    /// The session, with its question number.
    Session(u64),
    /// The user interface, before the session starts.
    Trust,
    /// The user interface, before a directory is added.
    Directory,
}

enum AskKind {
    Choice(Box<ChoiceAsk>),
    User(Box<UserAsk>),
}

/// The outcome of a key press.
pub(crate) enum AskOutcome {
    /// The key was used.
    Stay,
    /// The key has no meaning here.
    Unused,
    Answer(AskAnswer),
    /// The complete question should be shown in a full-screen view.
    ShowWhole,
    /// The focus returns to the draft; the question stays open.
    Leave,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AskAnswer {
    Approval(ApprovalAnswer),
    Trust(bool),
    AddDirectory(String),
}

/// The parameters for drawing a question.
pub(crate) struct AskFrame<'a> {
    pub(crate) look: &'a UiStyle,
    /// The maximum number of rows.
    pub(crate) room: usize,
    pub(crate) now: Instant,
}

/// The rows of a question, and the caret position if a line is being edited.
#[derive(Default)]
pub(crate) struct AskRows {
    pub(crate) rows: Vec<TextLine>,
    pub(crate) caret: Option<haft_terminal::Caret>,
}

impl OpenQuestions {
    pub(crate) fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    pub(crate) fn front(&self) -> Option<&WaitingQuestion> {
        self.questions.first()
    }

    pub(crate) fn front_mut(&mut self) -> Option<&mut WaitingQuestion> {
        self.questions.first_mut()
    }

    /// Returns whether this call waits for an answer.
    pub(crate) fn holds(&self, tool_use_id: &str) -> bool {
        let mut calls = self.questions.iter().filter_map(|one| one.call.as_deref());
        calls.any(|call| call == tool_use_id)
    }

    /// Returns whether the first question has the focus.
    pub(crate) fn has_focus(&self) -> bool {
        self.front().is_some_and(|front| front.gate.has_focus())
    }

    /// Adds a question of the session.
    pub(crate) fn ask(
        &mut self,
        id: u64,
        request: ApprovalRequest,
        timeout: Option<std::time::Duration>,
        last_key: Option<Instant>,
        now: Instant,
        cwd: &Path,
    ) {
        let asked = request.asked.as_ref().filter(|_| request.agent.is_none());
        let call = asked.map(|asked| asked.id.clone());
        let ask = match request.kind {
            ApprovalKind::Question => {
                AskKind::User(Box::new(UserAsk::new(request, timeout.map(|p| (p, now)))))
            }
            ApprovalKind::Permission | ApprovalKind::Plan => {
                AskKind::Choice(Box::new(ChoiceAsk::from_request(request, cwd)))
            }
        };
        self.put(QuestionId::Session(id), call, ask, last_key);
    }

    /// Adds a question about trust in a directory.
    pub(crate) fn ask_trust(&mut self, facts: TrustFacts, last_key: Option<Instant>) {
        let id = match facts.purpose {
            TrustPurpose::Start | TrustPurpose::Sentences => QuestionId::Trust,
            TrustPurpose::Add => QuestionId::Directory,
        };
        let ask = AskKind::Choice(Box::new(ChoiceAsk::for_trust(facts)));
        // A new trust question replaces an older one of the same kind.
        self.remove(id, last_key);
        self.put(id, None, ask, last_key);
    }

    fn put(
        &mut self,
        id: QuestionId,
        call: Option<String>,
        ask: AskKind,
        last_key: Option<Instant>,
    ) {
        self.questions.push(WaitingQuestion {
            id,
            call,
            gate: AnswerGate::new(last_key),
            stamp: None,
            was_left: false,
            ask,
        });
    }

    /// Removes a question that was answered or withdrawn. The gate of the next one starts again.
    pub(crate) fn remove(&mut self, id: QuestionId, last_key: Option<Instant>) -> bool {
        let before = self.questions.len();
        self.questions.retain(|question| question.id != id);
        if let Some(front) = self.questions.first_mut()
            && !front.gate.has_focus()
        {
            front.gate = AnswerGate::new(last_key);
        }
        before != self.questions.len()
    }

    /// Stores the outcome of a trial of rules for a question of the session, if it is still open.
    pub(crate) fn trial_ended(&mut self, id: u64, rules: &[String], outcome: TrialOutcome) {
        let mut questions = self.questions.iter_mut();
        let question = questions.find(|question| question.id == QuestionId::Session(id));
        if let Some(AskKind::Choice(choice)) = question.map(|question| &mut question.ask) {
            choice.trial_ended(rules, outcome);
        }
    }

    /// Removes all questions and returns their ids.
    pub(crate) fn drain(&mut self) -> Vec<QuestionId> {
        let all = std::mem::take(&mut self.questions);
        all.into_iter().map(|question| question.id).collect()
    }

    /// Returns the time at which the first question takes the focus, can be answered or times out.
    pub(crate) fn due(&self, draft_is_empty: bool, now: Instant) -> Option<Instant> {
        let front = self.front()?;
        let focus = match front.gate.has_focus() {
            true => front.gate.armed_from().filter(|from| *from > now),
            false => (draft_is_empty && !front.was_left).then(|| front.gate.focus_due(now)),
        };
        let countdown = match &front.ask {
            AskKind::User(user) => user.due(now),
            AskKind::Choice(_) => None,
        };
        focus.into_iter().chain(countdown).min()
    }

    /// Handles a timer tick: gives the first question the focus when it is due. Returns the default
    /// answer if the question has timed out.
    pub(crate) fn tick(&mut self, draft_is_empty: bool, now: Instant) -> Option<AskAnswer> {
        let front = self.questions.first_mut()?;
        if let AskKind::User(user) = &front.ask
            && let Some(answer) = user.expired(now)
        {
            return Some(AskAnswer::Approval(answer));
        }
        let may_focus = draft_is_empty && !front.was_left && !front.gate.has_focus();
        if may_focus && front.gate.focus_due(now) <= now {
            front.gate.focus();
        }
        None
    }

    /// Records that the region with this number has been written.
    pub(crate) fn written(&mut self, stamp: u64, at: Instant) {
        if let Some(front) = self.questions.first_mut()
            && front.stamp.is_some_and(|first| first <= stamp)
        {
            front.gate.written(at);
            if let AskKind::Choice(choice) = &mut front.ask {
                choice.was_written();
            }
        }
    }

    /// Returns the rows of the first question for the region with this number.
    pub(crate) fn rows(&mut self, frame: &AskFrame<'_>, stamp: u64) -> AskRows {
        let waiting = self.questions.len();
        let Some(front) = self.questions.first_mut() else {
            return AskRows::default();
        };
        let has_focus = front.gate.has_focus();
        if has_focus {
            front.stamp.get_or_insert(stamp);
        } else {
            front.stamp = None;
        }
        let is_armed = front
            .gate
            .armed_from()
            .is_some_and(|from| from <= frame.now);
        let place = AskStatus {
            waiting,
            has_focus,
            is_armed,
        };
        match &mut front.ask {
            AskKind::Choice(choice) => choice.rows(frame, &place),
            AskKind::User(user) => user.rows(frame, &place),
        }
    }
}

/// The number of open questions and the status of the first one.
pub(crate) struct AskStatus {
    waiting: usize,
    has_focus: bool,
    is_armed: bool,
}

impl AskStatus {
    /// Returns `1 of 3` if there are several questions. Answered questions are not counted, since
    /// later ones are unrelated to them.
    fn counted(&self) -> Option<String> {
        (self.waiting > 1).then(|| format!("1 of {}", self.waiting))
    }
}

impl WaitingQuestion {
    /// Moves the focus to the question on the user's request.
    pub(crate) fn focus(&mut self) {
        self.was_left = false;
        self.stamp = None;
        self.gate.focus();
    }

    pub(crate) fn leave(&mut self) {
        self.was_left = true;
        self.stamp = None;
        self.gate.unfocus();
    }

    /// Removes the focus because the user is typing a message. The question takes it again when the
    /// message has been sent.
    pub(crate) fn leave_for_typing(&mut self) {
        self.stamp = None;
        self.gate.unfocus();
    }

    /// Returns whether a line of the question is being edited. Keys then always go there.
    pub(crate) fn is_editing(&self) -> bool {
        match &self.ask {
            AskKind::Choice(choice) => choice.is_editing(),
            AskKind::User(user) => user.is_editing(),
        }
    }

    /// Handles a key for this question.
    pub(crate) fn key(&mut self, key: Key) -> AskOutcome {
        if key == Key::plain(KeyCode::Escape) && !self.is_editing() {
            return AskOutcome::Leave;
        }
        match &mut self.ask {
            AskKind::Choice(choice) => choice.key(key),
            AskKind::User(user) => user.key(key),
        }
    }

    /// Takes the rules that should be tried on past questions.
    pub(crate) fn take_wanted_trial(&mut self) -> Option<Vec<String>> {
        match &mut self.ask {
            AskKind::Choice(choice) => choice.take_wanted_trial(),
            AskKind::User(_) => None,
        }
    }

    /// Inserts pasted text into the edited line.
    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.ask {
            AskKind::Choice(choice) => choice.paste(text),
            AskKind::User(user) => user.paste(text),
        }
    }

    /// Returns the complete question for a full-screen view.
    pub(crate) fn full_rows(&self, look: &UiStyle) -> Vec<TextLine> {
        match &self.ask {
            AskKind::Choice(choice) => choice.full_rows(look),
            AskKind::User(_) => Vec::new(),
        }
    }

    /// Records that the user has seen the complete question.
    pub(crate) fn was_seen(&mut self) {
        if let AskKind::Choice(choice) = &mut self.ask {
            choice.was_seen();
        }
    }

    /// Returns a short title for a notification.
    pub(crate) fn title(&self) -> String {
        match &self.ask {
            AskKind::Choice(choice) => choice.title(),
            AskKind::User(_) => "a question".to_owned(),
        }
    }
}
