//! A decision and its reason.

use std::{fmt, path::PathBuf};

use haft_contract::PermissionMode;

use super::rules::{List, Rule};

/// A decision and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What happens.
    pub behavior: Behavior,
    /// Why.
    pub because: Because,
}

impl Decision {
    /// The stricter of two: what a child may do is what its own policy and its parent's both permit.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        if other.behavior > self.behavior {
            other
        } else {
            self
        }
    }
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behavior {
    /// It runs.
    Allow,
    /// A person decides.
    Ask,
    /// It does not run.
    Deny,
}

impl Behavior {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// It changes nothing.
    ReadOnly,
    /// The tool said so.
    Tool(String),
    /// A rule says so.
    Rule {
        /// As written.
        rule: String,
        /// In which list.
        list: List,
        /// Where it stands.
        source: String,
        /// What of the call it fitted; empty for the call as a whole.
        on: String,
    },
    /// Something is denied, and whether this touches it is not known.
    Undecidable(String),
    /// A directory whose removal no one survives.
    Critical(String),
    /// A file that decides what other programs run.
    Protected(PathBuf),
    /// Keys, devices, other processes: where, and what it is.
    Sensitive(PathBuf, &'static str),
    /// A path outside the working directories.
    Outside(PathBuf),
    /// An address that no rule may allow.
    Address(String),
    /// It needs a person by its nature.
    Interactive,
    /// A hook said so.
    Hook,
    /// It runs in the sandbox.
    Sandboxed,
    /// It asks to run outside the sandbox.
    Unconfined,
    /// The mode lets it through, or holds it up.
    Mode(PermissionMode),
    /// A part of a command line that nothing lets through: what, and why it is not harmless.
    Command {
        /// The part as written.
        part: String,
        /// Why it is not harmless.
        why: String,
    },
    /// It changes something and nothing lets it through: what, if that is known.
    Changes(Option<PathBuf>),
}

impl Because {
    pub(super) fn rule(rule: &Rule, on: String) -> Self {
        Self::Rule {
            rule: rule.text.clone(),
            list: rule.list,
            source: rule.source.to_string(),
            on,
        }
    }

    /// What sort of reason it is, as messages name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Rule { .. } => "rule",
            Self::Mode(_) => "mode",
            Self::Hook => "hook",
            Self::Outside(_) => "workingDir",
            Self::Undecidable(_)
            | Self::Critical(_)
            | Self::Protected(_)
            | Self::Sensitive(..)
            | Self::Address(_)
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

impl fmt::Display for Because {
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
            Self::Interactive => f.write_str("it puts a question to a person"),
            Self::Hook => f.write_str("a hook decided so"),
            Self::Sandboxed => f.write_str("it runs in the sandbox"),
            Self::Unconfined => f.write_str("it asks to run outside the sandbox"),
            Self::Mode(mode) => write!(f, "permission mode is {}", mode.name()),
            Self::Command { part, why } if part.is_empty() => f.write_str(why),
            Self::Command { part, why } => write!(f, "`{part}` is not harmless: {why}"),
            Self::Changes(Some(path)) => write!(f, "it changes {}", path.display()),
            Self::Changes(None) => f.write_str("it may change something"),
        }
    }
}
