//! What comes out of a session, in one order.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use haft_agent::{AgentEvent, NoticeLevel, RunResult, Sink, transcript::HookRun};
use haft_contract::{ApprovalRequest, SessionId, TaskEvent};
use haft_engine::{
    CallResult,
    hooks::{HearHooks, HookNews, HookStage},
};
use haft_models::ModelEvent;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use uuid::Uuid;

use crate::{
    ExtensionNames, QueuedMessage, RewindKind, ScheduledPrompt, ServerList, input::SharedState,
    progress::OpenCalls, telemetry::SessionTelemetry,
};

/// Something that happened in a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SessionEvent {
    /// Something is not as it should be; for a person, at once.
    Warning(String),
    /// Something worth knowing, for the one who follows the session.
    Notice {
        /// How much it matters.
        level: NoticeLevel,
        /// What.
        text: String,
    },
    /// The model wants a person to see this now, wherever they look.
    Notification {
        /// What, one line.
        text: String,
        /// How things stand, in a word.
        status: Option<String>,
    },
    /// Rules that a person agreed to were kept in a file, or could not be.
    RulesKept {
        /// Where.
        file: PathBuf,
        /// Why not; they count for this session all the same.
        problem: Option<String>,
    },
    /// It is known which session this is, and what it has.
    Ready(Box<SessionFacts>),
    /// The conversation was cleared: another begins in its place, under this id.
    Reset(SessionId),
    /// The MCP servers are connected, or could not be.
    Servers(ServerList),
    /// It works, or waits for input.
    Activity(SessionActivity),
    /// What the agent does.
    Agent(AgentEvent),
    /// What happens to a task in the background.
    Task(TaskEvent),
    /// What happens to a hook.
    Hook(HookNews),
    /// A line of the conversation was written; only where a mirror is asked for.
    TranscriptLine {
        /// The file it stands in.
        path: PathBuf,
        /// The line, a JSON text.
        line: String,
    },
    /// A question, where the session was given no one else to ask; answered by
    /// [`SessionInput::answer`](crate::SessionInput::answer).
    Question {
        /// By which it is answered.
        id: u64,
        /// What is asked.
        request: Box<ApprovalRequest>,
    },
    /// The question of this id is not waited for any longer.
    QuestionOver {
        /// Which.
        id: u64,
    },
    /// A message that waited is answered from now on. One that steers a run comes as
    /// [`AgentEvent::Added`] instead, under its id.
    Delivered(Box<QueuedMessage>),
    /// A prompt whose time has come is answered from now on, under this id.
    Scheduled {
        /// The prompt.
        prompt: Box<ScheduledPrompt>,
        /// The id of the message.
        uuid: Uuid,
    },
    /// A command that begins with a slash was answered without the model; a result follows.
    CommandAnswered {
        /// As it was typed.
        line: String,
        /// The answer, or what is wrong.
        answer: Result<String, String>,
    },
    /// The conversation goes on from an earlier message, or its files are what they were then.
    Rewound {
        /// Before this message.
        to: Uuid,
        /// What went back.
        kind: RewindKind,
    },
    /// The next run is still about the same message.
    Continues,
    /// A message is answered.
    Result(Box<TurnResult>),
    /// The session is over, however that came: the last event.
    Over,
}

impl SessionEvent {
    /// A piece of the main agent's reply, as the model says it.
    pub fn reply_text(&self) -> Option<&str> {
        match self {
            Self::Agent(AgentEvent::Model(ModelEvent::Text { text, .. })) => Some(text),
            _ => None,
        }
    }

    /// A call that was answered, by the main agent's hand.
    pub fn call_result(&self) -> Option<&CallResult> {
        match self {
            Self::Agent(AgentEvent::Answered { finished, .. }) => Some(finished),
            _ => None,
        }
    }
}

/// Does it work, or wait?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionActivity {
    /// It works.
    Running,
    /// Nothing more happens until something comes in.
    Idle,
}

/// How a message was answered.
#[derive(Debug, Clone)]
pub struct TurnResult {
    /// How the run ended.
    pub run: RunResult,
    /// Where answers must have a shape: the value, or why there is none.
    pub structured: Option<Result<Value, String>>,
    /// Where the message came from, as its sender said.
    pub origin: Option<Value>,
}

impl TurnResult {
    /// Did it fail?
    pub fn is_error(&self) -> bool {
        self.run.is_error() || matches!(self.structured, Some(Err(_)))
    }
}

/// What is known when a session begins.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    /// Which session.
    pub id: SessionId,
    /// Where the provider's key comes from, as messages name it.
    pub key_source: &'static str,
    /// How many tokens the model can read…
    pub window: u64,
    /// …and how many it may write in a reply.
    pub max_tokens: u32,
    /// What was left out because no one trusts the directory.
    pub untrusted: Option<String>,
    /// Commands are less confined than they should be: in what.
    pub sandbox_warning: Option<String>,
    /// What people put in folders.
    pub names: ExtensionNames,
}

/// Gets the events of a session, in their order.
pub trait EventSink: Send + Sync {
    /// Something happened. The session waits until this returns, so nothing may be waited for here.
    /// Prompts, answers, interrupts, changes and the end may be given from here; tasks in the background
    /// are not stopped from here, because that is an event itself.
    fn on_event(&self, event: &SessionEvent);
}

impl<F: Fn(&SessionEvent) + Send + Sync> EventSink for F {
    fn on_event(&self, event: &SessionEvent) {
        self(event);
    }
}

/// The events of a session as a stream, for those who take them in a task of their own. What is not taken
/// is kept: who stops reading drops it.
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

    /// The next event; `None` when the session is over.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        match self.0.recv().await? {
            SessionEvent::Over => None,
            event => Some(event),
        }
    }
}

/// Tells that the session is over when it is dropped.
pub(crate) struct TellsEnd(pub(crate) Arc<Events>);

impl Drop for TellsEnd {
    fn drop(&mut self) {
        self.0.emit(&SessionEvent::Over);
    }
}

/// Puts the events of all tasks of a session in one order.
pub(crate) struct Events {
    sink: Arc<dyn EventSink>,
    one_at_a_time: Mutex<()>,
    pub(crate) open_calls: OpenCalls,
    telemetry: OnceLock<Arc<SessionTelemetry>>,
}

impl Events {
    pub(crate) fn new(sink: Arc<dyn EventSink>) -> Self {
        Self {
            sink,
            one_at_a_time: Mutex::new(()),
            open_calls: OpenCalls::default(),
            telemetry: OnceLock::new(),
        }
    }

    /// Has what happens recorded from now on.
    pub(crate) fn recorded_by(&self, telemetry: Arc<SessionTelemetry>) {
        let _ = self.telemetry.set(telemetry);
    }

    /// Who records what happens, if anyone does.
    pub(crate) fn telemetry(&self) -> Option<&Arc<SessionTelemetry>> {
        self.telemetry.get()
    }

    pub(crate) fn emit(&self, event: &SessionEvent) {
        let _turn = self
            .one_at_a_time
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

impl Sink for Events {
    fn on_event(&self, event: &AgentEvent) {
        self.open_calls.note(event);
        self.emit(&SessionEvent::Agent(event.clone()));
    }
}

impl HearHooks for Events {
    fn hear(&self, news: &HookNews) {
        self.emit(&SessionEvent::Hook(news.clone()));
    }
}

/// Hears what happens to hooks, for the face and for the transcript.
pub(crate) struct HookEar {
    pub(crate) events: Arc<Events>,
    /// The engine that reports to this belongs to it.
    pub(crate) shared: Weak<SharedState>,
}

impl HearHooks for HookEar {
    fn hear(&self, news: &HookNews) {
        self.events.hear(news);
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
