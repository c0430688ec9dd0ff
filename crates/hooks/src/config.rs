//! Handlers, as settings files write them.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use haft_contract::BoxFuture;
use haft_settings::{Bases, Problem, Scope};
use serde_json::{Map, Value};

use super::{
    HookMoment, Matcher,
    condition::{CheckCondition, Condition},
};

/// How long a handler may take where no one says.
const USUAL: Duration = Duration::from_secs(600);

/// One handler of one event.
#[derive(Debug, Clone)]
pub struct Handler {
    /// When.
    pub event: HookMoment,
    /// For what.
    pub matcher: Matcher,
    /// Only for calls that this rule speaks of.
    pub condition: Option<Condition>,
    /// Whose it is.
    pub scope: Scope,
    /// Where it is written.
    pub origin: HookOrigin,
    /// What runs.
    pub action: Action,
    /// How long it may take.
    pub timeout: Duration,
    /// Someone has said how long it may take.
    pub says_timeout: bool,
    /// Its failure holds the event up.
    pub guards: bool,
    /// It runs beside the session, and no one waits for it.
    pub in_background: bool,
    /// It runs beside the session, and its objection wakes the model.
    pub wakes: bool,
    /// It runs at the first occasion only.
    pub once: bool,
    /// What a person may be shown while it runs.
    pub status: Option<String>,
    /// The handler as written, to tell two of the same apart from two others.
    pub written: Value,
}

/// Where a handler is written.
#[derive(Debug, Clone, Default)]
pub enum HookOrigin {
    /// In a settings file: the same in another one is the same handler.
    #[default]
    Settings,
    /// In the head of a skill or of a kind of subagent, by its name.
    Skill(String),
    /// In a plugin.
    Plugin(Arc<HookPlugin>),
    /// Nowhere: the program at the other end brought it.
    Host,
}

/// What the handlers of a plugin receive about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookPlugin {
    /// Its name.
    pub name: String,
    /// Where its files are.
    pub root: PathBuf,
    /// Where it keeps what it needs.
    pub data: PathBuf,
    /// What the user has set for it.
    pub options: BTreeMap<String, String>,
}

/// What a handler does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A text for the shell.
    Shell(String),
    /// A program with its arguments.
    Program(String, Vec<String>),
    /// A server is sent the event.
    Http(Post),
    /// A model is asked.
    Model(Asked),
    /// A tool of an MCP server is called.
    Server(ServerToolCall),
    /// A program that is connected already, and is asked there.
    Callback(Callback),
    /// A kind that this build cannot run.
    Unavailable(String),
}

/// How a server is sent the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Where to.
    pub url: String,
    /// Names, and values with `$VARIABLE` in them.
    pub headers: Vec<(String, String)>,
    /// Variables that may stand in headers.
    pub env: Vec<String>,
}

/// Which tool of an MCP server is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerToolCall {
    /// The server.
    pub server: String,
    /// The tool, by the server's own name.
    pub tool: String,
    /// What it is called with; `${a.b}` in a text stands for what the event says there.
    pub input: Value,
}

/// How a model is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The question; `$ARGUMENTS` is the event.
    pub prompt: String,
    /// Another model than the usual one.
    pub model: Option<String>,
    /// It may look around with tools before it answers.
    pub with_tools: bool,
    /// Its no goes back to the model that is at work, instead of ending the run.
    pub goes_on: bool,
}

/// Asks a program that is connected already: it receives the event, and answers as a process would on
/// its stdout. The error is for people.
#[derive(Clone)]
pub struct Callback(
    pub Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>,
);

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

impl PartialEq for Callback {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Callback {}

impl Handler {
    /// One that does this, with everything else left at its default.
    pub fn new(event: HookMoment, matcher: Matcher, action: Action) -> Self {
        Self {
            event,
            matcher,
            condition: None,
            scope: Scope::Session,
            origin: HookOrigin::Host,
            action,
            timeout: USUAL,
            says_timeout: false,
            guards: false,
            in_background: false,
            wakes: false,
            once: false,
            status: None,
            written: Value::Null,
        }
    }

    /// The same as part of a plugin.
    #[must_use]
    pub fn of_plugin(mut self, plugin: &Arc<HookPlugin>) -> Self {
        self.origin = HookOrigin::Plugin(Arc::clone(plugin));
        if let Action::Shell(text) = &self.action
            && text.contains("${user_config.")
        {
            self.action = Action::Unavailable(
                "${user_config…} is for the form with args: a shell would run what is in it"
                    .to_owned(),
            );
        }
        self
    }

    /// The same as part of a skill or of a kind of subagent; only there `once` counts.
    #[must_use]
    pub fn of_skill(mut self, name: &str) -> Self {
        self.origin = HookOrigin::Skill(name.to_owned());
        self.once = self.written["once"] == true;
        self
    }

    /// What a person knows it by.
    pub fn label(&self) -> String {
        format!("{}:{}", self.event.name(), self.owner())
    }

    /// Whose it is, in a word.
    pub fn owner(&self) -> &'static str {
        match (&self.origin, self.scope) {
            (HookOrigin::Plugin(_), _) => "Plugin",
            (HookOrigin::Skill(_), _) => "Skill",
            (_, Scope::Project) => "Project",
            (_, Scope::Local) => "Local",
            (_, Scope::Managed) => "Managed",
            (_, Scope::User | Scope::CommandLine | Scope::Session | Scope::Turn) => "User",
        }
    }

    /// Two of the same key are one handler.
    pub(super) fn key(&self) -> String {
        match &self.origin {
            HookOrigin::Settings | HookOrigin::Host => self.written.to_string(),
            HookOrigin::Skill(name) => format!("skill {name} {}", self.written),
            HookOrigin::Plugin(plugin) => format!("plugin {} {}", plugin.name, self.written),
        }
    }
}

/// Reads the `hooks` of one settings file; whether an `if` can be one, `check` says.
pub fn read(
    scope: Scope,
    file: Option<&PathBuf>,
    value: &Value,
    bases: &Bases,
    check: &CheckCondition,
) -> (Vec<Handler>, Vec<Problem>) {
    let mut handlers = Vec::new();
    let mut problems = Vec::new();
    let place = file.map_or_else(
        || haft_settings::files::GIVEN.to_owned(),
        |file| file.display().to_string(),
    );
    let mut complain = |what: String| {
        problems.push(Problem {
            place: place.clone(),
            what,
        });
    };
    let Some(events) = value.as_object() else {
        complain("hooks is no object; it is left out".to_owned());
        return (handlers, problems);
    };
    for (name, groups) in events {
        let Some(event) = HookMoment::named(name) else {
            complain(format!("hooks.{name}: no such event; it is left out"));
            continue;
        };
        let Some(groups) = groups.as_array() else {
            complain(format!("hooks.{name} is no list; it is left out"));
            continue;
        };
        for group in groups {
            let text = group.get("matcher").and_then(Value::as_str).unwrap_or("");
            let (matcher, broken) = Matcher::new(event, text);
            if let Some(what) = broken {
                complain(format!("hooks.{name}: {what}; it never fires"));
            }
            let Some(entries) = group.get("hooks").and_then(Value::as_array) else {
                complain(format!(
                    "hooks.{name}: an entry has no list of hooks; it is left out"
                ));
                continue;
            };
            for entry in entries {
                match handler(event, &matcher, scope, entry, (bases, check)) {
                    Ok(handler) => handlers.push(handler),
                    Err(what) => complain(format!("hooks.{name}: {what}; it is left out")),
                }
            }
        }
    }
    (handlers, problems)
}

fn handler(
    event: HookMoment,
    matcher: &Matcher,
    scope: Scope,
    entry: &Value,
    (bases, check): (&Bases, &CheckCondition),
) -> Result<Handler, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let is = |name: &str| entry.get(name) == Some(&Value::Bool(true));
    let kind = text("type").ok_or("a hook has no type")?;
    let action = action(kind, entry)?;
    if !event.takes(kind) {
        return Err(format!("a hook of type {kind} cannot be for this event"));
    }
    let condition = match text("if") {
        None => None,
        Some(rule) => Some(Condition::new(event, rule, bases, check)?),
    };
    let seconds = entry.get("timeout").and_then(Value::as_f64);
    let seconds = seconds.filter(|seconds| *seconds > 0.0);
    let said = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let is_command = kind == "command";
    Ok(Handler {
        condition,
        scope,
        origin: HookOrigin::Settings,
        timeout: said.unwrap_or_else(|| usual(kind, event)),
        says_timeout: said.is_some(),
        guards: text("onFailure") == Some("block"),
        in_background: is_command && (is("async") || is("asyncRewake")),
        wakes: is_command && is("asyncRewake"),
        status: text("statusMessage").map(str::to_owned),
        written: entry.clone(),
        ..Handler::new(event, matcher.clone(), action)
    })
}

/// How long a handler may take where it does not say.
fn usual(kind: &str, event: HookMoment) -> Duration {
    match (kind, event.name()) {
        (_, "UserPromptSubmit") | ("prompt", _) => Duration::from_secs(30),
        (_, "MessageDisplay") => Duration::from_secs(10),
        ("agent", _) => Duration::from_secs(60),
        _ => USUAL,
    }
}

fn action(kind: &str, entry: &Value) -> Result<Action, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let need = |name: &str| text(name).ok_or(format!("a hook of type {kind} has no {name}"));
    Ok(match kind {
        "command" => {
            let command = need("command")?.to_owned();
            match entry.get("args") {
                None if text("shell").is_some_and(|shell| shell != "bash") => {
                    Action::Unavailable("only bash runs hooks here".to_owned())
                }
                None => Action::Shell(command),
                Some(args) => Action::Program(command, texts(args, "args")?),
            }
        }
        "http" => {
            let mut headers = Vec::new();
            match entry.get("headers") {
                None | Some(Value::Null) => {}
                Some(Value::Object(written)) => {
                    for (name, value) in written {
                        let value = value.as_str().ok_or(format!("header {name} is no text"))?;
                        headers.push((name.clone(), value.to_owned()));
                    }
                }
                Some(_) => return Err("headers is no object".to_owned()),
            }
            let env = entry.get("allowedEnvVars");
            Action::Http(Post {
                url: need("url")?.to_owned(),
                headers,
                env: env.map_or(Ok(Vec::new()), |env| texts(env, "allowedEnvVars"))?,
            })
        }
        "prompt" | "agent" => Action::Model(Asked {
            prompt: need("prompt")?.to_owned(),
            model: text("model").map(str::to_owned),
            with_tools: kind == "agent",
            goes_on: kind == "agent" || entry.get("continueOnBlock") == Some(&Value::Bool(true)),
        }),
        "mcp_tool" => Action::Server(ServerToolCall {
            server: need("server")?.to_owned(),
            tool: need("tool")?.to_owned(),
            input: entry
                .get("input")
                .cloned()
                .unwrap_or_else(|| Value::Object(Map::new())),
        }),
        other => return Err(format!("no hook has the type {other:?}")),
    })
}

fn texts(value: &Value, name: &str) -> Result<Vec<String>, String> {
    let items = value.as_array().ok_or(format!("{name} is no list"))?;
    let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
    let texts: Option<Vec<String>> = texts.collect();
    texts.ok_or(format!("something in {name} is no text"))
}
