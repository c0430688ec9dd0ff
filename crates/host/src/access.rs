//! What may be asked of a session while it runs: how full it is, and its files as they were.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::SystemTime,
};

use haft_agent::{Agent, transcript::Transcript};
use haft_contract::{BackgroundTasks, Services};
use haft_engine::{ContextView, Engine, SessionContext};
#[cfg(feature = "shell")]
use haft_tools::Shell;
use serde_json::Value;

use crate::{Environment, Haft, moment};

/// Files are taken back only where this is `true`.
const CHECKPOINTS: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";

/// The session, as far as requests may look at it. Empty until it is set up.
#[derive(Default)]
pub(crate) struct SessionAccess {
    transcript: Mutex<Option<Arc<Transcript>>>,
    /// What the session's calls may reach.
    services: OnceLock<Services>,
    engine: OnceLock<(Arc<Engine>, ContextView)>,
    used: Mutex<Option<ContextUsage>>,
}

/// How full the model's window is, in tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextUsage {
    /// The model that is asked.
    pub model: String,
    /// How much it can read.
    pub window: u64,
    /// All of it together; as the provider counted it, or the messages only.
    pub total: u64,
    /// The system prompt.
    pub system: u64,
    /// The tools.
    pub tools: u64,
    /// Tools of MCP servers, by name.
    pub servers: Vec<(String, u64)>,
    /// The conversation is not summarized unasked.
    pub keeps_everything: bool,
}

/// What going back to a message changed, or would change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewoundFiles {
    /// The files. Empty: nothing was changed since.
    pub files: Vec<PathBuf>,
    /// Lines that come back…
    pub insertions: u64,
    /// …and lines that go.
    pub deletions: u64,
    /// Files that stay as they are, and why.
    pub left: Vec<(PathBuf, String)>,
}

impl SessionAccess {
    /// It is set up.
    pub(crate) fn has(&self, haft: &Haft) {
        let _ = self.services.set(haft.services().clone());
        let engine = (Arc::clone(haft.engine()), haft.scheduler.view());
        let _ = self.engine.set(engine);
    }

    /// What runs its calls, and where it is now.
    pub(crate) fn engine(&self) -> Option<(Arc<Engine>, SessionContext)> {
        let (engine, context) = self.engine.get()?;
        Some((Arc::clone(engine), context.get()?))
    }

    /// A path as the session means it.
    pub(crate) fn absolute(&self, path: &Path) -> Option<PathBuf> {
        Some(self.engine()?.1.cwd.join(path))
    }

    /// What its calls may reach, by type.
    pub(crate) fn service<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.services.get()?.get::<T>().ok()
    }

    /// A file counts as read.
    pub(crate) fn note_read(&self, path: &Path) -> Result<(), String> {
        let services = self.services.get().ok_or(NOT_BEGUN)?;
        note_read(services, path)
    }

    /// Ends a task in the background.
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

    /// Lets a command that is waited for go on in the background; all of them where none is named.
    pub(crate) fn background(&self, tool_use_id: Option<&str>) -> Result<(), String> {
        #[cfg(feature = "shell")]
        let moved = match self.services.get().map(|services| services.get::<Shell>()) {
            Some(Ok(shell)) => shell.background_named(tool_use_id),
            _ => 0,
        };
        #[cfg(not(feature = "shell"))]
        let moved = 0;
        match tool_use_id {
            Some(id) if moved == 0 => Err(format!("no command of the call {id:?} is waited for")),
            _ => Ok(()),
        }
    }

    /// A run begins or has ended: takes over how things are.
    pub(crate) fn look(&self, agent: &Agent) {
        *self.lock_transcript() = Some(Arc::clone(agent.transcript()));
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
        });
    }

    /// What a person calls the session from now on.
    pub(crate) fn rename(&self, title: &str) -> Result<(), String> {
        let transcript = self.lock_transcript().clone().ok_or(NOT_BEGUN)?;
        transcript.set_title(title);
        Ok(())
    }

    /// How full the window is; none of it before the first run.
    pub(crate) fn usage(&self) -> Option<ContextUsage> {
        self.used().clone()
    }

    /// Makes the files what they were when a message came, or says what that would do.
    pub(crate) fn rewind(
        &self,
        environment: &Environment,
        message: &str,
        preview: bool,
    ) -> Result<RewoundFiles, String> {
        let kept = environment.variable(CHECKPOINTS);
        if kept.is_none_or(|value| value != "true" && value != "1") {
            return Err(format!("files are not kept: set {CHECKPOINTS}=true"));
        }
        let services = self.services.get().ok_or(NOT_BEGUN)?;
        let since = self.time_of(message)?;
        rewind(services, since, preview)
    }

    /// When a message of the session came.
    fn time_of(&self, message: &str) -> Result<SystemTime, String> {
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
            .and_then(|time| moment::parse(time, SystemTime::now()))
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

pub(crate) const NOT_BEGUN: &str = "the session has not begun: send a message first";

#[cfg(feature = "fs")]
fn note_read(services: &Services, path: &Path) -> Result<(), String> {
    haft_tools::note_read(services, path)
}

#[cfg(not(feature = "fs"))]
fn note_read(_: &Services, _: &Path) -> Result<(), String> {
    Err("this build reads no files".to_owned())
}

#[cfg(feature = "fs")]
fn rewind(services: &Services, since: SystemTime, preview: bool) -> Result<RewoundFiles, String> {
    use haft_tools::RewindError;
    match haft_tools::rewind(services, since, preview, "rewind_files") {
        Ok(rewound) => Ok(RewoundFiles {
            files: rewound.files,
            insertions: rewound.insertions,
            deletions: rewound.deletions,
            left: rewound.left,
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
