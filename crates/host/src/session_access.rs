//! Queries about a running session: its context usage, and its files at earlier points.

use std::{
    collections::HashMap,
    fs, mem,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::SystemTime,
};

use haft_agent::{
    Agent, SharedUsage, UsageLedger,
    transcript::{HookRun, Transcript},
};
use haft_contract::{BackgroundTasks, Content, Services, SessionId};
use haft_engine::{ContextView, Engine, SessionContext};
use haft_models::{Block, Conversation};
#[cfg(feature = "shell")]
use haft_tools::ShellService;
use serde_json::Value;
use uuid::Uuid;

use crate::{Environment, Haft, utc_time};

/// The variable that must be `true` or `1` for files to be rewound.
const CHECKPOINTS: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";

/// Access to the session for queries. Empty until the session is set up.
#[derive(Default)]
pub(crate) struct SessionAccess {
    transcript: Mutex<Option<Arc<Transcript>>>,
    /// Hooks that ran before there was a transcript.
    first_hooks: Mutex<Vec<HookRun>>,
    /// The services that the session's calls may use.
    services: OnceLock<Services>,
    engine: OnceLock<(Arc<Engine>, ContextView)>,
    used: Mutex<Option<ContextUsage>>,
    spending: Mutex<Option<SharedUsage>>,
    id: Mutex<Option<SessionId>>,
}

/// The usage of the model's context window, in tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextUsage {
    /// The name of the model.
    pub model: String,
    /// The size of the window.
    pub window: u64,
    /// The total: as counted by the provider, or an estimate of the messages only.
    pub total: u64,
    /// The system prompt.
    pub system: u64,
    /// The tools.
    pub tools: u64,
    /// The tools of MCP servers, by name.
    pub servers: Vec<(String, u64)>,
    /// Whether automatic compaction is off.
    pub keeps_everything: bool,
    /// Memory files, and reminders.
    pub memory: u64,
    /// The messages.
    pub messages: u64,
    /// The results of calls.
    pub results: u64,
    /// The longest result: its call, and its size.
    pub largest: Option<(String, u64)>,
}

/// The changes of a rewind, made or planned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewoundFiles {
    /// The files. Empty: nothing has changed since then.
    pub files: Vec<PathBuf>,
    /// The number of restored lines.
    pub insertions: u64,
    /// The number of removed lines.
    pub deletions: u64,
    /// Files that were left unchanged, with the reasons.
    pub left: Vec<(PathBuf, String)>,
}

impl SessionAccess {
    /// Stores the services and the engine when the session is set up.
    pub(crate) fn attach(&self, haft: &Haft) {
        let _ = self.services.set(haft.services().clone());
        let engine = (Arc::clone(haft.engine()), haft.scheduler.view());
        let _ = self.engine.set(engine);
    }

    /// Returns the services that its calls may use, once it is set up.
    pub(crate) fn services(&self) -> Option<&Services> {
        self.services.get()
    }

    /// Returns the path of the transcript.
    pub(crate) fn transcript_path(&self) -> Option<PathBuf> {
        Some(self.lock_transcript().as_ref()?.path()?.to_path_buf())
    }

    /// Returns the id of the last message in the conversation.
    pub(crate) fn last_message(&self) -> Option<Uuid> {
        self.lock_transcript().as_ref()?.last()
    }

    /// Returns the id of the conversation.
    pub(crate) fn session_id(&self) -> Option<SessionId> {
        *self.id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the usage and cost so far.
    pub(crate) fn ledger(&self) -> Option<UsageLedger> {
        let spending = self.spending.lock();
        let spending = spending.unwrap_or_else(PoisonError::into_inner);
        Some(spending.as_ref()?.ledger())
    }

    /// Returns the engine and the current context.
    pub(crate) fn engine(&self) -> Option<(Arc<Engine>, SessionContext)> {
        let (engine, context) = self.engine.get()?;
        Some((Arc::clone(engine), context.get()?))
    }

    /// Ends the permissions that the user gave for the current task.
    pub(crate) fn end_task_grants(&self) {
        if let Some((engine, _)) = self.engine.get() {
            engine.grants().end_task();
        }
    }

    /// Resolves a path relative to the session's current directory.
    pub(crate) fn absolute(&self, path: &Path) -> Option<PathBuf> {
        Some(self.engine()?.1.cwd.join(path))
    }

    /// Returns a service by its type.
    pub(crate) fn service<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.services.get()?.get::<T>().ok()
    }

    /// Marks a file as read.
    pub(crate) fn mark_read(&self, path: &Path) -> Result<(), String> {
        let services = self.services.get().ok_or(NOT_BEGUN)?;
        record_read(services, path)
    }

    /// Stops a background task.
    pub(crate) fn stop(&self, task: &str) -> Result<(), String> {
        let notices = self
            .services
            .get()
            .map(|services| services.get::<BackgroundTasks>());
        match notices {
            Some(Ok(notices)) if notices.stop(task) => Ok(()),
            _ => Err(format!("no task {task:?} runs in the background")),
        }
    }

    /// Moves a command that a call waits for to the background, or all of them if none is named.
    /// Returns the number of moved commands.
    pub(crate) fn background(&self, tool_use_id: Option<&str>) -> usize {
        #[cfg(feature = "shell")]
        if let Some(Ok(shell)) = self
            .services
            .get()
            .map(|services| services.get::<ShellService>())
        {
            return shell.move_calls_to_background(tool_use_id);
        }
        let _ = tool_use_id; // a build without commands moves none
        0
    }

    /// Records a hook run in the transcript.
    pub(crate) fn hook_ran(&self, run: HookRun) {
        match &*self.lock_transcript() {
            Some(transcript) => transcript.write_hook_run(&run),
            // Stored until the first run, because a session without messages leaves no transcript.
            None => self.first_hooks().push(run),
        }
    }

    fn first_hooks(&self) -> MutexGuard<'_, Vec<HookRun>> {
        let first = self.first_hooks.lock();
        first.unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the state from the agent, when a run starts or has ended.
    pub(crate) fn refresh(&self, agent: &Agent) {
        *self.lock_transcript() = Some(Arc::clone(agent.transcript()));
        for run in mem::take(&mut *self.first_hooks()) {
            agent.transcript().write_hook_run(&run);
        }
        let id = self.id.lock();
        *id.unwrap_or_else(PoisonError::into_inner) = Some(agent.session());
        let spending = self.spending.lock();
        *spending.unwrap_or_else(PoisonError::into_inner) = Some(agent.spending());
        let sizes = sizes(agent.conversation());
        let (total, window) = agent.context_usage();
        let (system, tools) = agent.prefix_sizes();
        let (servers, own): (Vec<_>, Vec<_>) = tools
            .into_iter()
            .partition(|(name, _)| name.starts_with("mcp__"));
        *self.used() = Some(ContextUsage {
            model: agent.settings().name.clone(),
            window,
            total,
            system,
            tools: own.iter().map(|(_, tokens)| tokens).sum(),
            servers,
            keeps_everything: agent.settings().auto_compact.is_off,
            memory: sizes.memory,
            messages: sizes.messages,
            results: sizes.results,
            largest: sizes.largest,
        });
    }

    /// Sets the title of the session.
    pub(crate) fn rename(&self, title: &str) -> Result<(), String> {
        let transcript = self.lock_transcript().clone().ok_or(NOT_BEGUN)?;
        transcript.set_title(title);
        Ok(())
    }

    /// Returns the context usage; `None` before the first run.
    pub(crate) fn usage(&self) -> Option<ContextUsage> {
        self.used().clone()
    }

    /// Restores the files to their state at the time of a message, or reports what that would
    /// change.
    pub(crate) fn rewind(
        &self,
        environment: &Environment,
        message: &str,
        preview: bool,
    ) -> Result<RewoundFiles, String> {
        let kept = environment.variable(CHECKPOINTS);
        if kept.is_none_or(|value| value != "true" && value != "1") {
            return Err(format!("file checkpoints are off: set {CHECKPOINTS}=true"));
        }
        let services = self.services.get().ok_or(NOT_BEGUN)?;
        let since = self.message_time(message)?;
        rewind(services, since, preview)
    }

    /// Returns the time at which a message of the session was sent.
    fn message_time(&self, message: &str) -> Result<SystemTime, String> {
        let transcript = self.lock_transcript().clone().ok_or(NOT_BEGUN)?;
        let path = transcript.path().ok_or("the session is not saved")?;
        let lines = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let line = lines
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|line| line["uuid"] == message)
            .ok_or_else(|| format!("the session has no message {message}"))?;
        line["timestamp"]
            .as_str()
            .and_then(|time| utc_time::parse(time, SystemTime::now()))
            .ok_or_else(|| format!("the message {message} has no time"))
    }

    fn lock_transcript(&self) -> MutexGuard<'_, Option<Arc<Transcript>>> {
        self.transcript
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn used(&self) -> MutexGuard<'_, Option<ContextUsage>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The approximate sizes of the parts of a conversation, in tokens.
#[derive(Default)]
struct ConversationSizes {
    memory: u64,
    messages: u64,
    results: u64,
    largest: Option<(String, u64)>,
}

fn sizes(conversation: &Conversation) -> ConversationSizes {
    let mut sizes = ConversationSizes::default();
    let mut calls: HashMap<&str, String> = HashMap::new();
    let tokens = |text: &str| (text.len() as u64).div_ceil(4);
    for block in conversation.messages().flat_map(|message| &message.content) {
        match block {
            Block::ToolUse {
                id, name, input, ..
            } => {
                let about = input.as_object().and_then(|input| input.values().next());
                let about = about.and_then(Value::as_str).unwrap_or_default();
                let about: String = about.chars().take(40).collect();
                calls.insert(id, format!("{name} {about}").trim().to_owned());
                sizes.messages += tokens(&input.to_string());
            }
            Block::ToolResult(result) => {
                let texts = result.content.iter().filter_map(Content::as_text);
                let size = texts.map(tokens).sum();
                sizes.results += size;
                if sizes
                    .largest
                    .as_ref()
                    .is_none_or(|(_, known)| size > *known)
                {
                    let call = calls.get(result.tool_use_id.as_str());
                    sizes.largest = Some((call.cloned().unwrap_or_default(), size));
                }
            }
            Block::Text { text } if text.starts_with("<system-reminder>") => {
                sizes.memory += tokens(text);
            }
            Block::Text { text } => sizes.messages += tokens(text),
            _ => {}
        }
    }
    sizes
}

pub(crate) const NOT_BEGUN: &str = "the session has not begun: send a message first";

#[cfg(feature = "fs")]
fn record_read(services: &Services, path: &Path) -> Result<(), String> {
    haft_tools::record_read(services, path)
}

#[cfg(not(feature = "fs"))]
fn record_read(_: &Services, _: &Path) -> Result<(), String> {
    Err("this build cannot read files".to_owned())
}

#[cfg(feature = "fs")]
fn rewind(services: &Services, since: SystemTime, preview: bool) -> Result<RewoundFiles, String> {
    use haft_tools::RewindError;
    match haft_tools::rewind(services, since, preview, "rewind_files") {
        Ok(rewound) => Ok(RewoundFiles {
            files: rewound.files,
            insertions: rewound.insertions,
            deletions: rewound.deletions,
            left: rewound.not_restored,
        }),
        Err(RewindError::Nothing) => Ok(RewoundFiles::default()),
        Err(RewindError::NoJournal) => Err(NOT_BEGUN.to_owned()),
        Err(RewindError::Failed(why)) => Err(why),
    }
}

#[cfg(not(feature = "fs"))]
fn rewind(_: &Services, _: SystemTime, _: bool) -> Result<RewoundFiles, String> {
    Ok(RewoundFiles::default())
}
