//! Handlers, as configured in settings files.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use haft_contract::BoxFuture;
use haft_settings::{PatternBases, SettingsProblem, SettingsScope};
use serde_json::{Map, Value};

use super::{
    HookEventKind, HookMatcher,
    condition::{CheckCondition, HookCondition},
};

/// The default timeout of a handler.
const USUAL: Duration = Duration::from_secs(600);

/// A handler of an event.
#[derive(Debug, Clone)]
pub struct HookHandler {
    /// The event that runs it.
    pub event: HookEventKind,
    /// The matcher for the event's values.
    pub matcher: HookMatcher,
    /// If set, it runs only for calls that match this rule.
    pub condition: Option<HookCondition>,
    /// The settings scope that it comes from.
    pub scope: SettingsScope,
    /// The source of its configuration.
    pub origin: HookOrigin,
    /// The action to run.
    pub action: HookAction,
    /// The timeout.
    pub timeout: Duration,
    /// Whether the configuration sets the timeout.
    pub has_own_timeout: bool,
    /// Whether a failure of the handler blocks the event.
    pub fails_closed: bool,
    /// Whether it runs in the background, without being waited for.
    pub in_background: bool,
    /// Whether it runs in the background and wakes the model if it objects (exit code 2).
    pub wakes: bool,
    /// Whether it runs only once.
    pub once: bool,
    /// A status message for the user while it runs.
    pub status: Option<String>,
    /// The handler's configuration as JSON, to detect duplicates.
    pub written: Value,
}

/// The source of a handler.
#[derive(Debug, Clone, Default)]
pub enum HookOrigin {
    /// A settings file. An identical handler in another settings file is the same handler.
    #[default]
    Settings,
    /// The front matter of a skill or an agent kind, with its name.
    Skill(String),
    /// A plugin.
    Plugin(Arc<HookPlugin>),
    /// The program that runs the session (over the SDK protocol) registered it.
    Host,
}

/// Facts about a plugin that its handlers receive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookPlugin {
    /// The name of the plugin.
    pub name: String,
    /// The directory of its files.
    pub root: PathBuf,
    /// The directory for its data.
    pub data: PathBuf,
    /// The options that the user has set for it.
    pub options: BTreeMap<String, String>,
}

/// The action of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAction {
    /// Runs a shell command.
    Shell(String),
    /// Runs a program with arguments.
    Program(String, Vec<String>),
    /// Sends the event to an HTTP server.
    Http(HttpHandlerConfig),
    /// Asks a model.
    Model(ModelHandlerConfig),
    /// Calls a tool of an MCP server.
    Server(ServerToolCall),
    /// Calls a function of a connected program.
    Callback(Callback),
    /// A kind that this build cannot run, with the reason.
    Unavailable(String),
}

/// The HTTP request of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpHandlerConfig {
    /// The URL.
    pub url: String,
    /// Names and values of headers; values may contain `$VARIABLE`.
    pub headers: Vec<(String, String)>,
    /// Variables that headers may contain.
    pub env: Vec<String>,
}

/// The MCP tool of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerToolCall {
    /// The name of the server.
    pub server: String,
    /// The name of the tool on the server.
    pub tool: String,
    /// The input of the tool; `${a.b}` in a text is replaced by that field of the event.
    pub input: Value,
}

/// The question of a handler to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelHandlerConfig {
    /// The prompt; `$ARGUMENTS` is replaced by the event.
    pub prompt: String,
    /// The model to ask instead of the default one.
    pub model: Option<String>,
    /// Whether the model may use tools before it answers.
    pub with_tools: bool,
    /// Whether a "no" is reported to the working model, which then continues, instead of ending the
    /// run.
    pub goes_on: bool,
}

/// Calls a connected program: it receives the event and returns the JSON that a process would print
/// on stdout. The error is a message for users.
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

impl HookHandler {
    /// Creates a handler with default values for everything else.
    pub fn new(event: HookEventKind, matcher: HookMatcher, action: HookAction) -> Self {
        Self {
            event,
            matcher,
            condition: None,
            scope: SettingsScope::Session,
            origin: HookOrigin::Host,
            action,
            timeout: USUAL,
            has_own_timeout: false,
            fails_closed: false,
            in_background: false,
            wakes: false,
            once: false,
            status: None,
            written: Value::Null,
        }
    }

    /// Marks the handler as part of a plugin.
    #[must_use]
    pub fn with_plugin(mut self, plugin: &Arc<HookPlugin>) -> Self {
        self.origin = HookOrigin::Plugin(Arc::clone(plugin));
        if let HookAction::Shell(text) = &self.action
            && text.contains("${user_config.")
        {
            self.action = HookAction::Unavailable(
                "${user_config…} is for the form with args: a shell would run what is in it"
                    .to_owned(),
            );
        }
        self
    }

    /// Marks the handler as part of a skill or an agent kind. Only there `once` has an effect.
    #[must_use]
    pub fn with_skill(mut self, name: &str) -> Self {
        self.origin = HookOrigin::Skill(name.to_owned());
        self.once = self.written["once"] == true;
        self
    }

    /// Returns a short description for users.
    pub fn label(&self) -> String {
        format!("{}:{}", self.event.name(), self.owner())
    }

    /// Returns the name of its source.
    pub fn owner(&self) -> &'static str {
        match (&self.origin, self.scope) {
            (HookOrigin::Plugin(_), _) => "Plugin",
            (HookOrigin::Skill(_), _) => "Skill",
            (_, SettingsScope::Project) => "Project",
            (_, SettingsScope::Local) => "Local",
            (_, SettingsScope::Managed) => "Managed",
            (
                _,
                SettingsScope::User
                | SettingsScope::CommandLine
                | SettingsScope::Session
                | SettingsScope::Turn,
            ) => "User",
        }
    }

    /// Returns the key that identifies duplicates.
    pub(super) fn key(&self) -> String {
        match &self.origin {
            HookOrigin::Settings | HookOrigin::Host => self.written.to_string(),
            HookOrigin::Skill(name) => format!("skill {name} {}", self.written),
            HookOrigin::Plugin(plugin) => format!("plugin {} {}", plugin.name, self.written),
        }
    }
}

/// Reads the `hooks` of one settings file; `check` validates each `if`.
pub fn read(
    scope: SettingsScope,
    file: Option<&PathBuf>,
    value: &Value,
    bases: &PatternBases,
    check: &CheckCondition,
) -> (Vec<HookHandler>, Vec<SettingsProblem>) {
    let mut handlers = Vec::new();
    let mut problems = Vec::new();
    let place = file.map_or_else(
        || haft_settings::files::GIVEN.to_owned(),
        |file| file.display().to_string(),
    );
    let mut complain = |what: String| {
        problems.push(SettingsProblem {
            place: place.clone(),
            text: what,
        });
    };
    let Some(events) = value.as_object() else {
        complain("hooks is not an object; it is left out".to_owned());
        return (handlers, problems);
    };
    for (name, groups) in events {
        let Some(event) = HookEventKind::from_name(name) else {
            complain(format!("hooks.{name}: no such event; it is left out"));
            continue;
        };
        let Some(groups) = groups.as_array() else {
            complain(format!("hooks.{name} is not a list; it is left out"));
            continue;
        };
        for group in groups {
            let text = group.get("matcher").and_then(Value::as_str).unwrap_or("");
            let (matcher, broken) = HookMatcher::new(event, text);
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
    event: HookEventKind,
    matcher: &HookMatcher,
    scope: SettingsScope,
    entry: &Value,
    (bases, check): (&PatternBases, &CheckCondition),
) -> Result<HookHandler, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let is = |name: &str| entry.get(name) == Some(&Value::Bool(true));
    let kind = text("type").ok_or("a hook has no type")?;
    let action = action(kind, entry)?;
    if !event.accepts_handler(kind) {
        return Err(format!("a hook of type {kind} cannot be for this event"));
    }
    let condition = match text("if") {
        None => None,
        Some(rule) => Some(HookCondition::new(event, rule, bases, check)?),
    };
    let seconds = entry.get("timeout").and_then(Value::as_f64);
    let seconds = seconds.filter(|seconds| *seconds > 0.0);
    let said = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let is_command = kind == "command";
    Ok(HookHandler {
        condition,
        scope,
        origin: HookOrigin::Settings,
        timeout: said.unwrap_or_else(|| usual(kind, event)),
        has_own_timeout: said.is_some(),
        fails_closed: text("onFailure") == Some("block"),
        in_background: is_command && (is("async") || is("asyncRewake")),
        wakes: is_command && is("asyncRewake"),
        status: text("statusMessage").map(str::to_owned),
        written: entry.clone(),
        ..HookHandler::new(event, matcher.clone(), action)
    })
}

/// Returns the default timeout of a handler.
fn usual(kind: &str, event: HookEventKind) -> Duration {
    match (kind, event.name()) {
        (_, "UserPromptSubmit") | ("prompt", _) => Duration::from_secs(30),
        (_, "MessageDisplay") => Duration::from_secs(10),
        ("agent", _) => Duration::from_secs(60),
        _ => USUAL,
    }
}

fn action(kind: &str, entry: &Value) -> Result<HookAction, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let need = |name: &str| text(name).ok_or(format!("a hook of type {kind} has no {name}"));
    Ok(match kind {
        "command" => {
            let command = need("command")?.to_owned();
            match entry.get("args") {
                None if text("shell").is_some_and(|shell| shell != "bash") => {
                    HookAction::Unavailable("only bash runs hooks here".to_owned())
                }
                None => HookAction::Shell(command),
                Some(args) => HookAction::Program(command, texts(args, "args")?),
            }
        }
        "http" => {
            let mut headers = Vec::new();
            match entry.get("headers") {
                None | Some(Value::Null) => {}
                Some(Value::Object(written)) => {
                    for (name, value) in written {
                        let value = value
                            .as_str()
                            .ok_or(format!("header {name} is not a string"))?;
                        headers.push((name.clone(), value.to_owned()));
                    }
                }
                Some(_) => return Err("headers is not an object".to_owned()),
            }
            let env = entry.get("allowedEnvVars");
            HookAction::Http(HttpHandlerConfig {
                url: need("url")?.to_owned(),
                headers,
                env: env.map_or(Ok(Vec::new()), |env| texts(env, "allowedEnvVars"))?,
            })
        }
        "prompt" | "agent" => HookAction::Model(ModelHandlerConfig {
            prompt: need("prompt")?.to_owned(),
            model: text("model").map(str::to_owned),
            with_tools: kind == "agent",
            goes_on: kind == "agent" || entry.get("continueOnBlock") == Some(&Value::Bool(true)),
        }),
        "mcp_tool" => HookAction::Server(ServerToolCall {
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
    let items = value.as_array().ok_or(format!("{name} is not a list"))?;
    let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
    let texts: Option<Vec<String>> = texts.collect();
    texts.ok_or(format!("an entry of {name} is not a string"))
}
