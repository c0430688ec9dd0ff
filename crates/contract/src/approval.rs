//! Permission, as far as a tool and the person have a say in it. The decision is the engine's.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BoxFuture, CallId, Card, ContextPatch, ToolUse};

/// How much runs without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Reads inside the working directories; the rest asks.
    #[default]
    #[serde(alias = "manual")]
    Default,
    /// Also edits of files inside the working directories.
    AcceptEdits,
    /// Reads only: everything else asks, until a plan is approved.
    Plan,
    /// Whatever would ask is refused.
    DontAsk,
    /// Everything that is not denied outright.
    BypassPermissions,
}

impl PermissionMode {
    /// The name used in flags, settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

/// What [`Tool::check`](crate::Tool::check) found in a call that makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// Nothing to object to.
    Pass,
    /// Let the person decide, in any mode; here is why.
    Ask(String),
}

/// A tool's own word on permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// What the effects say: reading is free, the rest asks.
    ByEffects,
    /// Free, whatever the effects: it changes nothing a person would want to be asked about.
    Allow,
    /// Ask, in any mode; here is why.
    Ask(String),
    /// Never; here is why.
    Deny(String),
}

/// What sort of answer a question wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalKind {
    /// May it run?
    #[default]
    Permission,
    /// The model wants to know something: the arguments hold its questions.
    Question,
    /// The model has made a plan and wants to go ahead.
    Plan,
}

/// What a person is asked.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// What sort of answer is wanted.
    pub kind: ApprovalKind,
    /// Which call.
    pub call: CallId,
    /// Which tool.
    pub tool: String,
    /// The call as it would be shown.
    pub card: Card,
    /// Why it needs their word.
    pub reason: String,
    /// Rules that would let calls like this one through from now on, the narrowest that do; empty
    /// where no rule can.
    pub rules: Vec<String>,
    /// The call as the model made it, for programs that answer; `None` for a tool's own questions.
    pub asked: Option<ToolUse>,
    /// The subagent whose call it is, if it is one's.
    pub agent: Option<String>,
}

/// What they answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Go on, this once.
    Allow,
    /// Go on, and keep the rules that were offered.
    Always,
    /// Go on, this once, with these arguments in place of the model's.
    Changed {
        /// All of them.
        input: Value,
    },
    /// Go on, this once, and something is permitted differently from now on.
    Updated {
        /// The arguments in place of the model's, if they are to be others.
        input: Option<Value>,
        /// What changes for the session.
        patches: Vec<ContextPatch>,
        /// Allow rules to be kept beyond the session.
        keep: Vec<String>,
    },
    /// No; the model reads why, if they said.
    Deny {
        /// What they said.
        reason: Option<String>,
    },
    /// There is no one to ask.
    Nobody,
}

/// Asks the person. The engine calls it for calls that need their word, and tools may call it for
/// questions of their own. Waiting for the answer holds no slot of the scheduler.
pub trait Approver: Send + Sync {
    /// Puts the question and waits for the answer.
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer>;

    /// Is there someone to ask? Where not, what only makes sense with a person is refused beforehand.
    fn is_there(&self) -> bool {
        true
    }
}

/// For sessions without a person: there is no one to ask.
#[derive(Debug, Clone, Copy)]
pub struct NobodyToAsk;

impl Approver for NobodyToAsk {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Nobody })
    }

    fn is_there(&self) -> bool {
        false
    }
}
