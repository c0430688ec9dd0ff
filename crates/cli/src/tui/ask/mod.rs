//! Questions. Nothing is answered by accident: a question takes the focus only when nothing is being written,
//! and a key answers it only some time after it was seen ([`AnswerGate`]).
//!
//! - `answers`: what answers mean beyond a yes or a no
//! - `choice`: those with letters to choose from: permissions, plans, trust
//! - `user`: those of the model's own
//! - `content`: what must be seen whole before it is allowed

mod answers;
mod choice;
mod content;
mod user;

use std::{path::Path, time::Instant};

use haft::{ApprovalAnswer, ApprovalKind, ApprovalRequest};
use haft_terminal::{Key, KeyCode, TextLine, input::AnswerGate};

pub(crate) use self::{
    choice::{ChoiceAsk, TrustFacts, TrustPurpose},
    user::UserAsk,
};
use super::look::Look;

/// Questions without an answer, in the order they came in.
#[derive(Default)]
pub(crate) struct OpenQuestions {
    questions: Vec<WaitingQuestion>,
}

pub(crate) struct WaitingQuestion {
    pub(crate) id: QuestionId,
    pub(crate) gate: AnswerGate,
    /// The first region that showed it with the focus.
    stamp: Option<u64>,
    /// A person went back to the draft: it takes the focus only when asked.
    was_left: bool,
    /// The call that waits for the answer, as the provider names it; not one of a subagent.
    call: Option<String>,
    ask: Ask,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionId {
    /// The session, by its number.
    Session(u64),
    /// We do, before there is a session.
    Trust,
    /// We do, before calls may work in another directory.
    Directory,
}

enum Ask {
    Choice(Box<ChoiceAsk>),
    User(Box<UserAsk>),
}

/// What came of a key.
pub(crate) enum AskOutcome {
    /// It was used.
    Stay,
    /// It means nothing here.
    Unused,
    Answer(AskAnswer),
    /// All of it is to be shown on a screen of its own.
    ShowWhole,
    /// Back to the draft; the question stays open.
    Leave,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AskAnswer {
    Approval(ApprovalAnswer),
    Trust(bool),
    AddDirectory(String),
}

/// How the rows of a question look.
pub(crate) struct AskFrame<'a> {
    pub(crate) look: &'a Look,
    /// At most so many rows.
    pub(crate) room: usize,
    pub(crate) now: Instant,
}

/// Rows of a question, and where the caret is if something is written in it.
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

    /// Does this call wait for an answer?
    pub(crate) fn holds(&self, tool_use_id: &str) -> bool {
        let mut calls = self.questions.iter().filter_map(|one| one.call.as_deref());
        calls.any(|call| call == tool_use_id)
    }

    /// Has the first one the focus?
    pub(crate) fn has_focus(&self) -> bool {
        self.front().is_some_and(|front| front.gate.has_focus())
    }

    /// The session asks.
    pub(crate) fn ask(
        &mut self,
        id: u64,
        request: ApprovalRequest,
        patience: Option<std::time::Duration>,
        last_key: Option<Instant>,
        now: Instant,
        cwd: &Path,
    ) {
        let asked = request.asked.as_ref().filter(|_| request.agent.is_none());
        let call = asked.map(|asked| asked.id.clone());
        let ask = match request.kind {
            ApprovalKind::Question => {
                Ask::User(Box::new(UserAsk::new(request, patience.map(|p| (p, now)))))
            }
            ApprovalKind::Permission | ApprovalKind::Plan => {
                Ask::Choice(Box::new(ChoiceAsk::of(request, cwd)))
            }
        };
        self.put(QuestionId::Session(id), call, ask, last_key);
    }

    /// We ask, whether a directory is trusted.
    pub(crate) fn ask_trust(&mut self, facts: TrustFacts, last_key: Option<Instant>) {
        let id = match facts.purpose {
            TrustPurpose::Start => QuestionId::Trust,
            TrustPurpose::Add => QuestionId::Directory,
        };
        let ask = Ask::Choice(Box::new(ChoiceAsk::of_trust(facts)));
        // One of each is enough: the newest is meant.
        self.remove(id, last_key);
        self.put(id, None, ask, last_key);
    }

    fn put(&mut self, id: QuestionId, call: Option<String>, ask: Ask, last_key: Option<Instant>) {
        self.questions.push(WaitingQuestion {
            id,
            call,
            gate: AnswerGate::new(last_key),
            stamp: None,
            was_left: false,
            ask,
        });
    }

    /// It is answered, or not waited for any longer. The next one arms anew.
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

    /// All of them, and none is left.
    pub(crate) fn drain(&mut self) -> Vec<QuestionId> {
        let all = std::mem::take(&mut self.questions);
        all.into_iter().map(|question| question.id).collect()
    }

    /// When the first one takes the focus, or can be answered, or its time is up.
    pub(crate) fn due(&self, draft_is_empty: bool, now: Instant) -> Option<Instant> {
        let front = self.front()?;
        let focus = match front.gate.has_focus() {
            true => front.gate.armed_from().filter(|from| *from > now),
            false => (draft_is_empty && !front.was_left).then(|| front.gate.focus_due(now)),
        };
        let countdown = match &front.ask {
            Ask::User(user) => user.due(now),
            Ask::Choice(_) => None,
        };
        focus.into_iter().chain(countdown).min()
    }

    /// Time passed. `true`: it took the focus. The answer: no one gave one in time.
    pub(crate) fn tick(&mut self, draft_is_empty: bool, now: Instant) -> Option<AskAnswer> {
        let front = self.questions.first_mut()?;
        if let Ask::User(user) = &front.ask
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

    /// The region with this number was written.
    pub(crate) fn written(&mut self, stamp: u64, at: Instant) {
        if let Some(front) = self.questions.first_mut()
            && front.stamp.is_some_and(|first| first <= stamp)
        {
            front.gate.written(at);
            if let Ask::Choice(choice) = &mut front.ask {
                choice.was_written();
            }
        }
    }

    /// The rows of the first one, for the region of this number.
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
        let place = AskPlace {
            waiting,
            has_focus,
            is_armed,
        };
        match &mut front.ask {
            Ask::Choice(choice) => choice.rows(frame, &place),
            Ask::User(user) => user.rows(frame, &place),
        }
    }
}

/// How many questions wait, and how the first of them stands.
pub(crate) struct AskPlace {
    waiting: usize,
    has_focus: bool,
    is_armed: bool,
}

impl AskPlace {
    /// `1 of 3`, if there are more. What was answered does not count any more: what is asked later has nothing
    /// to do with it.
    fn counted(&self) -> Option<String> {
        (self.waiting > 1).then(|| format!("1 of {}", self.waiting))
    }
}

impl WaitingQuestion {
    /// A person asked for it.
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

    /// Something is typed that is not for it: it takes the focus again when that is sent.
    pub(crate) fn leave_for_typing(&mut self) {
        self.stamp = None;
        self.gate.unfocus();
    }

    /// Is a line being written in it? Then keys go there, whenever they come.
    pub(crate) fn is_editing(&self) -> bool {
        match &self.ask {
            Ask::Choice(choice) => choice.is_editing(),
            Ask::User(user) => user.is_editing(),
        }
    }

    /// What a key does that was meant for it.
    pub(crate) fn key(&mut self, key: Key) -> AskOutcome {
        if key == Key::plain(KeyCode::Escape) && !self.is_editing() {
            return AskOutcome::Leave;
        }
        match &mut self.ask {
            Ask::Choice(choice) => choice.key(key),
            Ask::User(user) => user.key(key),
        }
    }

    /// Text that was pasted into a line of it.
    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.ask {
            Ask::Choice(choice) => choice.paste(text),
            Ask::User(user) => user.paste(text),
        }
    }

    /// Everything that it is about, for a screen of its own.
    pub(crate) fn whole(&self, look: &Look) -> Vec<TextLine> {
        match &self.ask {
            Ask::Choice(choice) => choice.whole(look),
            Ask::User(_) => Vec::new(),
        }
    }

    /// All of it was seen.
    pub(crate) fn was_seen(&mut self) {
        if let Ask::Choice(choice) = &mut self.ask {
            choice.was_seen();
        }
    }

    /// What it is about, in a few words: for a notice.
    pub(crate) fn title(&self) -> String {
        match &self.ask {
            Ask::Choice(choice) => choice.title(),
            Ask::User(_) => "a question".to_owned(),
        }
    }
}
