//! Permission, as far as a tool and the person have a say in it. The decision is the engine's.

use std::path::PathBuf;

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
    /// What it would change, from a dry run: with real lines. `None` where the tool cannot say.
    pub preview: Option<Card>,
    /// The parts of its command line and what each does; empty for other calls.
    pub parts: Vec<ApprovalPart>,
    /// Paths of the call that really are others, links followed: as given, and where they lead.
    pub elsewhere: Vec<(PathBuf, PathBuf)>,
    /// Why, a line each: the reason itself, then what nothing lets through.
    pub because: Vec<String>,
    /// How its command would be confined, such as `profile workspace, network open`.
    pub confinement: Option<String>,
    /// Where rules can be kept, the usual place first; empty where they hold for the session only.
    pub saves: Vec<RulePlace>,
}

/// A part of a command line that is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalPart {
    /// As written.
    pub text: String,
    /// What it does, in a few words.
    pub meaning: String,
    /// How deep it is in others that start it: 0 for the line's own commands.
    pub depth: usize,
    /// Nothing lets it through.
    pub asks: bool,
}

/// For how long, and for whom, a rule is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum RuleScope {
    /// Until the session ends.
    Session,
    /// For this person in this project.
    #[default]
    Local,
    /// For everyone in this project.
    Project,
    /// For this person everywhere.
    User,
}

impl RuleScope {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// A place where a rule can be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePlace {
    /// For how long, and for whom.
    pub scope: RuleScope,
    /// The file; `None` for the session.
    pub file: Option<PathBuf>,
}

/// A call of no tool, for those who fill in what matters.
impl Default for ApprovalRequest {
    fn default() -> Self {
        Self {
            kind: ApprovalKind::default(),
            call: CallId::new(),
            tool: String::new(),
            card: Card::default(),
            reason: String::new(),
            rules: Vec::new(),
            asked: None,
            agent: None,
            preview: None,
            parts: Vec::new(),
            elsewhere: Vec::new(),
            because: Vec::new(),
            confinement: None,
            saves: Vec::new(),
        }
    }
}

impl ApprovalRequest {
    /// What a person should see of it: what it would change, else the call.
    pub fn shown(&self) -> &Card {
        self.preview.as_ref().unwrap_or(&self.card)
    }
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
        /// Where. `None`: in the usual place, the local settings file.
        scope: Option<RuleScope>,
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
