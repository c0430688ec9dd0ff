//! Hooks: programs of the user's that are told of what happens, and may have a say in it.
//!
//! All handlers that fit run side by side; an identical one from two files runs once. What they say
//! is taken together: deny before defer before ask before allow. A handler that fails says nothing,
//! unless it is a guard: then its failure holds the event up.

mod condition;
mod config;
mod event;
mod matcher;
pub mod output;
mod run;

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::future::join_all;
use serde_json::{Map, Value};

pub use config::{Action, Callback, Handler, read};
pub use event::Event;
pub use matcher::Matcher;
pub use output::{Said, Word};
use run::Surroundings;

use crate::permissions::{Setting, rules::canonical};

/// The handlers of a session.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    handlers: Vec<Handler>,
    /// The project's root when the session started.
    project: PathBuf,
    /// Variables that the settings name.
    env: Arc<BTreeMap<String, String>>,
}

/// One occasion of an event.
#[derive(Debug)]
pub struct Occasion<'a> {
    /// Which event.
    pub event: Event,
    /// What matchers look at: the tool's name and its aliases, or another value.
    pub names: &'a [&'a str],
    /// What handlers are told, beside what every event tells.
    pub fields: Map<String, Value>,
    /// The call it is about, for `if`.
    pub call: Option<(&'a str, &'a Value)>,
    /// Where the session is.
    pub setting: &'a Setting,
}

/// What every event tells.
#[derive(Debug, Clone)]
pub struct Common {
    /// The session.
    pub session_id: String,
    /// Its transcript.
    pub transcript_path: PathBuf,
    /// The permission mode, where the event tells it.
    pub permission_mode: Option<&'static str>,
    /// Whose doing it is.
    pub agent: Identity,
}

/// Who acts in a session: the main agent, of some kind or none, or a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The id of a subagent.
    pub id: Option<String>,
    /// The kind.
    pub kind: Option<String>,
}

/// What one handler said, and which it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The handler, as a person knows it.
    pub label: String,
    /// What it said.
    pub said: Said,
}

impl Hooks {
    /// The handlers of a session whose project lies here.
    pub fn new(handlers: Vec<Handler>, project: &Path) -> Self {
        Self {
            handlers,
            project: project.to_path_buf(),
            env: Arc::default(),
        }
    }

    /// The same with variables for the handlers; an empty one takes away what is inherited.
    #[must_use]
    pub fn with_env(mut self, env: BTreeMap<String, String>) -> Self {
        self.env = Arc::new(env);
        self
    }

    /// The same with further handlers.
    #[must_use]
    pub fn with_handlers(mut self, handlers: Vec<Handler>) -> Self {
        self.handlers.extend(handlers);
        self
    }

    /// There is none for this event, so that nothing need be gathered for it.
    pub fn is_silent(&self, event: Event) -> bool {
        !self.handlers.iter().any(|handler| handler.event == event)
    }

    /// Runs every handler that fits, side by side, and hears all of them, in the order they are
    /// written.
    pub async fn fire(&self, occasion: &Occasion<'_>, common: &Common) -> Vec<Heard> {
        let fitting = self.fitting(occasion);
        if fitting.is_empty() {
            return Vec::new();
        }
        let input = message(occasion, common);
        join_all(
            fitting
                .into_iter()
                .map(|handler| self.hear(handler, &input, &occasion.setting.cwd)),
        )
        .await
        .into_iter()
        .flatten()
        .collect()
    }

    fn fitting(&self, occasion: &Occasion<'_>) -> Vec<&Handler> {
        let mut seen = HashSet::new();
        self.handlers
            .iter()
            .filter(|handler| handler.event == occasion.event)
            .filter(|handler| handler.matcher.fits(occasion.names))
            .filter(|handler| match (&handler.condition, occasion.call) {
                (None, _) => true,
                (Some(condition), Some((tool, input))) => {
                    condition.holds(tool, input, occasion.setting)
                }
                (Some(_), None) => false,
            })
            .filter(|handler| seen.insert(handler.written.to_string()))
            .collect()
    }

    async fn hear(&self, handler: &Handler, input: &str, cwd: &Path) -> Option<Heard> {
        if handler.in_background {
            let (action, input, limit) =
                (handler.action.clone(), input.to_owned(), handler.timeout);
            let (cwd, project, env) = (
                cwd.to_path_buf(),
                self.project.clone(),
                Arc::clone(&self.env),
            );
            tokio::spawn(async move {
                let surroundings = Surroundings {
                    cwd: &cwd,
                    project: &project,
                    env: &env,
                };
                if let Err(error) = run::run(&action, &input, limit, surroundings).await {
                    tracing::debug!(%error, "a hook in the background failed");
                }
            });
            return None;
        }
        let surroundings = Surroundings {
            cwd,
            project: &self.project,
            env: &self.env,
        };
        let ended = run::run(&handler.action, input, handler.timeout, surroundings).await;
        let mut said = match ended {
            Ok(ended) => Said::read(handler.event, &ended),
            Err(error) => Said::failed(error.to_string()),
        };
        if let Some(why) = said.failure.take_if(|_| handler.guards) {
            let label = handler.label();
            said.block = Some(format!("the guard hook {label} did not answer: {why}"));
        }
        tracing::debug!(event = handler.event.name(), ?said, "hook");
        Some(Heard {
            label: handler.label(),
            said,
        })
    }
}

/// What handlers read on their stdin.
fn message(occasion: &Occasion<'_>, common: &Common) -> String {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| {
        object.insert(name.to_owned(), value);
    };
    put("session_id", common.session_id.clone().into());
    put(
        "transcript_path",
        common.transcript_path.to_string_lossy().into(),
    );
    put("cwd", occasion.setting.cwd.to_string_lossy().into());
    if let Some(mode) = common.permission_mode {
        put("permission_mode", mode.into());
    }
    put("hook_event_name", occasion.event.name().into());
    let Identity { id, kind } = &common.agent;
    for (name, value) in [("agent_id", id), ("agent_type", kind)] {
        if let Some(value) = value {
            put(name, value.as_str().into());
        }
    }
    for (name, value) in &occasion.fields {
        put(name, value.clone());
    }
    Value::Object(object).to_string()
}

/// A tool's name with every alias that a matcher may know it by.
pub fn names_of<'a>(tool: &'a str, aliases: &[&'a str]) -> Vec<&'a str> {
    let mut names = vec![tool];
    names.extend(aliases);
    let own = canonical(tool);
    if own != tool {
        names.push(own);
    }
    names
}
