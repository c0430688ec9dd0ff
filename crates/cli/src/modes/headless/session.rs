//! What requests may ask of a session while it runs: how full it is, and its files as they were.

use std::{
    fs,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::SystemTime,
};

#[cfg(feature = "shell")]
use haft::tools::Shell;
use haft::{BackgroundTasks, CallId, Haft, Services};
use haft_agent::{Agent, transcript::Transcript};
use haft_journal::{Journal, Mode, Which, WriteGrant};
use haft_protocol::{
    ContextCategory, ContextMcpTool, ContextUsageAnswer, RewindAnswer, SessionAnswer,
};
use serde::Deserialize;

use super::model::variable;
use crate::show::moment;

/// Files are taken back only where this is `true`.
const CHECKPOINTS: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";

/// The session, as far as requests may look at it. Empty until it is set up.
#[derive(Default)]
pub(super) struct SessionAccess {
    journal: OnceLock<Arc<Journal>>,
    transcript: OnceLock<Arc<Transcript>>,
    /// What the session's calls may reach.
    services: OnceLock<Services>,
    used: Mutex<Option<Used>>,
}

/// How full the model's window is, in tokens.
struct Used {
    model: String,
    window: u64,
    total: u64,
    system: u64,
    tools: u64,
    servers: Vec<(String, u64)>,
}

impl SessionAccess {
    /// It is set up.
    pub(super) fn has(&self, haft: &Haft) {
        if let Ok(journal) = haft.services().get::<Journal>() {
            let _ = self.journal.set(journal);
        }
        let _ = self.services.set(haft.services().clone());
    }

    /// Ends a task in the background.
    pub(super) fn stop(&self, task: &str) -> Result<SessionAnswer, String> {
        let notices = self
            .services
            .get()
            .map(|services| services.get::<BackgroundTasks>());
        match notices {
            Some(Ok(notices)) if notices.stop(task) => Ok(SessionAnswer::DONE),
            _ => Err(format!("no task {task:?} runs in the background")),
        }
    }

    /// Lets a command that is waited for go on in the background; all of them where none is named.
    #[cfg(feature = "shell")]
    pub(super) fn background(&self, tool_use_id: Option<&str>) -> Result<SessionAnswer, String> {
        let shell = self.services.get().map(|services| services.get::<Shell>());
        let moved = match shell {
            Some(Ok(shell)) => shell.background_named(tool_use_id),
            _ => 0,
        };
        match tool_use_id {
            Some(id) if moved == 0 => Err(format!("no command of the call {id:?} is waited for")),
            _ => Ok(SessionAnswer::DONE),
        }
    }

    /// A run begins or has ended: takes over how things are.
    pub(super) fn look(&self, agent: &Agent) {
        let _ = self.transcript.set(Arc::clone(agent.transcript()));
        let (total, window) = agent.context_usage();
        let (system, tools) = agent.prefix_sizes();
        let (servers, own): (Vec<_>, Vec<_>) = tools
            .into_iter()
            .partition(|(name, _)| name.starts_with("mcp__"));
        *self.used() = Some(Used {
            model: agent.settings().name.clone(),
            window,
            total,
            system,
            tools: own.iter().map(|(_, tokens)| tokens).sum(),
            servers,
        });
    }

    /// What a person calls the session from now on.
    pub(super) fn rename(&self, title: &str) -> Result<SessionAnswer, String> {
        let transcript = self.transcript.get().ok_or(NOT_BEGUN)?;
        transcript.set_title(title);
        Ok(SessionAnswer::DONE)
    }

    /// How full the window is. `model` is asked if nobody was asked yet.
    pub(super) fn usage(&self, model: &str, window: u64) -> ContextUsageAnswer {
        let state = self.used();
        let none = Used {
            model: model.to_owned(),
            window,
            total: 0,
            system: 0,
            tools: 0,
            servers: Vec::new(),
        };
        let used = state.as_ref().unwrap_or(&none);
        let from_servers: u64 = used.servers.iter().map(|(_, tokens)| tokens).sum();
        let before = used.system + used.tools + from_servers;
        // What the provider counted has everything in it; what we counted has the messages only.
        let total = used.total.max(before);
        let messages = total - before;
        let free = used.window.saturating_sub(total);
        let categories = [
            ("System prompt", used.system, "promptBorder"),
            ("System tools", used.tools, "inactive"),
            ("MCP tools", from_servers, "cyan"),
            ("Messages", messages, "purple"),
            ("Free space", free, "promptBorder"),
        ]
        .into_iter()
        .filter(|(_, tokens, _)| *tokens > 0)
        .map(|(name, tokens, color)| ContextCategory {
            name: name.to_owned(),
            tokens,
            color: color.to_owned(),
        })
        .collect();
        let mcp_tools = used
            .servers
            .iter()
            .map(|(name, tokens)| ContextMcpTool {
                name: name.clone(),
                server_name: name.split("__").nth(1).unwrap_or_default().to_owned(),
                tokens: *tokens,
                is_loaded: true,
            })
            .collect();
        let percentage = match used.window {
            0 => 0,
            window => total * 100 / window,
        };
        ContextUsageAnswer {
            categories,
            total_tokens: total,
            max_tokens: used.window,
            raw_max_tokens: used.window,
            percentage,
            model: used.model.clone(),
            is_auto_compact_enabled: true,
            mcp_tools,
            ..ContextUsageAnswer::default()
        }
    }

    /// Makes the files what they were when a message came, or says what that would do.
    pub(super) fn rewind(&self, message: &str, dry: bool) -> Result<RewindAnswer, String> {
        if variable(CHECKPOINTS).is_none_or(|value| value != "true" && value != "1") {
            return Err(format!("files are not kept: set {CHECKPOINTS}=true"));
        }
        let journal = self.journal.get().ok_or(NOT_BEGUN)?;
        let since = self.time_of(message)?;
        let ticket = WriteGrant::unconfined(CallId::new().to_string(), "rewind_files");
        let mode = if dry { Mode::Preview } else { Mode::Apply };
        let undone = match journal.undo(&ticket, &Which::Since(since), mode) {
            Ok(undone) => undone,
            Err(haft_journal::JournalError::Undo(haft_journal::UndoError::NothingSince)) => {
                return Ok(RewindAnswer {
                    can_rewind: true,
                    files_changed: Some(Vec::new()),
                    ..RewindAnswer::default()
                });
            }
            Err(error) => return Err(error.to_string()),
        };
        if let Some(conflict) = undone.conflict {
            return Err(conflict);
        }
        let files = undone.files.iter();
        let paths = files.map(|file| file.given.to_string_lossy().into_owned());
        let count = |of: fn(&haft_journal::Patch) -> u64| -> u64 {
            undone.files.iter().map(|file| of(&file.patch)).sum()
        };
        let mut told = RewindAnswer {
            can_rewind: true,
            files_changed: Some(paths.collect()),
            insertions: Some(count(|patch| patch.added)),
            deletions: Some(count(|patch| patch.removed)),
            error: None,
        };
        if !undone.left.is_empty() {
            let left = undone.left.iter();
            let left: Vec<String> = left
                .map(|(path, why)| format!("{}: {why}", path.display()))
                .collect();
            told.error = Some(format!("not restored: {}", left.join("; ")));
        }
        Ok(told)
    }

    /// When a message of the session came.
    fn time_of(&self, message: &str) -> Result<SystemTime, String> {
        let transcript = self.transcript.get().ok_or(NOT_BEGUN)?;
        let path = transcript.path().ok_or("the session is not written down")?;
        let lines = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let line = lines
            .lines()
            .filter_map(|line| serde_json::from_str::<DatedLine>(line).ok())
            .find(|line| line.uuid.as_deref() == Some(message))
            .ok_or_else(|| format!("the session has no message {message}"))?;
        line.timestamp
            .as_deref()
            .and_then(|time| moment::parse(time, SystemTime::now()))
            .ok_or_else(|| format!("the message {message} has no time"))
    }

    fn used(&self) -> MutexGuard<'_, Option<Used>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a line of the transcript says of when it was written.
#[derive(Deserialize)]
struct DatedLine {
    uuid: Option<String>,
    timestamp: Option<String>,
}

const NOT_BEGUN: &str = "the session has not begun: send a message first";
