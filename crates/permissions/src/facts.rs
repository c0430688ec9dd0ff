//! What a decision is made from: gathered here, where the world may be looked at.

use std::path::{Path, PathBuf};

use haft_contract::{BoundCall, CallContext, JudgedPath, JudgedPaths, Permission, Reach};
use serde_json::Value;

use super::{
    rules::{Target, canonical, target},
    shell_facts::ShellFacts,
};
use haft_settings::resolve;

/// A path a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// As the call names it; absolute, without `..`.
    pub given: PathBuf,
    /// Where it really leads.
    pub real: PathBuf,
}

impl Touched {
    pub(super) fn new(given: &Path) -> Self {
        Self {
            given: resolve::lexical(given),
            real: resolve::real(given),
        }
    }

    /// Both, the given first.
    pub fn both(&self) -> [&Path; 2] {
        [&self.given, &self.real]
    }
}

/// Where a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathContext {
    /// The directory relative paths start from; absolute.
    pub cwd: PathBuf,
    /// The home directory, where there is one.
    pub home: Option<PathBuf>,
}

/// What hooks said of a call, all of them taken together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HookWord {
    /// Nothing.
    #[default]
    Silent,
    /// It may run.
    Allow,
    /// It may run, with an input that a hook or a person gave: that stands in for a person's answer.
    Answer,
    /// A person should decide.
    Ask,
}

/// What is known of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Which tool, by its own name.
    pub tool: String,
    /// The call's input, for rules about a parameter.
    pub input: Value,
    /// Paths it reads.
    pub reads: Vec<Touched>,
    /// Paths it writes.
    pub writes: Vec<Touched>,
    /// It lists or looks at what is below what it reads.
    pub searches: bool,
    /// It may write more than these paths, or do something else altogether.
    pub opaque: bool,
    /// It only speaks to the session or to the person; nothing outside is touched.
    pub internal: bool,
    /// It needs a person by its nature: no rule stands in for one.
    pub interactive: bool,
    /// A command line, read.
    pub shell: Option<ShellFacts>,
    /// Addresses it fetches: the one asked for, then where it is sent on to.
    pub fetches: Vec<Target>,
    /// What the host of the first address resolves to, where that was asked.
    pub resolved: Vec<String>,
    /// What a rule's text is compared with: the kind of agent, the skill with its arguments.
    pub subject: Option<String>,
    /// The text in which danger would hide.
    pub command: Option<String>,
    /// The tool's own word.
    pub opinion: Permission,
    /// What hooks said.
    pub hook: HookWord,
}

/// Tools that touch nothing outside the session.
const INTERNAL: [&str; 19] = [
    "Agent",
    "CronList",
    "EnterPlanMode",
    "ListMcpResourcesTool",
    "MemoryRead",
    "SendMessage",
    "Sleep",
    "StructuredOutput",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "Think",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "ReadMcpResourceTool",
];

impl Facts {
    /// Gathers what is known of a call that is about to run, but for its command line
    /// ([`Self::read_command`]). Follows links, reads nothing else.
    pub fn of(bound: &dyn BoundCall, cx: &CallContext) -> Self {
        let effects = bound.effects();
        let paths = |reach: &Reach| match reach {
            Reach::Paths(paths) => paths.iter().map(|path| Touched::new(path)).collect(),
            Reach::Nothing | Reach::Anything => Vec::new(),
        };
        let writes: Vec<Touched> = paths(&effects.writes);
        let mut reads: Vec<Touched> = paths(&effects.reads);
        // A path parameter is at least looked at, whatever the effects say.
        for path in path_parameters(bound) {
            let known = |touched: &Touched| touched.given == path;
            if !reads.iter().any(known) && !writes.iter().any(known) {
                reads.push(Touched::new(&path));
            }
        }
        let mut facts = Self::bare(&bound.spec().name, bound.input().clone());
        facts.special();
        facts.reads = reads;
        facts.writes = writes;
        // What a server says of its tools is a hint: it lets calls run side by side, and permits none.
        let from_a_server = facts.tool.starts_with("mcp__");
        facts.opaque = effects.exclusive || effects.writes == Reach::Anything || from_a_server;
        facts.command = bound.classifier_input();
        facts.opinion = bound.permission(cx);
        facts.internal = false;
        facts
    }

    /// The same from a tool's name and an input, for any tool of the convention, built in or not.
    pub fn named(tool: &str, input: &Value, setting: &PathContext) -> Self {
        let mut facts = Self::bare(canonical(tool), input.clone());
        facts.special();
        facts.read_command(setting);
        let path = |name: &str| {
            let given = input.get(name)?.as_str()?;
            Some(Touched::new(&absolute(given, setting)))
        };
        let here = || Touched::new(&setting.cwd);
        match facts.tool.as_str() {
            "Read" | "LSP" => facts.reads.extend(path("file_path")),
            "LS" | "Glob" | "Grep" => {
                facts.reads.push(path("path").unwrap_or_else(here));
            }
            "Edit" | "Write" | "MultiEdit" => facts.writes.extend(path("file_path")),
            "NotebookEdit" => facts.writes.extend(path("notebook_path")),
            "ReplaceInFiles" | "Undo" => {
                facts.writes.push(path("path").unwrap_or_else(here));
            }
            "AskUserQuestion" | "ExitPlanMode" => {}
            _ => facts.opaque = !facts.internal,
        }
        facts
    }

    fn bare(tool: &str, input: Value) -> Self {
        Self {
            tool: tool.to_owned(),
            input,
            reads: Vec::new(),
            writes: Vec::new(),
            searches: ["Grep", "Glob", "LS"].contains(&tool),
            opaque: false,
            internal: INTERNAL.contains(&tool),
            interactive: ["AskUserQuestion", "ExitPlanMode"].contains(&tool),
            shell: None,
            fetches: Vec::new(),
            resolved: Vec::new(),
            subject: None,
            command: None,
            opinion: Permission::ByEffects,
            hook: HookWord::Silent,
        }
    }

    /// Is there a command line to read?
    pub fn has_command(&self) -> bool {
        ["Bash", "Monitor"].contains(&self.tool.as_str())
    }

    /// Reads the command line of a call that has one.
    pub fn read_command(&mut self, setting: &PathContext) {
        if self.has_command() {
            let line = self.input.get("command").and_then(Value::as_str);
            self.shell = Some(ShellFacts::of(line.unwrap_or_default(), setting));
        }
    }

    /// What the rules of the convention look at in particular tools.
    fn special(&mut self) {
        let text = |name: &str| self.input.get(name).and_then(Value::as_str);
        match self.tool.as_str() {
            "WebFetch" => {
                let url = text("url").unwrap_or_default();
                self.fetches = vec![target(url).unwrap_or_else(Target::none)];
            }
            "Agent" => {
                let kind = text("subagent_type").filter(|kind| !kind.is_empty());
                self.subject = Some(kind.unwrap_or("general-purpose").to_owned());
            }
            "Skill" => {
                let name = text("skill").or(text("name")).unwrap_or_default();
                let with = text("args").filter(|args| !args.is_empty());
                self.subject = Some(match with {
                    Some(args) => format!("{name} {args}"),
                    None => name.to_owned(),
                });
            }
            _ => {}
        }
    }

    /// Where it goes beyond the directories of the policy, as real paths; written ones first.
    pub fn outside<'a>(&'a self, policy: &'a super::Policy) -> impl Iterator<Item = &'a Path> {
        let written = self
            .writes
            .iter()
            .filter(move |touched| !policy.is_inside(&touched.real));
        let read = self
            .reads
            .iter()
            .filter(move |touched| !policy.may_read(&touched.real));
        written.chain(read).map(|touched| touched.real.as_path())
    }

    /// The paths it was judged by, for the tool to hold itself to.
    pub fn judged(&self) -> JudgedPaths {
        let touched = self.reads.iter().chain(&self.writes);
        JudgedPaths::new(touched.map(|touched| JudgedPath {
            given: touched.given.clone(),
            real: touched.real.clone(),
        }))
    }

    /// Does this rule speak of it, whatever list the rule stands in?
    pub fn is_hit_by(&self, rule: &super::rules::Rule) -> bool {
        super::matching::hit(rule, self).is_some()
    }

    /// It changes nothing.
    pub fn is_read_only(&self) -> bool {
        let command = self.shell.as_ref().is_none_or(ShellFacts::is_read_only);
        let more = self.opaque && self.shell.is_none();
        !more && self.writes.is_empty() && self.fetches.is_empty() && command
    }
}

fn path_parameters(bound: &dyn BoundCall) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for name in bound.spec().profile.paths {
        match bound.input().get(*name) {
            Some(Value::String(path)) => paths.push(PathBuf::from(path)),
            Some(Value::Array(several)) => {
                paths.extend(several.iter().filter_map(Value::as_str).map(PathBuf::from));
            }
            _ => {}
        }
    }
    paths
}

/// A path as a call writes it, made absolute.
fn absolute(given: &str, setting: &PathContext) -> PathBuf {
    match (given.strip_prefix("~/"), &setting.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ if given == "~" => setting.home.clone().unwrap_or_else(|| setting.cwd.clone()),
        _ => setting.cwd.join(given),
    }
}
