//! The facts for a decision. Collecting them may read the file system.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{
    AuthorizedPath, AuthorizedPaths, BoundCall, CallContext, Effects, PathReach, RuleMatch,
    ToolPermission,
};
use haft_shell::AnalyzedLine;
use serde_json::Value;

use super::{
    repository_paths::controls_repository,
    rules::{List, Rule, ToolSelector, UrlTarget, parameters, target},
    shell_facts::ShellFacts,
};
use haft_settings::real_path;

/// A path that a call touches. Two are equal if their paths are.
#[derive(Debug, Clone, Eq)]
pub struct TouchedPath {
    /// The path as the call names it; absolute, without `..`.
    pub given: PathBuf,
    /// The path with all links resolved.
    pub real: PathBuf,
    /// Whether the call writes the path, and it controls a git repository that is not named `.git`,
    /// or would make a directory one.
    pub controls_repository: bool,
}

impl PartialEq for TouchedPath {
    fn eq(&self, other: &Self) -> bool {
        self.given == other.given && self.real == other.real
    }
}

/// The maximum length of a path in bytes: `PATH_MAX` of Linux.
pub const MAX_PATH: usize = 4_096;

impl TouchedPath {
    pub(super) fn new(given: &Path) -> Self {
        if given.as_os_str().len() > MAX_PATH {
            // The kernel opens no path of this length.
            return Self {
                given: given.to_path_buf(),
                real: given.to_path_buf(),
                controls_repository: false,
            };
        }
        Self {
            given: real_path::normalize(given),
            real: real_path::resolve_links(given),
            controls_repository: false,
        }
    }

    /// Records that the call writes this path.
    pub(super) fn mark_written(&mut self) {
        self.controls_repository = controls_repository(&self.real);
    }

    /// Returns both paths, the given one first.
    pub fn given_and_real(&self) -> [&Path; 2] {
        [&self.given, &self.real]
    }
}

/// Returns the largest of these files that exists, with its size in bytes.
fn largest_file(all: &[TouchedPath]) -> Option<(PathBuf, u64)> {
    let files = all.iter().filter_map(|touched| {
        let found = touched.real.symlink_metadata().ok()?;
        found.is_file().then(|| (touched.real.clone(), found.len()))
    });
    files.max_by_key(|(_, size)| *size)
}

/// The directories that paths of a call are relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathContext {
    /// The working directory, for relative paths; absolute.
    pub cwd: PathBuf,
    /// The home directory, if any.
    pub home: Option<PathBuf>,
    /// Programs after whose name the actual command starts ([`RuleSet::wrappers`]).
    ///
    /// [`RuleSet::wrappers`]: super::RuleSet::wrappers
    pub wrappers: Vec<String>,
}

/// The merged answer of all hooks about a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HookPermission {
    /// No answer.
    #[default]
    NoAnswer,
    /// The call may run.
    Allow,
    /// The call may run, with an input that a hook or the user provided. This replaces the user's
    /// answer.
    Answer,
    /// The user should decide.
    Ask,
}

/// The facts about a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFacts {
    /// The tool's own name.
    pub tool: String,
    /// Other names of the tool in rules.
    pub aliases: Vec<Cow<'static, str>>,
    /// The value that rules with the tool's name are compared with.
    pub rules: RuleMatch,
    /// The names of the tool's parameters, if rules must distinguish them from other texts.
    pub parameters: Vec<String>,
    /// Whether the tool comes from an MCP server.
    pub from_server: bool,
    /// The server's name in rules, `mcp__SERVER`.
    pub server: Option<String>,
    /// The call's input, for rules about a parameter.
    pub input: Value,
    /// The paths that the call reads.
    pub reads: Vec<TouchedPath>,
    /// The paths that the call writes.
    pub writes: Vec<TouchedPath>,
    /// The largest existing file that the call writes, with its size in bytes.
    pub largest_written: Option<(PathBuf, u64)>,
    /// Whether the call also lists or reads files below the paths that it reads.
    pub searches: bool,
    /// Whether the call may have effects other than the listed ones.
    pub opaque: bool,
    /// Whether the call needs the user's own answer, which no rule can replace.
    pub interactive: bool,
    /// The analyzed command line, if any.
    pub shell: Option<ShellFacts>,
    /// The tool's own analysis of that line, if it made one.
    pub read: Option<Arc<AnalyzedLine>>,
    /// The addresses that the call fetches: the requested one, then the redirect targets.
    pub fetches: Vec<UrlTarget>,
    /// The IP addresses of the first host, if they were resolved.
    pub resolved: Vec<String>,
    /// The hosts that the user has allowed for commands in this session.
    pub allowed_hosts: Vec<String>,
    /// The text that text rules are compared with: the agent kind, or the skill with its arguments.
    pub subject: Option<String>,
    /// The text that the classifier checks for dangerous actions.
    pub command: Option<String>,
    /// The tool's own permission.
    pub tool_permission: ToolPermission,
    /// The answer of the hooks.
    pub hook: HookPermission,
}

impl CallFacts {
    /// Collects the facts about a call that is about to run, except its command line
    /// ([`Self::read_command`]). Reads the file system only to resolve links and to detect git
    /// repositories.
    pub fn from_call(bound: &dyn BoundCall, cx: &CallContext) -> Self {
        Self::from_effects(bound, bound.effects(), cx)
    }

    /// Like [`Self::from_call`], but with known effects.
    pub fn from_effects(bound: &dyn BoundCall, effects: Effects, cx: &CallContext) -> Self {
        let mut facts = Self::touching(bound, effects);
        facts.command = bound.classifier_input();
        facts.tool_permission = bound.permission(cx);
        facts
    }

    /// Returns the facts of a call without effects.
    pub(super) fn without_effects(tool: &str, rules: RuleMatch, input: Value) -> Self {
        Self {
            tool: tool.to_owned(),
            aliases: Vec::new(),
            rules,
            parameters: Vec::new(),
            from_server: false,
            server: None,
            input,
            reads: Vec::new(),
            writes: Vec::new(),
            largest_written: None,
            searches: false,
            opaque: false,
            interactive: false,
            shell: None,
            read: None,
            fetches: Vec::new(),
            resolved: Vec::new(),
            allowed_hosts: Vec::new(),
            subject: None,
            command: None,
            tool_permission: ToolPermission::ByEffects,
            hook: HookPermission::NoAnswer,
        }
    }

    /// Like [`Self::from_call`], but without the tool's own permission. For checking rules only.
    pub fn from_bound_call(bound: &dyn BoundCall) -> Self {
        Self::touching(bound, bound.effects())
    }

    fn touching(bound: &dyn BoundCall, effects: Effects) -> Self {
        let paths = |reach: &PathReach| match reach {
            PathReach::Paths(paths) => paths.iter().map(|path| TouchedPath::new(path)).collect(),
            PathReach::Nothing | PathReach::Anything => Vec::new(),
        };
        let mut writes: Vec<TouchedPath> = paths(&effects.writes);
        writes.iter_mut().for_each(TouchedPath::mark_written);
        let mut reads: Vec<TouchedPath> = paths(&effects.reads);
        // A path parameter is at least read, even if the effects do not contain it.
        for path in path_parameters(bound) {
            let known = |touched: &TouchedPath| touched.given == path;
            if !reads.iter().any(known) && !writes.iter().any(known) {
                reads.push(TouchedPath::new(&path));
            }
        }
        let spec = bound.spec();
        let profile = &spec.profile;
        // Also by its name: rules for servers apply to every tool with this prefix.
        let from_server = profile.origin.server().is_some() || spec.name.starts_with("mcp__");
        let aliases = match from_server {
            true => Vec::new(),
            false => profile.aliases.clone(),
        };
        let (fetches, subject) = matched(profile.rules, bound.input());
        Self {
            tool: spec.name.clone(),
            server: profile.origin.server_in_rules(),
            aliases,
            rules: profile.rules,
            parameters: match profile.rules {
                RuleMatch::Text { .. } | RuleMatch::Paths | RuleMatch::Address(_) => {
                    parameters(spec)
                }
                _ => Vec::new(),
            },
            from_server,
            input: bound.input().clone(),
            reads,
            largest_written: largest_file(&writes),
            writes,
            searches: profile.searches,
            // A server's description of its tools is only a hint: it permits parallel calls, and
            // nothing else.
            opaque: effects.exclusive
                || effects.writes == PathReach::Anything
                || from_server
                || profile.sends_data,
            interactive: profile.interactive,
            shell: None,
            read: read_line(bound),
            fetches,
            resolved: Vec::new(),
            allowed_hosts: Vec::new(),
            subject,
            command: None,
            tool_permission: ToolPermission::ByEffects,
            hook: HookPermission::NoAnswer,
        }
    }

    /// Returns whether a rule's name means this tool. An allow rule for a server permits only tools
    /// of the server with exactly this name: tools of a server `a__b` are not tools of `a`.
    pub(super) fn is_called(&self, rule: &Rule) -> bool {
        let of_server = |is_meant: &dyn Fn(&str) -> bool| {
            rule.tool.matches_name(&self.tool)
                && (rule.list != List::Allow || self.server.as_deref().is_none_or(is_meant))
        };
        match &rule.tool {
            ToolSelector::One(name) => {
                *name == self.tool || self.aliases.iter().any(|alias| alias == name)
            }
            ToolSelector::Server(named) => of_server(&|server| server == named),
            ToolSelector::Matching(pattern) => {
                of_server(&|server| pattern.starts_with(&format!("{server}__")))
            }
        }
    }

    /// Returns whether the call has a command line.
    pub fn has_command(&self) -> bool {
        matches!(self.rules, RuleMatch::Command(_))
    }

    /// Reads the command line of a call that has one.
    pub fn read_command(&mut self, setting: &PathContext) {
        if let RuleMatch::Command(parameter) = self.rules {
            let line = self.input.get(parameter).and_then(Value::as_str);
            let (line, read) = (line.unwrap_or_default(), self.read.as_deref());
            self.shell = Some(ShellFacts::analyze_or_reuse(line, setting, read));
        }
    }

    /// Returns the resolved paths outside the policy's working directories, written paths first.
    pub fn outside<'a>(&'a self, policy: &'a super::Policy) -> impl Iterator<Item = &'a Path> {
        let written = self.writes.iter().filter(move |touched| {
            !policy.is_inside(&touched.real) || policy.is_private(&touched.real)
        });
        let read = self
            .reads
            .iter()
            .filter(move |touched| !policy.may_read(&touched.real));
        written.chain(read).map(|touched| touched.real.as_path())
    }

    /// Returns the paths that the decision was based on. The tool may open no others.
    pub fn authorized_paths(&self) -> AuthorizedPaths {
        let touched = self.reads.iter().chain(&self.writes);
        // By its real path, too: the tool may have got that one.
        let itself = self.reads.iter().chain(&self.writes);
        let itself = itself.filter(|touched| touched.given != touched.real);
        let named = touched.map(|touched| (&touched.given, &touched.real));
        let named = named.chain(itself.map(|touched| (&touched.real, &touched.real)));
        AuthorizedPaths::new(named.map(|(given, real)| AuthorizedPath {
            given: given.clone(),
            real: real.clone(),
        }))
    }

    /// Returns whether this rule matches the call, in any list.
    pub fn matches_rule(&self, rule: &Rule) -> bool {
        super::rule_matching::match_rule(rule, self).is_some()
    }

    /// Returns the command in a rule as written, if it is a command rule.
    pub fn command_of(&self, rule: &Rule) -> Option<String> {
        match rule.resolve_content(self).as_deref() {
            Some(super::rules::RuleContent::Command { text, .. }) => Some(text.clone()),
            _ => None,
        }
    }

    /// Returns whether the call changes nothing.
    pub fn is_read_only(&self) -> bool {
        let command = self.shell.as_ref().is_none_or(ShellFacts::is_read_only);
        let more = self.opaque && self.shell.is_none();
        !more && self.writes.is_empty() && self.fetches.is_empty() && command
    }
}

/// Returns the command line of a call as its tool has parsed it.
fn read_line(bound: &dyn BoundCall) -> Option<Arc<AnalyzedLine>> {
    bound.parsed_input()?.downcast().ok()
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

/// Returns the addresses and the text in an input that rules are compared with.
fn matched(rules: RuleMatch, input: &Value) -> (Vec<UrlTarget>, Option<String>) {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    match rules {
        RuleMatch::Address(parameter) => {
            // A call without an address fetches nothing.
            let given = input.get(parameter).filter(|given| !given.is_null());
            let target = given.map(|_| target(text(parameter)).unwrap_or_else(UrlTarget::none));
            (target.into_iter().collect(), None)
        }
        RuleMatch::Text {
            parameters,
            otherwise,
        } => {
            let mut texts: Vec<&str> = parameters.iter().map(|name| text(name)).collect();
            if let Some(first) = texts.first_mut().filter(|first| first.is_empty()) {
                *first = otherwise;
            }
            texts.retain(|text| !text.is_empty());
            (Vec::new(), Some(texts.join(" ")))
        }
        _ => (Vec::new(), None),
    }
}
