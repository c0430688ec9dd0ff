//! What a model is asked.

use std::sync::Arc;

use haft_contract::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{History, fragments::Fragments};

/// One request. Cheap to clone: its large parts are shared.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The model, as its provider names it.
    pub model: String,
    /// Tools and system prompt: what stays the same from turn to turn.
    pub prefix: Arc<Prefix>,
    /// What was said.
    pub history: History,
    /// At most this many tokens in the reply.
    pub max_tokens: u32,
    /// Whether and how the model thinks first.
    pub thinking: Thinking,
    /// How much work the model puts in, in its provider's words (`low`, `high`, …).
    pub effort: Option<String>,
    /// Which tools it may use.
    pub tool_choice: ToolChoice,
    /// Several calls in one reply.
    pub parallel_calls: bool,
    /// Only where the provider allows it beside thinking.
    pub temperature: Option<f64>,
    /// The reply ends before any of these.
    pub stop_sequences: Vec<String>,
    /// The reply is JSON of this schema.
    pub output_schema: Option<Value>,
}

/// Tools and system prompt, serialized once: the same bytes in every request, for the provider's cache.
#[derive(Debug, Default)]
pub struct Prefix {
    system: Vec<SystemBlock>,
    tools: Vec<ToolDefinition>,
    pub(crate) system_fragments: Fragments,
    pub(crate) tools_fragments: Fragments,
}

/// A part of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemBlock {
    /// The text.
    pub text: String,
    /// It is the same in other sessions too; such parts come first and are cached on their own.
    #[serde(default)]
    pub stable: bool,
}

/// A tool, as a model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// What it takes.
    pub input_schema: Value,
}

/// Whether and how a model thinks first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// It does not, or as its provider likes.
    #[default]
    Off,
    /// As much as it finds right.
    Adaptive,
    /// At most this many tokens.
    Budget(u32),
}

/// Which tools a model may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// At least one.
    Any,
    /// None.
    None,
    /// This one.
    Tool(String),
}

impl ModelRequest {
    /// A request with everything else left at its default.
    pub fn new(model: impl Into<String>, prefix: Arc<Prefix>, history: History) -> Self {
        Self {
            model: model.into(),
            prefix,
            history,
            max_tokens: 8192,
            thinking: Thinking::Off,
            effort: None,
            tool_choice: ToolChoice::Auto,
            parallel_calls: true,
            temperature: None,
            stop_sequences: Vec::new(),
            output_schema: None,
        }
    }
}

impl Prefix {
    /// What stays the same from turn to turn. New tools go to the end, so that what was cached stays so.
    pub fn new(system: Vec<SystemBlock>, tools: Vec<ToolDefinition>) -> Self {
        let system = system
            .into_iter()
            .filter(|block| !block.text.trim().is_empty());
        Self {
            system: system.collect(),
            tools,
            ..Self::default()
        }
    }

    /// The system prompt.
    pub fn system(&self) -> &[SystemBlock] {
        &self.system
    }

    /// The tools.
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }
}

impl SystemBlock {
    /// A part that is the same in other sessions.
    pub fn stable(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            stable: true,
        }
    }

    /// A part of this session.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            stable: false,
        }
    }
}

impl From<&ToolSpec> for ToolDefinition {
    fn from(spec: &ToolSpec) -> Self {
        Self {
            name: spec.name.clone(),
            description: spec.description.clone(),
            input_schema: spec.input_schema.clone(),
        }
    }
}
