//! Tool definitions in the formats of providers.

use haft_contract::{ToolAccess, ToolSpec};
use serde_json::{Value, json};

use super::{Pool, ToolOffer};

/// The format of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolFormat {
    /// `{name, description, input_schema}`.
    Anthropic,
    /// `{type: "function", function: {name, description, parameters}}`.
    OpenAi,
    /// `{name, title, description, inputSchema, annotations}`.
    Mcp,
}

impl Pool {
    /// Returns the definitions that the model receives, in the pool's order.
    pub fn definitions(&self, format: ToolFormat, activated: &[String]) -> Vec<Value> {
        self.offered(activated)
            .map(|tool| definition(tool.spec(), format))
            .collect()
    }
}

impl ToolOffer {
    /// Returns the definitions that the model receives, in the order in which they were first sent.
    pub fn definitions(&self, format: ToolFormat) -> Vec<Value> {
        self.iter()
            .map(|tool| definition(tool.spec(), format))
            .collect()
    }
}

/// Returns the definition of a tool.
pub fn definition(spec: &ToolSpec, format: ToolFormat) -> Value {
    let ToolSpec {
        name,
        description,
        input_schema,
        profile,
    } = spec;
    match format {
        ToolFormat::Anthropic => {
            json!({"name": name, "description": description, "input_schema": input_schema})
        }
        ToolFormat::OpenAi => json!({
            "type": "function",
            "function": {"name": name, "description": description, "parameters": input_schema},
        }),
        ToolFormat::Mcp => {
            let mut tool = json!({
                "name": name,
                "title": spec.title(),
                "description": description,
                "inputSchema": input_schema,
            });
            if let Some(schema) = &profile.output_schema {
                tool["outputSchema"] = schema.clone();
            }
            tool["annotations"] = json!({
                "readOnlyHint": profile.access == ToolAccess::Reads,
                "destructiveHint": profile.access != ToolAccess::Reads,
                "openWorldHint": profile.access == ToolAccess::Anything,
            });
            tool
        }
    }
}

/// Estimates the tokens that a definition costs in every request. With current tokenizers, a token
/// is a little less than four bytes of JSON.
pub fn estimated_tokens(spec: &ToolSpec) -> usize {
    let bytes = definition(spec, ToolFormat::Anthropic).to_string().len();
    bytes.div_ceil(4)
}
