//! Permission types shared by tools and front ends: the tool's opinion on a call, the request to
//! the user, and the answer. The engine decides.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BoxFuture, CallId, Card, ContextPatch, ToolUse, rule_offer::OfferKind};

/// The permission mode: how much runs without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Reads inside the working directories run; everything else asks.
    #[default]
    #[serde(alias = "manual")]
    Default,
    /// Like [`Default`](Self::Default), but edits of files inside the working directories run too.
    AcceptEdits,
    /// Reads only: everything else asks until a plan is approved.
    Plan,
    /// Commands and edits run if undo can restore what they change; the rest asks.
    Auto,
    /// Calls that would ask are denied instead.
    DontAsk,
    /// Everything runs that no rule denies.
    BypassPermissions,
}

impl PermissionMode {
    /// Returns the name used in flags, settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::Auto => "auto",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

/// The outcome of [`Tool::check`](crate::Tool::check) for a call that can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// No objection.
    Pass,
    /// The user must decide, in any mode; the text is the reason.
    Ask(String),
}

/// A tool's opinion on the permission of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolPermission {
    /// Decided by the effects: read-only calls run, the rest asks.
    ByEffects,
    /// Runs regardless of its effects, because it changes nothing that needs the user's approval.
    Allow,
    /// Asks in any mode; the text is the reason.
    Ask(String),
    /// Never runs; the text is the reason.
    Deny(String),
}

/// The kind of answer that an approval request expects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalKind {
    /// Allow or deny the call.
    #[default]
    Permission,
    /// Answers to the model's questions, which are in the arguments.
    Question,
    /// Approval of the model's plan.
    Plan,
}

/// A request for the user's approval of a call.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The kind of answer expected.
    pub kind: ApprovalKind,
    /// The call.
    pub call: CallId,
    /// The name of the tool.
    pub tool: String,
    /// The card of the call.
    pub card: Card,
    /// The reason why the call needs approval.
    pub reason: String,
    /// The rules that the user can add with the answer, as choices, the best first; empty if no
    /// rule can allow calls like this one.
    pub offers: Vec<RuleOffer>,
    /// The call as the model made it, for front ends that answer automatically; `None` for a tool's
    /// own questions.
    pub asked: Option<ToolUse>,
    /// The subagent that makes the call, if any.
    pub agent: Option<String>,
    /// The changes it would make, from a dry run with the real lines. `None` if the tool cannot
    /// say.
    pub preview: Option<Card>,
    /// The parts of its command line and what each does; empty for other calls.
    pub parts: Vec<ApprovalPart>,
    /// Paths of the call that symlinks resolve to another place: the path as given, and the real
    /// path.
    pub resolved_elsewhere: Vec<(PathBuf, PathBuf)>,
    /// A sentence for each other file whose name looks like one of the call.
    pub look_alikes: Vec<String>,
    /// The reasons, one per line: first the main reason, then the parts that no rule can allow.
    pub reasons: Vec<String>,
    /// The confinement of its command, such as `profile workspace, network open`.
    pub confinement: Option<String>,
    /// The destinations where rules can be saved, the usual one first; empty if rules can only
    /// apply to the session.
    pub destinations: Vec<RuleDestination>,
}

/// Allow rules that the user can add with one answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleOffer {
    /// The rules, for example `Bash(cargo test *)`.
    pub rules: Vec<String>,
    /// The parts of the command line that ask again, because no rule is proposed for them.
    pub asks_again: Vec<String>,
}

impl RuleOffer {
    /// Creates a choice of rules that allow the whole call; no choice without rules.
    pub fn for_call(rules: Vec<String>) -> Option<Self> {
        (!rules.is_empty()).then(|| Self {
            rules,
            asks_again: Vec::new(),
        })
    }

    /// Returns the choice as text for the user: the rules, and what they leave open.
    pub fn to_text(&self) -> String {
        let rules = self.rules_text();
        match self.asks_again.as_slice() {
            [] => rules,
            parts => format!("{rules} (asks again for {})", parts.join(", ")),
        }
    }
}

/// A part of a command line in an approval request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalPart {
    /// The text of the part, as written.
    pub text: String,
    /// A short description of what it does.
    pub meaning: String,
    /// The nesting depth: 0 for the line's own commands, 1 for commands that those start, and so
    /// on.
    pub depth: usize,
    /// No rule allows it.
    pub asks: bool,
}

/// The lifetime and audience of a saved rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum RuleScope {
    /// Until the session ends.
    Session,
    /// For this user in this project.
    #[default]
    Local,
    /// For all users of this project.
    Project,
    /// For this user in all projects.
    User,
}

impl RuleScope {
    /// Returns the name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// The end of a permission that lasts for a limited time. It is never saved in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantEnd {
    /// The result of the current prompt.
    Task,
    /// This number of seconds after the answer.
    Seconds(u64),
}

impl GrantEnd {
    /// The time limit that questions offer.
    pub const HALF_HOUR: Self = Self::Seconds(30 * 60);

    /// Returns a description that follows "allow".
    pub fn description(self) -> String {
        match self {
            Self::Task => "until the result of this prompt".to_owned(),
            Self::Seconds(seconds) => {
                let (count, unit) = whole_units(seconds);
                let plural = if count == 1 { "" } else { "s" };
                format!("for {count} {unit}{plural}")
            }
        }
    }

    /// Returns a duration as an adjective, such as `30-minute`; `None` for a task.
    pub fn adjective(self) -> Option<String> {
        match self {
            Self::Task => None,
            Self::Seconds(seconds) => {
                let (count, unit) = whole_units(seconds);
                Some(format!("{count}-{unit}"))
            }
        }
    }
}

/// Returns a duration in the largest unit that it is a multiple of.
fn whole_units(seconds: u64) -> (u64, &'static str) {
    match seconds {
        _ if seconds > 0 && seconds.is_multiple_of(3_600) => (seconds / 3_600, "hour"),
        _ if seconds > 0 && seconds.is_multiple_of(60) => (seconds / 60, "minute"),
        _ => (seconds, "second"),
    }
}

/// A destination where a rule can be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleDestination {
    /// The lifetime and audience of the rule.
    pub scope: RuleScope,
    /// The file; `None` for the session.
    pub file: Option<PathBuf>,
}

/// An empty request, for callers that fill in only the fields they need.
impl Default for ApprovalRequest {
    fn default() -> Self {
        Self {
            kind: ApprovalKind::default(),
            call: CallId::new(),
            tool: String::new(),
            card: Card::default(),
            reason: String::new(),
            offers: Vec::new(),
            asked: None,
            agent: None,
            preview: None,
            parts: Vec::new(),
            resolved_elsewhere: Vec::new(),
            look_alikes: Vec::new(),
            reasons: Vec::new(),
            confinement: None,
            destinations: Vec::new(),
        }
    }
}

impl ApprovalRequest {
    /// Returns the rules of the first choice, which the answer [`ApprovalAnswer::AllowAlways`] adds.
    pub fn first_rules(&self) -> &[String] {
        self.offers.first().map_or(&[], |offer| &offer.rules)
    }

    /// Returns the first choice that consists of allow rules, which can also be limited in time.
    pub fn rule_offer(&self) -> Option<&RuleOffer> {
        let mut offers = self.offers.iter();
        offers.find(|offer| offer.kind() == OfferKind::AllowRules)
    }

    /// Returns the card to show the user: the preview if available, otherwise the call.
    pub fn shown(&self) -> &Card {
        self.preview.as_ref().unwrap_or(&self.card)
    }
}

/// The answer to an approval request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Allowed, this once.
    Allow,
    /// Allowed, and the rules of the first choice are saved.
    AllowAlways,
    /// Allowed, this once, with these arguments replacing those of the model.
    InputEdited {
        /// All arguments.
        input: Value,
    },
    /// Allowed, this once, with changes to the permissions that last longer.
    Updated {
        /// The arguments that replace the model's, if any.
        input: Option<Value>,
        /// Changes that apply to the session.
        patches: Vec<ContextPatch>,
        /// Allow rules to save beyond the session.
        keep: Vec<String>,
        /// The destination of the rules. `None`: the usual one, the local settings file.
        scope: Option<RuleScope>,
    },
    /// Denied. The model reads the reason, if one was given.
    Deny {
        /// The user's reason.
        reason: Option<String>,
    },
    /// No user can be asked.
    Unavailable,
}

impl ApprovalAnswer {
    /// Returns an approval with allow rules that end after a time or with the task.
    pub fn allow_until(rules: Vec<String>, until: GrantEnd) -> Self {
        Self::Updated {
            input: None,
            patches: vec![ContextPatch::AddTimedRules { rules, until }],
            keep: Vec::new(),
            scope: None,
        }
    }

    /// Returns an approval with allow rules for the session.
    pub fn allow_in_session(rules: Vec<String>) -> Self {
        Self::Updated {
            input: None,
            patches: Vec::new(),
            keep: rules,
            scope: Some(RuleScope::Session),
        }
    }
}

/// Asks the user. The engine calls it for calls that need approval; tools may call it for their own
/// questions. A call that waits for the answer occupies no slot of the scheduler.
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer.
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer>;

    /// Returns whether a user can be asked. If not, calls that need a user are denied without
    /// asking.
    fn is_available(&self) -> bool {
        true
    }
}

/// The approver of sessions without a user.
#[derive(Debug, Clone, Copy)]
pub struct NoApprover;

impl Approver for NoApprover {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Unavailable })
    }

    fn is_available(&self) -> bool {
        false
    }
}
