//! The input of a call, and the output of one that succeeded.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{GrantEnd, PermissionMode};

/// A model's request to use a tool, as received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The provider's id of this request; the result refers to it.
    pub id: String,
    /// The tool's name, or an alias.
    pub name: String,
    /// The arguments, as the model wrote them.
    pub input: Value,
}

/// The output of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The content that the model reads, unless [`Tool::to_model`](crate::Tool::to_model) returns
    /// another.
    pub content: Vec<Content>,
    /// The structured result for hooks, stream readers and embedders. Never sent to the model.
    pub structured: Option<Value>,
    /// Messages added to the conversation after the result.
    pub messages: Vec<InjectedMessage>,
    /// Changes of the session. Ignored unless the call's effects set
    /// [`patches`](crate::Effects::patches).
    pub patches: Vec<ContextPatch>,
    /// The call ran but did not succeed. For example, a command that exits with 1 has output and
    /// may have changed the directory, but the model reads an error.
    pub failed: bool,
}

impl ToolOutput {
    /// Creates an output that is only text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            ..Self::default()
        }
    }

    /// Adds a structured result.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// Marks the output as a failure.
    #[must_use]
    pub fn as_failure(mut self) -> Self {
        self.failed = true;
        self
    }

    /// Adds a change of the session.
    #[must_use]
    pub fn with_patch(mut self, patch: ContextPatch) -> Self {
        self.patches.push(patch);
        self
    }
}

/// A content block, in the format that providers use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Its bytes.
        source: MediaSource,
    },
    /// A document, such as a PDF.
    Document {
        /// Its bytes.
        source: MediaSource,
    },
}

/// The bytes of a block that is not text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum MediaSource {
    /// Inline.
    Base64 {
        /// The media type, such as `image/png`.
        media_type: String,
        /// The bytes in base 64.
        data: String,
    },
}

/// The pixels of a small copy of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePixels {
    /// The width and height of the image.
    pub original: (u32, u32),
    /// The width and height of the copy.
    pub size: (u32, u32),
    /// The red, green, blue and alpha values of each pixel of the copy, row by row.
    pub rgba: Vec<u8>,
}

impl Content {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns the text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image { .. } | Self::Document { .. } => None,
        }
    }
}

/// A message that a tool adds to the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectedMessage {
    /// The author of the message.
    pub role: Role,
    /// Its content.
    pub content: Vec<Content>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, or the harness on the user's behalf.
    User,
    /// The model.
    Assistant,
}

/// The lists of permission rules. Deny overrides ask, and ask overrides allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleList {
    /// The call never runs.
    Deny,
    /// The user decides.
    Ask,
    /// The call runs.
    Allow,
}

impl RuleList {
    /// Returns its key in settings files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

/// A change of the session as a value, which can be logged, compared and replayed.
///
/// Only the scheduler applies patches, in the order of the calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
#[non_exhaustive]
pub enum ContextPatch {
    /// Changes the directory that relative paths start from.
    SetCwd {
        /// An absolute directory.
        path: PathBuf,
    },
    /// Changes the permission mode.
    SetMode {
        /// The mode.
        mode: PermissionMode,
    },
    /// Leaves plan mode and restores the mode before it.
    LeavePlan,
    /// Adds a working directory.
    AddDirectory {
        /// An absolute directory.
        path: PathBuf,
    },
    /// Adds a permission rule for this session.
    AddRule {
        /// The list it is added to.
        list: RuleList,
        /// The rule, in the syntax of settings files.
        rule: String,
    },
    /// Adds a permission rule until the next user message. It never allows more than a rule of the
    /// project could.
    AddRuleForTurn {
        /// The list it is added to.
        list: RuleList,
        /// The rule, in the syntax of settings files.
        rule: String,
    },
    /// Adds allow rules for a limited time. Only the user or a hook can request them, with the answer
    /// to a question about a call.
    AddTimedRules {
        /// The rules, in the syntax of settings files.
        rules: Vec<String>,
        /// The end.
        until: GrantEnd,
    },
    /// Uses another model or effort until the next user message.
    AskForTurn {
        /// The id of the model.
        model: Option<String>,
        /// The reasoning effort.
        effort: Option<String>,
    },
    /// Removes the rules and the model choice that last until the next user message.
    EndRulesOfTurn,
    /// Moves the calls into a worktree: it becomes a working directory, relative paths start there,
    /// and rules about files of the checkout apply to the worktree's files too.
    EnterWorktree {
        /// The checkout; absolute.
        main: PathBuf,
        /// The worktree; absolute.
        path: PathBuf,
    },
    /// Leaves the worktree again.
    LeaveWorktree {
        /// The directory that relative paths start from; absolute.
        cwd: PathBuf,
    },
    /// Offers these deferred tools with their full definitions.
    ActivateTools {
        /// Their names.
        names: Vec<String>,
    },
}
