//! What a tool says of itself. Nothing outside a tool's own file knows it by its name: the one who needs to
//! know something of a tool reads it here.

use std::{borrow::Cow, fmt, time::Duration};

use serde_json::Value;

use crate::{ApprovalKind, Effects, Services, effects::Reach};

/// What a tool says of itself, once, whatever the input.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Other names under which it may be called, filtered or named in a rule.
    pub aliases: Vec<Cow<'static, str>>,
    /// The name people see; the tool's name where absent.
    pub title: Option<Cow<'static, str>>,
    /// The family it belongs to: what `haft tools` shows as its class.
    pub family: Cow<'static, str>,
    /// Words a search for tools should find it by, beyond its name and description.
    pub search_hint: Cow<'static, str>,
    /// Sent to the model by name only, until something activates it.
    pub deferred: bool,
    /// Never deferred, whatever it costs.
    pub always_sent: bool,
    /// Offered only where it is asked for by name.
    pub optional: bool,
    /// Parameters that only the answer of a person or a hook sets. They stand in no schema, and what a
    /// model writes there is dropped.
    pub reserved: &'static [&'static str],
    /// What the text in the parentheses of a permission rule for it is compared with.
    pub rules: RuleMatch,
    /// It looks at everything below the directories it reads.
    pub searches: bool,
    /// It needs a person by its nature: no rule stands in for one.
    pub interactive: bool,
    /// It tells others something, though it changes nothing here: reading alone lets none of its calls run.
    pub contacts_others: bool,
    /// Which agents may have it.
    pub agents: AgentAccess,
    /// One of the few that are left in simple mode.
    pub basic: bool,
    /// What it needs of a session: without one of these there is nothing to offer.
    pub needs: &'static [ServiceNeed],
    /// What others look for it by.
    pub role: Option<ToolRole>,
    /// Where it comes from.
    pub origin: ToolOrigin,
    /// The most any of its calls can do. The engine holds [`Effects`] to it.
    pub access: Access,
    /// Parameters that hold paths (strings or lists of strings): `~` and relative ones are made
    /// absolute, and each is held against the working directories.
    pub paths: &'static [&'static str],
    /// Longest result in characters that goes to the model inline; the rest is kept on disk.
    /// `None`: the tool has limits of its own.
    pub result_cap: Option<usize>,
    /// The schema of the value that programs get with each result that is no failure, where there is one. An object;
    /// debug builds hold every call to it.
    pub output_schema: Option<Value>,
    /// How long one call may run; `None`: as the engine is configured.
    pub timeout: Option<Duration>,
    /// How long a read-only answer may be served again. `None`: never; an answer about files must
    /// be fresh.
    pub cache: Option<Duration>,
    /// How often it may be called.
    pub rate: Option<Rate>,
    /// What a person is asked where its calls ask: for permission, unless it is a question itself.
    pub approval: ApprovalKind,
}

/// The ceiling for tools that name none (spec: "everything else 50,000").
pub const DEFAULT_RESULT_CAP: usize = 50_000;

impl Default for Profile {
    fn default() -> Self {
        Self {
            aliases: Vec::new(),
            title: None,
            family: Cow::Borrowed("custom"),
            search_hint: Cow::Borrowed(""),
            deferred: false,
            always_sent: false,
            optional: false,
            reserved: &[],
            rules: RuleMatch::default(),
            searches: false,
            interactive: false,
            contacts_others: false,
            agents: AgentAccess::default(),
            basic: false,
            needs: &[],
            role: None,
            origin: ToolOrigin::default(),
            access: Access::Anything,
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

impl Profile {
    /// Can it work with these services?
    pub fn has_its_needs(&self, services: &Services) -> bool {
        self.needs.iter().all(|need| need.is_met(services))
    }

    /// Everything that the tool of this name answers to in a rule. A name that a server gives its tool
    /// stands for nothing else: or a rule for another tool would let it through.
    pub fn is_called(&self, own: &str, name: &str) -> bool {
        own == name
            || (self.origin == ToolOrigin::Program
                && self.aliases.iter().any(|other| other == name))
    }
}

/// What of a call the text in the parentheses of a permission rule is compared with.
///
/// Whatever it says here, a deny or ask rule may name a parameter, `Tool(parameter:value)`; and `Read(path)`,
/// `Edit(path)`, `Bash(command)` speak of what any tool reads, edits and runs, whichever tool that is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RuleMatch {
    /// Nothing but a parameter.
    #[default]
    Parameters,
    /// Nothing at all: a rule names the tool and no more. People are offered such a rule.
    NameOnly,
    /// The command line in this parameter. Rules for `Bash` speak of it too.
    Command(&'static str),
    /// The paths that a call touches, by rules with the tool's own name: all of them must be allowed, and
    /// none may be denied.
    Paths,
    /// The paths it reads, by rules for `Read`; rules with its own name are not consulted.
    Reads,
    /// The paths it writes, by rules for `Edit`; rules with its own name are not consulted.
    Edits {
        /// What may not be read may not be written by it either.
        held_by_reads: bool,
    },
    /// The host of the address in this parameter: `Tool(domain:HOST)`.
    Address(&'static str),
    /// A text: the values of these parameters, joined by a blank; empty ones are left out.
    Text {
        /// The parameters.
        parameters: &'static [&'static str],
        /// What stands for the first where it is empty.
        otherwise: &'static str,
    },
}

/// Which agents may have a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentAccess {
    /// All of them.
    #[default]
    Every,
    /// Those whose end is waited for: not one that works in the background.
    Foreground,
    /// Only the main agent: it speaks with the person, or is about the main conversation.
    Main,
    /// Those that make a plan: the main agent, and subagents in plan mode.
    Planning,
    /// Those that may launch subagents, unless they work in the background.
    Launching,
}

/// What others look for a tool by, since they know no names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolRole {
    /// It loads skills.
    LoadsSkills,
    /// It finds tools that are deferred: without it there is no way to them.
    FindsTools,
    /// It waits for tools that are still to come, where none of them is deferred.
    AwaitsTools,
}

/// Where a tool comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolOrigin {
    /// This program.
    #[default]
    Program,
    /// A server of this name. What it says of its tools permits nothing.
    Server(Cow<'static, str>),
}

impl ToolOrigin {
    /// The server it comes from, if it does.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Program => None,
            Self::Server(name) => Some(name),
        }
    }
}

/// A service that a tool cannot do without, by its type.
#[derive(Clone, Copy)]
pub struct ServiceNeed(fn(&Services) -> bool);

impl ServiceNeed {
    /// This service.
    pub const fn of<T: Send + Sync + 'static>() -> Self {
        Self(|services| services.get::<T>().is_ok())
    }

    /// One of the two.
    pub const fn either<A: Send + Sync + 'static, B: Send + Sync + 'static>() -> Self {
        Self(|services| services.get::<A>().is_ok() || services.get::<B>().is_ok())
    }

    /// Is it there?
    pub fn is_met(&self, services: &Services) -> bool {
        (self.0)(services)
    }
}

impl fmt::Debug for ServiceNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceNeed")
    }
}

/// The most a tool can do, known without its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Only ever reads: runs beside any other reader.
    Reads,
    /// Writes the paths it names: runs beside whatever touches none of them.
    Paths,
    /// May do anything: judged call by call.
    Anything,
}

impl Access {
    /// Holds effects to what the tool may do at most: what goes beyond it runs alone, as the effects
    /// of an unknown tool would.
    pub fn hold(self, effects: Effects) -> Effects {
        let within = match self {
            Self::Reads => effects.is_read_only(),
            Self::Paths => !effects.exclusive && effects.writes != Reach::Anything,
            Self::Anything => true,
        };
        if within { effects } else { Effects::EXCLUSIVE }
    }
}

/// At most `calls` in any `per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many calls.
    pub calls: u32,
    /// In how long a time.
    pub per: Duration,
}
