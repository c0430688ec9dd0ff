//! Questions to the one who is at the other end of a session: for permission, for an answer, about a plan.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, Approver, BoxFuture, approval::NobodyToAsk,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::{SessionEvent, event::Events, parts::Asked};

/// Answers the questions of a session. Any of them may be dropped while it waits: then no one wants the
/// answer any longer.
pub trait Questions: Send + Sync {
    /// May this call run?
    fn permission(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer>;

    /// The model wants to know something. Default: there is no one to ask.
    fn question(&self, asked: UserQuestions) -> BoxFuture<'_, ApprovalAnswer> {
        let _ = asked;
        Box::pin(async { ApprovalAnswer::Nobody })
    }

    /// The model has made a plan and wants to go ahead. Default: asked like any permission.
    fn plan(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.permission(request)
    }

    /// Is there someone to ask? Where not, what only makes sense with a person is refused beforehand.
    fn is_there(&self) -> bool {
        true
    }
}

/// A function that decides at once.
impl<F: Fn(&ApprovalRequest) -> ApprovalAnswer + Send + Sync> Questions for F {
    fn permission(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        let answer = self(&request);
        Box::pin(async { answer })
    }
}

/// Questions of the model's, put together.
#[derive(Debug, Clone)]
pub struct UserQuestions {
    /// What is asked.
    pub questions: Vec<UserQuestion>,
    /// How long an answer is waited for; then it is [`unanswered`](Self::unanswered).
    pub patience: Option<Duration>,
    /// The call that asks.
    pub request: ApprovalRequest,
}

/// One question.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserQuestion {
    /// The question itself.
    pub question: String,
    /// What it is about, in a word or two.
    #[serde(default)]
    pub header: String,
    /// Answers to choose from; others are possible too.
    pub options: Vec<AnswerOption>,
    /// Several may be chosen.
    #[serde(default)]
    pub multi_select: bool,
}

/// An answer to choose.
#[derive(Debug, Clone, Deserialize)]
pub struct AnswerOption {
    /// What is chosen.
    pub label: String,
    /// What it means.
    #[serde(default)]
    pub description: String,
    /// What it would look like.
    pub preview: Option<String>,
}

impl UserQuestions {
    fn of(request: ApprovalRequest, patience: Option<Duration>) -> Self {
        let input = request.asked.as_ref().map(|asked| &asked.input);
        let questions =
            input.and_then(|input| Vec::<UserQuestion>::deserialize(&input["questions"]).ok());
        Self {
            questions: questions.unwrap_or_default(),
            patience,
            request,
        }
    }

    /// The answers, by the questions' own words; one without an answer is left out.
    pub fn answered(&self, answers: Map<String, Value>) -> ApprovalAnswer {
        self.with([("answers", Value::Object(answers))])
    }

    /// No answer came in time: the model goes on without one.
    pub fn unanswered(&self) -> ApprovalAnswer {
        let waited = self.patience.unwrap_or_default().as_millis();
        let waited = u64::try_from(waited).unwrap_or(u64::MAX);
        self.with([("answers", json!({})), ("afkTimeoutMs", json!(waited))])
    }

    fn with<const N: usize>(&self, parts: [(&str, Value); N]) -> ApprovalAnswer {
        let asked = self.request.asked.as_ref();
        let mut input = asked.map(|asked| asked.input.clone()).unwrap_or_default();
        if let Some(input) = input.as_object_mut() {
            input.extend(parts.map(|(name, value)| (name.to_owned(), value)));
        }
        ApprovalAnswer::Changed { input }
    }
}

/// Who the engine asks.
pub(crate) fn approver(
    asked: &Asked,
    events: &Arc<EventQuestions>,
    patience: Option<Duration>,
) -> Arc<dyn Approver> {
    match asked {
        Asked::NoOne => Arc::new(NobodyToAsk),
        Asked::Events => Arc::clone(events) as _,
        Asked::Face(questions) => Arc::new(FaceApprover {
            questions: Arc::clone(questions),
            patience,
        }),
    }
}

/// Puts each question to the face as what it is.
pub(crate) struct FaceApprover {
    pub(crate) questions: Arc<dyn Questions>,
    pub(crate) patience: Option<Duration>,
}

impl Approver for FaceApprover {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        match request.kind {
            ApprovalKind::Permission => self.questions.permission(request),
            ApprovalKind::Question => {
                let asked = UserQuestions::of(request, self.patience);
                self.questions.question(asked)
            }
            ApprovalKind::Plan => self.questions.plan(request),
        }
    }

    fn is_there(&self) -> bool {
        self.questions.is_there()
    }
}

/// Questions as events, answered by their ids.
pub(crate) struct EventQuestions {
    events: Arc<Events>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<ApprovalAnswer>>>,
}

impl EventQuestions {
    pub(crate) fn new(events: Arc<Events>) -> Self {
        Self {
            events,
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
        }
    }

    /// Says whether anyone waited for it.
    pub(crate) fn answer(&self, id: u64, answer: ApprovalAnswer) -> bool {
        let waiting = self.waiting().remove(&id);
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<ApprovalAnswer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approver for EventQuestions {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let (sender, receiver) = oneshot::channel();
            let open = OpenQuestion {
                id: self.next.fetch_add(1, Ordering::Relaxed),
                questions: self,
            };
            self.waiting().insert(open.id, sender);
            let request = Box::new(request);
            let id = open.id;
            self.events.emit(&SessionEvent::Question { id, request });
            receiver.await.unwrap_or(ApprovalAnswer::Nobody)
        })
    }
}

/// A question without an answer yet.
struct OpenQuestion<'a> {
    questions: &'a EventQuestions,
    id: u64,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.questions.waiting().remove(&self.id).is_some() {
            let over = SessionEvent::QuestionOver { id: self.id };
            self.questions.events.emit(&over);
        }
    }
}
