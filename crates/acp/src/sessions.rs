//! A session of an editor: its prompts and options, and the updates that it sends.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use haft_agent::{EndReason, NoticeLevel, Prompt, random_id};
use haft_contract::{CalendarTime, PermissionMode, SessionId};
use haft_host::{
    AgentSession, EarlierConversation, OpenError, PromptDelivery, SessionClock, SessionConfig,
    SessionEnd, SessionInput, SessionParts, StopKind, TurnResult, conversations, key_report,
};
use haft_models::{ErrorKind, StopReason};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::{
    AcpAgent,
    buffers::EditorBuffers,
    error::AcpError,
    options::{self, EditorWrites, SelectedOptions},
    prompt::EditorPrompt,
    questions::{EditorForms, EditorQuestions},
    updates::UpdateForwarder,
    wire::AcpClient,
};

/// The maximum number of prompts that wait after the current one.
const MAX_WAITING: usize = 8;
/// The time limit for closing a session.
const ENDING: Duration = Duration::from_millis(1200);
const MAX_TITLE: usize = 80;

/// The capabilities of a client.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClientCapabilities {
    /// Whether the client shows forms.
    pub(crate) forms: bool,
    /// Whether the client shows notices.
    pub(crate) notices: bool,
    /// Whether the client shows compactions.
    pub(crate) compaction: bool,
    /// Whether the client sends the contents of files, including unsaved changes.
    pub(crate) read_files: bool,
    /// Whether the client writes files on request.
    pub(crate) write_files: bool,
    /// Whether the client shows streamed output as a terminal.
    pub(crate) terminal_output: bool,
}

/// A session of an editor.
pub(crate) struct EditorSession {
    pub(crate) id: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) client: AcpClient,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) updates: Arc<UpdateForwarder>,
    /// The configuration for opening the session, and for opening it again after a failure.
    config: SessionConfig,
    /// Receives warnings that the client cannot show.
    warn: fn(&str),
    clock: Arc<dyn SessionClock>,
    state: Mutex<EditorSessionState>,
}

struct EditorSessionState {
    live: Option<LiveSession>,
    /// Updates that wait until the client knows the session. `None` once it does.
    queued_updates: Option<Vec<Value>>,
    /// Prompts without a response, oldest first.
    prompts: VecDeque<OpenPrompt>,
    /// The prompts that are being answered. Several waiting prompts may be answered together.
    current: Vec<Uuid>,
    chosen: SelectedOptions,
    /// The mode that was last reported to the client.
    reported_mode: PermissionMode,
    window: u64,
    used: u64,
    title: Option<String>,
    has_sent_title: bool,
}

struct LiveSession {
    input: SessionInput,
    task: JoinHandle<()>,
}

struct OpenPrompt {
    uuid: Uuid,
    /// The request that must be answered.
    request: Value,
    /// Files in the prompt that are marked as read.
    read: Vec<(PathBuf, f64)>,
}

/// The condition for reporting the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModeReport {
    Always,
    IfChanged,
}

impl EditorSession {
    pub(crate) fn new(
        id: SessionId,
        config: SessionConfig,
        client: AcpClient,
        client_can: ClientCapabilities,
        agent: &AcpAgent,
    ) -> Arc<Self> {
        let chosen = SelectedOptions {
            effort: "auto".to_owned(),
            editor_writes: (client_can.read_files && client_can.write_files)
                .then_some(EditorWrites::Direct),
            may_bypass: config.allow_bypass
                || config.permission_mode == Some(PermissionMode::BypassPermissions),
        };
        Arc::new_cyclic(|session| Self {
            id,
            cwd: config.cwd.clone(),
            client,
            capabilities: client_can,
            updates: Arc::new(UpdateForwarder::new(session.clone())),
            config,
            warn: agent.warn,
            clock: Arc::clone(&agent.clock),
            state: Mutex::new(EditorSessionState {
                live: None,
                queued_updates: Some(Vec::new()),
                prompts: VecDeque::new(),
                current: Vec::new(),
                chosen,
                reported_mode: PermissionMode::Default,
                window: 0,
                used: 0,
                title: None,
                has_sent_title: false,
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, EditorSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the input of the running session. If the session is not running, opens it. A session
    /// that failed is opened again, because the cause may have been fixed.
    pub(crate) fn input(self: &Arc<Self>) -> Result<SessionInput, AcpError> {
        if let Some(live) = &self.state().live {
            return Ok(live.input.clone());
        }
        let mut config = self.config.clone();
        let kept = conversations(&config.environment, &config.cwd);
        let choice = &mut config.conversation;
        if choice.from.is_none() && kept.has(self.id) {
            choice.from = Some(EarlierConversation::Named(self.id.to_string()));
            choice.id = None;
        }
        let parts = SessionParts::shared(Arc::clone(&self.updates) as _)
            .clock(Arc::clone(&self.clock))
            .questions(EditorQuestions(Arc::downgrade(self)))
            .elicitations(Arc::new(EditorForms(Arc::downgrade(self))));
        let parts = match self.capabilities.read_files {
            true => parts.editor(Arc::new(EditorBuffers(Arc::downgrade(self)))),
            false => parts,
        };
        let session = AgentSession::open(config, parts).map_err(|error| self.refusal(&error))?;
        let input = session.input();
        let me = Arc::clone(self);
        let task = haft_contract::spawn_boxed(async move {
            let ended = session.run().await;
            me.ended(ended);
        });
        let mut state = self.state();
        state.reported_mode = input.mode();
        state.live = Some(LiveSession {
            input: input.clone(),
            task,
        });
        Ok(input)
    }

    /// Returns the error for the client if a session cannot start.
    fn refusal(&self, error: &OpenError) -> AcpError {
        let words = error.to_string();
        match can_ask(&self.config) {
            true => AcpError::failed(&words),
            false => AcpError::needs_key(&words),
        }
    }

    fn ended(&self, ended: Result<SessionEnd, OpenError>) {
        let mut state = self.state();
        state.live = None;
        state.current.clear();
        let prompts = std::mem::take(&mut state.prompts);
        drop(state);
        for prompt in prompts {
            let outcome = match &ended {
                Ok(_) => Ok(json!({"stopReason": "cancelled"})),
                Err(error) => Err(self.refusal(error)),
            };
            self.client.answer(prompt.request, outcome);
        }
    }

    /// Returns the description of a newly opened session for the client.
    pub(crate) fn described(self: &Arc<Self>) -> Result<Value, AcpError> {
        let input = self.input()?;
        let state = self.state();
        Ok(json!({
            "modes": options::modes(&input, &state.chosen),
            "configOptions": options::config_options(&input, &state.chosen),
        }))
    }

    /// Sends the pending updates and the list of commands, now that the client knows the session.
    pub(crate) fn announce(self: &Arc<Self>) {
        let held = self.state().queued_updates.take();
        for update in held.into_iter().flatten() {
            self.update(update);
        }
        let Ok(input) = self.input() else {
            return;
        };
        let commands: Vec<Value> = input
            .commands()
            .into_iter()
            .map(|command| {
                let mut info = json!({"name": command.name, "description": command.description});
                if !command.argument_hint.is_empty() {
                    info["input"] = json!({"hint": command.argument_hint});
                }
                info
            })
            .collect();
        self.update(json!({
            "sessionUpdate": "available_commands_update",
            "availableCommands": commands,
        }));
    }

    /// Sends an update, or stores it until the client knows the session.
    pub(crate) fn update(&self, update: Value) {
        if let Some(held) = &mut self.state().queued_updates {
            held.push(update);
            return;
        }
        self.send(update);
    }

    /// Sends the updates of an earlier transcript immediately, before the client knows the session.
    pub(crate) fn replay(&self, updates: Vec<Value>) {
        for update in updates {
            self.send(update);
        }
    }

    fn send(&self, update: Value) {
        let params = json!({"sessionId": self.id.to_string(), "update": update});
        self.client.notify("session/update", params);
    }

    /// Shows a notice to the user. If the client cannot show notices, only warnings are reported.
    pub(crate) fn notice(&self, level: NoticeLevel, text: &str) {
        if self.capabilities.notices {
            self.update(json!({
                "sessionUpdate": "notice",
                "severity": level.name(),
                "title": text,
            }));
        } else if level == NoticeLevel::Warning {
            (self.warn)(text);
        }
    }

    /// Queues a prompt of the user.
    pub(crate) fn prompt(self: &Arc<Self>, request: Value, given: EditorPrompt) {
        let input = match self.input() {
            Ok(input) => input,
            Err(error) => return self.client.answer(request, Err(error)),
        };
        let mut state = self.state();
        if state.prompts.len() > MAX_WAITING {
            drop(state);
            let why = format!("{MAX_WAITING} prompts are queued already");
            return self.client.answer(request, Err(AcpError::bad_request(why)));
        }
        let EditorPrompt { mut prompt, read } = given;
        let uuid = random_id();
        prompt.uuid = Some(uuid);
        if state.title.is_none() {
            state.title = title(&prompt);
        }
        state.prompts.push_back(OpenPrompt {
            uuid,
            request,
            read,
        });
        drop(state);
        input.submit(prompt, PromptDelivery::AfterRun);
    }

    /// Records that the session starts to answer a prompt, and marks the files in the prompt as
    /// read.
    pub(crate) fn delivered(&self, uuid: Uuid) {
        let mut state = self.state();
        state.current.push(uuid);
        let prompt = state.prompts.iter_mut().find(|open| open.uuid == uuid);
        let read = prompt.map(|open| std::mem::take(&mut open.read));
        let input = state.live.as_ref().map(|live| live.input.clone());
        drop(state);
        if let (Some(read), Some(input)) = (read, input) {
            for (path, modified) in read {
                // If a file cannot be marked, it must be read again before it is edited.
                let _ = input.seed_read(&path, modified);
            }
        }
    }

    /// Responds to the prompts that the turn has answered.
    pub(crate) fn answered(&self, result: &TurnResult) {
        self.report_mode(ModeReport::IfChanged);
        let mut state = self.state();
        let current = std::mem::take(&mut state.current);
        let all = std::mem::take(&mut state.prompts);
        let (answered, waiting): (VecDeque<_>, VecDeque<_>) = all
            .into_iter()
            .partition(|open| current.contains(&open.uuid));
        state.prompts = waiting;
        let (used, window) = (state.used, state.window);
        let tells_title = !std::mem::replace(&mut state.has_sent_title, true);
        let title = state.title.clone().filter(|_| tells_title);
        drop(state);
        let cost = result.run.ledger.total_cost();
        if used > 0 {
            self.update(json!({
                "sessionUpdate": "usage_update",
                "used": used,
                "size": window,
                "cost": {"amount": cost, "currency": "USD"},
            }));
        }
        if let Some(title) = title {
            self.update(json!({
                "sessionUpdate": "session_info_update",
                "title": title,
                "updatedAt": CalendarTime::from_system_time(SystemTime::now()).to_millisecond(),
            }));
        }
        for prompt in answered {
            self.client.answer(prompt.request, outcome(result));
        }
    }

    /// Reports the tokens of the context window that the last request used.
    pub(crate) fn spent(&self, used: u64) {
        let mut state = self.state();
        state.used = used;
        let window = state.window;
        drop(state);
        if window > 0 {
            self.update(json!({"sessionUpdate": "usage_update", "used": used, "size": window}));
        }
    }

    pub(crate) fn is_ready(&self, window: u64) {
        self.state().window = window;
    }

    /// Cancels the current turn, and responds to the waiting prompts as cancelled.
    pub(crate) fn cancel(&self) {
        let input = self.state().live.as_ref().map(|live| live.input.clone());
        let Some(input) = input else {
            return;
        };
        let taken = input.interrupt_and_withdraw();
        let mut state = self.state();
        let mut dropped = Vec::new();
        for message in taken {
            let at = state
                .prompts
                .iter()
                .position(|open| open.uuid == message.uuid);
            dropped.extend(at.and_then(|at| state.prompts.remove(at)));
        }
        drop(state);
        for prompt in dropped {
            let cancelled = json!({"stopReason": "cancelled"});
            self.client.answer(prompt.request, Ok(cancelled));
        }
    }

    /// Cancels the turn if the request is one of this session's prompts. Returns whether it is.
    pub(crate) fn cancel_request(&self, request: &Value) -> bool {
        let is_ours = self
            .state()
            .prompts
            .iter()
            .any(|open| open.request == *request);
        if is_ours {
            self.cancel();
        }
        is_ours
    }

    /// Closes the session: cancels the current turn and waits until the session has ended. After
    /// the time limit `ENDING`, terminates the session.
    pub(crate) async fn close(&self) {
        self.cancel();
        let live = self.state().live.take();
        let Some(mut live) = live else {
            return;
        };
        live.input.stop(StopKind::Interrupt);
        if tokio::time::timeout(ENDING, &mut live.task).await.is_err() {
            live.input.stop(StopKind::Terminate);
            let _ = tokio::time::timeout(ENDING / 3, &mut live.task).await;
            live.task.abort();
        }
    }

    pub(crate) fn set_mode(self: &Arc<Self>, name: &str, field: &str) -> Result<(), AcpError> {
        let input = self.input()?;
        let mode = options::mode(name, &self.state().chosen);
        let mode = mode.ok_or_else(|| AcpError::bad(field, format!("unknown mode {name:?}")))?;
        input
            .set_permission_mode(mode)
            .map_err(|why| AcpError::bad(field, why))
    }

    pub(crate) async fn set_model(
        self: &Arc<Self>,
        name: &str,
        field: &str,
    ) -> Result<(), AcpError> {
        let input = self.input()?;
        let set = input.set_model(Some(name)).await;
        set.map_err(|why| AcpError::bad(field, why))
    }

    pub(crate) async fn set_option(
        self: &Arc<Self>,
        id: &str,
        value: &str,
    ) -> Result<Value, AcpError> {
        let input = self.input()?;
        match id {
            "mode" => self.set_mode(value, "value")?,
            "model" => self.set_model(value, "value").await?,
            "effort" => {
                let why = || AcpError::bad("value", format!("unknown effort {value:?}"));
                let effort = options::effort(value).ok_or_else(why)?;
                let set = input.set_effort(effort);
                set.map_err(|why| AcpError::bad("value", why))?;
                value.clone_into(&mut self.state().chosen.effort);
            }
            "editor_writes" if self.state().chosen.editor_writes.is_some() => {
                let why = || AcpError::bad("value", format!("unknown value {value:?}"));
                let writes = EditorWrites::named(value).ok_or_else(why)?;
                self.state().chosen.editor_writes = Some(writes);
            }
            _ => {
                return Err(AcpError::bad("configId", format!("unknown option {id:?}")));
            }
        }
        let state = self.state();
        Ok(json!({"configOptions": options::config_options(&input, &state.chosen)}))
    }

    /// Reports the mode in both of ACP's ways: as the current mode and as an option.
    pub(crate) fn report_mode(&self, told: ModeReport) {
        let mut state = self.state();
        let Some(input) = state.live.as_ref().map(|live| live.input.clone()) else {
            return;
        };
        let mode = input.mode();
        if told == ModeReport::IfChanged && state.reported_mode == mode {
            return;
        }
        state.reported_mode = mode;
        let options = options::config_options(&input, &state.chosen);
        drop(state);
        self.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": mode.name()}));
        self.update(json!({"sessionUpdate": "config_option_update", "configOptions": options}));
    }

    /// Returns whether the editor writes files, so that the user reviews them there.
    pub(crate) fn reviews(&self) -> bool {
        self.state().chosen.editor_writes == Some(EditorWrites::Review)
    }

    /// Returns the current mode of the session.
    pub(crate) fn mode(&self) -> PermissionMode {
        let state = self.state();
        let live = state.live.as_ref();
        live.map_or(PermissionMode::Default, |live| live.input.mode())
    }

    /// Cancels the turn because the user cancelled a question.
    pub(crate) fn interrupt(&self) {
        self.cancel();
    }
}

/// Returns whether a model can be asked, as far as this is known from the configuration.
pub(crate) fn can_ask(config: &SessionConfig) -> bool {
    let model = &config.model;
    if model.script.is_some() || model.replay.is_some() {
        return true;
    }
    key_report(config).is_ok_and(|report| {
        report.source.is_some() || !report.base_url.contains("api.anthropic.com")
    })
}

fn title(prompt: &Prompt) -> Option<String> {
    let text = prompt
        .content
        .iter()
        .find_map(haft_contract::Content::as_text)?;
    let mut title = text.trim().lines().next()?.to_owned();
    if title.len() > MAX_TITLE {
        title.truncate(title.floor_char_boundary(MAX_TITLE));
        title.push('…');
    }
    Some(title)
}

/// Returns the response to a prompt.
fn outcome(result: &TurnResult) -> Result<Value, AcpError> {
    let run = &result.run;
    let words = || match run.errors.is_empty() {
        true => run.text.clone(),
        false => run.errors.join("; "),
    };
    let reason = match run.reason {
        EndReason::AbortedStreaming | EndReason::AbortedTools => "cancelled",
        EndReason::MaxTurns | EndReason::BudgetExhausted => "max_turn_requests",
        EndReason::PromptTooLong => "max_tokens",
        EndReason::ApiError => {
            let kind = run.api_error.as_ref().map(|error| error.kind);
            let needs_key = matches!(kind, Some(ErrorKind::Auth | ErrorKind::Permission));
            let words = match &run.api_error {
                Some(error) => error.to_string(),
                None => words(),
            };
            return Err(match needs_key {
                true => AcpError::needs_key(&words),
                false => AcpError::failed(&words),
            });
        }
        EndReason::EngineFault => return Err(AcpError::failed(&words())),
        _ => match run.stop_reason {
            Some(StopReason::MaxTokens) => "max_tokens",
            Some(StopReason::Refusal) => "refusal",
            _ => "end_turn",
        },
    };
    Ok(json!({"stopReason": reason}))
}
