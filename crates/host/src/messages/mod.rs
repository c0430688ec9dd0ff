//! Assistant messages with tool calls, and the messages that answer them.

mod anthropic;
mod openai;

use haft_contract::ToolUse;
use haft_engine::CallResult;
use serde_json::Value;

/// The tool calls of one assistant message, and whose shape it has.
#[derive(Debug, Clone, PartialEq)]
pub struct Messages {
    provider: Provider,
    calls: Vec<ToolUse>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provider {
    Anthropic,
    OpenAi,
}

/// Why a message cannot be answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MessageError(String);

impl Messages {
    /// Reads an assistant message: Anthropic's (`content` with `tool_use` blocks) or OpenAI's
    /// (`tool_calls`).
    pub fn read(message: &Value) -> Result<Self, MessageError> {
        if message.get("role").and_then(Value::as_str) != Some("assistant") {
            let problem = "not an assistant message: `role` must be \"assistant\"";
            return Err(MessageError(problem.to_owned()));
        }
        // OpenAI sends `tool_calls: null` with a plain answer.
        let (provider, calls) = match message.get("tool_calls") {
            Some(calls) if !calls.is_null() => (Provider::OpenAi, openai::calls(calls)?),
            Some(_) => (Provider::OpenAi, Vec::new()),
            None => (Provider::Anthropic, anthropic::calls(message)?),
        };
        Ok(Self { provider, calls })
    }

    /// The calls, in order.
    pub fn calls(&self) -> &[ToolUse] {
        &self.calls
    }

    /// The answer: Anthropic's is one user message, OpenAI's a list of `tool` messages. The results
    /// must be those of the calls, in their order.
    pub fn answer(&self, results: &[CallResult]) -> Value {
        match self.provider {
            Provider::Anthropic => anthropic::answer(results),
            Provider::OpenAi => openai::answer(results),
        }
    }
}

fn text_of<'a>(call: &'a Value, key: &str, what: &str) -> Result<&'a str, MessageError> {
    call.get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| MessageError(format!("{what}: `{key}` must be a string")))
}
