//! A session of tools alone: the engine with the built-in tools, for those who bring their own loop.

use std::sync::Arc;

use haft_contract::{CancellationToken, Services, ToolUse};
use haft_engine::{
    CallBatch, CallResult, DefinitionError, Engine, Format, Pool, Scheduler, SessionContext,
};
use serde_json::Value;

use crate::{
    builder::HaftBuilder,
    messages::{MessageError, Messages},
};

/// A session: its tools, and what its calls inherit from each other.
pub struct Haft {
    pub(crate) scheduler: Scheduler,
    /// Of the turn that begins next.
    pub(crate) next: CancellationToken,
    pub(crate) unknown_tools: Vec<String>,
    pub(crate) unusable_tools: Vec<DefinitionError>,
}

impl Haft {
    /// Sets up a session that works in `cwd`.
    pub fn builder(cwd: impl Into<std::path::PathBuf>) -> HaftBuilder {
        HaftBuilder::new(cwd.into())
    }

    /// The tools.
    pub fn pool(&self) -> Arc<Pool> {
        self.scheduler.engine().pool()
    }

    /// What the model should be sent: the definitions of the tools, in a provider's shape. What was sent
    /// before comes first, unchanged.
    pub fn definitions(&self, format: Format) -> Vec<Value> {
        self.scheduler.offer().definitions(format)
    }

    /// Names that the filters asked for and no tool has.
    pub fn unknown_tools(&self) -> &[String] {
        &self.unknown_tools
    }

    /// Tools from elsewhere that were left out, and why.
    pub fn unusable_tools(&self) -> &[DefinitionError] {
        &self.unusable_tools
    }

    /// The session's context as it is now.
    pub fn context(&self) -> SessionContext {
        self.scheduler.context()
    }

    /// What its calls may reach, by type: the undo journal, the commands in the background.
    pub fn services(&self) -> &Services {
        self.scheduler.engine().services()
    }

    /// Fires to interrupt the turn that begins next: what runs in it is asked to stop, what waits never
    /// starts, and every call still gets its result. The turn after that has a token of its own.
    pub fn cancel_token(&self) -> CancellationToken {
        self.next.clone()
    }

    /// Fires to end the session: no call of it runs any more.
    pub fn session_token(&self) -> CancellationToken {
        self.scheduler.cancel_token()
    }

    /// The engine: tools can be added to it while the session goes on.
    pub fn engine(&self) -> &Arc<Engine> {
        self.scheduler.engine()
    }

    /// The scheduler, for the one who runs turns themselves.
    pub fn into_scheduler(self) -> Scheduler {
        self.scheduler
    }

    /// Begins a turn: push calls as they come, take results in the same order.
    pub async fn turn(&mut self) -> CallBatch<'_> {
        let next = self.scheduler.cancel_token().child_token();
        let cancel = std::mem::replace(&mut self.next, next);
        self.scheduler.turn_until(cancel).await
    }

    /// Runs calls, side by side where that is harmless; the results come in their order.
    pub async fn run(&mut self, calls: impl IntoIterator<Item = ToolUse>) -> Vec<CallResult> {
        let mut turn = self.turn().await;
        for call in calls {
            turn.push(call);
        }
        let mut results = Vec::new();
        while let Some(finished) = turn.next().await {
            results.push(finished);
        }
        results
    }

    /// Runs one call.
    pub async fn call(&mut self, name: &str, input: Value) -> CallResult {
        let call = ToolUse {
            id: String::new(),
            name: name.to_owned(),
            input,
        };
        self.run([call]).await.pop().expect("one call, one result")
    }

    /// Runs the tool calls of an assistant message, in the shape of any known provider, and makes
    /// the message or messages that answer it.
    pub async fn answer(&mut self, message: &Value) -> Result<Value, MessageError> {
        let messages = Messages::read(message)?;
        let results = self.run(messages.calls().iter().cloned()).await;
        Ok(messages.answer(&results))
    }
}
