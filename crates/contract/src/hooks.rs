//! Hook events that tools fire. A tool whose action is itself an event (a task is created, a
//! subagent starts) reports it to the user's hooks, and must not continue if one of them blocks it.

use std::{fmt, path::PathBuf, sync::Arc};

use serde_json::{Map, Value};

use crate::{BoxFuture, CallContext};

/// A hook event that a tool fires.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// Its name, such as `TaskCreated`.
    pub name: String,
    /// The text that matchers are compared with; empty if the event has no such text.
    pub matched: String,
    /// The fields that handlers receive, besides those of every event.
    pub fields: Map<String, Value>,
}

impl HookEvent {
    /// Creates an event with these fields, which must be an object.
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

/// The merged output of the handlers of one event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookVerdict {
    /// The reason why a handler blocks the action.
    pub block: Option<String>,
    /// Context for the model.
    pub context: Vec<String>,
    /// Messages for the user.
    pub messages: Vec<String>,
    /// The reason why a handler stops the whole turn.
    pub stop: Option<String>,
    /// The path of a worktree that a handler created.
    pub worktree: Option<PathBuf>,
}

impl HookVerdict {
    /// Merges the output of a later handler. The first block, stop and worktree win.
    pub fn extend(&mut self, later: Self) {
        self.block = self.block.take().or(later.block);
        self.context.extend(later.context);
        self.messages.extend(later.messages);
        self.stop = self.stop.take().or(later.stop);
        self.worktree = self.worktree.take().or(later.worktree);
    }
}

type FireHook = dyn Fn(HookEvent, &CallContext) -> BoxFuture<'static, HookVerdict> + Send + Sync;

/// The service that fires hook events. The engine provides it. Without it, no hook can block
/// anything.
#[derive(Clone)]
pub struct HookService(Arc<FireHook>);

impl HookService {
    /// Creates the service from a function.
    pub fn from_fn(
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

impl fmt::Debug for HookService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookService")
    }
}
