//! What goes into a session.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use haft_agent::{Control, ModelSettings, Prompt, random_id};
use haft_contract::{ApprovalAnswer, Content, PermissionMode};
use haft_engine::hooks::HookMoment;
use haft_mcp::client::Servers;
use haft_models::Thinking;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    AgentDetails, ContextUsage, Delivery, Environment, ExtensionDetails, ModelOption, Permitted,
    QueuedKind, QueuedMessage, RewoundFiles, ServerChanges, ServerList, SessionClock,
    SessionConfig, StartOptions, StopKind,
    access::SessionAccess,
    budget::Budget,
    live_changes::ExtensionReload,
    names::Names,
    parts::DoctorReport,
    questions::EventQuestions,
    queue::{Initial, NextMessage, Queue},
    schedules::ScheduleBook,
    stop::Stop,
    structured_output::Shape,
    subagents::Kinds,
};

/// The way into a session, from any task, at any time. Cheap to clone; every clone means the same session.
/// Nothing here waits, except where it says so.
#[derive(Clone)]
pub struct SessionInput(pub(crate) Arc<SharedState>);

/// What a session and those who drive it share.
pub(crate) struct SharedState {
    pub(crate) queue: Queue,
    pub(crate) control: Control,
    pub(crate) stop: Stop,
    pub(crate) servers: Arc<Servers>,
    /// The directories it works in, as servers see them.
    pub(crate) roots: Arc<Mutex<Vec<PathBuf>>>,
    pub(crate) access: SessionAccess,
    pub(crate) questions: Arc<EventQuestions>,
    /// What kinds of subagents there are.
    pub(crate) kinds: Mutex<Kinds>,
    /// What people put in folders.
    pub(crate) extensions: ExtensionDetails,
    pub(crate) reload: ExtensionReload,
    /// The model that was chosen at the start, and how much it can read.
    pub(crate) current: Mutex<(String, u64)>,
    pub(crate) names: Names,
    pub(crate) budget: Budget,
    /// May the mode become bypassPermissions? The error says why not.
    pub(crate) bypass: Result<(), String>,
    pub(crate) environment: Environment,
    /// What it was set up with.
    pub(crate) config: SessionConfig,
    pub(crate) permitted: Permitted,
    /// The model answers what came of command lines that a person types.
    pub(crate) answers_shell: bool,
    /// What a person calls `/doctor` for, where the face can tell.
    pub(crate) doctor: Option<DoctorReport>,
    /// What is said later; `None` where nothing may be.
    pub(crate) schedules: Option<Arc<ScheduleBook>>,
    pub(crate) clock: Arc<dyn SessionClock>,
    /// No one follows the session any longer.
    pub(crate) is_abandoned: AtomicBool,
}

impl SharedState {
    /// This is the model of the start.
    pub(crate) fn starts_with(&self, settings: &ModelSettings) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        *current = (settings.name.clone(), settings.window);
    }

    /// Waits until a scheduled prompt is due.
    pub(crate) async fn is_due(&self) {
        match &self.schedules {
            Some(schedules) => schedules.wait().await,
            None => std::future::pending().await,
        }
    }

    /// Are there hooks that might want to know that nothing is said?
    pub(crate) fn has_idle_hooks(&self) -> bool {
        let engine = self.access.engine();
        engine.is_some_and(|(engine, _)| !engine.hooks().is_silent(HookMoment::NOTIFICATION))
    }

    /// Hooks learn that what is said next is waited for.
    pub(crate) async fn report_idle(&self) {
        if let Some((engine, context)) = self.access.engine() {
            let message = "Nothing was said for a minute; haft waits for you";
            engine.waits_for_person(message, &context.cwd).await;
        }
    }

    /// Another conversation may go on than before: schedules follow it.
    pub(crate) fn conversation_changed(&self) {
        if let (Some(schedules), Some((engine, _))) = (&self.schedules, self.access.engine()) {
            schedules.follow(&engine.conversation_folder());
        }
    }

    /// Takes a scheduled prompt that is due. From then on an interrupt is one of the run that it begins.
    pub(crate) fn take_due(&self) -> Option<NextMessage> {
        let schedules = self.schedules.as_ref()?;
        self.control.expect_run();
        let due = schedules.take_due();
        if due.is_none() {
            self.control.expect_none();
        }
        Some(due?.into())
    }

    /// Servers may look at this directory too.
    pub(crate) fn add_root(&self, directory: &Path) {
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        if !roots.iter().any(|root| root == directory) {
            roots.push(directory.to_path_buf());
            drop(roots);
            self.servers.roots_changed();
        }
    }

    /// The kinds of subagents there are.
    pub(crate) fn kinds(&self) -> MutexGuard<'_, Kinds> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at_start(&self) -> (String, u64) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }
}

impl SessionInput {
    /// Says something, after everything that was said before. Words that begin with a slash may be a command.
    pub fn prompt(&self, prompt: impl Into<Prompt>) {
        self.0.queue.push(prompt.into());
    }

    /// Says something now: to the run that is under way between two rounds, without one before all that waits.
    pub fn steer(&self, prompt: impl Into<Prompt>) {
        self.0.queue.push_now(prompt.into(), &self.0.control);
    }

    /// Says something that is not to be answered by itself: it goes with the next message.
    pub fn aside(&self, content: Vec<Content>) {
        self.0.queue.push_beside(content);
    }

    /// The messages that wait for their turn, by their ids.
    pub fn waiting(&self) -> Vec<Option<Uuid>> {
        self.0.queue.waiting()
    }

    /// Withdraws a message that waits. Says whether there was one.
    pub fn take_back(&self, uuid: &str) -> bool {
        self.0.queue.forget(uuid)
    }

    /// Withdraws all messages that wait, and names them.
    pub fn take_back_all(&self) -> Vec<Option<Uuid>> {
        self.0.queue.forget_all()
    }

    /// Says something that is followed until it is delivered; its id. Commands that begin with a slash are
    /// never said to a run that is under way.
    pub fn say(&self, prompt: impl Into<Prompt>, delivery: Delivery) -> Uuid {
        let mut prompt = prompt.into();
        let uuid = *prompt.uuid.get_or_insert_with(random_id);
        let is_command = self.is_command(&prompt);
        let delivery = if is_command {
            Delivery::AfterRun
        } else {
            delivery
        };
        let SharedState { queue, control, .. } = &*self.0;
        queue.push_followed(prompt, delivery, QueuedKind::Said, control);
        uuid
    }

    /// Runs a command line that a person typed, after what is under way: they are not asked whether it may
    /// run, and deny rules hold. The model reads what came of it, and answers unless the settings say
    /// otherwise (`respondToBashCommands`). Its id.
    pub fn run_shell(&self, command: impl Into<String>) -> Uuid {
        let mut prompt = Prompt::from(command.into());
        let uuid = *prompt.uuid.get_or_insert_with(random_id);
        let SharedState { queue, control, .. } = &*self.0;
        queue.push_followed(prompt, Delivery::AfterRun, QueuedKind::Shell, control);
        uuid
    }

    /// What was said with [`say`](Self::say) and not delivered yet, in the order in which it will be.
    pub fn queued(&self) -> Vec<QueuedMessage> {
        self.0.queue.queued(&self.0.control)
    }

    /// Withdraws a message that was not delivered yet. `None`: it was, or there is no such message.
    pub fn take_back_message(&self, uuid: Uuid) -> Option<QueuedMessage> {
        self.0.queue.take_back(uuid, &self.0.control)
    }

    /// The same for the one that was given last.
    pub fn take_back_newest(&self) -> Option<QueuedMessage> {
        self.0.queue.take_back_newest(&self.0.control)
    }

    /// Interrupts what goes on, and withdraws everything that was not delivered, the oldest first: nothing of
    /// it is said by itself.
    pub fn interrupt_and_take_back(&self) -> Vec<QueuedMessage> {
        let taken = self.0.queue.take_back_all(&self.0.control);
        self.interrupt();
        taken
    }

    /// Interrupts what goes on; what waits comes next.
    pub fn interrupt(&self) {
        self.0.queue.interrupt();
        self.0.control.interrupt();
    }

    /// Nothing more comes: the session ends when everything is answered.
    pub fn close(&self) {
        self.0.queue.close();
    }

    /// What comes cannot be read: the session ends with this problem.
    pub fn broken(&self, problem: impl Into<String>) {
        self.0.queue.broken(problem.into());
    }

    /// Ends the session, whatever goes on.
    pub fn stop(&self, kind: StopKind) {
        self.0.stop.request(kind);
    }

    /// No one follows the session any longer: what goes on is interrupted, and it ends.
    pub fn abandon(&self) {
        self.0.is_abandoned.store(true, Ordering::Relaxed);
        self.0.control.interrupt();
    }

    /// Answers a question that came as an event. Says whether it was waited for.
    pub fn answer(&self, id: u64, answer: ApprovalAnswer) -> bool {
        self.0.questions.answer(id, answer)
    }

    /// From the next request on, this permission mode. The error says why it cannot be had.
    pub fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), String> {
        if mode == PermissionMode::BypassPermissions {
            self.0.bypass.clone()?;
        }
        self.0.control.set_permission_mode(mode);
        Ok(())
    }

    /// From the next request on, another model; `None`: the one of the start. Waits for the provider's list
    /// where a short name is given. The error says why it cannot be had.
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
        self.0.budget.covers(&name);
        self.0.control.set_window(window);
        self.0.control.set_model(name);
        Ok(())
    }

    /// From the next request on, the model thinks like this.
    pub fn set_thinking(&self, thinking: Thinking) {
        self.0.control.set_thinking(thinking);
    }

    /// Tells the hooks that it waits for what the person says next, who looks elsewhere. Waits for them.
    pub async fn waits_for_person(&self, message: &str) {
        if let Some((engine, context)) = self.0.access.engine() {
            engine.waits_for_person(message, &context.cwd).await;
        }
    }

    /// From the next request on, calls may read and edit this directory too; an absolute path.
    pub fn add_directory(&self, directory: impl Into<PathBuf>) -> Result<(), String> {
        let directory = directory.into();
        if !directory.is_absolute() || !directory.is_dir() {
            return Err(format!("{} is no directory", directory.display()));
        }
        self.0.add_root(&directory);
        self.0.control.add_directory(directory);
        Ok(())
    }

    /// Says what the session is set up with beside its configuration, before the first message. The error
    /// says what makes no sense or comes too late.
    pub fn configure(&self, options: StartOptions) -> Result<(), String> {
        let shape = match &options.output_schema {
            None => None,
            Some(schema) => {
                Some(Shape::read(&schema.to_string()).map_err(|error| error.to_string())?)
            }
        };
        let servers = &self.0.servers;
        let initial = Initial { options, shape };
        self.0.queue.configure(initial, |options| {
            servers.add_sdk(&options.servers);
            Ok(())
        })
    }

    /// The kinds of subagents there are, with these beside them.
    pub fn agents(&self, more: &Map<String, Value>) -> Vec<AgentDetails> {
        self.0.kinds().with(more).details()
    }

    /// What people put in folders.
    pub fn extensions(&self) -> &ExtensionDetails {
        &self.0.extensions
    }

    /// The MCP servers.
    pub fn servers(&self) -> ServerList {
        self.0.servers.list()
    }

    /// Is there a server of this name?
    pub fn has_server(&self, name: &str) -> bool {
        self.0.servers.has(name)
    }

    /// Puts these servers in the place of those that were set before.
    pub async fn set_servers(&self, servers: &Map<String, Value>) -> ServerChanges {
        self.0.servers.set(servers).await
    }

    /// Connects a server again, and waits for that. The error says why it is not connected.
    pub async fn reconnect_server(&self, name: &str) -> Result<(), String> {
        self.0.servers.reconnect(name).await
    }

    /// Switches a server on or off for this session.
    pub async fn toggle_server(&self, name: &str, enabled: bool) -> Result<(), String> {
        self.0.servers.toggle(name, enabled).await
    }

    /// Calls a tool of a server by its name in the pool, and waits for the answer as the server gives it.
    pub async fn call_server_tool(&self, name: &str, arguments: &Value) -> Result<Value, String> {
        self.0.servers.call(name, arguments).await
    }

    /// The models that can be chosen, as far as that is known without asking the provider.
    pub fn models(&self) -> Vec<ModelOption> {
        self.0.names.choices(&self.0.at_start().0)
    }

    /// How full the model's window is.
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

    /// Is a message being answered?
    pub fn is_running(&self) -> bool {
        self.0.queue.is_running()
    }

    /// Ends a task in the background, or forgets a scheduled prompt. It may wait for the disk.
    pub fn stop_task(&self, task: &str) -> Result<(), String> {
        if let Some(schedules) = &self.0.schedules
            && schedules.forget(task).is_ok()
        {
            return Ok(());
        }
        self.0.access.stop(task)
    }

    /// Lets a command or a subagent that is waited for go on in the background; all of them where no call is
    /// named.
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

    /// What a person calls the session from now on.
    pub fn rename(&self, title: &str) -> Result<(), String> {
        self.0.access.rename(title)
    }

    /// Makes the files what they were when a message came, or with `preview` says what that would do. It may
    /// take its time: not for a task that others wait for.
    pub fn rewind(&self, message: &str, preview: bool) -> Result<RewoundFiles, String> {
        self.0.access.rewind(&self.0.environment, message, preview)
    }
}
