//! Writes messages to stdout in the requested output format.

use std::{
    borrow::Cow,
    io,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use haft::{
    CallResult, Content, DenialSource, SessionId,
    engine::hooks::{HookEventSink, HookRunEvent},
};
use haft_agent::{AgentEvent, AgentEventSink, InjectionSource, ResultSubtype, SubagentInfo};
use haft_host::{Environment, ScheduledPrompt, ServerList, SessionInput, TurnResult};
use haft_models::{Block, ModelEvent};
use haft_protocol::{
    ApiRetryMessage, AssistantMessage, CompactBoundaryMessage, CompactMetadata,
    ConversationResetMessage, InformationalMessage, NotificationMessage, PermissionDeniedMessage,
    ResultMessage, SessionMessage, SessionStateMessage, StatusMessage, StreamEvent, SystemMessage,
    ToolProgressMessage, UserBlock, UserBody, UserContent, UserMessage,
};
use serde::Serialize;
use uuid::Uuid;

use super::{
    flags::{HeadlessFlags, OutputFormat},
    line_limit,
    messages::{self, InitFacts},
    stderr_reporter::StderrReporter,
    stream_events::StreamEventWriter,
};
use crate::show;

/// The output of `haft -p`, shared by all tasks.
pub(super) struct HeadlessOutput {
    format: OutputFormat,
    verbose: bool,
    partial: bool,
    /// Whether the text and thinking of subagents are reported.
    forwards: AtomicBool,
    /// Whether all hooks are reported, not only those at session start.
    hooks: bool,
    states: StateReporting,
    /// The session, which is abandoned as soon as stdout cannot be written any longer.
    session: OnceLock<SessionInput>,
    /// The progress display on stderr, if stdout is text.
    reporter: OnceLock<StderrReporter>,
    state: Mutex<OutputState>,
}

#[derive(Default)]
struct OutputState {
    session: Option<SessionId>,
    facts: InitFacts,
    model: String,
    pieces: StreamEventWriter,
    /// Messages as JSON, collected for the array that `--output-format json --verbose` prints at
    /// the end.
    all: Vec<String>,
    /// The number of open questions.
    questions: usize,
    /// The session state that was reported last.
    reported_state: &'static str,
    /// The next run continues to answer the same message.
    continues: bool,
    /// The next run answers this scheduled prompt.
    scheduled: Option<(ScheduledPrompt, Uuid)>,
    /// Whether a result has been reported.
    has_result: bool,
    /// The first failed write.
    failed: Option<io::Error>,
}

/// Specifies whether and how changes of the session state are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StateReporting {
    No,
    /// As a message like any other.
    Yes,
    /// As a message that is marked as meant for the SDK client only.
    ClientOnly,
}

impl HeadlessOutput {
    pub(super) fn new(flags: &HeadlessFlags, environment: &Environment) -> Self {
        let on = |name| environment.is_on(name);
        let states = if on("CLAUDE_CODE_SDK_READS_SESSION_STATE") {
            StateReporting::ClientOnly
        } else if on("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") {
            StateReporting::Yes
        } else {
            StateReporting::No
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
            reporter: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    /// Sets the session whose messages are written; it is abandoned when stdout cannot be written.
    pub(super) fn set_session(&self, session: SessionInput) {
        let _ = self.session.set(session);
    }

    /// Sets the progress display that users read on stderr.
    pub(super) fn set_reporter(&self, person: StderrReporter) {
        let _ = self.reporter.set(person);
    }

    /// Returns the progress display, if any.
    pub(super) fn reporter(&self) -> Option<&StderrReporter> {
        self.reporter.get()
    }

    /// Returns the session once it is open.
    pub(super) fn session(&self) -> Option<&SessionInput> {
        self.session.get()
    }

    /// Sets the MCP servers for the `init` message.
    pub(super) fn has_servers(&self, servers: ServerList) {
        self.state().facts.servers = servers;
    }

    /// Sets the session id and the facts for the `init` message.
    pub(super) fn set_session_facts(&self, session: SessionId, facts: InitFacts) {
        let mut state = self.state();
        state.session = Some(session);
        state.facts = facts;
    }

    /// Reports that a new conversation replaces the current one.
    pub(super) fn reset_conversation(&self, next: SessionId) {
        let mut state = self.state();
        let reset = SessionMessage::ConversationReset(ConversationResetMessage {
            new_conversation_id: Some(next.into()),
            ..ConversationResetMessage::default()
        });
        self.put_into(&mut state, reset);
        state.session = Some(next);
    }

    /// Starts to report the text and thinking of subagents.
    pub(super) fn forward_subagent_text(&self) {
        self.forwards.store(true, Ordering::Relaxed);
    }

    /// Marks a question as open until the guard is dropped.
    pub(super) fn waits(&self) -> QuestionPending<'_> {
        let mut state = self.state();
        state.questions += 1;
        let first = state.questions == 1;
        drop(state);
        if first {
            self.put_state("requires_action");
        }
        QuestionPending(self)
    }

    /// Writes a message of the conversation.
    pub(super) fn put<'a>(&self, message: impl Into<SessionMessage<'a>>) {
        let mut state = self.state();
        self.put_into(&mut state, message);
    }

    fn put_into<'a>(&self, state: &mut OutputState, message: impl Into<SessionMessage<'a>>) {
        if self.format == OutputFormat::Text {
            return;
        }
        let mut message = message.into();
        message.stamp(state.session.map(Into::into), haft_agent::random_id);
        match self.format {
            OutputFormat::StreamJson => self.write(state, &message),
            OutputFormat::Json if self.verbose => match serde_json::to_string(&message) {
                Ok(message) => state.all.push(message),
                Err(error) => self.fails(state, error.into()),
            },
            OutputFormat::Json if message.is_result() => self.write(state, &message),
            OutputFormat::Json | OutputFormat::Text => {}
        }
    }

    /// Writes a control message, which is not part of the conversation.
    pub(super) fn put_control(&self, message: &impl Serialize) {
        let mut state = self.state();
        self.write(&mut state, message);
    }

    fn write(&self, state: &mut OutputState, message: &impl Serialize) {
        let line = line_limit::line(message).map_err(io::Error::from);
        if let Err(error) = line.and_then(|line| show::json(&line)) {
            self.fails(state, error);
        }
    }

    /// Records a failed write and abandons the session: stdout has no reader any longer.
    fn fails(&self, state: &mut OutputState, error: io::Error) {
        state.failed.get_or_insert(error);
        if let Some(session) = self.session.get() {
            session.detach();
        }
    }

    /// Reports the session state: `running`, `requires_action` or `idle`.
    pub(super) fn put_state(&self, name: &'static str) {
        let mut state = self.state();
        if self.states == StateReporting::No || state.reported_state == name {
            return;
        }
        state.reported_state = name;
        let message = SystemMessage::SessionStateChanged(SessionStateMessage {
            state: name.into(),
            sdk_host_only: self.states == StateReporting::ClientOnly,
            ..SessionStateMessage::default()
        });
        self.put_into(&mut state, message);
    }

    /// Reports a notice to the user.
    pub(super) fn put_notice(&self, level: &str, text: &str) {
        self.put(notice(level, text));
    }

    /// Reports a notification that the model sends to the user. Unless the output is a message
    /// stream, it is printed on stderr immediately.
    pub(super) fn put_notification(&self, text: &str) {
        if self.format != OutputFormat::StreamJson {
            show::warn(&format!("haft: {text}"));
            return;
        }
        self.put(SystemMessage::Notification(NotificationMessage {
            key: "push-notification".into(),
            text: text.into(),
            priority: "high".into(),
            ..NotificationMessage::default()
        }));
    }

    /// Marks the next run as a continuation: its start is not reported.
    pub(super) fn mark_continued(&self) {
        self.state().continues = true;
    }

    /// Reports the result of a turn.
    pub(super) fn put_result(&self, result: &TurnResult) {
        let (ended, fitted) = (&result.run, result.structured.clone());
        let mut state = self.state();
        state.has_result = true;
        self.end_reply(&mut state);
        if self.format == OutputFormat::Text {
            let text = match ended.subtype {
                ResultSubtype::Success => ended.text.clone(),
                _ => ended.errors.join("\n"),
            };
            if let Err(error) = show::line(&text) {
                self.fails(&mut state, error);
            }
            return;
        }
        let mut message = messages::result(ended, &state.facts);
        message.origin.clone_from(&result.origin);
        match fitted {
            None => {}
            Some(Ok(value)) => message.structured_output = Some(value),
            Some(Err(why)) => {
                message.subtype = ResultMessage::STRUCTURED_OUTPUT.into();
                message.is_error = true;
                message.errors = Some(vec![why.into()]);
                message.result = None;
            }
        }
        self.put_into(&mut state, message);
    }

    /// After an interrupt, prints how to resume the session, if a user reads the output and the
    /// session is stored.
    pub(super) fn put_resume_hint(&self, flags: &HeadlessFlags) {
        let session = self.state().session;
        if let Some(session) = session.filter(|_| flags.is_text_only())
            && !flags.session.no_session_persistence
        {
            show::warn(&format!(
                "haft: interrupted; continue with: haft -p --resume {session} 'PROMPT'"
            ));
        }
    }

    /// Reports that the session failed before any run. `problem` is human-readable.
    pub(super) fn put_failure(&self, problem: &str) {
        let mut state = self.state();
        if !state.has_result {
            // Readers expect a session id even for a session that was never created.
            state.session.get_or_insert_with(SessionId::new);
            self.put_into(&mut state, messages::failed_start_result(problem));
        }
    }

    /// Ends the output. Returns the error of the first failed write.
    pub(super) fn end(&self) -> io::Result<()> {
        if let Some(person) = self.reporter() {
            person.end();
        }
        let mut state = self.state();
        if self.format == OutputFormat::Json && self.verbose {
            let all = std::mem::take(&mut state.all);
            show::json(&format!("[{}]", all.join(",")))?;
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

    fn put_piece(&self, state: &mut OutputState, event: StreamEvent<'_>) {
        if self.partial {
            self.put_into(state, SessionMessage::stream_event(event));
        }
    }

    fn on_model_event(&self, state: &mut OutputState, event: &ModelEvent) {
        // The usage of a reply may arrive after its stop reason.
        if state.pieces.has_stopped() && !matches!(event, ModelEvent::Usage { .. }) {
            self.end_reply(state);
        }
        for piece in state.pieces.events_for(event, &state.model) {
            self.put_piece(state, piece);
        }
        match event {
            ModelEvent::Retry {
                attempt,
                max_retries,
                delay,
                error,
            } => {
                let message = SystemMessage::ApiRetry(ApiRetryMessage {
                    attempt: *attempt,
                    max_retries: *max_retries,
                    retry_delay_ms: messages::millis(*delay),
                    error_status: error.status,
                    error: error.code().into(),
                    ..ApiRetryMessage::default()
                });
                self.put_into(state, message);
            }
            ModelEvent::Fallback { from, to, error } => {
                let text = format!("{to} replaces {from}: {error}");
                self.put_into(state, notice("warning", &text));
            }
            ModelEvent::ImagesDropped { error, .. } => {
                let text = format!("images were left out: {error}");
                self.put_into(state, notice("warning", &text));
            }
            _ => {}
        }
    }

    /// Reports a call that was denied without asking. The client already knows about denials by the
    /// user or by a PreToolUse hook.
    fn put_denied(
        &self,
        state: &mut OutputState,
        finished: &CallResult,
        agent: Option<&SubagentInfo>,
    ) {
        let Some(DenialSource::Unasked { kind, reason, .. }) = &finished.metadata.denied else {
            return;
        };
        let denied = SystemMessage::PermissionDenied(PermissionDeniedMessage {
            tool_name: (&finished.name).into(),
            tool_use_id: (&finished.id).into(),
            decision_reason_type: Some((&**kind).into()),
            decision_reason: Some(reason.into()),
            message: finished.text().into(),
            agent_id: agent.map(|agent| (&agent.id).into()),
            ..PermissionDeniedMessage::default()
        });
        self.put_into(state, denied);
    }

    fn on_subagent_event(&self, state: &mut OutputState, agent: &SubagentInfo, event: &AgentEvent) {
        let parent_tool_use_id = Some(Cow::Borrowed(&*agent.tool_use_id));
        let subagent_type = Some(Cow::from(&agent.kind));
        let agent_id = Some(Cow::from(&agent.id));
        match event {
            AgentEvent::BlockCompleted(said) => {
                let does = matches!(said.block, Block::ToolUse { .. });
                if !does && !self.forwards.load(Ordering::Relaxed) {
                    return;
                }
                let message = AssistantMessage {
                    parent_tool_use_id,
                    subagent_type,
                    agent_id,
                    ..messages::assistant(said)
                };
                self.put_into(state, message);
            }
            AgentEvent::CallFinished { uuid, finished } => {
                self.put_denied(state, finished, Some(agent));
                let message = UserMessage {
                    parent_tool_use_id,
                    subagent_type,
                    agent_id,
                    ..messages::answer(*uuid, finished)
                };
                self.put_into(state, message);
            }
            AgentEvent::Notice { level, text } => {
                let message = SystemMessage::Informational(InformationalMessage {
                    level: level.name().into(),
                    content: text.into(),
                    agent_id,
                    ..InformationalMessage::default()
                });
                self.put_into(state, message);
            }
            _ => {}
        }
    }

    /// Marks the next run as the answer to a scheduled prompt.
    pub(super) fn put_scheduled(&self, prompt: &ScheduledPrompt, uuid: Uuid) {
        self.state().scheduled = Some((prompt.clone(), uuid));
    }

    fn state(&self) -> MutexGuard<'_, OutputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of an open question.
pub(super) struct QuestionPending<'a>(&'a HeadlessOutput);

impl Drop for QuestionPending<'_> {
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

impl AgentEventSink for HeadlessOutput {
    fn on_event(&self, event: &AgentEvent) {
        let mut state = self.state();
        let state = &mut *state;
        match event {
            AgentEvent::Model(event) => {
                self.on_model_event(state, event);
                return;
            }
            // Subagent events may arrive in the middle of a reply of the main agent.
            AgentEvent::Subagent { agent, event } => {
                self.on_subagent_event(state, agent, event);
                return;
            }
            // These events have no message, and they may arrive in the middle of a reply.
            AgentEvent::CallBound { .. }
            | AgentEvent::CallStarted { .. }
            | AgentEvent::Progress { .. } => return,
            _ => {}
        }
        if state.pieces.has_stopped() {
            self.end_reply(state);
        }
        match event {
            AgentEvent::RunStarted(_) if std::mem::take(&mut state.continues) => {}
            AgentEvent::RunStarted(began) => {
                state.model.clone_from(&began.model);
                let facts = state.facts.clone();
                self.put_into(state, messages::init(began, &facts));
                if let Some((prompt, uuid)) = state.scheduled.take() {
                    let text = Content::text(prompt.text());
                    let content = UserContent::Blocks(vec![UserBlock::Content(Cow::Owned(text))]);
                    let message = UserMessage {
                        uuid: Some(uuid.into()),
                        is_synthetic: true,
                        origin: Some(Cow::Owned(prompt.origin())),
                        ..UserMessage::new(UserBody::new(content))
                    };
                    self.put_into(state, message);
                }
            }
            AgentEvent::BlockCompleted(said) => self.put_into(state, messages::assistant(said)),
            AgentEvent::CallFinished { uuid, finished } => {
                self.put_denied(state, finished, None);
                self.put_into(state, messages::answer(*uuid, finished));
            }
            AgentEvent::CallRunning {
                tool_use_id,
                tool_name,
                elapsed,
            } => {
                let message = SessionMessage::ToolProgress(ToolProgressMessage {
                    tool_use_id: tool_use_id.into(),
                    tool_name: tool_name.into(),
                    elapsed_time_seconds: elapsed.as_secs(),
                    ..ToolProgressMessage::default()
                });
                self.put_into(state, message);
            }
            AgentEvent::MessageInjected { uuid, content, by } => {
                let blocks = content.iter().map(Cow::Borrowed).map(UserBlock::Content);
                let content = UserContent::Blocks(blocks.collect());
                let message = UserMessage {
                    uuid: Some((*uuid).into()),
                    is_synthetic: !matches!(
                        by,
                        InjectionSource::Interrupt | InjectionSource::Steering
                    ),
                    ..UserMessage::new(UserBody::new(content))
                };
                self.put_into(state, message);
            }
            AgentEvent::ModelFailed(error) => self.put_into(state, messages::failure(error)),
            AgentEvent::Compacting { .. } => {
                let message = SystemMessage::Status(StatusMessage {
                    status: Some("compacting".into()),
                    ..StatusMessage::default()
                });
                self.put_into(state, message);
            }
            AgentEvent::Compacted {
                trigger,
                pre_tokens,
                post_tokens,
                duration,
                uuid,
            } => {
                let message = SystemMessage::CompactBoundary(CompactBoundaryMessage {
                    compact_metadata: CompactMetadata {
                        trigger: trigger.name().into(),
                        pre_tokens: *pre_tokens,
                        post_tokens: Some(*post_tokens),
                        duration_ms: Some(messages::millis(*duration)),
                    },
                    uuid: Some((*uuid).into()),
                    session_id: None,
                });
                self.put_into(state, message);
            }
            AgentEvent::Notice { level, text } => {
                if self.format == OutputFormat::Text {
                    show::warn(&format!("haft: {}", show::clean(text)));
                }
                self.put_into(state, notice(level.name(), text));
            }
            _ => {}
        }
    }
}

impl HookEventSink for HeadlessOutput {
    fn on_event(&self, news: &HookRunEvent) {
        if self.hooks || news.event.is_always_shown() {
            self.put(messages::hook(news));
        }
    }
}

fn notice<'a>(level: &'a str, text: &'a str) -> SystemMessage<'a> {
    SystemMessage::Informational(InformationalMessage {
        level: level.into(),
        content: text.into(),
        ..InformationalMessage::default()
    })
}
