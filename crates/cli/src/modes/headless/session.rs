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
use serde_json::{Value, json};

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
    pub(super) fn stop(&self, task: &str) -> Result<Value, String> {
        let notices = self
            .services
            .get()
            .map(|services| services.get::<BackgroundTasks>());
        match notices {
            Some(Ok(notices)) if notices.stop(task) => Ok(json!({})),
            _ => Err(format!("no task {task:?} runs in the background")),
        }
    }

    /// Lets a command that is waited for go on in the background; all of them where none is named.
    #[cfg(feature = "shell")]
    pub(super) fn background(&self, tool_use_id: Option<&str>) -> Result<Value, String> {
        let shell = self.services.get().map(|services| services.get::<Shell>());
        let moved = match shell {
            Some(Ok(shell)) => shell.background_named(tool_use_id),
            _ => 0,
        };
        match tool_use_id {
            Some(id) if moved == 0 => Err(format!("no command of the call {id:?} is waited for")),
            _ => Ok(json!({})),
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
    pub(super) fn rename(&self, title: &str) -> Result<Value, String> {
        let transcript = self.transcript.get().ok_or(NOT_BEGUN)?;
        transcript.set_title(title);
        Ok(json!({}))
    }

    /// How full the window is. `model` is asked if nobody was asked yet.
    pub(super) fn usage(&self, model: &str, window: u64) -> Value {
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
        let categories: Vec<Value> = [
            ("System prompt", used.system, "promptBorder"),
            ("System tools", used.tools, "inactive"),
            ("MCP tools", from_servers, "cyan"),
            ("Messages", messages, "purple"),
            ("Free space", free, "promptBorder"),
        ]
        .into_iter()
        .filter(|(_, tokens, _)| *tokens > 0)
        .map(|(name, tokens, color)| json!({"name": name, "tokens": tokens, "color": color}))
        .collect();
        let servers: Vec<Value> = used
            .servers
            .iter()
            .map(|(name, tokens)| {
                let server = name.split("__").nth(1).unwrap_or_default();
                json!({"name": name, "serverName": server, "tokens": tokens, "isLoaded": true})
            })
            .collect();
        let percentage = match used.window {
            0 => 0,
            window => total * 100 / window,
        };
        json!({
            "categories": categories,
            "totalTokens": total,
            "maxTokens": used.window,
            "rawMaxTokens": used.window,
            "percentage": percentage,
            "model": used.model,
            "isAutoCompactEnabled": true,
            "memoryFiles": [],
            "mcpTools": servers,
            "agents": [],
            "gridRows": [],
        })
    }

    /// Makes the files what they were when a message came, or says what that would do.
    pub(super) fn rewind(&self, message: &str, dry: bool) -> Result<Value, String> {
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
                let nothing = json!({"canRewind": true, "filesChanged": []});
                return Ok(nothing);
            }
            Err(error) => return Err(error.to_string()),
        };
        if let Some(conflict) = undone.conflict {
            return Err(conflict);
        }
        let files = undone.files.iter();
        let paths: Vec<_> = files.map(|file| file.given.to_string_lossy()).collect();
        let count = |of: fn(&haft_journal::Patch) -> u64| -> u64 {
            undone.files.iter().map(|file| of(&file.patch)).sum()
        };
        let mut told = json!({
            "canRewind": true,
            "filesChanged": paths,
            "insertions": count(|patch| patch.added),
            "deletions": count(|patch| patch.removed),
        });
        if !undone.left.is_empty() {
            let left = undone.left.iter();
            let left: Vec<String> = left
                .map(|(path, why)| format!("{}: {why}", path.display()))
                .collect();
            told["error"] = json!(format!("not restored: {}", left.join("; ")));
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
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|line| line["uuid"] == message)
            .ok_or_else(|| format!("the session has no message {message}"))?;
        line["timestamp"]
            .as_str()
            .and_then(|time| moment::parse(time, SystemTime::now()))
            .ok_or_else(|| format!("the message {message} has no time"))
    }

    fn used(&self) -> MutexGuard<'_, Option<Used>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const NOT_BEGUN: &str = "the session has not begun: send a message first";
