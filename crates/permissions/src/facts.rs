//! What a decision is made from: gathered here, where the world may be looked at.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{
    AuthorizedPath, AuthorizedPaths, BoundCall, CallContext, Effects, Reach, RuleMatch,
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

/// A path a call touches. Two are equal if their paths are.
#[derive(Debug, Clone, Eq)]
pub struct TouchedPath {
    /// As the call names it; absolute, without `..`.
    pub given: PathBuf,
    /// Where it really leads.
    pub real: PathBuf,
    /// The call writes it, and it controls a git repository that is not named `.git`, or makes a directory
    /// one.
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

    /// Notes that a call writes this path.
    pub(super) fn mark_written(&mut self) {
        self.controls_repository = controls_repository(&self.real);
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
pub enum HookPermission {
    /// Nothing.
    #[default]
    NoAnswer,
    /// It may run.
    Allow,
    /// It may run, with an input that a hook or a person gave: that stands in for a person's answer.
    Answer,
    /// A person should decide.
    Ask,
}

/// What is known of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFacts {
    /// Which tool, by its own name.
    pub tool: String,
    /// What else rules may call it.
    pub aliases: Vec<Cow<'static, str>>,
    /// What rules with its name are compared with.
    pub rules: RuleMatch,
    /// The names of its parameters, where rules must tell them from other texts.
    pub parameters: Vec<String>,
    /// It comes from a server.
    pub from_server: bool,
    /// What rules call the server it comes from, `mcp__SERVER`.
    pub server: Option<String>,
    /// The call's input, for rules about a parameter.
    pub input: Value,
    /// Paths it reads.
    pub reads: Vec<TouchedPath>,
    /// Paths it writes.
    pub writes: Vec<TouchedPath>,
    /// It lists or looks at what is below what it reads.
    pub searches: bool,
    /// It may write more than these paths, or do something else altogether.
    pub opaque: bool,
    /// It needs a person by its nature: no rule stands in for one.
    pub interactive: bool,
    /// A command line, read.
    pub shell: Option<ShellFacts>,
    /// The same line as the tool has read it already, if it has.
    pub read: Option<Arc<AnalyzedLine>>,
    /// Addresses it fetches: the one asked for, then where it is sent on to.
    pub fetches: Vec<UrlTarget>,
    /// What the host of the first address resolves to, where that was asked.
    pub resolved: Vec<String>,
    /// What a rule's text is compared with: the kind of agent, the skill with its arguments.
    pub subject: Option<String>,
    /// The text in which danger would hide.
    pub command: Option<String>,
    /// The tool's own word.
    pub tool_permission: ToolPermission,
    /// What hooks said.
    pub hook: HookPermission,
}

impl CallFacts {
    /// Gathers what is known of a call that is about to run, but for its command line
    /// ([`Self::read_command`]). Follows links, reads nothing else.
    pub fn from_call(bound: &dyn BoundCall, cx: &CallContext) -> Self {
        Self::from_effects(bound, bound.effects(), cx)
    }

    /// The same with the call's effects, where they are known already.
    pub fn from_effects(bound: &dyn BoundCall, effects: Effects, cx: &CallContext) -> Self {
        let mut facts = Self::touching(bound, effects);
        facts.command = bound.classifier_input();
        facts.tool_permission = bound.permission(cx);
        facts
    }

    /// Of a call that touches nothing.
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
            searches: false,
            opaque: false,
            interactive: false,
            shell: None,
            read: None,
            fetches: Vec::new(),
            resolved: Vec::new(),
            subject: None,
            command: None,
            tool_permission: ToolPermission::ByEffects,
            hook: HookPermission::NoAnswer,
        }
    }

    /// The same without the tool's own word: what rules are held against.
    pub fn from_bound_call(bound: &dyn BoundCall) -> Self {
        Self::touching(bound, bound.effects())
    }

    fn touching(bound: &dyn BoundCall, effects: Effects) -> Self {
        let paths = |reach: &Reach| match reach {
            Reach::Paths(paths) => paths.iter().map(|path| TouchedPath::new(path)).collect(),
            Reach::Nothing | Reach::Anything => Vec::new(),
        };
        let mut writes: Vec<TouchedPath> = paths(&effects.writes);
        writes.iter_mut().for_each(TouchedPath::mark_written);
        let mut reads: Vec<TouchedPath> = paths(&effects.reads);
        // A path parameter is at least looked at, whatever the effects say.
        for path in path_parameters(bound) {
            let known = |touched: &TouchedPath| touched.given == path;
            if !reads.iter().any(known) && !writes.iter().any(known) {
                reads.push(TouchedPath::new(&path));
            }
        }
        let spec = bound.spec();
        let profile = &spec.profile;
        // By its name as well: what stands where rules for servers look is one of theirs.
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
            writes,
            searches: profile.searches,
            // What a server says of its tools is a hint: it lets calls run side by side, and permits none.
            opaque: effects.exclusive
                || effects.writes == Reach::Anything
                || from_server
                || profile.contacts_others,
            interactive: profile.interactive,
            shell: None,
            read: read_line(bound),
            fetches,
            resolved: Vec::new(),
            subject,
            command: None,
            tool_permission: ToolPermission::ByEffects,
            hook: HookPermission::NoAnswer,
        }
    }

    /// Returns whether a rule's name means this tool. An allow rule for a server permits only tools of the
    /// server with exactly this name: those of a server `a__b` are no tools of `a`.
    pub(super) fn is_called(&self, rule: &Rule) -> bool {
        let of_server = |is_meant: &dyn Fn(&str) -> bool| {
            rule.tool.is(&self.tool)
                && (rule.list != List::Allow || self.server.as_deref().is_none_or(is_meant))
        };
        match &rule.tool {
            ToolSelector::One(name) => {
                *name == self.tool || self.aliases.iter().any(|alias| alias == name)
            }
            ToolSelector::Server(named) => of_server(&|server| server == named),
            ToolSelector::Fitting(pattern) => {
                of_server(&|server| pattern.starts_with(&format!("{server}__")))
            }
        }
    }

    /// Is there a command line to read?
    pub fn has_command(&self) -> bool {
        matches!(self.rules, RuleMatch::Command(_))
    }

    /// Reads the command line of a call that has one.
    pub fn read_command(&mut self, setting: &PathContext) {
        if let RuleMatch::Command(parameter) = self.rules {
            let line = self.input.get(parameter).and_then(Value::as_str);
            let (line, read) = (line.unwrap_or_default(), self.read.as_deref());
            self.shell = Some(ShellFacts::from_analyzed(line, setting, read));
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
    pub fn authorized_paths(&self) -> AuthorizedPaths {
        let touched = self.reads.iter().chain(&self.writes);
        AuthorizedPaths::new(touched.map(|touched| AuthorizedPath {
            given: touched.given.clone(),
            real: touched.real.clone(),
        }))
    }

    /// Does this rule speak of it, whatever list the rule stands in?
    pub fn matches_rule(&self, rule: &Rule) -> bool {
        super::rule_matching::match_rule(rule, self).is_some()
    }

    /// The command that a rule speaks of, as written, whichever list the rule stands in.
    pub fn command_of(&self, rule: &Rule) -> Option<String> {
        match rule.resolve_content(self).as_deref() {
            Some(super::rules::RuleContent::Command { text, .. }) => Some(text.clone()),
            _ => None,
        }
    }

    /// It changes nothing.
    pub fn is_read_only(&self) -> bool {
        let command = self.shell.as_ref().is_none_or(ShellFacts::is_read_only);
        let more = self.opaque && self.shell.is_none();
        !more && self.writes.is_empty() && self.fetches.is_empty() && command
    }
}

/// The command line of a call as its tool has read it.
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

/// What of an input rules look at: addresses, and a text.
fn matched(rules: RuleMatch, input: &Value) -> (Vec<UrlTarget>, Option<String>) {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    match rules {
        RuleMatch::Address(parameter) => {
            // A call that names no address at all contacts no one by it.
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
