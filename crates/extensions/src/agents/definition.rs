//! The definition of an agent kind, and reading it from a file.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::{ExtensionOrigin, ExtensionPlaces, front_matter::FrontMatterFields};

/// The definition of an agent kind.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// The name for requesting it.
    pub name: String,
    /// The description, which says when to delegate to it.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it may use, as in permission rules; `None` means all tools that a subagent may
    /// have.
    pub tools: Option<Vec<String>>,
    /// The tools it may not use; these have priority.
    pub disallowed_tools: Vec<String>,
    /// A model alias or id; `None` means the model of the parent agent.
    pub model: Option<String>,
    /// A permission mode; it can only be stricter than that of the session.
    pub permission_mode: Option<String>,
    /// The maximum number of turns.
    pub max_turns: Option<u32>,
    /// Skills whose text is added to its context.
    pub skills: Vec<String>,
    /// Names or definitions of MCP servers.
    pub mcp_servers: Vec<Value>,
    /// Hooks that are active while it runs.
    pub hooks: Option<Map<String, Value>>,
    /// The scope of its memory: `user`, `project` or `local`.
    pub memory: Option<String>,
    /// Whether it runs in the background, unless the call says otherwise.
    pub background: bool,
    /// The effort level of its model.
    pub effort: Option<String>,
    /// `worktree` if it works in its own worktree.
    pub isolation: Option<String>,
    /// The color in front ends.
    pub color: Option<String>,
    /// Its first message, if the call has none.
    pub initial_prompt: Option<String>,
    /// The source of the definition.
    pub origin: ExtensionOrigin,
    /// The file of the definition.
    pub file: Option<PathBuf>,
}

impl AgentDefinition {
    /// Creates a definition with default values for everything else.
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

    /// Reads a definition from front matter and prompt; the error is the reason why it is invalid.
    pub(super) fn read(
        name: String,
        head: &FrontMatterFields,
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
        // An agent of a plugin may not widen its own permissions or start programs.
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

    /// Returns the folder of its memory, if it has one.
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

/// Returns the listed tools; `None` means all tools.
fn tools(head: &FrontMatterFields) -> Option<Vec<String>> {
    let tools = head.list("tools")?;
    (!tools.iter().any(|tool| tool == "*")).then_some(tools)
}

/// Reads a list of names and `{name: configuration}` objects, or one object with several servers.
fn mcp_servers(head: &FrontMatterFields) -> Option<Vec<Value>> {
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
