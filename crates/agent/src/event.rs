//! What is reported while an agent runs.

use std::{path::PathBuf, sync::Arc, time::Duration};

use haft_contract::{CallId, Card, Content, PermissionMode, SessionId, Update};
use haft_engine::CallResult;
use haft_models::{Block, ModelError, ModelEvent, Usage};
use uuid::Uuid;

use crate::Tag;

/// Gets what happens, in order.
pub trait Sink: Send + Sync {
    /// Something happened. Called from the loop: the model waits until this returns.
    fn on_event(&self, event: &AgentEvent);
}

impl<F: Fn(&AgentEvent) + Send + Sync> Sink for F {
    fn on_event(&self, event: &AgentEvent) {
        self(event);
    }
}

/// Something that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AgentEvent {
    /// A run begins.
    Began(Began),
    /// A piece of a reply, as the model said it. [`ModelEvent::Discard`] takes back the blocks of this reply.
    Model(ModelEvent),
    /// A block of a reply is complete.
    Said(Box<ReplyBlock>),
    /// A call fits its tool: it is asked about if need be, runs when it is its turn, and is answered.
    Calling {
        /// Which.
        call: CallId,
        /// The provider's id of it.
        tool_use_id: String,
        /// The tool.
        tool_name: String,
        /// The call as a person sees it.
        card: Card,
    },
    /// A call is permitted, and its tool runs.
    Started {
        /// The provider's id of the call.
        tool_use_id: String,
    },
    /// News from a running call. Where no one shows them they are dropped: they are never a result.
    Progress {
        /// Which.
        call: CallId,
        /// The provider's id of it.
        tool_use_id: String,
        /// What.
        update: Update,
    },
    /// A call is answered; in the order of the calls.
    Answered {
        /// Its line in the transcript.
        uuid: Uuid,
        /// How it ended. A call that never reached its tool has a result too.
        finished: Box<CallResult>,
    },
    /// A call is at work; reported every few seconds.
    Working {
        /// The provider's id of the call.
        tool_use_id: String,
        /// The tool.
        tool_name: String,
        /// For how long.
        elapsed: Duration,
    },
    /// Something was added in the user's name.
    Added {
        /// Its line in the transcript.
        uuid: Uuid,
        /// What it says.
        content: Vec<Content>,
        /// By whom.
        by: Added,
    },
    /// The model could not answer, and the run ends for it.
    Failed(ModelError),
    /// The conversation is being summarized.
    Compacting {
        /// Why.
        trigger: Trigger,
    },
    /// The conversation was summarized.
    Compacted {
        /// Why.
        trigger: Trigger,
        /// How long it was, in tokens.
        pre_tokens: u64,
        /// How long it is now, about.
        post_tokens: u64,
        /// How long it took.
        duration: Duration,
        /// Its line in the transcript.
        uuid: Uuid,
    },
    /// Something happened in a subagent.
    Subagent {
        /// Which.
        agent: Arc<Tag>,
        /// What. Never a piece of a reply.
        event: Box<AgentEvent>,
    },
    /// Something a person should know.
    Notice {
        /// How much it matters.
        level: NoticeLevel,
        /// What.
        text: String,
    },
}

/// What is known when a run begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Began {
    /// The session.
    pub session: SessionId,
    /// Where relative paths start.
    pub cwd: PathBuf,
    /// The model that is asked.
    pub model: String,
    /// How much runs without asking.
    pub mode: PermissionMode,
    /// The tools there are, deferred ones included, in their order.
    pub tools: Vec<String>,
}

/// A complete block of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplyBlock {
    /// Its line in the transcript.
    pub uuid: Uuid,
    /// The message it is part of, as the provider names it.
    pub message_id: String,
    /// The request it answers, as we name it: some servers give every message the same id.
    pub request_id: String,
    /// Its place in the message; blocks may end in another order than they begin in.
    pub position: usize,
    /// Who said it, as the provider names the model.
    pub model: String,
    /// What.
    pub block: Block,
    /// What the reply has cost so far.
    pub usage: Usage,
}

/// Who added something in the user's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Added {
    /// The person, while the model was at work.
    Steering,
    /// A hook.
    Hook,
    /// A tool, beside its result.
    Tool,
    /// The loop: a task in the background is over.
    Background,
    /// The loop: a file was read that people wrote something about.
    Knowledge,
    /// The loop: the model goes in circles.
    Repeats,
    /// The loop: the person interrupted it.
    Interrupt,
    /// The loop: plan mode began or ended by another hand than the model's.
    Mode,
}

/// Why a conversation is summarized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A person asked for it.
    Manual,
    /// It came near the end of the model's window.
    Auto,
}

impl Trigger {
    /// Its name in messages and hooks.
    pub fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something is not as it should be.
    Warning,
}

impl NoticeLevel {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
        }
    }
}
