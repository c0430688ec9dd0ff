//! Definitions of subagents.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// Who gives it: the closer to the top, the stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The machine's administrator.
    Managed,
    /// A flag, or the program that drives us.
    Given,
    /// The project.
    Project,
    /// The user's own folder.
    User,
    /// A plugin.
    Plugin,
    /// We bring it ourselves.
    BuiltIn,
}

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
    /// An alias or an id; `None`: that of whoever calls it.
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
    pub origin: Origin,
    /// Where it is written.
    pub file: Option<PathBuf>,
}
