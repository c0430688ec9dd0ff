//! The events of a session, in one order.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use haft_agent::{AgentEvent, AgentEventSink, NoticeLevel, RunResult, transcript::HookRun};
use haft_contract::{ApprovalRequest, SessionId, TaskEvent};
use haft_engine::{
    CallResult,
    hooks::{HookEventSink, HookRunEvent, HookStage},
};
use haft_models::ModelEvent;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use uuid::Uuid;

use crate::{
    ExtensionNames, QueuedMessage, RewindKind, ScheduledPrompt, ServerList, input::SharedState,
    progress::ProgressCalls, telemetry::SessionTelemetry,
};

/// An event of a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SessionEvent {
    /// A warning that the user should see immediately.
    Warning(String),
    /// A notice for a client that follows the session.
    Notice {
        /// The level of the notice.
        level: NoticeLevel,
        /// The text.
        text: String,
    },
    /// A notification by the model that the user should see now.
    Notification {
        /// The text, one line.
        text: String,
        /// The status, as a short text.
        status: Option<String>,
    },
    /// Rules that the user approved were saved in a file, or could not be.
    RulesKept {
        /// The file.
        file: PathBuf,
        /// The error; the rules apply to this session nevertheless.
        problem: Option<String>,
    },
    /// The properties of the session are known.
    Ready(Box<SessionFacts>),
    /// The conversation was cleared; a new one with this id replaces it.
    Reset(SessionId),
    /// The state of the MCP servers has changed.
    Servers(ServerList),
    /// The session has started to work, or waits for input.
    Activity(SessionActivity),
    /// An event of the agent.
    Agent(AgentEvent),
    /// An event of a background task.
    Task(TaskEvent),
    /// An event of a hook.
    Hook(HookRunEvent),
    /// A line of the transcript was written. Only if a mirror was requested.
    TranscriptLine {
        /// The transcript.
        path: PathBuf,
        /// The line, as JSON text.
        line: String,
    },
    /// A question, if the session has no other approver. Answer it with
    /// [`SessionInput::answer`](crate::SessionInput::answer).
    Question {
        /// The id for the answer.
        id: u64,
        /// The request.
        request: Box<ApprovalRequest>,
    },
    /// The session no longer waits for the answer to a question.
    QuestionOver {
        /// The id of the question.
        id: u64,
    },
    /// A queued message is answered from now on. A message that steers a run is reported as
    /// [`AgentEvent::MessageInjected`] instead, under its id.
    Delivered(Box<QueuedMessage>),
    /// A scheduled prompt is due and is answered from now on.
    Scheduled {
        /// The prompt.
        prompt: Box<ScheduledPrompt>,
        /// The id of the message.
        uuid: Uuid,
    },
    /// A slash command was answered without the model; a result follows.
    CommandAnswered {
        /// The line, as typed.
        line: String,
        /// The answer or the error.
        answer: Result<String, String>,
    },
    /// The conversation or the files were rewound to an earlier message.
    Rewound {
        /// The message before which they are restored.
        to: Uuid,
        /// The parts that were rewound.
        kind: RewindKind,
    },
    /// The next run continues to answer the same message.
    Continues,
    /// A message was answered.
    Result(Box<TurnResult>),
    /// The session has ended, for any reason: the last event.
    Ended,
}

impl SessionEvent {
    /// Returns a part of the main agent's reply, as the model streams it.
    pub fn reply_text(&self) -> Option<&str> {
        match self {
            Self::Agent(AgentEvent::Model(ModelEvent::Text { text, .. })) => Some(text),
            _ => None,
        }
    }

    /// Returns the result of a call, if it was made by the main agent.
    pub fn call_result(&self) -> Option<&CallResult> {
        match self {
            Self::Agent(AgentEvent::CallFinished { finished, .. }) => Some(finished),
            _ => None,
        }
    }
}

/// The activity of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionActivity {
    /// It is working.
    Running,
    /// It waits for input.
    Idle,
}

/// The result of a message.
#[derive(Debug, Clone)]
pub struct TurnResult {
    /// The result of the run.
    pub run: RunResult,
    /// With an output schema: the value, or the reason why the answer does not match.
    pub structured: Option<Result<Value, String>>,
    /// The origin of the message, as reported by its sender.
    pub origin: Option<Value>,
}

impl TurnResult {
    /// Returns whether the run failed or its answer does not match the schema.
    pub fn is_error(&self) -> bool {
        self.run.is_error() || matches!(self.structured, Some(Err(_)))
    }
}

/// The properties of a session that are known at its start.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    /// The session id.
    pub id: SessionId,
    /// The origin of the provider's key, as named in messages.
    pub key_source: &'static str,
    /// The size of the model's window in tokens.
    pub window: u64,
    /// The maximum number of tokens in a reply.
    pub max_tokens: u32,
    /// A description of what was ignored because the directory is untrusted.
    pub untrusted: Option<String>,
    /// A warning if commands are confined less than they should be.
    pub sandbox_warning: Option<String>,
    /// The reason why the permission mode is not `auto`, although it was requested.
    pub permission_mode_warning: Option<String>,
    /// The names of the extensions.
    pub names: ExtensionNames,
}

/// Receives the events of a session, in order.
pub trait EventSink: Send + Sync {
    /// Called for each event. The session waits until this returns, so it must not wait for
    /// anything. It may submit prompts, answers, interrupts and changes, and end the session. It
    /// must not stop background tasks, because that itself emits an event.
    fn on_event(&self, event: &SessionEvent);
}

impl<F: Fn(&SessionEvent) + Send + Sync> EventSink for F {
    fn on_event(&self, event: &SessionEvent) {
        self(event);
    }
}

/// The events of a session as a stream, for a client that reads them in its own task. Unread events
/// are queued: a client that stops reading must drop the stream.
#[derive(Debug)]
pub struct SessionEvents(UnboundedReceiver<SessionEvent>);

impl SessionEvents {
    pub(crate) fn new() -> (impl EventSink, Self) {
        let (sender, receiver) = unbounded_channel();
        let sink = move |event: &SessionEvent| {
            let _ = sender.send(event.clone());
        };
        (sink, Self(receiver))
    }

    /// Returns the next event; `None` when the session has ended.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        match self.0.recv().await? {
            SessionEvent::Ended => None,
            event => Some(event),
        }
    }
}

/// Emits the end of the session when it is dropped.
pub(crate) struct SessionEndGuard(pub(crate) Arc<EventEmitter>);

impl Drop for SessionEndGuard {
    fn drop(&mut self) {
        self.0.emit(&SessionEvent::Ended);
    }
}

/// Puts the events of all tasks of a session into one order.
pub(crate) struct EventEmitter {
    sink: Arc<dyn EventSink>,
    order_lock: Mutex<()>,
    pub(crate) open_calls: ProgressCalls,
    telemetry: OnceLock<Arc<SessionTelemetry>>,
}

impl EventEmitter {
    pub(crate) fn new(sink: Arc<dyn EventSink>) -> Self {
        Self {
            sink,
            order_lock: Mutex::new(()),
            open_calls: ProgressCalls::default(),
            telemetry: OnceLock::new(),
        }
    }

    /// Sets the telemetry that records events.
    pub(crate) fn set_telemetry(&self, telemetry: Arc<SessionTelemetry>) {
        let _ = self.telemetry.set(telemetry);
    }

    /// Returns the telemetry, if it is on.
    pub(crate) fn telemetry(&self) -> Option<&Arc<SessionTelemetry>> {
        self.telemetry.get()
    }

    pub(crate) fn emit(&self, event: &SessionEvent) {
        let _turn = self
            .order_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(telemetry) = self.telemetry() {
            telemetry.on_event(event);
        }
        self.sink.on_event(event);
    }

    pub(crate) fn warn(&self, text: impl Into<String>) {
        self.emit(&SessionEvent::Warning(text.into()));
    }

    pub(crate) fn notice(&self, level: NoticeLevel, text: impl Into<String>) {
        let text = text.into();
        self.emit(&SessionEvent::Notice { level, text });
    }
}

impl AgentEventSink for EventEmitter {
    fn on_event(&self, event: &AgentEvent) {
        self.open_calls.record_event(event);
        self.emit(&SessionEvent::Agent(event.clone()));
    }
}

impl HookEventSink for EventEmitter {
    fn on_event(&self, news: &HookRunEvent) {
        self.emit(&SessionEvent::Hook(news.clone()));
    }
}

/// Forwards hook events to the front end and the transcript.
pub(crate) struct HookEventForwarder {
    pub(crate) events: Arc<EventEmitter>,
    /// The session. Weak, because the shared state owns the engine that reports to this sink.
    pub(crate) shared: Weak<SharedState>,
}

impl HookEventSink for HookEventForwarder {
    fn on_event(&self, news: &HookRunEvent) {
        HookEventSink::on_event(&*self.events, news);
        let HookStage::Ended {
            stdout,
            stderr,
            code,
            outcome,
        } = &news.stage
        else {
            return;
        };
        if let Some(shared) = self.shared.upgrade() {
            shared.access.hook_ran(HookRun {
                name: news.name.clone(),
                outcome: outcome.name(),
                code: *code,
                stdout: stdout.clone(),
                stderr: stderr.clone(),
            });
        }
    }
}
