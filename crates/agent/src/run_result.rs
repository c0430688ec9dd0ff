//! The result of a run, with everything that a result message contains.

use std::time::Duration;

use haft_models::{ModelError, StopReason, Usage};
use serde_json::Value;

use crate::UsageLedger;

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunResult {
    /// The subtype of the result message.
    pub subtype: ResultSubtype,
    /// The final text, or the error message if the model request failed.
    pub text: String,
    /// The stop reason of the last reply.
    pub stop_reason: Option<StopReason>,
    /// The reason why the loop ended.
    pub reason: EndReason,
    /// The number of replies; one more than the limit if the limit ended the run.
    pub num_turns: u32,
    /// The tokens of this run's replies.
    pub usage: Usage,
    /// The tokens and cost of all runs of this agent, by model and by agent kind.
    pub ledger: UsageLedger,
    /// The calls that were denied.
    pub permission_denials: Vec<BlockedCall>,
    /// The call that a hook deferred, which ended the run.
    pub deferred: Option<BlockedCall>,
    /// The model's error that ended the run.
    pub api_error: Option<ModelError>,
    /// Human-readable errors.
    pub errors: Vec<String>,
    /// The time from the prompt to the end.
    pub duration: Duration,
    /// The part of `duration` that was spent waiting for the model.
    pub duration_api: Duration,
    /// The time from the first request to the first block of its reply.
    pub first_token: Option<Duration>,
}

impl RunResult {
    /// Returns whether the run failed.
    pub fn is_error(&self) -> bool {
        self.subtype != ResultSubtype::Success || self.api_error.is_some()
    }
}

/// The subtypes of result messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultSubtype {
    /// The model finished its reply, a hook ended the run, or the model request failed (then
    /// [`RunResult::api_error`] is set).
    Success,
    /// The limit of turns was reached.
    MaxTurns,
    /// The budget was exhausted.
    MaxBudget,
    /// The run was interrupted, or an error other than a failed model request ended it.
    DuringExecution,
}

impl ResultSubtype {
    /// Returns the name in result messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::MaxTurns => "error_max_turns",
            Self::MaxBudget => "error_max_budget_usd",
            Self::DuringExecution => "error_during_execution",
        }
    }
}

/// The reason why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// The model finished its reply.
    Completed,
    /// The limit of turns was reached.
    MaxTurns,
    /// The budget was exhausted.
    BudgetExhausted,
    /// The run was interrupted while the model was writing.
    AbortedStreaming,
    /// The run was interrupted while tools were running.
    AbortedTools,
    /// A hook stopped the run.
    HookStopped,
    /// A hook deferred the only call of a reply.
    ToolDeferred,
    /// The tool of the deferred call no longer exists.
    ToolDeferredUnavailable,
    /// The model request failed.
    ApiError,
    /// The conversation is too long, and compaction is off or did not free enough space.
    PromptTooLong,
    /// The model repeated the same calls with the same results.
    RepeatedCalls,
    /// The engine or the loop has a defect.
    EngineFault,
    /// The input was invalid, and the model was not asked.
    Refused,
}

impl EndReason {
    /// Returns the name in result messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::MaxTurns => "max_turns",
            Self::BudgetExhausted => "budget_exhausted",
            Self::AbortedStreaming => "aborted_streaming",
            Self::AbortedTools => "aborted_tools",
            Self::HookStopped => "hook_stopped",
            Self::ToolDeferred => "tool_deferred",
            Self::ToolDeferredUnavailable => "tool_deferred_unavailable",
            Self::ApiError => "api_error",
            Self::PromptTooLong => "prompt_too_long",
            Self::RepeatedCalls => "repeated_calls",
            Self::EngineFault => "engine_fault",
            Self::Refused => "refused",
        }
    }
}

/// A call that was denied or deferred.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockedCall {
    /// The name of the tool.
    pub tool_name: String,
    /// The provider's id of the call.
    pub tool_use_id: String,
    /// The arguments.
    pub tool_input: Value,
}
