//! `result`: how a turn ended.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;

use crate::{UsageReport, WireId, lenient};

/// How a turn ended.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ResultMessage<'a> {
    /// `success`, or an error: [`ResultMessage::DURING_EXECUTION`], `error_max_turns` …
    pub subtype: Cow<'a, str>,
    /// The turn failed.
    pub is_error: bool,
    /// From the prompt to the end.
    pub duration_ms: u64,
    /// The part of it spent waiting for the model.
    pub duration_api_ms: u64,
    /// How many replies there were.
    pub num_turns: u32,
    /// The final words, of a turn that ended well.
    #[serde(default)]
    pub result: Option<Cow<'a, str>>,
    /// What went wrong, for people.
    #[serde(default)]
    pub errors: Option<Vec<Cow<'a, str>>>,
    /// The HTTP status of the failure that ended it; `Some(None)` of one without.
    #[serde(default, deserialize_with = "lenient::there")]
    pub api_error_status: Option<Option<u16>>,
    /// Why the last reply stopped.
    #[serde(default)]
    pub stop_reason: Option<Cow<'a, str>>,
    /// The call that a hook put off.
    #[serde(default)]
    pub deferred_tool_use: Option<DeferredToolUse<'a>>,
    /// What the process has spent.
    #[serde(default)]
    pub total_cost_usd: f64,
    /// What the turn has cost.
    #[serde(default)]
    pub usage: UsageReport<'a>,
    /// What the process has spent, by model.
    #[serde(default, rename = "modelUsage")]
    pub model_usage: BTreeMap<Cow<'a, str>, ModelUsageReport>,
    /// Calls that were not permitted.
    #[serde(default)]
    pub permission_denials: Vec<PermissionDenial<'a>>,
    /// Why the loop stopped: `completed`, `max_turns`, `aborted_tools` …
    #[serde(default)]
    pub terminal_reason: Option<Cow<'a, str>>,
    /// From the first request to the first piece of its reply.
    #[serde(default)]
    pub ttft_ms: Option<u64>,
    /// The answer in the shape that was asked for.
    #[serde(default, deserialize_with = "lenient::there")]
    pub structured_output: Option<Value>,
    /// Where the message came from that was answered, as its sender said.
    #[serde(default, deserialize_with = "lenient::there")]
    pub origin: Option<Value>,
    /// The session.
    #[serde(default)]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default)]
    pub uuid: Option<WireId>,
}

impl ResultMessage<'_> {
    /// It ended well.
    pub const SUCCESS: &'static str = "success";
    /// It was interrupted, or something broke.
    pub const DURING_EXECUTION: &'static str = "error_during_execution";
    /// No answer had the shape that was asked for.
    pub const STRUCTURED_OUTPUT: &'static str = "error_max_structured_output_retries";
}

/// The call that a hook put off, which ended the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeferredToolUse<'a> {
    /// The call.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// The arguments.
    pub input: Cow<'a, Value>,
}

/// What a model has cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelUsageReport {
    /// Read at full price.
    pub input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
    /// Read from the provider's cache.
    pub cache_read_input_tokens: u64,
    /// Written to the provider's cache.
    pub cache_creation_input_tokens: u64,
    /// Searches of the web.
    pub web_search_requests: u64,
    /// Money.
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
    /// How much it can read.
    pub context_window: u64,
    /// How much it can write at once.
    pub max_output_tokens: u32,
}

/// A call that was not permitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionDenial<'a> {
    /// The tool.
    pub tool_name: Cow<'a, str>,
    /// The call.
    pub tool_use_id: Cow<'a, str>,
    /// The arguments.
    pub tool_input: Cow<'a, Value>,
}

/// By hand because of one key: what went wrong stands where the words of a good end would, but an answer
/// in the wrong shape is found out last, and says so last.
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
