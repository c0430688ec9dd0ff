//! What servers were, and offered, when they were approved. A tool whose description or schema is another one since,
//! or that is new, is asked about, with the difference; until then it is not offered.
//!
//! | Whose entry | Another command, address or variable | Another tool |
//! |---|---|---|
//! | the project's | the trust in the directory ends | asked |
//! | a plugin's | asked before it is started | asked |
//! | the person's own | asked, or said where no one is there | asked |
//! | given with this very run, an administrator's | – | – |
//!
//! Lists of tools are pinned the first time they are seen: no one could say more of them before they were called, and
//! each call is still asked about as rules say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, Approver, BoxFuture, CallId, Card, CardPiece,
    approval::NobodyToAsk,
};
use haft_engine::settings::trust;
use haft_mcp::client::{ApprovedTools, ServerEntry, ServerScope, ToolApprovals};
use rustix::fs::{FlockOperation, flock};
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
    /// Everything is approved as it is now; what differs from before is gathered here.
    Approve(Arc<Mutex<Vec<String>>>),
}

impl Decides {
    /// No one is asked, and nothing is said: what changed is left out.
    pub(crate) fn no_one() -> Self {
        Self::Person(Arc::new(NobodyToAsk), Arc::new(|_| {}))
    }

    fn can_ask(&self) -> bool {
        match self {
            Self::Person(approver, _) => approver.is_there(),
            Self::Approve(_) => true,
        }
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
    /// What was refused, or said, in this session: it is not asked again.
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
            let what = differences::lines(&last.text, &now.text);
            let reason = format!(
                "the MCP server {name} would be started or reached in another way than you approved"
            );
            match entry.scope {
                // The trust in the directory knows it, and has asked.
                ServerScope::Project => Ok(()),
                // They wrote it themselves, or it was someone else: who is there is asked.
                ServerScope::Local | ServerScope::User if !self.decides.can_ask() => {
                    let said = other_entry(name, &last.text, &now.text);
                    self.decides.say(&format!("MCP server {name}: {said}"));
                    Ok(())
                }
                _ => match self.agrees(name, reason, &what).await {
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
                // What no person has seen is not approved by being used.
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
            // A server may say again and again that its list is another one.
            let likeness = Self::likeness(&now);
            if !self.asked().contains(&likeness) {
                let reason =
                    format!("the MCP server {name} offers other tools than those you approved");
                if self.agrees(name, reason, &what).await {
                    self.pin(entry, now);
                    return tools.into();
                }
                self.asked().insert(likeness);
                match self.decides.can_ask() {
                    true => self.decides.say(&format!(
                        "MCP server {name}: its changed tools are left out; `haft mcp approve {name}` approves them"
                    )),
                    false => self.decides.say(&format!("MCP server {name}: {unapproved}")),
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
            asked: Mutex::default(),
        }
    }

    /// What was asked about is known by this.
    fn likeness(server: &PinnedServer) -> String {
        let tools = server.tools.iter().map(|(name, pin)| (name, &pin.hash));
        format!("{} {:?}", server.hash, tools.collect::<Vec<_>>())
    }

    fn asked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was approved of the servers of this directory. Says whether there was anything.
    pub(crate) fn forget(&self) -> io::Result<bool> {
        let _lock = self.locked()?;
        let mut all = self.all();
        match all.remove(&self.directory) {
            None => Ok(false),
            Some(_) => self.write(&all).map(|()| true),
        }
    }

    /// Forgets one server: the person has just written it anew.
    pub(crate) fn forget_server(&self, entry: &ServerEntry) -> io::Result<()> {
        let _lock = self.locked()?;
        let mut all = self.all();
        let of_place = all.get_mut(self.place(entry));
        match of_place.and_then(|servers| servers.remove(&entry.name)) {
            None => Ok(()),
            Some(_) => self.write(&all),
        }
    }

    /// How an entry differs from the one that was used last; empty: it does not, or none was.
    pub(crate) fn entry_changes(&self, entry: &ServerEntry) -> String {
        let now = pinned_entry(entry);
        match self.read(entry).last() {
            Some(last) if last.hash != now.hash => differences::lines(&last.text, &now.text),
            _ => String::new(),
        }
    }

    /// The right to change the file, across sessions and processes; one that dies lets go of it.
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

    fn write(&self, all: &Pins) -> io::Result<()> {
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

    /// Does the person agree, who sees what is another one?
    async fn agrees(&self, server: &str, reason: String, what: &str) -> bool {
        let approver = match &self.decides {
            Decides::Approve(approved) => {
                let mut approved = approved.lock().unwrap_or_else(PoisonError::into_inner);
                approved.push(format!("{reason}:\n{what}"));
                return true;
            }
            Decides::Person(approver, _) => approver,
        };
        if !approver.is_there() {
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
                body: vec![CardPiece::Text(what.to_owned())],
            },
            // Programs that show no card show this.
            reason: format!("{reason}:\n{what}"),
            because: vec![reason],
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
        let keep = || -> io::Result<()> {
            let _lock = self.locked()?;
            let mut all = self.all();
            let of_place = all.entry(self.place(entry).to_owned()).or_default();
            let known = of_place.entry(entry.name.clone()).or_default();
            known.retain(|one| one.hash != server.hash);
            known.push(server);
            let over = known.len().saturating_sub(MOST_ENTRIES);
            known.drain(..over);
            self.write(&all)
        };
        if let Err(error) = keep() {
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

/// How an entry is another one, for people.
fn other_entry(name: &str, before: &str, now: &str) -> String {
    let what = differences::lines(before, now);
    format!(
        "its entry is another one than you approved; `haft mcp approve {name}` approves it:\n{what}"
    )
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
