//! The static properties of a tool. No code outside a tool's own file may depend on its name; other
//! code reads the tool's profile instead.

use std::{borrow::Cow, fmt, time::Duration};

use serde_json::Value;

use crate::{ApprovalKind, Effects, Services, effects::PathReach};

/// The properties of a tool that are independent of the input.
#[derive(Debug, Clone)]
pub struct ToolProfile {
    /// Other names under which it may be called, filtered or named in a rule.
    pub aliases: Vec<Cow<'static, str>>,
    /// The name shown to users; `None`: the tool's name.
    pub title: Option<Cow<'static, str>>,
    /// The family it belongs to, which `haft tools` shows as its class.
    pub family: Cow<'static, str>,
    /// Additional search terms for a tool search, besides its name and description.
    pub search_hint: Cow<'static, str>,
    /// Only its name is sent to the model until it is activated.
    pub deferred: bool,
    /// Never deferred, regardless of the size of its definition.
    pub never_deferred: bool,
    /// Offered only if it is requested by name.
    pub optional: bool,
    /// Parameters that only the user's answer or a hook can set. They are not part of the schema,
    /// and values that the model sends for them are dropped.
    pub reserved: &'static [&'static str],
    /// The value that the text in the parentheses of a permission rule is compared with.
    pub rules: RuleMatch,
    /// It reads everything below the directories in its effects.
    pub searches: bool,
    /// It always needs the user: no rule can answer instead.
    pub interactive: bool,
    /// It sends data to others, although it changes nothing here. Read-only effects alone do not
    /// allow its calls.
    pub sends_data: bool,
    /// The agents that may have it.
    pub agents: AgentAccess,
    /// It is one of the few tools of simple mode.
    pub basic: bool,
    /// The services it needs: the tool is not offered unless the session has all of them.
    pub needs: &'static [ServiceNeed],
    /// The role by which other code finds it.
    pub role: Option<ToolRole>,
    /// Its origin.
    pub origin: ToolOrigin,
    /// The limit of what its calls can do. The engine enforces it on their [`Effects`].
    pub access: ToolAccess,
    /// Parameters that contain paths (strings or lists of strings). `~` and relative paths are made
    /// absolute, and each path is checked against the working directories.
    pub paths: &'static [&'static str],
    /// The maximum length in characters of a result that is sent to the model inline; the rest is
    /// stored on disk. `None`: the tool limits its results itself.
    pub result_cap: Option<usize>,
    /// The schema of the value that programs receive with each successful result, if any. It must
    /// be of type `object`; debug builds check every result against it.
    pub output_schema: Option<Value>,
    /// The timeout of one call; `None`: as configured in the engine.
    pub timeout: Option<Duration>,
    /// The time for which a read-only result may be reused. `None`: never; results about files must
    /// be fresh.
    pub cache: Option<Duration>,
    /// The rate limit.
    pub rate: Option<CallRate>,
    /// The kind of approval request of its calls.
    pub approval: ApprovalKind,
}

/// The default of [`ToolProfile::result_cap`].
pub const DEFAULT_RESULT_CAP: usize = 50_000;

impl Default for ToolProfile {
    fn default() -> Self {
        Self {
            aliases: Vec::new(),
            title: None,
            family: Cow::Borrowed("custom"),
            search_hint: Cow::Borrowed(""),
            deferred: false,
            never_deferred: false,
            optional: false,
            reserved: &[],
            rules: RuleMatch::default(),
            searches: false,
            interactive: false,
            sends_data: false,
            agents: AgentAccess::default(),
            basic: false,
            needs: &[],
            role: None,
            origin: ToolOrigin::default(),
            access: ToolAccess::Anything,
            paths: &[],
            result_cap: Some(DEFAULT_RESULT_CAP),
            output_schema: None,
            timeout: None,
            cache: None,
            rate: None,
            approval: ApprovalKind::Permission,
        }
    }
}

impl ToolProfile {
    /// Returns whether the services contain everything that the tool needs.
    pub fn has_its_needs(&self, services: &Services) -> bool {
        self.needs.iter().all(|need| need.is_met(services))
    }

    /// Returns whether a rule with this name applies to the tool named `own`. The aliases of a tool
    /// of an MCP server are ignored, because a rule for another tool could allow it through them.
    pub fn is_called(&self, own: &str, name: &str) -> bool {
        own == name
            || (self.origin == ToolOrigin::Program
                && self.aliases.iter().any(|other| other == name))
    }
}

/// The part of a call that the text in the parentheses of a permission rule is compared with.
///
/// In addition, a deny or ask rule for any tool may name a parameter, `Tool(parameter:value)`.
/// Rules for `Read(path)`, `Edit(path)` and `Bash(command)` apply to what any tool reads, edits and
/// runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RuleMatch {
    /// Only a named parameter.
    #[default]
    Parameters,
    /// Nothing: a rule can only name the tool. Approval requests offer a rule like this.
    NameOnly,
    /// The command line in this parameter. Rules for `Bash` apply to it too.
    Command(&'static str),
    /// The paths that a call touches, with rules under the tool's own name: all paths must be
    /// allowed, and none may be denied.
    Paths,
    /// The paths it reads, with rules for `Read`. Rules under its own name are not used.
    Reads,
    /// The paths it writes, with rules for `Edit`. Rules under its own name are not used.
    Edits {
        /// A path that rules forbid to read may not be written either.
        held_by_reads: bool,
    },
    /// The host of the URL in this parameter: `Tool(domain:HOST)`.
    Address(&'static str),
    /// The values of these parameters, joined by spaces; empty ones are left out.
    Text {
        /// The parameters.
        parameters: &'static [&'static str],
        /// The text that replaces the first value if it is empty.
        otherwise: &'static str,
    },
}

/// The agents that may have a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentAccess {
    /// All agents.
    #[default]
    Every,
    /// Agents that do not run in the background.
    Foreground,
    /// Only the main agent, because the tool talks to the user or concerns the main conversation.
    Main,
    /// Agents that can plan: the main agent, and subagents in plan mode.
    Planning,
    /// Agents that may launch subagents and do not run in the background.
    Launching,
}

/// The role by which other code finds a tool, since no code may depend on its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolRole {
    /// It loads skills.
    LoadsSkills,
    /// It finds deferred tools: without it they cannot be used.
    FindsTools,
    /// It waits for servers that are still connecting, in sessions without deferred tools.
    AwaitsTools,
}

/// The origin of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolOrigin {
    /// This program.
    #[default]
    Program,
    /// The MCP server with this name. The properties it declares for its tools never allow a call.
    Server(Cow<'static, str>),
}

impl ToolOrigin {
    /// Returns the name of the server it comes from, if any.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Program => None,
            Self::Server(name) => Some(name),
        }
    }

    /// Returns the name of its server in rules, if any. The names of the server's tools start with it:
    /// `mcp__SERVER`.
    pub fn server_in_rules(&self) -> Option<String> {
        self.server().map(server_in_rules)
    }
}

/// Returns the name of a server in rules: `mcp__SERVER`, with only the characters that providers
/// accept.
pub fn server_in_rules(server: &str) -> String {
    format!("mcp__{}", provider_name(server))
}

/// Replaces the characters that providers do not accept in the name of a tool.
pub fn provider_name(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect()
}

/// A service that a tool requires, identified by its type.
#[derive(Clone, Copy)]
pub struct ServiceNeed(fn(&Services) -> bool);

impl ServiceNeed {
    /// Requires this service.
    pub const fn service<T: Send + Sync + 'static>() -> Self {
        Self(|services| services.get::<T>().is_ok())
    }

    /// Requires one of the two services.
    pub const fn either<A: Send + Sync + 'static, B: Send + Sync + 'static>() -> Self {
        Self(|services| services.get::<A>().is_ok() || services.get::<B>().is_ok())
    }

    /// Returns whether the services meet the requirement.
    pub fn is_met(&self, services: &Services) -> bool {
        (self.0)(services)
    }
}

impl fmt::Debug for ServiceNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceNeed")
    }
}

/// The limit of what a tool can do, known without its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolAccess {
    /// It only reads: it can run concurrently with any other reader.
    Reads,
    /// It writes only the paths in its effects: it can run concurrently with calls that do not
    /// touch them.
    Paths,
    /// It may do anything: each call is evaluated on its own.
    Anything,
}

impl ToolAccess {
    /// Limits effects to this access. Effects that exceed it become [`Effects::EXCLUSIVE`], as for
    /// an unknown tool.
    pub fn clamp(self, effects: Effects) -> Effects {
        let within = match self {
            Self::Reads => effects.is_read_only(),
            Self::Paths => !effects.exclusive && effects.writes != PathReach::Anything,
            Self::Anything => true,
        };
        if within { effects } else { Effects::EXCLUSIVE }
    }
}

/// A rate limit: at most `calls` in any interval of length `per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRate {
    /// The number of calls.
    pub calls: u32,
    /// The length of the interval.
    pub per: Duration,
}
