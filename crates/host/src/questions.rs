//! Questions of a session to its user: approval requests, questions of the model, and plans.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, Approver, BoxFuture, approval::NoApprover,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::{SessionEvent, event::EventEmitter, session_parts::QuestionTarget};

/// Answers the questions of a session. The session may drop any of these futures while it waits, if
/// the answer is not needed any longer.
pub trait QuestionHandler: Send + Sync {
    /// Asks whether a call may run.
    fn permission(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer>;

    /// Asks the model's questions. Default: no user can be asked.
    fn question(&self, asked: UserQuestions) -> BoxFuture<'_, ApprovalAnswer> {
        let _ = asked;
        Box::pin(async { ApprovalAnswer::Unavailable })
    }

    /// Asks for approval of a plan. Default: asked like a permission.
    fn plan(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.permission(request)
    }

    /// Returns whether a user can be asked. If not, calls that need a user are denied without
    /// asking.
    fn can_ask_user(&self) -> bool {
        true
    }
}

/// A function that decides immediately.
impl<F: Fn(&ApprovalRequest) -> ApprovalAnswer + Send + Sync> QuestionHandler for F {
    fn permission(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        let answer = self(&request);
        Box::pin(async { answer })
    }
}

/// The model's questions in one call.
#[derive(Debug, Clone)]
pub struct UserQuestions {
    /// The questions.
    pub questions: Vec<FormQuestion>,
    /// The timeout for the answer, after which it is [`unanswered`](Self::unanswered).
    pub timeout: Option<Duration>,
    /// The call that asks.
    pub request: ApprovalRequest,
}

/// A question.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormQuestion {
    /// The text of the question.
    pub question: String,
    /// The topic, as a very short text.
    #[serde(default)]
    pub header: String,
    /// Suggested answers; others are possible too.
    pub options: Vec<AnswerOption>,
    /// Whether several answers may be chosen.
    #[serde(default)]
    pub multi_select: bool,
}

/// A suggested answer.
#[derive(Debug, Clone, Deserialize)]
pub struct AnswerOption {
    /// The label of the answer.
    pub label: String,
    /// A description of the answer.
    #[serde(default)]
    pub description: String,
    /// A preview of the result.
    pub preview: Option<String>,
}

impl UserQuestions {
    fn from_request(request: ApprovalRequest, timeout: Option<Duration>) -> Self {
        let input = request.asked.as_ref().map(|asked| &asked.input);
        let questions =
            input.and_then(|input| Vec::<FormQuestion>::deserialize(&input["questions"]).ok());
        Self {
            questions: questions.unwrap_or_default(),
            timeout,
            request,
        }
    }

    /// Returns the approval with the answers, by the text of the questions; unanswered questions
    /// are left out.
    pub fn answered(&self, answers: Map<String, Value>) -> ApprovalAnswer {
        self.with([("answers", Value::Object(answers))])
    }

    /// Returns the approval without answers after a timeout: the model continues without them.
    pub fn unanswered(&self) -> ApprovalAnswer {
        let waited = self.timeout.unwrap_or_default().as_millis();
        let waited = u64::try_from(waited).unwrap_or(u64::MAX);
        self.with([("answers", json!({})), ("afkTimeoutMs", json!(waited))])
    }

    fn with<const N: usize>(&self, parts: [(&str, Value); N]) -> ApprovalAnswer {
        let asked = self.request.asked.as_ref();
        let mut input = asked.map(|asked| asked.input.clone()).unwrap_or_default();
        if let Some(input) = input.as_object_mut() {
            input.extend(parts.map(|(name, value)| (name.to_owned(), value)));
        }
        ApprovalAnswer::InputEdited { input }
    }
}

/// Returns the approver of the session.
pub(crate) fn approver(
    asked: &QuestionTarget,
    events: &Arc<EventQuestions>,
    patience: Option<Duration>,
) -> Arc<dyn Approver> {
    match asked {
        QuestionTarget::None => Arc::new(NoApprover),
        QuestionTarget::Events => Arc::clone(events) as _,
        QuestionTarget::Handler(questions) => Arc::new(HandlerApprover {
            questions: Arc::clone(questions),
            timeout: patience,
        }),
    }
}

/// Passes each request to the question handler, by its kind.
pub(crate) struct HandlerApprover {
    pub(crate) questions: Arc<dyn QuestionHandler>,
    pub(crate) timeout: Option<Duration>,
}

impl Approver for HandlerApprover {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        match request.kind {
            ApprovalKind::Permission => self.questions.permission(request),
            ApprovalKind::Question => {
                let asked = UserQuestions::from_request(request, self.timeout);
                self.questions.question(asked)
            }
            ApprovalKind::Plan => self.questions.plan(request),
        }
    }

    fn is_available(&self) -> bool {
        self.questions.can_ask_user()
    }
}

/// Reports questions as events, which are answered by their ids.
pub(crate) struct EventQuestions {
    events: Arc<EventEmitter>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<ApprovalAnswer>>>,
}

impl EventQuestions {
    pub(crate) fn new(events: Arc<EventEmitter>) -> Self {
        Self {
            events,
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
        }
    }

    /// Answers a question. Returns whether the session was waiting for it.
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
            receiver.await.unwrap_or(ApprovalAnswer::Unavailable)
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
