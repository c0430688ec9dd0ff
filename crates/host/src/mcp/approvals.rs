//! What servers were, and offered, when they were approved. A tool whose description or schema is another one since,
//! or that is new, is asked about, with the difference; until then it is not offered.
//!
//! | Whose entry | Another command, address or variable | Another tool |
//! |---|---|---|
//! | the project's | the trust in the directory ends | asked |
//! | a plugin's | asked before it is started | asked |
//! | the person's own | said, with the difference | asked |
//! | given with this very run, an administrator's | – | – |
//!
//! Lists of tools are pinned the first time they are seen: no one could say more of them before they were called, and
//! each call is still asked about as rules say.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, Approver, BoxFuture, CallId, Card,
    approval::NobodyToAsk,
};
use haft_engine::settings::trust;
use haft_mcp::client::{ServerEntry, ServerScope, ToolApprovals};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::differences;
use crate::SessionConfig;

/// Entries of one name that are remembered: who goes from one to the other and back is not asked again.
const MOST_ENTRIES: usize = 8;

/// A tool as it was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PinnedTool {
    hash: String,
    /// What it said of itself, to show what is another one.
    text: String,
}

type PinnedList = BTreeMap<String, PinnedTool>;

/// A server as it was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PinnedServer {
    /// Of the entry.
    hash: String,
    /// The entry, without what may be secret.
    text: String,
    tools: PinnedList,
}

/// By directory and server, the newest last.
type Pins = BTreeMap<String, BTreeMap<String, Vec<PinnedServer>>>;

/// Who decides about servers and tools that are others than they were.
pub(crate) enum Decides {
    /// A person, if there is one.
    Person(Arc<dyn Approver>, Arc<dyn Fn(&str) + Send + Sync>),
    /// Everything is approved as it is now.
    Approve,
}

impl Decides {
    /// No one is asked, and nothing is said: what changed is left out.
    pub(crate) fn no_one() -> Self {
        Self::Person(Arc::new(NobodyToAsk), Arc::new(|_| {}))
    }

    fn say(&self, text: &str) {
        if let Self::Person(_, warn) = self {
            warn(text);
        }
    }
}

/// The approvals of a person.
pub(crate) struct PinnedTools {
    pub(crate) file: PathBuf,
    pub(crate) directory: String,
    pub(crate) decides: Decides,
    /// One change of the file at a time.
    pub(crate) lock: Mutex<()>,
}

impl ToolApprovals for PinnedTools {
    fn may_start<'a>(&'a self, entry: &'a ServerEntry) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            if !is_pinned(entry.scope) {
                return Ok(());
            }
            let now = pinned_entry(entry);
            let known = self.read(entry);
            let Some(last) = known.last() else {
                return Ok(());
            };
            if known.iter().any(|one| one.hash == now.hash) {
                return Ok(());
            }
            let name = &entry.name;
            let what = differences::lines(&last.text, &now.text);
            match entry.scope {
                // The trust in the directory knows it, and has asked.
                ServerScope::Project => Ok(()),
                ServerScope::Plugin => {
                    let reason = format!(
                        "the MCP server {name} would be started or reached in another way than you approved:\n{what}"
                    );
                    match self.agrees(name, reason).await {
                        true => Ok(()),
                        false => Err(format!(
                            "it would be started or reached in another way than you approved. Look at it and approve \
                             it with `haft mcp approve {name}`:\n{what}"
                        )),
                    }
                }
                // They wrote it themselves, and may have been someone else.
                _ => {
                    self.decides.say(&format!(
                        "MCP server {name}: its entry is another one than last time:\n{what}"
                    ));
                    Ok(())
                }
            }
        })
    }

    fn approved<'a>(
        &'a self,
        entry: &'a ServerEntry,
        tools: Vec<Value>,
    ) -> BoxFuture<'a, Vec<Value>> {
        Box::pin(async move {
            if !is_pinned(entry.scope) {
                return tools;
            }
            let now = PinnedServer {
                tools: pins(&tools),
                ..pinned_entry(entry)
            };
            let known = self.read(entry);
            let Some(before) = known.into_iter().find(|one| one.hash == now.hash) else {
                self.pin(entry, now);
                return tools;
            };
            let changes = changes(&before.tools, &now.tools);
            if changes.is_empty() {
                return tools;
            }
            let (name, what) = (&entry.name, changes.join("\n"));
            let reason = format!(
                "the MCP server {name} offers other tools than those you approved:\n{what}"
            );
            if self.agrees(name, reason).await {
                self.pin(entry, now);
                return tools;
            }
            self.decides.say(&format!(
                "MCP server {name}: these tools are others than you approved, and are left out. Approve them with \
                 `haft mcp approve {name}`:\n{what}"
            ));
            let is_known = |tool: &Value| {
                let name = tool["name"].as_str().unwrap_or_default();
                before
                    .tools
                    .get(name)
                    .is_some_and(|pin| now.tools.get(name).is_some_and(|own| own.hash == pin.hash))
            };
            tools.into_iter().filter(is_known).collect()
        })
    }
}

/// Is it remembered what such a server was? Those that are named with a run, or by an administrator, were decided on
/// just now, or by someone else.
fn is_pinned(scope: ServerScope) -> bool {
    match scope {
        ServerScope::Project | ServerScope::Local | ServerScope::User | ServerScope::Plugin => true,
        ServerScope::Managed | ServerScope::Given => false,
    }
}

impl PinnedTools {
    /// The approvals for servers of this session's directory.
    pub(crate) fn of(config: &SessionConfig, decides: Decides) -> Self {
        let places = config.environment.settings_places(&config.cwd);
        Self {
            file: places.user.join("haft/mcp-approvals.json"),
            directory: trust::directory(&places).to_string_lossy().into_owned(),
            decides,
            lock: Mutex::default(),
        }
    }

    /// Forgets what was approved of the servers of this directory. Says whether there was anything.
    pub(crate) fn forget(&self) -> io::Result<bool> {
        let _lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.all();
        match all.remove(&self.directory) {
            None => Ok(false),
            Some(_) => self.write(&all).map(|()| true),
        }
    }

    fn write(&self, all: &Pins) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let new = self
            .file
            .with_extension(format!("{}.new", std::process::id()));
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(&serde_json::to_vec_pretty(all)?)?;
        fs::rename(new, &self.file)
    }

    async fn agrees(&self, server: &str, reason: String) -> bool {
        let approver = match &self.decides {
            Decides::Approve => return true,
            Decides::Person(approver, _) => approver,
        };
        if !approver.is_there() {
            return false;
        }
        let request = ApprovalRequest {
            kind: ApprovalKind::Permission,
            call: CallId::new(),
            tool: format!("mcp__{server}"),
            card: Card::default(),
            reason,
            ..ApprovalRequest::default()
        };
        matches!(
            approver.ask(request).await,
            ApprovalAnswer::Allow | ApprovalAnswer::Always | ApprovalAnswer::Updated { .. }
        )
    }

    fn all(&self) -> Pins {
        let text = fs::read(&self.file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Where the approvals of a server stand: those that it has everywhere in one place.
    fn place(&self, entry: &ServerEntry) -> &str {
        match entry.scope {
            ServerScope::User | ServerScope::Plugin => "everywhere",
            _ => &self.directory,
        }
    }

    fn read(&self, entry: &ServerEntry) -> Vec<PinnedServer> {
        let of_place = self.all().remove(self.place(entry));
        let found = of_place.and_then(|mut servers| servers.remove(&entry.name));
        found.unwrap_or_default()
    }

    fn pin(&self, entry: &ServerEntry, server: PinnedServer) {
        let _lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.all();
        let of_place = all.entry(self.place(entry).to_owned()).or_default();
        let known = of_place.entry(entry.name.clone()).or_default();
        known.retain(|one| one.hash != server.hash);
        known.push(server);
        let over = known.len().saturating_sub(MOST_ENTRIES);
        known.drain(..over);
        if let Err(error) = self.write(&all) {
            tracing::warn!(%error, server = entry.name, "its approval is not kept");
        }
    }
}

fn hash(value: &Value) -> String {
    let hash = blake3::hash(value.to_string().as_bytes());
    hash.to_hex().to_string()
}

/// An entry, without tools. Values of variables and headers may be secrets: their names are shown, and their change.
fn pinned_entry(entry: &ServerEntry) -> PinnedServer {
    let mut lines = vec![entry.in_short()];
    for key in ["env", "headers"] {
        for (name, value) in entry.config[key].as_object().into_iter().flatten() {
            lines.push(format!("{key} {name} = …{}", &hash(value)[..8]));
        }
    }
    for key in ["headersHelper", "sandbox", "oauth"] {
        if let Some(value) = entry.config.get(key) {
            let said = match key {
                "oauth" => format!("…{}", &hash(value)[..8]),
                _ => value.to_string(),
            };
            lines.push(format!("{key} = {said}"));
        }
    }
    PinnedServer {
        hash: hash(&entry.config),
        text: lines.join("\n"),
        tools: PinnedList::new(),
    }
}

fn pins(tools: &[Value]) -> PinnedList {
    let pins = tools.iter().filter_map(|tool| {
        let pin = PinnedTool {
            hash: hash(tool),
            text: differences::cut(&in_lines(tool)),
        };
        Some((tool["name"].as_str()?.to_owned(), pin))
    });
    pins.collect()
}

/// What a tool says of itself: its description first, the rest of it behind that.
fn in_lines(tool: &Value) -> String {
    let mut text = tool["description"].as_str().unwrap_or_default().to_owned();
    for (key, value) in tool.as_object().into_iter().flatten() {
        if !["name", "description"].contains(&key.as_str()) {
            let value = serde_json::to_string_pretty(value).unwrap_or_default();
            text += &format!("\n{key}: {value}");
        }
    }
    text
}

/// What is another one than it was, in words. A tool that is gone does no harm.
fn changes(before: &PinnedList, now: &PinnedList) -> Vec<String> {
    let mut changes = Vec::new();
    for (name, pin) in now {
        match before.get(name) {
            Some(old) if old.hash == pin.hash => {}
            None => {
                let about = pin.text.lines().next().unwrap_or_default();
                changes.push(format!("{name} is new: {about}"));
            }
            Some(old) => {
                let what = differences::lines(&old.text, &pin.text);
                changes.push(format!("{name}:\n{what}"));
            }
        }
    }
    changes
}

#[cfg(test)]
#[path = "approvals_tests.rs"]
mod tests;
