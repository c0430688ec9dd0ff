//! The events of an agent.

use std::{path::PathBuf, sync::Arc, time::Duration};

use haft_contract::{CallId, Card, Content, PermissionMode, ProgressUpdate, SessionId};
use haft_engine::CallResult;
use haft_models::{Block, ModelError, ModelEvent, Usage};
use uuid::Uuid;

use crate::SubagentInfo;

/// Receives the events of an agent in order.
pub trait AgentEventSink: Send + Sync {
    /// Receives an event. The agent loop calls this function and waits until it returns.
    fn on_event(&self, event: &AgentEvent);
}

impl<F: Fn(&AgentEvent) + Send + Sync> AgentEventSink for F {
    fn on_event(&self, event: &AgentEvent) {
        self(event);
    }
}

/// An event of an agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AgentEvent {
    /// A run has started.
    RunStarted(RunStart),
    /// A streaming event of a reply. [`ModelEvent::Discard`] makes the blocks of this reply void.
    Model(ModelEvent),
    /// A block of a reply is complete.
    BlockCompleted(Box<ReplyBlock>),
    /// The input of a call is valid. The call is then approved if necessary, runs, and gets a
    /// result.
    CallBound {
        /// The id of the call.
        call: CallId,
        /// The provider's id of the call.
        tool_use_id: String,
        /// The name of the tool.
        tool_name: String,
        /// The card that the user sees.
        card: Card,
    },
    /// The call was permitted, and its tool runs.
    CallStarted {
        /// The provider's id of the call.
        tool_use_id: String,
    },
    /// Progress of a running call. It may be dropped: it is never part of the result.
    Progress {
        /// The id of the call.
        call: CallId,
        /// The provider's id of the call.
        tool_use_id: String,
        /// The update.
        update: ProgressUpdate,
    },
    /// A call has a result. These events are in the order of the calls.
    CallFinished {
        /// The id of the transcript line.
        uuid: Uuid,
        /// The result. A call that never reached its tool has one too.
        finished: Box<CallResult>,
    },
    /// A call is still running. Reported every few seconds.
    CallRunning {
        /// The provider's id of the call.
        tool_use_id: String,
        /// The name of the tool.
        tool_name: String,
        /// The run time so far.
        elapsed: Duration,
    },
    /// A message was added in the user's name.
    MessageInjected {
        /// The id of the transcript line.
        uuid: Uuid,
        /// The content.
        content: Vec<Content>,
        /// The source of the message.
        by: InjectionSource,
    },
    /// The model request failed, which ends the run.
    ModelFailed(ModelError),
    /// A compaction has started.
    Compacting {
        /// The trigger.
        trigger: CompactionTrigger,
    },
    /// A compaction has finished.
    Compacted {
        /// The trigger.
        trigger: CompactionTrigger,
        /// The number of tokens before.
        pre_tokens: u64,
        /// The approximate number of tokens after.
        post_tokens: u64,
        /// The duration.
        duration: Duration,
        /// The id of the transcript line.
        uuid: Uuid,
    },
    /// An event of a subagent.
    Subagent {
        /// The subagent.
        agent: Arc<SubagentInfo>,
        /// The event. Streaming events of replies are not forwarded.
        event: Box<AgentEvent>,
    },
    /// A notice for the user.
    Notice {
        /// The level.
        level: NoticeLevel,
        /// The text.
        text: String,
    },
}

/// The session at the start of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStart {
    /// The id of the session.
    pub session: SessionId,
    /// The working directory.
    pub cwd: PathBuf,
    /// The model.
    pub model: String,
    /// The permission mode.
    pub mode: PermissionMode,
    /// The available tools in their order, including deferred ones.
    pub tools: Vec<String>,
}

/// A complete block of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplyBlock {
    /// The id of the transcript line.
    pub uuid: Uuid,
    /// The provider's id of the message.
    pub message_id: String,
    /// Our id of the request. It is needed because some servers give every message the same id.
    pub request_id: String,
    /// The position in the message. Blocks may end in a different order than they began.
    pub position: usize,
    /// The model, under the name that the provider reports.
    pub model: String,
    /// The block.
    pub block: Block,
    /// The tokens that the reply has used so far.
    pub usage: Usage,
}

/// The source of a message that was added in the user's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InjectionSource {
    /// The user, during a run.
    Steering,
    /// A hook.
    Hook,
    /// A tool, in addition to its result.
    Tool,
    /// The loop: a background task has ended.
    Background,
    /// The loop: a file was read that has instructions.
    Instructions,
    /// The loop: the model repeats the same calls.
    Repeats,
    /// The loop: the user interrupted the run.
    Interrupt,
    /// The loop: plan mode was switched on or off, not by the model.
    Mode,
}

/// The trigger of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionTrigger {
    /// The user requested it.
    Manual,
    /// The context window was nearly full.
    Auto,
}

impl CompactionTrigger {
    /// Returns the name in messages and hook input.
    pub fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

/// The level of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeLevel {
    /// Information.
    Info,
    /// A problem.
    Warning,
}

impl NoticeLevel {
    /// Returns the name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
        }
    }
}
