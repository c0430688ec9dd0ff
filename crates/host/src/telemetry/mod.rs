//! Telemetry of a session: its spans, metrics and events.
//!
//! A run is a span. The model's replies, calls and hooks are child spans of it, and calls of a
//! subagent are child spans of the call that launched it. Names follow the conventions for
//! generative AI (`gen_ai.*`) where these define them. Prompts, replies, inputs and results of
//! tools are omitted unless the variables request them.
//!
//! - this file: events of a session; `calls`: finished calls; `model_replies`: replies of models

mod calls;
mod model_replies;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use haft_agent::{AgentEvent, RunStart};
use haft_contract::{CallId, Content, SessionId};
use haft_engine::{
    CallListener, CallResult,
    hooks::{HookRunEvent, HookStage},
};
use haft_models::{Http, HttpOptions, Model, Prices, Usage};
use haft_telemetry::{
    Attribute, AttributeValue, EventSeverity, LoggedEvent, SpanId, SpanKind, Telemetry,
    TelemetryConfig, TelemetrySpan, TraceId,
};

use crate::{
    Environment, SessionActivity, SessionEvent, StopKind, TurnResult, event::EventEmitter,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The maximum number of bytes of a text, if texts are sent.
const MAX_TEXT: usize = 16 << 10;

/// The time for sending the remaining data when the system terminates the session.
const TERMINATED: Duration = Duration::from_millis(500);

/// The maximum number of calls and hooks that are tracked at the same time.
const MAX_OPEN: usize = 10_000;

/// The telemetry of a session.
pub(crate) struct SessionTelemetry {
    telemetry: Telemetry,
    state: Mutex<TraceState>,
    /// Whether this is a session of tools, which has only calls: no runs, no model, and no events
    /// for answered calls.
    is_tool_session: bool,
}

#[derive(Default)]
struct TraceState {
    session: Option<String>,
    run: Option<RunSpan>,
    /// Running calls, by the provider's ids.
    calls: HashMap<String, CallId>,
    /// The parent spans for calls of subagents, by the subagents' ids.
    launches: HashMap<String, SpanId>,
    /// Recorded calls that are not answered yet.
    recorded: HashSet<CallId>,
    hooks: HashMap<String, SystemTime>,
}

/// The current run.
#[derive(Clone)]
struct RunSpan {
    trace: TraceId,
    id: SpanId,
    start: SystemTime,
    model: Option<String>,
}

impl RunSpan {
    fn begin() -> Self {
        Self {
            trace: TraceId::random(),
            id: SpanId::random(),
            start: SystemTime::now(),
            model: None,
        }
    }
}

impl SessionTelemetry {
    /// Creates telemetry as configured by the variables. Problems with them, and failures to send
    /// data, are reported as warnings.
    pub(crate) fn from_environment(
        environment: &Environment,
        events: &Arc<EventEmitter>,
    ) -> Option<Arc<Self>> {
        let variable = |name: &str| environment.variable(name);
        let (config, warnings) = TelemetryConfig::from_variables(variable, VERSION);
        for warning in warnings {
            events.warn(warning);
        }
        let http = Arc::new(Http::new(HttpOptions::from_variables(variable)));
        // Weak, because the events own the telemetry.
        let warned = Arc::downgrade(events);
        let telemetry = Telemetry::start(config?, VERSION, http, move |text| {
            if let Some(events) = warned.upgrade() {
                events.warn(text);
            }
        });
        Some(Arc::new(Self {
            telemetry,
            state: Mutex::default(),
            is_tool_session: false,
        }))
    }

    /// Returns the telemetry of a session of tools, which shares this exporter.
    pub(crate) fn for_tool_session(&self) -> Arc<Self> {
        Arc::new(Self {
            telemetry: self.telemetry.clone(),
            state: Mutex::default(),
            is_tool_session: true,
        })
    }

    /// Sets the id of the session when it starts.
    pub(crate) fn set_session(&self, session: SessionId) {
        self.state().session = Some(session.to_string());
        let of = self.with_session(Vec::new());
        self.telemetry
            .count("haft.session.count", "{session}", of, 1.0);
    }

    fn state(&self) -> MutexGuard<'_, TraceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an event of the session.
    pub(crate) fn on_event(&self, event: &SessionEvent) {
        match event {
            SessionEvent::Ready(facts) => {
                self.set_session(facts.id);
            }
            SessionEvent::Reset(id) => self.state().session = Some(id.to_string()),
            SessionEvent::Activity(SessionActivity::Running) => {
                self.state().run.get_or_insert_with(RunSpan::begin);
            }
            SessionEvent::Activity(SessionActivity::Idle) => self.state().end_run(),
            SessionEvent::Agent(event) => self.on_agent(event),
            SessionEvent::Hook(news) => self.on_hook(news),
            SessionEvent::Result(result) => self.on_result(result),
            _ => {}
        }
    }

    fn on_agent(&self, event: &AgentEvent) {
        match event {
            AgentEvent::RunStarted(RunStart { model, .. }) => {
                if let Some(run) = &mut self.state().run {
                    run.model = Some(model.clone());
                }
            }
            AgentEvent::CallBound {
                call, tool_use_id, ..
            } => self.state().calls(*call, tool_use_id),
            AgentEvent::CallFinished { finished, .. } => self.answered(finished, None),
            AgentEvent::Subagent { agent, event } => {
                // For every event, because a call of a subagent may end before its start is
                // reported.
                self.state().launched(&agent.id, &agent.tool_use_id);
                match &**event {
                    AgentEvent::CallBound {
                        call, tool_use_id, ..
                    } => self.state().calls(*call, tool_use_id),
                    AgentEvent::CallFinished { finished, .. } => {
                        self.answered(finished, Some(&agent.id));
                    }
                    _ => {}
                }
            }
            AgentEvent::Compacted {
                trigger,
                pre_tokens,
                post_tokens,
                duration,
                ..
            } => self.log(
                "haft.compaction",
                EventSeverity::Info,
                vec![
                    ("haft.compaction.trigger", trigger.name().into()),
                    ("haft.compaction.tokens_before", (*pre_tokens).into()),
                    ("haft.compaction.tokens_after", (*post_tokens).into()),
                    ("haft.duration_ms", milliseconds(*duration)),
                ],
            ),
            _ => {}
        }
    }

    /// Records an answered call, unless it was already recorded when its tool ended.
    fn answered(&self, finished: &CallResult, agent: Option<&str>) {
        let (was_recorded, parent) = {
            let mut state = self.state();
            state.calls.remove(&finished.id);
            let parent = agent.and_then(|agent| state.launches.get(agent).copied());
            (state.recorded.remove(&finished.call), parent)
        };
        if !was_recorded {
            self.record_unjudged(finished, parent);
        }
    }

    fn on_hook(&self, news: &HookRunEvent) {
        let now = SystemTime::now();
        match &news.stage {
            HookStage::Started => {
                let hooks = &mut self.state().hooks;
                if hooks.len() < MAX_OPEN {
                    hooks.insert(news.id.clone(), now);
                }
            }
            HookStage::Printed { .. } => {}
            HookStage::Ended { code, outcome, .. } => {
                let start = self.state().hooks.remove(&news.id).unwrap_or(now);
                let mut attributes = vec![
                    ("haft.hook.event", news.event.name().into()),
                    ("haft.hook.name", news.name.as_str().into()),
                    ("haft.hook.outcome", outcome.name().into()),
                ];
                let counted = vec![attributes[0].clone(), attributes[2].clone()];
                if let Some(code) = code {
                    let code = AttributeValue::Int(i64::from(*code));
                    attributes.push(("process.exit.code", code));
                }
                let failed = outcome.name() != "success";
                let took = now.duration_since(start).unwrap_or_default();
                self.span(RecordedSpan {
                    id: SpanId::random(),
                    parent: None,
                    name: format!("hook {}", news.event.name()),
                    kind: SpanKind::Internal,
                    start,
                    end: now,
                    attributes,
                    error: failed.then(|| outcome.name().to_owned()),
                });
                let measured = haft_telemetry::MeasureUnit::Seconds;
                let seconds = took.as_secs_f64();
                self.telemetry
                    .measure("haft.hook.duration", measured, counted, seconds);
            }
        }
    }

    fn on_result(&self, result: &TurnResult) {
        let run = self.state().run.take();
        let Some(run) = run else { return };
        let ended = &result.run;
        let mut attributes = vec![
            ("gen_ai.operation.name", "invoke_agent".into()),
            ("gen_ai.agent.name", "haft".into()),
            ("haft.run.end_reason", ended.reason.name().into()),
            ("haft.run.replies", u64::from(ended.num_turns).into()),
            (
                "haft.run.refusals",
                (ended.permission_denials.len() as u64).into(),
            ),
        ];
        attributes.extend(usage_attributes(&ended.usage));
        if let Some(model) = &run.model {
            attributes.push(("gen_ai.request.model", model.as_str().into()));
        }
        let error = result.is_error().then(|| ended.subtype.name().to_owned());
        if let Some(error) = &error {
            attributes.push(("error.type", error.as_str().into()));
        }
        let attributes = self.with_session(attributes);
        self.telemetry.span(TelemetrySpan {
            trace: run.trace,
            id: run.id,
            parent: None,
            name: "invoke_agent haft".to_owned(),
            kind: SpanKind::Internal,
            start: run.start,
            end: SystemTime::now(),
            attributes,
            error,
        });
        self.state().end_run();
    }

    /// Records a prompt of the user, or of a program on the user's behalf.
    pub(crate) fn on_prompt(&self, content: &[Content]) {
        let texts: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
        let text = texts.join("\n");
        let length = text.chars().count() as u64;
        let mut attributes = vec![("haft.prompt.length", length.into())];
        if self.telemetry.config().with_prompts {
            attributes.push(("haft.prompt.text", shortened(&text).into()));
        }
        self.log("haft.user_prompt", EventSeverity::Info, attributes);
        let none = Vec::new();
        self.telemetry
            .count("haft.prompt.count", "{prompt}", none, 1.0);
    }

    /// Wraps a model so that its replies are recorded. `provider` is its name in the conventions.
    pub(crate) fn wrap_model(
        self: &Arc<Self>,
        model: Arc<dyn Model>,
        provider: &'static str,
        prices: Prices,
    ) -> Arc<dyn Model> {
        model_replies::wrap_model(self, model, provider, prices)
    }

    /// Returns the listener that records calls.
    pub(crate) fn listener(self: &Arc<Self>) -> Arc<dyn CallListener> {
        Arc::<Self>::clone(self)
    }

    /// Sends the remaining data, if there is time.
    pub(crate) async fn close(&self, stopped: Option<StopKind>) {
        let bound = match stopped {
            Some(StopKind::Terminate) => TERMINATED,
            _ => Duration::MAX,
        };
        self.telemetry.close(bound).await;
    }

    fn with_session(&self, mut attributes: Vec<Attribute>) -> Vec<Attribute> {
        if let Some(session) = &self.state().session {
            attributes.push(("session.id", session.as_str().into()));
            attributes.push(("gen_ai.conversation.id", session.as_str().into()));
        }
        attributes
    }

    /// Records a span of the current run, or a separate trace outside a run.
    fn span(&self, span: RecordedSpan) {
        let run = self.state().run.as_ref().map(|run| (run.trace, run.id));
        let (trace, parent) = match run {
            Some((trace, run)) => (trace, Some(span.parent.unwrap_or(run))),
            None => (TraceId::random(), None),
        };
        let attributes = self.with_session(span.attributes);
        self.telemetry.span(TelemetrySpan {
            trace,
            id: span.id,
            parent,
            name: span.name,
            kind: span.kind,
            start: span.start,
            end: span.end,
            attributes,
            error: span.error,
        });
    }

    fn log(&self, name: &'static str, severity: EventSeverity, attributes: Vec<Attribute>) {
        let within = self.state().run.as_ref().map(|run| (run.trace, run.id));
        let attributes = self.with_session(attributes);
        self.telemetry.event(LoggedEvent {
            name,
            severity,
            within,
            time: SystemTime::now(),
            attributes,
        });
    }
}

impl TraceState {
    /// Adds a call that has started.
    fn calls(&mut self, call: CallId, tool_use_id: &str) {
        if self.calls.len() < MAX_OPEN {
            self.calls.insert(tool_use_id.to_owned(), call);
        }
    }

    /// Adds a subagent that this call launched.
    fn launched(&mut self, agent: &str, tool_use_id: &str) {
        if let Some(call) = self.calls.get(tool_use_id)
            && self.launches.len() < MAX_OPEN
            && !self.launches.contains_key(agent)
        {
            self.launches.insert(agent.to_owned(), span_of(*call));
        }
    }

    /// Ends the run. If calls are still running, background subagents may make further calls, so
    /// their spans are kept.
    fn end_run(&mut self) {
        self.run = None;
        if self.calls.is_empty() {
            self.launches.clear();
            self.recorded.clear();
        }
    }
}

/// The data of a span without its trace.
struct RecordedSpan {
    id: SpanId,
    parent: Option<SpanId>,
    name: String,
    kind: SpanKind,
    start: SystemTime,
    end: SystemTime,
    attributes: Vec<Attribute>,
    error: Option<String>,
}

/// Returns the span id of a call: the last half of the call id, which is random.
fn span_of(call: CallId) -> SpanId {
    let mut id = [0; 8];
    id.copy_from_slice(&call.0.as_bytes()[8..]);
    SpanId(id)
}

fn usage_attributes(usage: &Usage) -> Vec<Attribute> {
    let input = usage
        .input
        .saturating_add(usage.cache_read)
        .saturating_add(usage.cache_write);
    vec![
        // Includes the tokens read from the cache, as the conventions require.
        ("gen_ai.usage.input_tokens", input.into()),
        ("gen_ai.usage.output_tokens", usage.output.into()),
        (
            "gen_ai.usage.cache_read.input_tokens",
            usage.cache_read.into(),
        ),
        (
            "gen_ai.usage.cache_creation.input_tokens",
            usage.cache_write.into(),
        ),
    ]
}

fn milliseconds(duration: Duration) -> AttributeValue {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .into()
}

/// Returns a text, cut to the maximum length.
fn shortened(text: &str) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_TEXT);
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = "é".repeat(MAX_TEXT);
        let short = shortened(&text);
        assert!(short.len() < MAX_TEXT + 40, "{}", short.len());
        assert!(
            short.ends_with("(32768 bytes in all)"),
            "{}",
            &short[MAX_TEXT..]
        );
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn the_span_of_a_call_is_known_by_its_id() {
        let (one, other) = (CallId::new(), CallId::new());
        assert_eq!(span_of(one), span_of(one));
        assert_ne!(span_of(one), span_of(other));
    }
}
