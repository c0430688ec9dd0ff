//! Delegating work to a subagent: a model with its own tools that works in a new conversation and
//! returns its final message. Tools know only these types; subagents are implemented in another
//! crate.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use serde::Serialize;

use crate::{BoxFuture, CallContext, TaskStatus, ToolError, WorktreeOutcome};

/// Runs subagents for the calls of one session or subagent.
pub trait SubagentSpawner: Send + Sync {
    /// Returns the available agent kinds.
    fn kinds(&self) -> Vec<AgentKind>;

    /// Checks whether the subagent can be launched now. The error is text for the model.
    fn check(&self, launch: &LaunchRequest) -> Result<(), ToolError>;

    /// Launches a subagent, and waits for it unless it runs in the background.
    fn launch<'a>(
        &'a self,
        launch: LaunchRequest,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<LaunchOutcome, ToolError>>;

    /// Sends a message to a subagent that was launched before. A running subagent reads it between
    /// two requests; a finished one resumes its work in the background.
    fn send<'a>(
        &'a self,
        letter: AgentMessage,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<MessageDelivery, ToolError>>;

    /// Returns the status of the subagent with this id or name; `None` if none exists.
    fn status(&self, name: &str) -> Option<AgentStatus>;

    /// Waits until the subagent with this id or name has finished.
    fn wait<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()>;

    /// Asks the subagent with this id or name to stop. It finishes shortly after that.
    fn stop(&self, name: &str);
}

/// The service through which calls use subagents.
#[derive(Clone)]
pub struct Subagents(pub Arc<dyn SubagentSpawner>);

impl fmt::Debug for Subagents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subagents")
    }
}

/// An agent kind, as described to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentKind {
    /// Its name.
    pub name: String,
    /// The tasks it is suited for.
    pub description: String,
    /// A description of its tools; empty if the description is enough.
    pub tools: String,
}

/// A request to launch a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchRequest {
    /// Its agent kind; `None`: the general-purpose kind.
    pub kind: Option<String>,
    /// Its task.
    pub prompt: String,
    /// A short description of the task.
    pub description: String,
    /// The model, instead of that of its kind.
    pub model: Option<String>,
    /// The reasoning effort, instead of that of its kind.
    pub effort: Option<String>,
    /// The caller does not wait for it; `None`: as its kind says.
    pub background: Option<bool>,
    /// A name to send messages to, besides its id.
    pub name: Option<String>,
    /// It works in its own worktree; `None`: as its kind says.
    pub worktree: Option<bool>,
}

/// The result of a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum LaunchOutcome {
    /// The subagent has finished.
    Done(Box<AgentReport>),
    /// The subagent runs in the background.
    InBackground(BackgroundHandle),
}

/// The report of a finished subagent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentReport {
    /// Its id.
    pub agent: String,
    /// Its agent kind.
    pub kind: String,
    /// Its final message.
    pub text: String,
    /// It did not finish normally.
    pub failed: bool,
    /// The reason why the final message is incomplete: the subagent failed or was stopped.
    pub problem: Option<String>,
    /// The model it was configured with.
    pub model: String,
    /// All models that answered.
    pub models_used: Vec<String>,
    /// The number of calls it made.
    pub tool_uses: u64,
    /// The duration.
    pub duration: Duration,
    /// The tokens of its last request.
    pub tokens: TokenCount,
    /// The state of its worktree, if it had one.
    pub worktree: Option<WorktreeOutcome>,
}

/// The tokens of one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TokenCount {
    /// Input tokens that were not cached.
    #[serde(rename = "input_tokens")]
    pub input: u64,
    /// Output tokens.
    #[serde(rename = "output_tokens")]
    pub output: u64,
    /// Input tokens written to the cache.
    #[serde(rename = "cache_creation_input_tokens")]
    pub cache_write: u64,
    /// Input tokens read from the cache.
    #[serde(rename = "cache_read_input_tokens")]
    pub cache_read: u64,
}

impl TokenCount {
    /// Returns the sum of all tokens.
    pub fn total(&self) -> u64 {
        self.input + self.output + self.cache_write + self.cache_read
    }
}

/// A subagent that was launched in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundHandle {
    /// Its id.
    pub agent: String,
    /// A short description of its task.
    pub description: String,
    /// The file that will contain its final message.
    pub output_file: PathBuf,
    /// The model it is configured with.
    pub model: String,
}

/// A message to a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentMessage {
    /// The id or name of the subagent.
    pub to: String,
    /// The message.
    pub message: String,
    /// A short summary of the message.
    pub summary: String,
}

/// The delivery of an [`AgentMessage`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageDelivery {
    /// The subagent is running and reads the message before its next request.
    Delivered {
        /// Its id.
        agent: String,
    },
    /// The subagent had finished and has resumed its work.
    Resumed(BackgroundHandle),
}

/// The status of a subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus {
    /// Its id.
    pub id: String,
    /// Its state.
    pub status: TaskStatus,
    /// A short description of its task.
    pub description: String,
    /// The file with its final message, if it ran in the background.
    pub output_file: PathBuf,
    /// Its final message; empty until it has finished.
    pub text: String,
}
