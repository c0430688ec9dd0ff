//! Hooks, as far as tools fire them: a tool whose work is an event of its own (a task is created, a
//! subagent begins) reports it to the user's programs, and learns whether they object.

use std::{fmt, path::PathBuf, sync::Arc};

use serde_json::{Map, Value};

use crate::{BoxFuture, CallContext};

/// An event that a tool brings about.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// Its name, such as `TaskCreated`.
    pub name: String,
    /// What matchers look at; empty where the event has nothing to match.
    pub matched: String,
    /// What handlers receive, beside what every event has.
    pub fields: Map<String, Value>,
}

impl HookEvent {
    /// An event with these fields, which must be an object.
    pub fn new(name: impl Into<String>, matched: impl Into<String>, fields: Value) -> Self {
        Self {
            name: name.into(),
            matched: matched.into(),
            fields: match fields {
                Value::Object(fields) => fields,
                _ => Map::new(),
            },
        }
    }
}

/// What the handlers of one event said, taken together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookVerdict {
    /// They block it: why.
    pub block: Option<String>,
    /// What the model should know.
    pub context: Vec<String>,
    /// What the person should know.
    pub messages: Vec<String>,
    /// Everything should stop after this: why.
    pub stop: Option<String>,
    /// A worktree that one of them made.
    pub worktree: Option<PathBuf>,
}

impl HookVerdict {
    /// Adds what was said later. Anyone who was first to hold it up, or to want everything to stop, counts.
    pub fn extend(&mut self, later: Self) {
        self.block = self.block.take().or(later.block);
        self.context.extend(later.context);
        self.messages.extend(later.messages);
        self.stop = self.stop.take().or(later.stop);
        self.worktree = self.worktree.take().or(later.worktree);
    }
}

type Fire = dyn Fn(HookEvent, &CallContext) -> BoxFuture<'static, HookVerdict> + Send + Sync;

/// The service that fires them. The engine brings it; where there is none, no one objects.
#[derive(Clone)]
pub struct HookFire(Arc<Fire>);

impl HookFire {
    /// Fired like this.
    pub fn by(
        fire: impl Fn(HookEvent, &CallContext) -> BoxFuture<'static, HookVerdict>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(fire))
    }

    /// Runs the handlers of an event and waits for all of them.
    pub async fn fire(cx: &CallContext, event: HookEvent) -> HookVerdict {
        match cx.services.get::<Self>() {
            Ok(fire) => (fire.0)(event, cx).await,
            Err(_) => HookVerdict::default(),
        }
    }
}

impl fmt::Debug for HookFire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookFire")
    }
}
