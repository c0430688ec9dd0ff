//! The input of a session.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use haft_agent::{AgentHandle, ModelSettings, Prompt, random_id};
use haft_contract::{ApprovalAnswer, Content, PermissionMode};
use haft_engine::{hooks::HookEventKind, permissions::sandbox::SettingsHosts};
use haft_mcp::client::Servers;
use haft_models::ThinkingMode;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    AgentDetails, ContextUsage, Environment, ExtensionDetails, ModelOption, PromptDelivery,
    QueuedKind, QueuedMessage, ResolvedSettings, RewoundFiles, ServerChanges, ServerList,
    SessionClock, SessionConfig, StartOptions, StopKind,
    budget::UnpricedModelWarning,
    live_changes::ExtensionReload,
    model_names::ModelNames,
    questions::EventQuestions,
    queue::{CheckedStartOptions, NextMessage, PromptQueue},
    schedules::SessionSchedules,
    session_access::SessionAccess,
    session_parts::DoctorReport,
    stop_signal::StopSignal,
    structured_output::OutputSchema,
    subagents::AgentKinds,
};

/// The input of a session, usable from any task at any time. Cheap to clone; all clones control the
/// same session. Nothing here waits unless documented.
#[derive(Clone)]
pub struct SessionInput(pub(crate) Arc<SharedState>);

/// The state that a session shares with its clients.
pub(crate) struct SharedState {
    pub(crate) queue: PromptQueue,
    pub(crate) control: AgentHandle,
    pub(crate) stop: StopSignal,
    pub(crate) servers: Arc<Servers>,
    /// The working directories, as reported to servers.
    pub(crate) roots: Arc<Mutex<Vec<PathBuf>>>,
    pub(crate) access: SessionAccess,
    pub(crate) questions: Arc<EventQuestions>,
    /// The agent kinds.
    pub(crate) kinds: Mutex<AgentKinds>,
    /// The details of the extensions.
    pub(crate) extensions: ExtensionDetails,
    pub(crate) reload: ExtensionReload,
    /// The initial model and the size of its window.
    pub(crate) initial_model: Mutex<(String, u64)>,
    pub(crate) names: ModelNames,
    pub(crate) budget: UnpricedModelWarning,
    /// Whether the mode may become bypassPermissions. The error is the reason if not.
    pub(crate) bypass_allowed: Result<(), String>,
    pub(crate) environment: Environment,
    /// The configuration of the session.
    pub(crate) config: SessionConfig,
    pub(crate) settings: ResolvedSettings,
    /// Whether the model answers the output of command lines that the user types.
    pub(crate) model_answers_shell: bool,
    /// The report for `/doctor`, if the front end provides one.
    pub(crate) doctor: Option<DoctorReport>,
    /// The schedules; `None` if they are disabled.
    pub(crate) schedules: Option<Arc<SessionSchedules>>,
    pub(crate) clock: Arc<dyn SessionClock>,
    /// Whether no client follows the session any longer.
    pub(crate) is_detached: AtomicBool,
}

impl SharedState {
    /// Checks whether the permission mode may be switched to `auto`. The error is the reason if not.
    fn check_auto_mode(&self) -> Result<(), String> {
        let (settings, sandbox) = (&self.settings.settings, &self.settings.sandbox);
        match crate::auto_mode::auto_mode_problem(&self.config, settings, sandbox) {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }

    /// Sets the initial model.
    pub(crate) fn set_initial_model(&self, settings: &ModelSettings) {
        let mut current = self
            .initial_model
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *current = (settings.name.clone(), settings.window);
    }

    /// Waits until a scheduled prompt is due.
    pub(crate) async fn wait_until_due(&self) {
        match &self.schedules {
            Some(schedules) => schedules.wait().await,
            None => std::future::pending().await,
        }
    }

    /// Returns whether any hook handles notifications.
    pub(crate) fn has_idle_hooks(&self) -> bool {
        let engine = self.access.engine();
        engine
            .is_some_and(|(engine, _)| !engine.hooks().has_no_handlers(HookEventKind::NOTIFICATION))
    }

    /// Notifies the hooks that the session waits for the next message.
    pub(crate) async fn report_idle(&self) {
        if let Some((engine, context)) = self.access.engine() {
            let message = "No message for a minute; haft is waiting for you";
            engine.notify_waiting_for_user(message, &context.cwd).await;
        }
    }

    /// Moves the schedules to the current conversation, which may have changed.
    pub(crate) fn conversation_changed(&self) {
        if let (Some(schedules), Some((engine, _))) = (&self.schedules, self.access.engine()) {
            schedules.switch_folder(&engine.conversation_folder());
        }
    }

    /// Takes a scheduled prompt that is due. From then on, an interrupt applies to the run that it
    /// starts.
    pub(crate) fn take_due(&self) -> Option<NextMessage> {
        let schedules = self.schedules.as_ref()?;
        self.control.expect_run();
        let due = schedules.take_due();
        if due.is_none() {
            self.control.cancel_expected_run();
        }
        Some(due?.into())
    }

    /// Adds a directory to the roots that servers see.
    pub(crate) fn add_root(&self, directory: &Path) {
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        if !roots.iter().any(|root| root == directory) {
            roots.push(directory.to_path_buf());
            drop(roots);
            self.servers.roots_changed();
        }
    }

    /// Returns the agent kinds.
    pub(crate) fn kinds(&self) -> MutexGuard<'_, AgentKinds> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at_start(&self) -> (String, u64) {
        let current = self
            .initial_model
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }
}

impl SessionInput {
    /// Submits a prompt after all earlier ones. A prompt that begins with a slash may be a command.
    pub fn prompt(&self, prompt: impl Into<Prompt>) {
        self.0.queue.push(prompt.into());
    }

    /// Submits a prompt that is delivered immediately: to the current run between two turns, or
    /// without one before all queued prompts.
    pub fn steer(&self, prompt: impl Into<Prompt>) {
        self.0.queue.push_now(prompt.into(), &self.0.control);
    }

    /// Adds content that gets no answer itself: it is sent with the next message.
    pub fn push_context(&self, content: Vec<Content>) {
        self.0.queue.push_context(content);
    }

    /// Returns the ids of the queued messages.
    pub fn waiting(&self) -> Vec<Option<Uuid>> {
        self.0.queue.waiting()
    }

    /// Withdraws a queued message. Returns whether there was one.
    pub fn withdraw(&self, uuid: &str) -> bool {
        self.0.queue.withdraw_by_id(uuid)
    }

    /// Withdraws all queued messages and returns their ids.
    pub fn withdraw_all(&self) -> Vec<Option<Uuid>> {
        self.0.queue.clear()
    }

    /// Submits a prompt that is tracked until it is delivered, and returns its id. Slash commands
    /// are never delivered to a current run.
    pub fn submit(&self, prompt: impl Into<Prompt>, delivery: PromptDelivery) -> Uuid {
        let mut prompt = prompt.into();
        let uuid = *prompt.uuid.get_or_insert_with(random_id);
        let is_command = self.is_command(&prompt);
        let delivery = if is_command {
            PromptDelivery::AfterRun
        } else {
            delivery
        };
        let SharedState { queue, control, .. } = &*self.0;
        queue.push_tracked(prompt, delivery, QueuedKind::Prompt, control);
        uuid
    }

    /// Runs a command line that the user typed, after the current run. It runs without asking, but
    /// deny rules apply. The model reads the output, and answers unless the settings say otherwise
    /// (`respondToBashCommands`). Returns the id.
    pub fn run_shell(&self, command: impl Into<String>) -> Uuid {
        let mut prompt = Prompt::from(command.into());
        let uuid = *prompt.uuid.get_or_insert_with(random_id);
        let SharedState { queue, control, .. } = &*self.0;
        queue.push_tracked(prompt, PromptDelivery::AfterRun, QueuedKind::Shell, control);
        uuid
    }

    /// Returns the prompts submitted with [`submit`](Self::submit) that are not delivered yet, in the
    /// order of their delivery.
    pub fn queued(&self) -> Vec<QueuedMessage> {
        self.0.queue.queued(&self.0.control)
    }

    /// Withdraws a prompt that is not delivered yet. `None`: it was delivered or does not exist.
    pub fn withdraw_message(&self, uuid: Uuid) -> Option<QueuedMessage> {
        self.0.queue.withdraw(uuid, &self.0.control)
    }

    /// Withdraws the prompt that was submitted last, if it is not delivered yet.
    pub fn withdraw_newest(&self) -> Option<QueuedMessage> {
        self.0.queue.withdraw_newest(&self.0.control)
    }

    /// Interrupts the current run, and withdraws and returns all undelivered prompts, the oldest
    /// first.
    pub fn interrupt_and_withdraw(&self) -> Vec<QueuedMessage> {
        let taken = self.0.queue.withdraw_all(&self.0.control);
        self.interrupt();
        taken
    }

    /// Interrupts the current run; queued prompts come next.
    pub fn interrupt(&self) {
        self.0.queue.interrupt();
        self.0.control.interrupt();
    }

    /// Closes the input: the session ends when everything is answered.
    pub fn close(&self) {
        self.0.queue.close();
    }

    /// Ends the session with an error, because its input cannot be read.
    pub fn fail(&self, problem: impl Into<String>) {
        self.0.queue.fail(problem.into());
    }

    /// Ends the session, even during a run.
    pub fn stop(&self, kind: StopKind) {
        self.0.stop.request(kind);
    }

    /// Interrupts and ends the session, because no client follows it any longer.
    pub fn detach(&self) {
        self.0.is_detached.store(true, Ordering::Relaxed);
        self.0.control.interrupt();
    }

    /// Answers a question that was reported as an event. Returns whether the session was waiting
    /// for it.
    pub fn answer(&self, id: u64, answer: ApprovalAnswer) -> bool {
        self.0.questions.answer(id, answer)
    }

    /// Sets the permission mode from the next request on. The error is the reason if it is not
    /// allowed.
    pub fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), String> {
        match mode {
            PermissionMode::BypassPermissions => self.0.bypass_allowed.clone()?,
            PermissionMode::Auto => self.0.check_auto_mode()?,
            _ => {}
        }
        self.0.control.set_permission_mode(mode);
        Ok(())
    }

    /// Sets the model from the next request on; `None`: the initial one. For a short name,
    /// waits for the provider's list. The error is the reason why the model is not available.
    pub async fn set_model(&self, name: Option<&str>) -> Result<(), String> {
        let (at_start, window) = self.0.at_start();
        let (name, window) = match name {
            Some(name) => {
                let name = self.0.names.resolve(name).await?;
                let window = self.0.names.window_of(&name);
                (name, window)
            }
            // Before the start the name may still be a short one.
            None => (self.0.names.resolve(&at_start).await?, window),
        };
        self.0.budget.warn_if_unpriced(&name);
        self.0.control.set_window(window);
        self.0.control.set_model(name);
        Ok(())
    }

    /// Sets the thinking mode from the next request on.
    pub fn set_thinking(&self, thinking: ThinkingMode) {
        self.0.control.set_thinking(thinking);
    }

    /// Notifies the hooks that the session waits for the user, and waits for the hooks.
    pub async fn notify_waiting_for_user(&self, message: &str) {
        if let Some((engine, context)) = self.0.access.engine() {
            engine.notify_waiting_for_user(message, &context.cwd).await;
        }
    }

    /// Adds a directory that calls may read and edit from the next request on; an absolute path.
    pub fn add_directory(&self, directory: impl Into<PathBuf>) -> Result<(), String> {
        let directory = directory.into();
        if !directory.is_absolute() || !directory.is_dir() {
            return Err(format!("{} is not a directory", directory.display()));
        }
        self.0.add_root(&directory);
        self.0.control.add_directory(directory);
        Ok(())
    }

    /// Sets options besides the configuration, before the first message. The error says if they are
    /// invalid or too late.
    pub fn configure(&self, options: StartOptions) -> Result<(), String> {
        let shape = match &options.output_schema {
            None => None,
            Some(schema) => {
                Some(OutputSchema::parse(&schema.to_string()).map_err(|error| error.to_string())?)
            }
        };
        let servers = &self.0.servers;
        let initial = CheckedStartOptions {
            options,
            output_schema: shape,
        };
        self.0.queue.configure(initial, |options| {
            servers.add_sdk(&options.servers);
            Ok(())
        })
    }

    /// Returns the agent kinds, including additional ones.
    pub fn agents(&self, more: &Map<String, Value>) -> Vec<AgentDetails> {
        self.0.kinds().with(more).details()
    }

    /// Returns the details of the extensions.
    pub fn extensions(&self) -> &ExtensionDetails {
        &self.0.extensions
    }

    /// Returns the MCP servers.
    pub fn servers(&self) -> ServerList {
        self.0.servers.list()
    }

    /// Returns whether there is a server with this name.
    pub fn has_server(&self, name: &str) -> bool {
        self.0.servers.has(name)
    }

    /// Replaces the servers that were set before.
    pub async fn set_servers(&self, servers: &Map<String, Value>) -> ServerChanges {
        self.0.servers.set(servers).await
    }

    /// Reconnects a server, and waits for it. The error is the reason why it is not connected.
    pub async fn reconnect_server(&self, name: &str) -> Result<(), String> {
        self.0.servers.reconnect(name).await
    }

    /// Enables or disables a server for this session.
    pub async fn toggle_server(&self, name: &str, enabled: bool) -> Result<(), String> {
        self.0.servers.toggle(name, enabled).await
    }

    /// Calls a tool of a server by its name in the pool, and returns the server's unprocessed
    /// result.
    pub async fn call_server_tool(&self, name: &str, arguments: &Value) -> Result<Value, String> {
        self.0.servers.call(name, arguments).await
    }

    /// Returns the models that can be chosen, without a request to the provider.
    pub fn models(&self) -> Vec<ModelOption> {
        self.0.names.choices(&self.0.at_start().0)
    }

    /// Returns the number of hosts that rules and settings allow commands to contact.
    pub fn allowed_hosts(&self) -> usize {
        let policy = match self.0.access.engine() {
            Some((engine, context)) => engine.policy(&context),
            None => self.0.settings.policy(),
        };
        SettingsHosts::from_policy(&policy).allowed.len()
    }

    /// Returns the usage of the model's context window.
    pub fn context_usage(&self) -> ContextUsage {
        self.0.access.usage().unwrap_or_else(|| {
            let (model, window) = self.0.at_start();
            ContextUsage {
                model,
                window,
                ..ContextUsage::default()
            }
        })
    }

    /// Returns whether a message is being answered.
    pub fn is_running(&self) -> bool {
        self.0.queue.is_running()
    }

    /// Stops a background task, or deletes a scheduled prompt. May block on disk I/O.
    pub fn stop_task(&self, task: &str) -> Result<(), String> {
        if let Some(schedules) = &self.0.schedules
            && schedules.remove_schedule(task).is_ok()
        {
            return Ok(());
        }
        self.0.access.stop(task)
    }

    /// Moves a command or subagent that a call waits for to the background, or all of them if no
    /// call is named.
    pub fn move_to_background(&self, tool_use_id: Option<&str>) -> Result<(), String> {
        let commands = self.0.access.background(tool_use_id);
        let subagents = self.0.reload.subagents.get();
        let subagents = subagents.map_or(0, |(_, pool)| pool.move_to_background(tool_use_id));
        match tool_use_id {
            Some(id) if commands + subagents == 0 => {
                Err(format!("no command of the call {id:?} is waited for"))
            }
            _ => Ok(()),
        }
    }

    /// Sets the title of the session.
    pub fn rename(&self, title: &str) -> Result<(), String> {
        self.0.access.rename(title)
    }

    /// Restores the files to their state at the time of a message, or with `preview` reports what
    /// that would change. May block for a long time: do not call it on an async task that others
    /// wait for.
    pub fn rewind(&self, message: &str, preview: bool) -> Result<RewoundFiles, String> {
        self.0.access.rewind(&self.0.environment, message, preview)
    }
}
