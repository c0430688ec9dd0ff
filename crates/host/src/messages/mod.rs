//! Parses assistant messages with tool calls, and creates the messages that answer them.

mod anthropic;
mod openai;
mod responses;

use haft_contract::ToolUse;
use haft_engine::CallResult;
use serde_json::Value;

/// The tool calls of one assistant message, and its format.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderMessage {
    provider: MessageFormat,
    calls: Vec<ToolUse>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageFormat {
    Anthropic,
    OpenAi,
    Responses,
}

/// The reason why a message cannot be answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MessageError(String);

impl ProviderMessage {
    /// Parses an assistant message: Anthropic's (`content` with `tool_use` blocks), OpenAI's
    /// (`tool_calls`, also inside a whole `ChatCompletion`), or the output of the Responses API: a
    /// whole response, its items, or one item.
    pub fn read(message: &Value) -> Result<Self, MessageError> {
        if let Some(items) = responses::items(message) {
            return Ok(Self {
                provider: MessageFormat::Responses,
                calls: responses::calls(items)?,
            });
        }
        let message = match message.get("choices") {
            Some(choices) => choices
                .get(0)
                .map(|choice| &choice["message"])
                .ok_or_else(|| {
                    MessageError("`choices` must hold a choice with a `message`".to_owned())
                })?,
            None => message,
        };
        if message.get("role").and_then(Value::as_str) != Some("assistant") {
            let problem = "not an assistant message: `role` must be \"assistant\"";
            return Err(MessageError(problem.to_owned()));
        }
        // OpenAI sends `tool_calls: null` with a plain answer.
        let (provider, calls) = match message.get("tool_calls") {
            Some(calls) if !calls.is_null() => (MessageFormat::OpenAi, openai::calls(calls)?),
            Some(_) => (MessageFormat::OpenAi, Vec::new()),
            None => (MessageFormat::Anthropic, anthropic::calls(message)?),
        };
        Ok(Self { provider, calls })
    }

    /// Returns the calls, in order.
    pub fn calls(&self) -> &[ToolUse] {
        &self.calls
    }

    /// Creates the answer. For Anthropic it is one user message, or `null` without calls; for
    /// OpenAI a list of `tool` messages; for the Responses API a list of items. The results must be
    /// in the order of the calls.
    pub fn answer(&self, results: &[CallResult]) -> Value {
        match self.provider {
            MessageFormat::Anthropic => anthropic::answer(results),
            MessageFormat::OpenAi => openai::answer(results),
            MessageFormat::Responses => responses::answer(results),
        }
    }
}

fn text_of<'a>(call: &'a Value, key: &str, what: &str) -> Result<&'a str, MessageError> {
    call.get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| MessageError(format!("{what}: `{key}` must be a string")))
}
