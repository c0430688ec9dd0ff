//! A decision and its reason.

use std::{fmt, path::PathBuf};

use haft_contract::PermissionMode;

use super::{
    offline::OfflineReason,
    rules::{List, Rule},
};

/// A decision and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The behavior.
    pub behavior: DecisionBehavior,
    /// The reason.
    pub reason: DecisionReason,
}

impl Decision {
    /// Returns the stricter of two decisions: a subagent may do what both its own policy and its
    /// parent's permit.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        if other.behavior > self.behavior {
            other
        } else {
            self
        }
    }
}

/// The possible decisions about a call, from the weakest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecisionBehavior {
    /// The call runs.
    Allow,
    /// The user decides.
    Ask,
    /// The call does not run.
    Deny,
}

impl DecisionBehavior {
    /// Returns the name that settings and messages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The reason for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionReason {
    /// The call changes nothing.
    ReadOnly,
    /// The tool gave this reason.
    Tool(String),
    /// A rule matches.
    Rule {
        /// The rule as written.
        rule: String,
        /// The list that contains the rule.
        list: List,
        /// The file and line of the rule, or another source.
        source: String,
        /// The part of the call that the rule matches; empty for the call as a whole.
        on: String,
    },
    /// A deny rule exists, and it is unknown whether the call is affected.
    Undecidable(String),
    /// A directory whose removal would destroy the system or the user's files.
    Critical(String),
    /// A file that controls what other programs run.
    Protected(PathBuf),
    /// A path such as a key, a device or a file of another process, and what it is.
    Sensitive(PathBuf, &'static str),
    /// A path outside the working directories.
    Outside(PathBuf),
    /// A fetched address that is private, invalid or not allowed by any rule, as a text.
    Address(String),
    /// The call always needs the user's answer.
    Interactive,
    /// A hook decided.
    Hook,
    /// The call runs in the sandbox.
    Sandboxed,
    /// The call runs in the sandbox without network.
    Offline(OfflineReason),
    /// Undo can restore what the call changes, and it reaches nothing new.
    Reversible,
    /// Nothing on this machine can undo a part of the command line.
    Irreversible {
        /// The part as written.
        part: String,
        /// The reason, phrased to follow "because".
        why: String,
    },
    /// The call requests to run outside the sandbox.
    Unconfined,
    /// The permission mode allows or blocks the call.
    Mode(PermissionMode),
    /// A part of a command line that nothing allows.
    Command {
        /// The part as written.
        part: String,
        /// The reason why it is not read-only.
        why: String,
    },
    /// The call changes something and nothing allows it. Contains the changed path, if it is known.
    Changes(Option<PathBuf>),
}

impl DecisionReason {
    pub(super) fn rule(rule: &Rule, on: String) -> Self {
        Self::Rule {
            rule: rule.text.clone(),
            list: rule.list,
            source: rule.source.to_string(),
            on,
        }
    }

    /// Returns the name of the reason if it has one, otherwise its text.
    pub fn headline(&self) -> String {
        match self {
            Self::Reversible => "reversible".to_owned(),
            Self::Irreversible { .. } => "irreversible".to_owned(),
            other => other.to_string(),
        }
    }

    /// Returns the kind of the reason, as messages name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Rule { .. } | Self::Offline(_) => "rule",
            Self::Mode(_) | Self::Reversible => "mode",
            Self::Hook => "hook",
            Self::Outside(_) => "workingDir",
            Self::Undecidable(_)
            | Self::Critical(_)
            | Self::Protected(_)
            | Self::Sensitive(..)
            | Self::Address(_)
            | Self::Irreversible { .. }
            | Self::Unconfined => "safetyCheck",
            Self::ReadOnly
            | Self::Tool(_)
            | Self::Interactive
            | Self::Sandboxed
            | Self::Command { .. }
            | Self::Changes(_) => "other",
        }
    }
}

impl fmt::Display for DecisionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly => f.write_str("it only reads"),
            Self::Tool(reason) => f.write_str(reason),
            Self::Rule {
                rule,
                list,
                source,
                on,
            } => {
                let on = if on.is_empty() { "it" } else { on };
                write!(f, "{} rule {rule} ({source}) covers {on}", list.name())
            }
            Self::Undecidable(why) => {
                write!(f, "{why}, so it is not known whether a deny rule covers it")
            }
            Self::Critical(path) => write!(f, "it would remove {path}"),
            Self::Protected(path) => {
                write!(f, "{} decides what other programs run", path.display())
            }
            Self::Sensitive(path, what) => write!(f, "{} {what}", path.display()),
            Self::Outside(path) => {
                write!(f, "{} is outside the working directories", path.display())
            }
            Self::Address(why) => f.write_str(why),
            Self::Interactive => f.write_str("it asks the user a question"),
            Self::Hook => f.write_str("a hook decided so"),
            Self::Sandboxed => f.write_str("it runs in the sandbox"),
            Self::Offline(reason) => {
                write!(f, "it runs in the sandbox without network: {reason}")
            }
            Self::Reversible => f.write_str("it is reversible: undo restores what it changes"),
            Self::Irreversible { part, why } => write!(f, "`{part}` is irreversible: {why}"),
            Self::Unconfined => f.write_str("it asks to run outside the sandbox"),
            Self::Mode(mode) => write!(f, "permission mode is {}", mode.name()),
            Self::Command { part, why } if part.is_empty() => f.write_str(why),
            Self::Command { part, why } => write!(f, "`{part}` is not harmless: {why}"),
            Self::Changes(Some(path)) => write!(f, "it changes {}", path.display()),
            Self::Changes(None) => f.write_str("it may change something"),
        }
    }
}
