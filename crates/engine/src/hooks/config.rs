//! Handlers, as settings files write them.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use haft_contract::BoxFuture;
use serde_json::Value;

use super::{Event, Matcher, condition::Condition};
use crate::{
    permissions::{Bases, Scope},
    settings::Problem,
};

/// One handler of one event.
#[derive(Debug, Clone)]
pub struct Handler {
    /// When.
    pub event: Event,
    /// For what.
    pub matcher: Matcher,
    /// Only for calls that this rule speaks of.
    pub condition: Option<Condition>,
    /// Whose it is.
    pub scope: Scope,
    /// What runs.
    pub action: Action,
    /// How long it may take.
    pub timeout: Duration,
    /// Its failure holds the event up.
    pub guards: bool,
    /// It runs beside the session, and nobody waits for it.
    pub in_background: bool,
    /// The handler as written, to tell two of the same apart from two others.
    pub written: Value,
}

/// What a handler does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A text for the shell.
    Shell(String),
    /// A program with its arguments.
    Program(String, Vec<String>),
    /// A program that is connected already, and is asked there.
    Callback(Callback),
    /// A kind that this build cannot run.
    Unavailable(String),
}

/// Asks a program that is connected already: it is told of the event, and answers as a process would on
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
    /// What a person knows it by.
    pub fn label(&self) -> String {
        let scope = match self.scope {
            Scope::Project => "Project",
            Scope::Local => "Local",
            Scope::Managed => "Managed",
            Scope::User | Scope::CommandLine | Scope::Session | Scope::Turn => "User",
        };
        format!("{}:{}", self.event.name(), scope)
    }
}

/// Reads the `hooks` of one settings file.
pub fn read(
    scope: Scope,
    file: Option<&PathBuf>,
    value: &Value,
    bases: &Bases,
) -> (Vec<Handler>, Vec<Problem>) {
    let mut handlers = Vec::new();
    let mut problems = Vec::new();
    let place = file.map_or_else(
        || "--settings".to_owned(),
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
        let Some(event) = Event::named(name) else {
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
                match handler(event, &matcher, scope, entry, bases) {
                    Ok(handler) => handlers.push(handler),
                    Err(what) => complain(format!("hooks.{name}: {what}; it is left out")),
                }
            }
        }
    }
    (handlers, problems)
}

fn handler(
    event: Event,
    matcher: &Matcher,
    scope: Scope,
    entry: &Value,
    bases: &Bases,
) -> Result<Handler, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let kind = text("type").ok_or("a hook has no type")?;
    let action = match kind {
        "command" => {
            let command = text("command").ok_or("a command hook has no command")?;
            match entry.get("args") {
                None => {
                    if text("shell").is_some_and(|shell| shell != "bash") {
                        Action::Unavailable("only bash runs hooks here".to_owned())
                    } else {
                        Action::Shell(command.to_owned())
                    }
                }
                Some(Value::Array(args)) => {
                    let args = args.iter().map(|arg| arg.as_str().map(str::to_owned));
                    let args: Option<Vec<String>> = args.collect();
                    Action::Program(command.to_owned(), args.ok_or("an argument is no text")?)
                }
                Some(_) => return Err("args is no list".to_owned()),
            }
        }
        "http" | "mcp_tool" | "prompt" | "agent" => {
            Action::Unavailable(format!("hooks of type {kind} cannot run here"))
        }
        other => return Err(format!("no hook has the type {other:?}")),
    };
    let condition = match text("if") {
        None => None,
        Some(rule) => Some(Condition::new(event, rule, bases)?),
    };
    let seconds = entry.get("timeout").and_then(Value::as_f64);
    let usual = match (kind, event.name()) {
        (_, "UserPromptSubmit") | ("prompt", _) => 30.0,
        (_, "MessageDisplay") => 10.0,
        ("agent", _) => 60.0,
        _ => 600.0,
    };
    let seconds = seconds.filter(|seconds| *seconds > 0.0).unwrap_or(usual);
    let is = |name: &str| entry.get(name) == Some(&Value::Bool(true));
    Ok(Handler {
        event,
        matcher: matcher.clone(),
        condition,
        scope,
        action,
        timeout: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(600)),
        guards: text("onFailure") == Some("block"),
        in_background: is("async") || is("asyncRewake"),
        written: entry.clone(),
    })
}
