//! What a session is given that is code and not data: who follows it, who answers, and what an embedder
//! brings.

use std::sync::Arc;

use haft_contract::{BoxFuture, DynTool, EditorFiles, Progress, Tool, erase};
use haft_mcp::client::ServerLink;
use haft_models::{Model, Scripted, scripted::ModelScript};

use crate::{
    ElicitationHost, EventSink, Questions, SessionClock, SessionEvents, SpeakingPace,
    ToolTelemetry, clock,
};

/// What a session is given beside its [`SessionConfig`](crate::SessionConfig).
#[must_use]
pub struct SessionParts {
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) asked: Asked,
    pub(crate) servers: Option<Arc<dyn ServerLink>>,
    pub(crate) elicitations: Option<Arc<dyn ElicitationHost>>,
    pub(crate) editor: Option<Arc<dyn EditorFiles>>,
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) tools: Vec<Arc<dyn DynTool>>,
    pub(crate) progress: Option<Progress>,
    pub(crate) doctor: Option<DoctorReport>,
    pub(crate) clock: Arc<dyn SessionClock>,
    pub(crate) telemetry: Option<ToolTelemetry>,
}

/// Looks at everything there is to look at, and reports it as a text.
pub(crate) type DoctorReport = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// Who is asked.
pub(crate) enum Asked {
    /// No one: what needs asking is refused.
    NoOne,
    Face(Arc<dyn Questions>),
    /// Anyone who follows the events.
    Events,
}

impl SessionParts {
    /// A session that is followed by this; no one is asked.
    pub fn new(events: impl EventSink + 'static) -> Self {
        Self::shared(Arc::new(events))
    }

    /// The same for one that is shared.
    pub fn shared(events: Arc<dyn EventSink>) -> Self {
        Self {
            events,
            asked: Asked::NoOne,
            servers: None,
            elicitations: None,
            editor: None,
            model: None,
            tools: Vec::new(),
            progress: None,
            doctor: None,
            clock: clock::of_machine(),
            telemetry: None,
        }
    }

    /// The same for one that takes the events as a stream.
    pub fn stream() -> (Self, SessionEvents) {
        let (sink, events) = SessionEvents::new();
        (Self::new(sink), events)
    }

    /// Who is asked for permission, for answers, and about plans.
    pub fn questions(mut self, questions: impl Questions + 'static) -> Self {
        self.asked = Asked::Face(Arc::new(questions));
        self
    }

    /// Questions are events, answered by [`SessionInput::answer`](crate::SessionInput::answer).
    pub fn questions_as_events(mut self) -> Self {
        self.asked = Asked::Events;
        self
    }

    /// The way to MCP servers that the other side runs.
    pub fn servers(mut self, link: Arc<dyn ServerLink>) -> Self {
        self.servers = Some(link);
        self
    }

    /// Who is asked what MCP servers want to know, before those who answer questions.
    pub fn elicitations(mut self, host: Arc<dyn ElicitationHost>) -> Self {
        self.elicitations = Some(host);
        self
    }

    /// The editor whose files the session sees as the person does.
    pub fn editor(mut self, editor: Arc<dyn EditorFiles>) -> Self {
        self.editor = Some(editor);
        self
    }

    /// Who answers, in place of a provider; sessions may share it. Names, fallbacks and prices are
    /// those of the configuration.
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// This script in place of a model, at a pace that people can follow.
    pub fn scripted(self, script: ModelScript, pace: SpeakingPace) -> Self {
        self.model(pace.around(Scripted::new(script)))
    }

    /// Where calls of tools report their progress.
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// What `/doctor` answers.
    pub fn doctor(
        mut self,
        report: impl Fn() -> BoxFuture<'static, String> + Send + Sync + 'static,
    ) -> Self {
        self.doctor = Some(Arc::new(report));
        self
    }

    /// The clock that schedules go by. Default: that of the machine.
    pub fn clock(mut self, clock: Arc<dyn SessionClock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sends what a session of tools does. Default: nothing is sent.
    pub fn telemetry(mut self, telemetry: ToolTelemetry) -> Self {
        self.telemetry = Some(telemetry);
        self
    }

    /// A tool of your own.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.dyn_tool(erase(tool))
    }

    /// A tool of your own that is already erased.
    pub fn dyn_tool(mut self, tool: Arc<dyn DynTool>) -> Self {
        self.tools.push(tool);
        self
    }
}
