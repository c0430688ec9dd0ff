//! What goes in, and what a call that worked gives back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::PermissionMode;

/// A model's request to use a tool, as it came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The provider's id of this request; the result carries it back.
    pub id: String,
    /// The tool's name, or an alias.
    pub name: String,
    /// The arguments, as the model wrote them.
    pub input: Value,
}

/// What a call gives back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// What the model reads, unless [`Tool::to_model`](crate::Tool::to_model) says otherwise.
    pub content: Vec<Content>,
    /// The same for programs: hooks, stream readers, embedders. Never sent to the model.
    pub structured: Option<Value>,
    /// Messages put into the conversation after the result.
    pub messages: Vec<InjectedMessage>,
    /// What changes in the session. Only from calls whose effects say [`patches`](crate::Effects::patches).
    pub patches: Vec<ContextPatch>,
    /// It was done, and did not succeed: a command that exits with 1 has output, and may have
    /// changed the directory, and yet the model reads an error.
    pub failed: bool,
}

impl ToolOutput {
    /// Just text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            ..Self::default()
        }
    }

    /// The same with a value for programs.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// The same as a failure.
    #[must_use]
    pub fn as_failure(mut self) -> Self {
        self.failed = true;
        self
    }

    /// The same with a change of the session.
    #[must_use]
    pub fn with_patch(mut self, patch: ContextPatch) -> Self {
        self.patches.push(patch);
        self
    }
}

/// A block of content, in the shape providers use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
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
        /// Such as `image/png`.
        media_type: String,
        /// The bytes in base 64.
        data: String,
    },
}

/// The pixels of a picture, as few as a small copy of it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PicturePixels {
    /// Width and height of the picture.
    pub original: (u32, u32),
    /// Width and height of the copy.
    pub size: (u32, u32),
    /// Red, green, blue and opacity of each pixel of the copy, row by row.
    pub rgba: Vec<u8>,
}

impl Content {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of a block of text.
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
    /// In whose name.
    pub role: Role,
    /// What it says.
    pub content: Vec<Content>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or the harness on their behalf.
    User,
    /// The model.
    Assistant,
}

/// The lists of permission rules. Deny beats ask beats allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleList {
    /// Never runs.
    Deny,
    /// A person decides.
    Ask,
    /// Runs.
    Allow,
}

impl RuleList {
    /// Its key in settings files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

/// A change of the session, as a value: it can be logged, compared and replayed.
///
/// The scheduler alone applies patches, in the order of the calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
#[non_exhaustive]
pub enum ContextPatch {
    /// Relative paths start here from now on.
    SetCwd {
        /// An absolute directory.
        path: PathBuf,
    },
    /// The permission mode from now on.
    SetMode {
        /// The mode.
        mode: PermissionMode,
    },
    /// Plan mode is over: back to the mode before it.
    LeavePlan,
    /// One more working directory.
    AddDirectory {
        /// An absolute directory.
        path: PathBuf,
    },
    /// One more permission rule, for this session.
    AddRule {
        /// Which list it joins.
        list: RuleList,
        /// The rule, as settings files write it.
        rule: String,
    },
    /// One more permission rule, until the person speaks again. It never reaches further than a rule of
    /// the project would.
    AddRuleForTurn {
        /// Which list it joins.
        list: RuleList,
        /// The rule, as settings files write it.
        rule: String,
    },
    /// Another model is asked, or with another effort, until the person speaks again.
    AskForTurn {
        /// The model, by its id.
        model: Option<String>,
        /// How hard it tries.
        effort: Option<String>,
    },
    /// The person has spoken: such rules are over, and so is what was asked otherwise.
    EndRulesOfTurn,
    /// Calls work in a copy of a checkout from now on: it is a working directory, relative paths start there,
    /// and rules about the checkout's files count for the copy's too.
    EnterWorktree {
        /// The checkout; absolute.
        main: PathBuf,
        /// Its copy; absolute.
        path: PathBuf,
    },
    /// Calls work elsewhere than in that copy again.
    LeaveWorktree {
        /// Where relative paths start; absolute.
        cwd: PathBuf,
    },
    /// These deferred tools are offered in full from now on.
    ActivateTools {
        /// Their names.
        names: Vec<String>,
    },
}
