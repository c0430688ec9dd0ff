//! Approvals of servers and of their tools, stored as pins. A tool that is new, or whose
//! description or schema has changed since it was approved, needs approval again, and the request
//! shows the difference. Until then it is not offered.
//!
//! | Source of the entry | Changed command, URL or variable | Changed tool |
//! |---|---|---|
//! | the project | ends the trust in the directory | asks |
//! | a plugin | asks before it is started | asks |
//! | the user | asks, or warns if no user can be asked | asks |
//! | given for this run, or by an administrator | – | – |
//!
//! The first list of tools is pinned without asking: a user could not evaluate it before any call,
//! and each call still asks as the rules require.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, Approver, BoxFuture, CallId, Card, CardSection,
    SecretFile, SecretPath, approval::NoApprover,
};
use haft_engine::settings::trust;
use haft_mcp::client::{ApprovedTools, ServerEntry, ServerScope, ToolApprovals};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text_diff;
use crate::SessionConfig;

/// The maximum number of stored entries per name, so that switching between them does not ask
/// again.
const MAX_ENTRIES: usize = 8;

/// An approved tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PinnedTool {
    hash: String,
    /// Its description and schema, to show differences.
    text: String,
}

type PinnedList = BTreeMap<String, PinnedTool>;

/// An approved server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PinnedServer {
    /// The hash of its entry.
    hash: String,
    /// The entry, without possible secrets.
    text: String,
    tools: PinnedList,
}

/// The pins by directory and server, the newest last.
type PinnedServers = BTreeMap<String, BTreeMap<String, Vec<PinnedServer>>>;

/// Decides about changed servers and tools.
pub(crate) enum PinDecider {
    /// The user, if one can be asked. The function reports warnings.
    User(Arc<dyn Approver>, Arc<dyn Fn(&str) + Send + Sync>),
    /// Approves the current state of everything. The differences are collected here.
    Approve(Arc<Mutex<Vec<String>>>),
}

impl PinDecider {
    /// Leaves out changed tools without asking or warning.
    pub(crate) fn without_user() -> Self {
        Self::User(Arc::new(NoApprover), Arc::new(|_| {}))
    }

    fn can_ask(&self) -> bool {
        match self {
            Self::User(approver, _) => approver.is_available(),
            Self::Approve(_) => true,
        }
    }

    fn warn(&self, text: &str) {
        if let Self::User(_, warn) = self {
            warn(text);
        }
    }
}

/// The user's approvals.
pub(crate) struct PinnedTools {
    pub(crate) file: SecretPath,
    pub(crate) directory: String,
    pub(crate) decides: PinDecider,
    /// Changes that were denied or reported in this session, which are not asked about again.
    pub(crate) asked: Mutex<BTreeSet<String>>,
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
            let what = text_diff::lines(&last.text, &now.text);
            let reason = format!(
                "the MCP server {name} would be started or reached in another way than you approved"
            );
            match entry.scope {
                // Trust in the directory covers the entry and has already asked.
                ServerScope::Project => Ok(()),
                // The user or another program may have written the entry: ask if possible.
                ServerScope::Local | ServerScope::User if !self.decides.can_ask() => {
                    let line = other_entry(name, &last.text, &now.text);
                    self.decides.warn(&format!("MCP server {name}: {line}"));
                    Ok(())
                }
                _ => match self.ask_user(name, reason, &what).await {
                    true => Ok(()),
                    false => Err(format!(
                        "it would be started or reached in another way than you approved. Look at it and approve \
                         it with `haft mcp approve {name}`:\n{what}"
                    )),
                },
            }
        })
    }

    fn approved<'a>(
        &'a self,
        entry: &'a ServerEntry,
        tools: Vec<Value>,
    ) -> BoxFuture<'a, ApprovedTools> {
        Box::pin(async move {
            if !is_pinned(entry.scope) {
                return tools.into();
            }
            let now = PinnedServer {
                tools: pins(&tools),
                ..pinned_entry(entry)
            };
            let known = self.read(entry);
            let is_same = |one: &PinnedServer| one.hash == now.hash;
            let Some(before) = known.iter().find(|one| is_same(one)) else {
                // A server is not approved by using it while no user can be asked.
                let unseen = known.last().filter(|_| !self.decides.can_ask());
                let unapproved = unseen
                    .filter(|_| entry.scope != ServerScope::Project)
                    .map(|last| other_entry(&entry.name, &last.text, &now.text));
                if unapproved.is_none() {
                    self.pin(entry, now);
                }
                return ApprovedTools { tools, unapproved };
            };
            let changes = changes(&before.tools, &now.tools);
            if changes.is_empty() {
                return tools.into();
            }
            let (name, what) = (&entry.name, changes.join("\n"));
            let unapproved = format!(
                "these tools are others than you approved, and are left out. Approve them with \
                 `haft mcp approve {name}`:\n{what}"
            );
            // A server may report changes of its list repeatedly.
            let likeness = Self::fingerprint(&now);
            if !self.handled_changes().contains(&likeness) {
                let reason =
                    format!("the MCP server {name} offers other tools than those you approved");
                if self.ask_user(name, reason, &what).await {
                    self.pin(entry, now);
                    return tools.into();
                }
                self.handled_changes().insert(likeness);
                match self.decides.can_ask() {
                    true => self.decides.warn(&format!(
                        "MCP server {name}: its changed tools are left out; `haft mcp approve {name}` approves them"
                    )),
                    false => self.decides.warn(&format!("MCP server {name}: {unapproved}")),
                }
            }
            let is_known = |tool: &Value| {
                let name = tool["name"].as_str().unwrap_or_default();
                before
                    .tools
                    .get(name)
                    .is_some_and(|pin| now.tools.get(name).is_some_and(|own| own.hash == pin.hash))
            };
            ApprovedTools {
                tools: tools.into_iter().filter(is_known).collect(),
                unapproved: Some(unapproved),
            }
        })
    }
}

/// Returns whether servers of this scope are pinned. Servers given for a run or by an administrator
/// have just been approved by their source.
fn is_pinned(scope: ServerScope) -> bool {
    match scope {
        ServerScope::Project | ServerScope::Local | ServerScope::User | ServerScope::Plugin => true,
        ServerScope::Managed | ServerScope::Given => false,
    }
}

impl PinnedTools {
    /// Creates the approvals for servers of this session's directory.
    pub(crate) fn for_session(config: &SessionConfig, decides: PinDecider) -> Self {
        let places = config.environment.settings_places(&config.cwd);
        Self {
            file: SecretFile::McpApprovals.below(&places.user),
            directory: trust::directory(&places).to_string_lossy().into_owned(),
            decides,
            asked: Mutex::default(),
        }
    }

    /// Returns a fingerprint of a server and its tools, to recognize what was already asked.
    fn fingerprint(server: &PinnedServer) -> String {
        let tools = server.tools.iter().map(|(name, pin)| (name, &pin.hash));
        format!("{} {:?}", server.hash, tools.collect::<Vec<_>>())
    }

    fn handled_changes(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes the approvals for this directory. Returns whether there were any.
    pub(crate) fn reset(&self) -> io::Result<bool> {
        let _lock = self.locked()?;
        let mut all = self.all();
        match all.remove(&self.directory) {
            None => Ok(false),
            Some(_) => self.write(&all).map(|()| true),
        }
    }

    /// Deletes the approval of one server, because the user has just written its entry.
    pub(crate) fn forget_server(&self, entry: &ServerEntry) -> io::Result<()> {
        let _lock = self.locked()?;
        let mut all = self.all();
        let of_place = all.get_mut(self.place(entry));
        match of_place.and_then(|servers| servers.remove(&entry.name)) {
            None => Ok(()),
            Some(_) => self.write(&all),
        }
    }

    /// Returns how an entry differs from the one that was used last; empty if it does not, or none
    /// was.
    pub(crate) fn entry_changes(&self, entry: &ServerEntry) -> String {
        let now = pinned_entry(entry);
        match self.read(entry).last() {
            Some(last) if last.hash != now.hash => text_diff::lines(&last.text, &now.text),
            _ => String::new(),
        }
    }

    /// Locks the file across sessions and processes. The lock is released if its process dies.
    fn locked(&self) -> io::Result<fs::File> {
        if let Some(folder) = self.file.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let lock = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.file.with_extension("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }

    fn write(&self, all: &PinnedServers) -> io::Result<()> {
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

    /// Returns whether the user approves the change, which the request shows.
    async fn ask_user(&self, server: &str, reason: String, what: &str) -> bool {
        let approver = match &self.decides {
            PinDecider::Approve(approved) => {
                let mut approved = approved.lock().unwrap_or_else(PoisonError::into_inner);
                approved.push(format!("{reason}:\n{what}"));
                return true;
            }
            PinDecider::User(approver, _) => approver,
        };
        if !approver.is_available() {
            return false;
        }
        let request = ApprovalRequest {
            kind: ApprovalKind::Permission,
            call: CallId::new(),
            tool: format!("mcp__{server}"),
            card: Card {
                title: "MCP server".to_owned(),
                subject: server.to_owned(),
                summary: String::new(),
                body: vec![CardSection::Text(what.to_owned())],
            },
            // For front ends that show no card.
            reason: format!("{reason}:\n{what}"),
            reasons: vec![reason],
            ..ApprovalRequest::default()
        };
        matches!(
            approver.ask(request).await,
            ApprovalAnswer::Allow | ApprovalAnswer::AllowAlways | ApprovalAnswer::Updated { .. }
        )
    }

    fn all(&self) -> PinnedServers {
        let text = fs::read(&self.file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Returns the key for the approvals of a server. User and plugin servers have one for all
    /// directories.
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
        let keep = || -> io::Result<()> {
            let _lock = self.locked()?;
            let mut all = self.all();
            let of_place = all.entry(self.place(entry).to_owned()).or_default();
            let known = of_place.entry(entry.name.clone()).or_default();
            known.retain(|one| one.hash != server.hash);
            known.push(server);
            let over = known.len().saturating_sub(MAX_ENTRIES);
            known.drain(..over);
            self.write(&all)
        };
        if let Err(error) = keep() {
            tracing::warn!(%error, server = entry.name, "its approval was not saved");
        }
    }
}

fn hash(value: &Value) -> String {
    let hash = blake3::hash(value.to_string().as_bytes());
    hash.to_hex().to_string()
}

/// Returns the pin of an entry, without tools. Variables and headers may contain secrets, so the text
/// has only their names and a part of their hashes.
fn pinned_entry(entry: &ServerEntry) -> PinnedServer {
    let mut lines = vec![entry.in_short()];
    for key in ["env", "headers"] {
        for (name, value) in entry.config[key].as_object().into_iter().flatten() {
            lines.push(format!("{key} {name} = …{}", &hash(value)[..8]));
        }
    }
    for key in ["headersHelper", "sandbox", "oauth"] {
        if let Some(value) = entry.config.get(key) {
            let line = match key {
                "oauth" => format!("…{}", &hash(value)[..8]),
                _ => value.to_string(),
            };
            lines.push(format!("{key} = {line}"));
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
            text: text_diff::cut(&in_lines(tool)),
        };
        Some((tool["name"].as_str()?.to_owned(), pin))
    });
    pins.collect()
}

/// Describes a changed entry.
fn other_entry(name: &str, before: &str, now: &str) -> String {
    let what = text_diff::lines(before, now);
    format!(
        "its entry is another one than you approved; `haft mcp approve {name}` approves it:\n{what}"
    )
}

/// Returns the definition of a tool as text, with its description first.
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

/// Describes the changes of tools. A removed tool needs no approval.
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
                let what = text_diff::lines(&old.text, &pin.text);
                changes.push(format!("{name}:\n{what}"));
            }
        }
    }
    changes
}

#[cfg(test)]
#[path = "approvals_tests.rs"]
mod tests;
