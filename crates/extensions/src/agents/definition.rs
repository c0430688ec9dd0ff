//! What a kind of subagent is, and reading it.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::{ExtensionOrigin, ExtensionPlaces, front_matter::Head};

/// A kind of subagent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// What it is asked for by.
    pub name: String,
    /// When to delegate to it.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it may use, as rules name them; `None`: all that a subagent may have.
    pub tools: Option<Vec<String>>,
    /// Tools it may not use; these count first.
    pub disallowed_tools: Vec<String>,
    /// An alias or an id; `None`: that of the one who calls it.
    pub model: Option<String>,
    /// A permission mode; it may only tighten.
    pub permission_mode: Option<String>,
    /// How many rounds of tool use it has.
    pub max_turns: Option<u32>,
    /// Skills whose whole text it is given.
    pub skills: Vec<String>,
    /// Names of servers, or servers.
    pub mcp_servers: Vec<Value>,
    /// Hooks that hold while it runs.
    pub hooks: Option<Map<String, Value>>,
    /// Where it remembers: `user`, `project` or `local`.
    pub memory: Option<String>,
    /// It runs in the background unless the call says otherwise.
    pub background: bool,
    /// How hard its model tries.
    pub effort: Option<String>,
    /// `worktree`: it works in a copy of its own.
    pub isolation: Option<String>,
    /// What a display shows it in.
    pub color: Option<String>,
    /// Its first message, where the call gives none.
    pub initial_prompt: Option<String>,
    /// Who gives it.
    pub origin: ExtensionOrigin,
    /// Where it is written.
    pub file: Option<PathBuf>,
}

impl AgentDefinition {
    /// One that says nothing else.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        prompt: impl Into<String>,
        origin: ExtensionOrigin,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            prompt: prompt.into(),
            tools: None,
            disallowed_tools: Vec::new(),
            model: None,
            permission_mode: None,
            max_turns: None,
            skills: Vec::new(),
            mcp_servers: Vec::new(),
            hooks: None,
            memory: None,
            background: false,
            effort: None,
            isolation: None,
            color: None,
            initial_prompt: None,
            origin,
            file: None,
        }
    }

    /// As a head and a prompt say it; the error says why it is none.
    pub(super) fn read(
        name: String,
        head: &Head,
        prompt: String,
        origin: ExtensionOrigin,
        file: Option<PathBuf>,
    ) -> Result<Self, String> {
        check_name(&name)?;
        let Some(description) = head.text("description") else {
            return Err(format!(
                "the agent {name:?} has no `description`: it is left out"
            ));
        };
        // What a plugin brings may not widen what it is allowed, nor start anything.
        let own = origin != ExtensionOrigin::Plugin;
        Ok(Self {
            description,
            prompt,
            tools: tools(head),
            disallowed_tools: head.list("disallowedTools").unwrap_or_default(),
            model: head.text("model").filter(|model| model != "inherit"),
            permission_mode: head.text("permissionMode").filter(|_| own),
            max_turns: head.count("maxTurns"),
            skills: head.list("skills").unwrap_or_default(),
            mcp_servers: mcp_servers(head).filter(|_| own).unwrap_or_default(),
            hooks: head
                .get("hooks")
                .and_then(Value::as_object)
                .filter(|_| own)
                .cloned(),
            memory: head.text("memory"),
            background: head.boolean("background").unwrap_or(false),
            effort: head.text("effort"),
            isolation: head.text("isolation"),
            color: head.text("color"),
            initial_prompt: head.text("initialPrompt"),
            name,
            origin,
            file,
        })
    }

    /// Where it remembers, if it does.
    pub fn memory_folder(&self, places: &ExtensionPlaces) -> Option<PathBuf> {
        let base = match self.memory.as_deref()? {
            "user" => places.user.join("agent-memory"),
            "project" => places.project().join(".claude/agent-memory"),
            "local" => places.project().join(".claude/agent-memory-local"),
            _ => return None,
        };
        Some(base.join(self.name.replace(':', "-")))
    }
}

/// `None`: all of them.
fn tools(head: &Head) -> Option<Vec<String>> {
    let tools = head.list("tools")?;
    (!tools.iter().any(|tool| tool == "*")).then_some(tools)
}

/// A list of names and of `{name: configuration}`, or one object of them.
fn mcp_servers(head: &Head) -> Option<Vec<Value>> {
    Some(match head.get("mcpServers")? {
        Value::Array(servers) => servers.clone(),
        Value::Object(servers) => servers
            .iter()
            .map(|(name, server)| Value::Object(Map::from_iter([(name.clone(), server.clone())])))
            .collect(),
        _ => head
            .list("mcpServers")?
            .into_iter()
            .map(Value::from)
            .collect(),
    })
}

fn check_name(name: &str) -> Result<(), String> {
    let is_path = name.contains('/') || name == "." || name == "..";
    if name.starts_with('-') || name.contains(':') || name.contains(char::is_control) || is_path {
        return Err(format!(
            "{name:?} cannot be the name of an agent (no `:`, no `/`, no `-` at the beginning): it is \
             left out"
        ));
    }
    Ok(())
}
