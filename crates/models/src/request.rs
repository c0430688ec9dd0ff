//! The request to a model.

use std::sync::Arc;

use haft_contract::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{RequestHistory, fragments::Fragments};

/// One request. Cloning it is cheap: its large parts are shared.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The model, under its provider's name.
    pub model: String,
    /// The tools and the system prompt, which stay the same from turn to turn.
    pub prefix: Arc<RequestPrefix>,
    /// The messages so far.
    pub history: RequestHistory,
    /// The maximum number of tokens in the reply.
    pub max_tokens: u32,
    /// Whether and how the model thinks before it answers.
    pub thinking: ThinkingMode,
    /// The effort that the model spends, as its provider names it (`low`, `high`, …).
    pub effort: Option<String>,
    /// The tools that the model may use.
    pub tool_choice: ToolChoice,
    /// Whether one reply may contain several calls.
    pub parallel_calls: bool,
    /// The temperature. It is not sent if thinking (Anthropic) or an effort (OpenAI) is requested.
    pub temperature: Option<f64>,
    /// The texts that end the reply. The reply does not include them.
    pub stop_sequences: Vec<String>,
    /// The JSON schema that the reply must follow.
    pub output_schema: Option<Value>,
}

/// Tools and system prompt. They are serialized once, so that every request has the same bytes and
/// hits the provider's cache.
#[derive(Debug, Default)]
pub struct RequestPrefix {
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
    /// Whether the part is the same in all sessions. Stable parts come first and are cached
    /// separately.
    #[serde(default)]
    pub stable: bool,
}

/// The definition of a tool that a model receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name.
    pub name: String,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// The JSON schema of the input.
    pub input_schema: Value,
}

/// The thinking mode of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingMode {
    /// Thinking is not requested. The provider may still think by default.
    #[default]
    Off,
    /// The model decides how much it thinks.
    Adaptive,
    /// The maximum number of thinking tokens.
    Budget(u32),
}

/// The tools that a model may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model may use any tool or none.
    #[default]
    Auto,
    /// The model must use at least one tool.
    Any,
    /// The model must not use tools.
    None,
    /// The model must use this tool.
    Tool(String),
}

impl ModelRequest {
    /// Creates a request with default values for everything else.
    pub fn new(
        model: impl Into<String>,
        prefix: Arc<RequestPrefix>,
        history: RequestHistory,
    ) -> Self {
        Self {
            model: model.into(),
            prefix,
            history,
            max_tokens: 8192,
            thinking: ThinkingMode::Off,
            effort: None,
            tool_choice: ToolChoice::Auto,
            parallel_calls: true,
            temperature: None,
            stop_sequences: Vec::new(),
            output_schema: None,
        }
    }
}

impl RequestPrefix {
    /// Creates a prefix. Append new tools at the end: everything before them stays cached.
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

    /// Returns the parts of the system prompt.
    pub fn system(&self) -> &[SystemBlock] {
        &self.system
    }

    /// Returns the tools.
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }
}

impl SystemBlock {
    /// Creates a part that is the same in all sessions.
    pub fn stable(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            stable: true,
        }
    }

    /// Creates a part that is specific to this session.
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
