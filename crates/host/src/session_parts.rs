//! The parts of a session that are code, not data: the event sink, the approver, the model, tools
//! and clock.

use std::sync::Arc;

use haft_contract::{BoxFuture, DynTool, EditorFiles, ProgressSender, Tool, erase};
use haft_mcp::client::ServerLink;
use haft_models::{Model, ScriptedModel, scripted::ModelScript};

use crate::{
    ElicitationHost, EventSink, QuestionHandler, SessionClock, SessionEvents, StreamPace,
    ToolTelemetry, clock,
};

/// The parts of a session besides its [`SessionConfig`](crate::SessionConfig).
#[must_use]
pub struct SessionParts {
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) question_target: QuestionTarget,
    pub(crate) servers: Option<Arc<dyn ServerLink>>,
    pub(crate) elicitations: Option<Arc<dyn ElicitationHost>>,
    pub(crate) editor: Option<Arc<dyn EditorFiles>>,
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) tools: Vec<Arc<dyn DynTool>>,
    pub(crate) progress: Option<ProgressSender>,
    pub(crate) doctor: Option<DoctorReport>,
    pub(crate) clock: Arc<dyn SessionClock>,
    pub(crate) telemetry: Option<ToolTelemetry>,
}

/// Runs all checks and returns their report as text.
pub(crate) type DoctorReport = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// The target of approval requests.
pub(crate) enum QuestionTarget {
    /// None: calls that need approval are denied.
    None,
    Handler(Arc<dyn QuestionHandler>),
    /// Events, which any client can answer.
    Events,
}

impl SessionParts {
    /// Creates the parts with an event sink and without an approver.
    pub fn new(events: impl EventSink + 'static) -> Self {
        Self::shared(Arc::new(events))
    }

    /// Like [`new`](Self::new), but with a shared sink.
    pub fn shared(events: Arc<dyn EventSink>) -> Self {
        Self {
            events,
            question_target: QuestionTarget::None,
            servers: None,
            elicitations: None,
            editor: None,
            model: None,
            tools: Vec::new(),
            progress: None,
            doctor: None,
            clock: clock::shared_machine_clock(),
            telemetry: None,
        }
    }

    /// Like [`new`](Self::new), but returns the events as a stream.
    pub fn stream() -> (Self, SessionEvents) {
        let (sink, events) = SessionEvents::new();
        (Self::new(sink), events)
    }

    /// Sets the handler of approval requests, questions and plans.
    pub fn questions(mut self, questions: impl QuestionHandler + 'static) -> Self {
        self.question_target = QuestionTarget::Handler(Arc::new(questions));
        self
    }

    /// Reports questions as events, answered by
    /// [`SessionInput::answer`](crate::SessionInput::answer).
    pub fn questions_as_events(mut self) -> Self {
        self.question_target = QuestionTarget::Events;
        self
    }

    /// Sets the link to MCP servers that the client runs.
    pub fn servers(mut self, link: Arc<dyn ServerLink>) -> Self {
        self.servers = Some(link);
        self
    }

    /// Sets the host of requests by MCP servers, which is asked before the question handler.
    pub fn elicitations(mut self, host: Arc<dyn ElicitationHost>) -> Self {
        self.elicitations = Some(host);
        self
    }

    /// Sets the editor whose files the session sees as the user does.
    pub fn editor(mut self, editor: Arc<dyn EditorFiles>) -> Self {
        self.editor = Some(editor);
        self
    }

    /// Sets the model, which replaces the provider; sessions may share it. Names, fallbacks and
    /// prices are those of the configuration.
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// Replaces the model with a script, at a pace that viewers can follow.
    pub fn scripted(self, script: ModelScript, pace: StreamPace) -> Self {
        self.model(pace.around(ScriptedModel::new(script)))
    }

    /// Sets the receiver of progress updates from tool calls.
    pub fn progress(mut self, progress: ProgressSender) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Sets the report for `/doctor`.
    pub fn doctor(
        mut self,
        report: impl Fn() -> BoxFuture<'static, String> + Send + Sync + 'static,
    ) -> Self {
        self.doctor = Some(Arc::new(report));
        self
    }

    /// Sets the clock for schedules. Default: that of the machine.
    pub fn clock(mut self, clock: Arc<dyn SessionClock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the telemetry of a session of tools. Default: none.
    pub fn telemetry(mut self, telemetry: ToolTelemetry) -> Self {
        self.telemetry = Some(telemetry);
        self
    }

    /// Adds your own tool.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.dyn_tool(erase(tool))
    }

    /// Adds your own tool that is already erased.
    pub fn dyn_tool(mut self, tool: Arc<dyn DynTool>) -> Self {
        self.tools.push(tool);
        self
    }
}
