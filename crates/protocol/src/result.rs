//! `result`: the outcome of a turn.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;

use crate::{UsageReport, WireId, lenient};

/// The outcome of a turn.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ResultMessage<'a> {
    /// `success`, or an error: [`ResultMessage::DURING_EXECUTION`], `error_max_turns` …
    pub subtype: Cow<'a, str>,
    /// Whether the turn failed.
    pub is_error: bool,
    /// The time from the prompt to the end, in milliseconds.
    pub duration_ms: u64,
    /// The part of this time that was spent waiting for the model.
    pub duration_api_ms: u64,
    /// The number of replies.
    pub num_turns: u32,
    /// The final text of a successful turn.
    #[serde(default)]
    pub result: Option<Cow<'a, str>>,
    /// Human-readable errors.
    #[serde(default)]
    pub errors: Option<Vec<Cow<'a, str>>>,
    /// The HTTP status of the failure that ended the turn; `Some(None)` for a failure without a
    /// status.
    #[serde(default, deserialize_with = "lenient::there")]
    pub api_error_status: Option<Option<u16>>,
    /// The stop reason of the last reply.
    #[serde(default)]
    pub stop_reason: Option<Cow<'a, str>>,
    /// The call that a hook deferred.
    #[serde(default)]
    pub deferred_tool_use: Option<DeferredToolUse<'a>>,
    /// The total cost of the process.
    #[serde(default)]
    pub total_cost_usd: f64,
    /// The tokens that the turn used.
    #[serde(default)]
    pub usage: UsageReport<'a>,
    /// The total usage of the process, by model.
    #[serde(default, rename = "modelUsage")]
    pub model_usage: BTreeMap<Cow<'a, str>, ModelUsageReport>,
    /// The calls that were denied.
    #[serde(default)]
    pub permission_denials: Vec<PermissionDenial<'a>>,
    /// The reason why the loop ended: `completed`, `max_turns`, `aborted_tools` …
    #[serde(default)]
    pub terminal_reason: Option<Cow<'a, str>>,
    /// The time from the first request to the first event of its reply, in milliseconds.
    #[serde(default)]
    pub ttft_ms: Option<u64>,
    /// The answer that follows the requested schema.
    #[serde(default, deserialize_with = "lenient::there")]
    pub structured_output: Option<Value>,
    /// The origin of the answered message, as its sender stated it.
    #[serde(default, deserialize_with = "lenient::there")]
    pub origin: Option<Value>,
    /// The id of the session.
    #[serde(default)]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default)]
    pub uuid: Option<WireId>,
}

impl ResultMessage<'_> {
    /// The subtype of a successful turn.
    pub const SUCCESS: &'static str = "success";
    /// The subtype of a turn that was interrupted or failed.
    pub const DURING_EXECUTION: &'static str = "error_during_execution";
    /// The subtype of a turn without an answer that follows the requested schema.
    pub const STRUCTURED_OUTPUT: &'static str = "error_max_structured_output_retries";
}

/// The call that a hook deferred, which ended the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeferredToolUse<'a> {
    /// The id of the call.
    pub id: Cow<'a, str>,
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments.
    pub input: Cow<'a, Value>,
}

/// The usage of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelUsageReport {
    /// Input tokens at full price.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read_input_tokens: u64,
    /// Input tokens written to the provider's cache.
    pub cache_creation_input_tokens: u64,
    /// The number of web searches.
    pub web_search_requests: u64,
    /// The cost in USD.
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
    /// The context window in tokens.
    pub context_window: u64,
    /// The maximum number of tokens in a reply.
    pub max_output_tokens: u32,
}

/// A call that was denied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionDenial<'a> {
    /// The name of the tool.
    pub tool_name: Cow<'a, str>,
    /// The id of the call.
    pub tool_use_id: Cow<'a, str>,
    /// The arguments.
    pub tool_input: Cow<'a, Value>,
}

/// Written by hand because the position of `errors` varies: usually it takes the position of
/// `result`. With the subtype [`ResultMessage::STRUCTURED_OUTPUT`] it follows the other fields of
/// the result.
impl Serialize for ResultMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let late = self.subtype == Self::STRUCTURED_OUTPUT;
        let mut fields = serializer.serialize_struct("ResultMessage", 20)?;
        fields.serialize_field("subtype", &self.subtype)?;
        fields.serialize_field("is_error", &self.is_error)?;
        fields.serialize_field("duration_ms", &self.duration_ms)?;
        fields.serialize_field("duration_api_ms", &self.duration_api_ms)?;
        fields.serialize_field("num_turns", &self.num_turns)?;
        if let Some(result) = &self.result {
            fields.serialize_field("result", result)?;
        }
        if let (false, Some(errors)) = (late, &self.errors) {
            fields.serialize_field("errors", errors)?;
        }
        if let Some(status) = &self.api_error_status {
            fields.serialize_field("api_error_status", status)?;
        }
        fields.serialize_field("stop_reason", &self.stop_reason)?;
        if let Some(call) = &self.deferred_tool_use {
            fields.serialize_field("deferred_tool_use", call)?;
        }
        fields.serialize_field("total_cost_usd", &self.total_cost_usd)?;
        fields.serialize_field("usage", &self.usage)?;
        fields.serialize_field("modelUsage", &self.model_usage)?;
        fields.serialize_field("permission_denials", &self.permission_denials)?;
        if let Some(reason) = &self.terminal_reason {
            fields.serialize_field("terminal_reason", reason)?;
        }
        if let Some(first) = &self.ttft_ms {
            fields.serialize_field("ttft_ms", first)?;
        }
        if let Some(output) = &self.structured_output {
            fields.serialize_field("structured_output", output)?;
        }
        if let Some(origin) = &self.origin {
            fields.serialize_field("origin", origin)?;
        }
        if let (true, Some(errors)) = (late, &self.errors) {
            fields.serialize_field("errors", errors)?;
        }
        if let Some(session) = &self.session_id {
            fields.serialize_field("session_id", session)?;
        }
        if let Some(uuid) = &self.uuid {
            fields.serialize_field("uuid", uuid)?;
        }
        fields.end()
    }
}
