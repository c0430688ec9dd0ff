//! Handing work to a subagent: a model with tools of its own, that works in a fresh conversation and
//! answers with its final words. Tools know only this; who runs subagents stands above them.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use serde::Serialize;

use crate::{BoxFuture, CallContext, TaskStatus, ToolError, WorktreeOutcome};

/// Runs subagents for the calls of one session, or of one subagent.
pub trait SpawnAgents: Send + Sync {
    /// The kinds there are.
    fn kinds(&self) -> Vec<AgentKind>;

    /// Can it be launched as things are? The error is for the model.
    fn check(&self, launch: &LaunchRequest) -> Result<(), ToolError>;

    /// Launches a subagent, and waits for it unless it is to run in the background.
    fn launch<'a>(
        &'a self,
        launch: LaunchRequest,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<LaunchOutcome, ToolError>>;

    /// Says something to a subagent that was launched before: one that runs reads it between two
    /// requests, one that is done takes its work up again in the background.
    fn send<'a>(
        &'a self,
        letter: AgentMessage,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<MessageDelivery, ToolError>>;

    /// How far the subagent of this id or name is; `None`: there is no such one.
    fn look(&self, name: &str) -> Option<AgentStatus>;

    /// Waits until it is done.
    fn wait<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()>;

    /// Tells it to end; it is done a moment later.
    fn stop(&self, name: &str);
}

/// The service by which calls reach subagents.
#[derive(Clone)]
pub struct Subagents(pub Arc<dyn SpawnAgents>);

impl fmt::Debug for Subagents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subagents")
    }
}

/// A kind of subagent, as a model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentKind {
    /// What it is asked for by.
    pub name: String,
    /// When to hand work to it.
    pub description: String,
    /// Its tools, in words; empty where the description says enough.
    pub tools: String,
}

/// A subagent that is to be launched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchRequest {
    /// Its kind; `None`: the one for everything.
    pub kind: Option<String>,
    /// What it is to do.
    pub prompt: String,
    /// The same in a few words.
    pub description: String,
    /// The model, in place of that of its kind.
    pub model: Option<String>,
    /// How hard the model tries, in place of what its kind says.
    pub effort: Option<String>,
    /// The caller does not wait for it; `None`: as its kind says.
    pub background: Option<bool>,
    /// What messages to it are addressed to, beside its id.
    pub name: Option<String>,
    /// It works in a copy of the project; `None`: as its kind says.
    pub worktree: Option<bool>,
}

/// What came of a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum LaunchOutcome {
    /// It is done.
    Done(Box<AgentReport>),
    /// It works in the background.
    InBackground(BackgroundHandle),
}

/// What a subagent that is done leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentReport {
    /// Its id.
    pub agent: String,
    /// Its kind.
    pub kind: String,
    /// Its final words.
    pub text: String,
    /// It did not come to an end of its own.
    pub failed: bool,
    /// Why its words are not all there is to say: it failed, or was stopped.
    pub problem: Option<String>,
    /// The model it was asked of.
    pub model: String,
    /// All models that answered.
    pub models_used: Vec<String>,
    /// How many calls it made.
    pub tool_uses: u64,
    /// How long it took.
    pub duration: Duration,
    /// Of its last request.
    pub tokens: TokenCount,
    /// What is left of the worktree it had.
    pub worktree: Option<WorktreeOutcome>,
}

/// Tokens of one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TokenCount {
    /// Read anew.
    #[serde(rename = "input_tokens")]
    pub input: u64,
    /// Written.
    #[serde(rename = "output_tokens")]
    pub output: u64,
    /// Read and kept for the next request.
    #[serde(rename = "cache_creation_input_tokens")]
    pub cache_write: u64,
    /// Read from what was kept.
    #[serde(rename = "cache_read_input_tokens")]
    pub cache_read: u64,
}

impl TokenCount {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.input + self.output + self.cache_write + self.cache_read
    }
}

/// What is known of a subagent in the background when it is launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundHandle {
    /// Its id.
    pub agent: String,
    /// What it is to do, in a few words.
    pub description: String,
    /// Where its final words will be.
    pub output_file: PathBuf,
    /// The model it is asked of.
    pub model: String,
}

/// Something said to a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentMessage {
    /// Its id or name.
    pub to: String,
    /// What.
    pub message: String,
    /// The same in a few words.
    pub summary: String,
}

/// What became of an [`AgentMessage`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageDelivery {
    /// It runs, and reads it before its next request.
    Delivered {
        /// Its id.
        agent: String,
    },
    /// It was done, and works again.
    Resumed(BackgroundHandle),
}

/// How far a subagent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// What it is to do, in a few words.
    pub description: String,
    /// Where its final words are, if no one waited for it.
    pub output_file: PathBuf,
    /// Its final words; none before it is done.
    pub text: String,
}
