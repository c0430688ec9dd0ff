//! A session of tools only: the engine with the built-in tools, for callers with their own loop.

use std::sync::Arc;

use haft_contract::{CancellationToken, Services, ToolUse};
use haft_engine::{
    CallBatch, CallResult, DefinitionError, Engine, Pool, Scheduler, SessionContext, ToolFormat,
};
use serde_json::Value;

use crate::{
    builder::HaftBuilder,
    messages::{MessageError, ProviderMessage},
};

/// A session of tools, and the context that its calls inherit from each other.
pub struct Haft {
    pub(crate) scheduler: Scheduler,
    /// The token of the next batch.
    pub(crate) next: CancellationToken,
    pub(crate) unknown_tools: Vec<String>,
    pub(crate) unusable_tools: Vec<DefinitionError>,
}

impl Haft {
    /// Returns a builder for a session that works in `cwd`.
    pub fn builder(cwd: impl Into<std::path::PathBuf>) -> HaftBuilder {
        HaftBuilder::new(cwd.into())
    }

    /// Returns the tools.
    pub fn pool(&self) -> Arc<Pool> {
        self.scheduler.engine().pool()
    }

    /// Returns the definitions of the tools for the model, in a provider's format. Those that were
    /// sent before come first, unchanged.
    pub fn definitions(&self, format: ToolFormat) -> Vec<Value> {
        self.scheduler.offer().definitions(format)
    }

    /// Returns the names in the filters that match no tool.
    pub fn unknown_tools(&self) -> &[String] {
        &self.unknown_tools
    }

    /// Returns the external tools that were left out, with the reasons.
    pub fn unusable_tools(&self) -> &[DefinitionError] {
        &self.unusable_tools
    }

    /// Returns the current context of the session.
    pub fn context(&self) -> SessionContext {
        self.scheduler.context()
    }

    /// Returns the services by type, such as the undo journal and the background commands.
    pub fn services(&self) -> &Services {
        self.scheduler.engine().services()
    }

    /// Returns the token that interrupts the next batch: running calls are asked to stop, waiting
    /// calls never start, and every call still gets its result. Later batches have their own
    /// tokens.
    pub fn cancel_token(&self) -> CancellationToken {
        self.next.clone()
    }

    /// Returns the token that ends the session: after that, no call runs.
    pub fn session_token(&self) -> CancellationToken {
        self.scheduler.cancel_token()
    }

    /// Returns the engine. Tools can be added to it during the session.
    pub fn engine(&self) -> &Arc<Engine> {
        self.scheduler.engine()
    }

    /// Returns the scheduler, for callers that run the batches themselves.
    pub fn into_scheduler(self) -> Scheduler {
        self.scheduler
    }

    /// Starts a batch: push calls as they arrive, and take the results in the same order.
    pub async fn turn(&mut self) -> CallBatch<'_> {
        // Without prompts, a batch is a task.
        self.scheduler.engine().grants().end_task();
        let next = self.scheduler.cancel_token().child_token();
        let cancel = std::mem::replace(&mut self.next, next);
        self.scheduler.start_batch_until(cancel).await
    }

    /// Runs calls, concurrently where that is safe; the results are in the order of the calls.
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

    /// Runs the tool calls of an assistant message, in the format of any known provider, and
    /// returns the message or messages that answer it.
    pub async fn answer(&mut self, message: &Value) -> Result<Value, MessageError> {
        let messages = ProviderMessage::read(message)?;
        let results = self.run(messages.calls().iter().cloned()).await;
        Ok(messages.answer(&results))
    }
}
