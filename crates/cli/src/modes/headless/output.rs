//! What goes out, in the format that was asked for.

use std::{
    io,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use haft::{
    CallResult, Denied, SessionId,
    engine::hooks::{HearHooks, HookNews},
};
use haft_agent::{Added, AgentEvent, RunResult, Sink, Subtype, Tag};
use haft_host::{Environment, NEVER_FITTED, ServerList, SessionInput};
use haft_models::{Block, ModelEvent};
use serde_json::{Value, json};

use super::{
    flags::{Headless, OutputFormat},
    line_limit,
    messages::{self, Facts},
    stream_events::Pieces,
};
use crate::show;

/// Where everything goes out, from whichever task.
pub(super) struct Output {
    format: OutputFormat,
    verbose: bool,
    partial: bool,
    /// What subagents say and think is told too.
    forwards: AtomicBool,
    /// All hooks are told of, not only those of the beginning.
    hooks: bool,
    states: States,
    /// Whoever reads no more wants no more done.
    session: OnceLock<SessionInput>,
    state: Mutex<OutputState>,
}

#[derive(Default)]
struct OutputState {
    session: Option<SessionId>,
    facts: Facts,
    model: String,
    pieces: Pieces,
    /// For the list at the end.
    all: Vec<Value>,
    /// So many questions wait for their answer.
    questions: usize,
    /// What we were last said to be at.
    said: &'static str,
    /// The next run is about the same message.
    goes_on: bool,
    /// A result has been told.
    has_result: bool,
    /// The first write that failed.
    failed: Option<io::Error>,
}

/// Is the other end told whether we are at work?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum States {
    No,
    /// It is a message like any other.
    Yes,
    /// It is for the program at the other end only.
    ForTheHost,
}

impl Output {
    pub(super) fn new(flags: &Headless, environment: &Environment) -> Self {
        let on = |name| environment.is_on(name);
        let states = if on("CLAUDE_CODE_SDK_READS_SESSION_STATE") {
            States::ForTheHost
        } else if on("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") {
            States::Yes
        } else {
            States::No
        };
        Self {
            format: flags.output_format,
            verbose: flags.verbose,
            partial: flags.include_partial_messages,
            forwards: (flags.forward_subagent_text || on("CLAUDE_CODE_FORWARD_SUBAGENT_TEXT"))
                .into(),
            hooks: flags.include_hook_events,
            states,
            session: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    /// What goes out is of this session; it ends when nobody reads any more.
    pub(super) fn follows(&self, session: SessionInput) {
        let _ = self.session.set(session);
    }

    /// The session, once it is open.
    pub(super) fn session(&self) -> Option<&SessionInput> {
        self.session.get()
    }

    /// The servers are known now.
    pub(super) fn has_servers(&self, servers: ServerList) {
        self.state().facts.servers = servers;
    }

    /// The session is known now.
    pub(super) fn belongs_to(&self, session: SessionId, facts: Facts) {
        let mut state = self.state();
        state.session = Some(session);
        state.facts = facts;
    }

    /// What subagents say and think is told too, from now on.
    pub(super) fn forward_subagent_text(&self) {
        self.forwards.store(true, Ordering::Relaxed);
    }

    /// A question waits for its answer, as long as this is held.
    pub(super) fn waits(&self) -> Waits<'_> {
        let mut state = self.state();
        state.questions += 1;
        let first = state.questions == 1;
        drop(state);
        if first {
            self.put_state("requires_action");
        }
        Waits(self)
    }

    /// A message of a conversation.
    pub(super) fn put(&self, message: Value) {
        let mut state = self.state();
        self.put_into(&mut state, message);
    }

    fn put_into(&self, state: &mut OutputState, mut message: Value) {
        if self.format == OutputFormat::Text {
            return;
        }
        if let (Some(session), None) = (state.session, message.get("session_id")) {
            message["session_id"] = json!(session);
        }
        if message.get("uuid").is_none() {
            message["uuid"] = json!(haft_agent::random_id());
        }
        match self.format {
            OutputFormat::StreamJson => self.write(state, &message),
            OutputFormat::Json if self.verbose => state.all.push(message),
            OutputFormat::Json if message["type"] == "result" => self.write(state, &message),
            OutputFormat::Json | OutputFormat::Text => {}
        }
    }

    /// A word between programs: no message of the conversation.
    pub(super) fn put_control(&self, message: &Value) {
        let mut state = self.state();
        self.write(&mut state, message);
    }

    fn write(&self, state: &mut OutputState, message: &Value) {
        if let Err(error) = show::json(&line_limit::line(message)) {
            self.fails(state, error);
        }
    }

    /// Nobody reads any more.
    fn fails(&self, state: &mut OutputState, error: io::Error) {
        state.failed.get_or_insert(error);
        if let Some(session) = self.session.get() {
            session.abandon();
        }
    }

    /// Whether we are at work: `running`, `requires_action`, `idle`.
    pub(super) fn put_state(&self, name: &'static str) {
        let mut state = self.state();
        if self.states == States::No || state.said == name {
            return;
        }
        state.said = name;
        let mut message =
            json!({"type": "system", "subtype": "session_state_changed", "state": name});
        if self.states == States::ForTheHost {
            message["sdk_host_only"] = json!(true);
        }
        self.put_into(&mut state, message);
    }

    /// Something a person should know.
    pub(super) fn put_notice(&self, level: &str, text: &str) {
        self.put(informational(level, text));
    }

    /// The next run is still about the same message: its beginning is not told.
    pub(super) fn goes_on(&self) {
        self.state().goes_on = true;
    }

    /// A message is answered; `fitted` is the answer in the shape it must have, or why there is none.
    pub(super) fn put_result(&self, ended: &RunResult, fitted: Option<Result<Value, String>>) {
        let mut state = self.state();
        state.has_result = true;
        self.end_reply(&mut state);
        if self.format == OutputFormat::Text {
            let text = match ended.subtype {
                Subtype::Success => ended.text.clone(),
                _ => ended.errors.join("\n"),
            };
            if let Err(error) = show::line(&text) {
                self.fails(&mut state, error);
            }
            return;
        }
        let mut message = messages::result(ended, &state.facts);
        match fitted {
            None => {}
            Some(Ok(value)) => message["structured_output"] = value,
            Some(Err(why)) => {
                message["subtype"] = json!(NEVER_FITTED);
                message["is_error"] = json!(true);
                message["errors"] = json!([why]);
                if let Some(object) = message.as_object_mut() {
                    object.shift_remove("result");
                }
            }
        }
        self.put_into(&mut state, message);
    }

    /// It ends before any run could; `problem` is for people.
    pub(super) fn put_failure(&self, problem: &str) {
        if !self.state().has_result {
            self.put(messages::stillborn(problem));
        }
    }

    /// Nothing more comes. The error is that of the first write that failed.
    pub(super) fn end(&self) -> io::Result<()> {
        let mut state = self.state();
        if self.format == OutputFormat::Json && self.verbose {
            let all = std::mem::take(&mut state.all);
            show::json(&Value::Array(all).to_string())?;
        }
        match state.failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn end_reply(&self, state: &mut OutputState) {
        for event in state.pieces.end() {
            self.put_piece(state, event);
        }
    }

    fn put_piece(&self, state: &mut OutputState, event: Value) {
        if self.partial {
            let message =
                json!({"type": "stream_event", "event": event, "parent_tool_use_id": null});
            self.put_into(state, message);
        }
    }

    fn hear_model(&self, state: &mut OutputState, event: &ModelEvent) {
        // What a reply has cost may come after why it stopped.
        if state.pieces.has_stopped() && !matches!(event, ModelEvent::Usage { .. }) {
            self.end_reply(state);
        }
        let model = state.model.clone();
        for piece in state.pieces.of(event, &model) {
            self.put_piece(state, piece);
        }
        match event {
            ModelEvent::Retry {
                attempt,
                max_retries,
                delay,
                error,
            } => {
                let message = json!({
                    "type": "system",
                    "subtype": "api_retry",
                    "attempt": attempt,
                    "max_retries": max_retries,
                    "retry_delay_ms": messages::millis(*delay),
                    "error_status": error.status,
                    "error": error.code(),
                });
                self.put_into(state, message);
            }
            ModelEvent::Fallback { from, to, error } => {
                let text = format!("{to} takes over from {from}: {error}");
                self.put_into(state, informational("warning", &text));
            }
            ModelEvent::ImagesDropped { error, .. } => {
                let text = format!("images were left out: {error}");
                self.put_into(state, informational("warning", &text));
            }
            _ => {}
        }
    }

    /// Tells of a call that was refused without asking: what a person or a PreToolUse hook refused they
    /// know themselves.
    fn put_denied(&self, state: &mut OutputState, finished: &CallResult, agent: Option<&Tag>) {
        let Some(Denied::Unasked { kind, reason }) = &finished.metadata.denied else {
            return;
        };
        let mut denied = json!({
            "type": "system",
            "subtype": "permission_denied",
            "tool_name": finished.name,
            "tool_use_id": finished.id,
            "decision_reason_type": kind,
            "decision_reason": reason,
            "message": finished.text(),
        });
        if let Some(agent) = agent {
            denied["agent_id"] = json!(agent.id);
        }
        self.put_into(state, denied);
    }

    fn hear_subagent(&self, state: &mut OutputState, agent: &Tag, event: &AgentEvent) {
        let mut message = match event {
            AgentEvent::Said(said) => {
                let does = matches!(said.block, Block::ToolUse { .. });
                if !does && !self.forwards.load(Ordering::Relaxed) {
                    return;
                }
                messages::assistant(said)
            }
            AgentEvent::Answered { uuid, finished } => {
                self.put_denied(state, finished, Some(agent));
                messages::answer(*uuid, finished)
            }
            AgentEvent::Notice { level, text } => informational(level.name(), text),
            _ => return,
        };
        if message["type"] != "system" {
            message["parent_tool_use_id"] = json!(*agent.tool_use_id);
            message["subagent_type"] = json!(agent.kind);
        }
        message["agent_id"] = json!(agent.id);
        self.put_into(state, message);
    }

    fn state(&self) -> MutexGuard<'_, OutputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that waits for its answer.
pub(super) struct Waits<'a>(&'a Output);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.questions -= 1;
        let last = state.questions == 0;
        drop(state);
        if last {
            self.0.put_state("running");
        }
    }
}

impl Sink for Output {
    fn on_event(&self, event: &AgentEvent) {
        let mut state = self.state();
        let state = &mut *state;
        match event {
            AgentEvent::Model(event) => {
                self.hear_model(state, event);
                return;
            }
            // It may come in the middle of a reply of the main agent's.
            AgentEvent::Subagent { agent, event } => {
                self.hear_subagent(state, agent, event);
                return;
            }
            _ => {}
        }
        if state.pieces.has_stopped() {
            self.end_reply(state);
        }
        match event {
            AgentEvent::Began(_) if std::mem::take(&mut state.goes_on) => {}
            AgentEvent::Began(began) => {
                state.model.clone_from(&began.model);
                let message = messages::init(began, &state.facts);
                self.put_into(state, message);
            }
            AgentEvent::Said(said) => self.put_into(state, messages::assistant(said)),
            AgentEvent::Answered { uuid, finished } => {
                self.put_denied(state, finished, None);
                self.put_into(state, messages::answer(*uuid, finished));
            }
            AgentEvent::Working {
                tool_use_id,
                tool_name,
                elapsed,
            } => {
                let message = json!({
                    "type": "tool_progress",
                    "tool_use_id": tool_use_id,
                    "tool_name": tool_name,
                    "parent_tool_use_id": null,
                    "elapsed_time_seconds": elapsed.as_secs(),
                });
                self.put_into(state, message);
            }
            AgentEvent::Added { uuid, content, by } => {
                let mut message = json!({
                    "type": "user",
                    "message": {"role": "user", "content": content},
                    "parent_tool_use_id": null,
                    "uuid": uuid,
                });
                if !matches!(by, Added::Interrupt | Added::Steering) {
                    message["isSynthetic"] = json!(true);
                }
                self.put_into(state, message);
            }
            AgentEvent::Failed(error) => self.put_into(state, messages::failure(error)),
            AgentEvent::Compacting { .. } => {
                let message =
                    json!({"type": "system", "subtype": "status", "status": "compacting"});
                self.put_into(state, message);
            }
            AgentEvent::Compacted {
                trigger,
                pre_tokens,
                post_tokens,
                duration,
                uuid,
            } => {
                let message = json!({
                    "type": "system",
                    "subtype": "compact_boundary",
                    "compact_metadata": {
                        "trigger": trigger.name(),
                        "pre_tokens": pre_tokens,
                        "post_tokens": post_tokens,
                        "duration_ms": messages::millis(*duration),
                    },
                    "uuid": uuid,
                });
                self.put_into(state, message);
            }
            AgentEvent::Notice { level, text } => {
                if self.format == OutputFormat::Text {
                    show::warn(&format!("haft: {}", show::clean(text)));
                }
                self.put_into(state, informational(level.name(), text));
            }
            _ => {}
        }
    }
}

impl HearHooks for Output {
    fn hear(&self, news: &HookNews) {
        if self.hooks || news.event.is_always_shown() {
            self.put(messages::hook(news));
        }
    }
}

fn informational(level: &str, text: &str) -> Value {
    json!({"type": "system", "subtype": "informational", "level": level, "content": text})
}
