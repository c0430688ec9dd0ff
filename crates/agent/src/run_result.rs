//! How a run ended: everything a result message says.

use std::time::Duration;

use haft_models::{ModelError, StopReason, Usage};
use serde_json::Value;

use crate::UsageLedger;

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunResult {
    /// The sort of end.
    pub subtype: Subtype,
    /// The final words; of a run that failed at the model, what went wrong.
    pub text: String,
    /// Why the last reply stopped.
    pub stop_reason: Option<StopReason>,
    /// Why the loop stopped.
    pub reason: EndReason,
    /// How many replies there were; one more than the limit if that ended it.
    pub num_turns: u32,
    /// Tokens of this run's replies.
    pub usage: Usage,
    /// Tokens and money of all runs of this agent, by model.
    pub ledger: UsageLedger,
    /// Calls that were not permitted.
    pub permission_denials: Vec<Denial>,
    /// The call that a hook put off, which ended it.
    pub deferred: Option<Denial>,
    /// The model's failure that ended it.
    pub api_error: Option<ModelError>,
    /// What went wrong, for people.
    pub errors: Vec<String>,
    /// From the prompt to the end.
    pub duration: Duration,
    /// The part of it spent waiting for the model.
    pub duration_api: Duration,
    /// From the first request to the first piece of its reply.
    pub first_token: Option<Duration>,
}

impl RunResult {
    /// Did it fail?
    pub fn is_error(&self) -> bool {
        self.subtype != Subtype::Success || self.api_error.is_some()
    }
}

/// The sorts of end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subtype {
    /// The model had said everything, or could not answer.
    Success,
    /// There were to be no more rounds of tools.
    MaxTurns,
    /// There was no more money.
    MaxBudget,
    /// It was interrupted, or something broke.
    DuringExecution,
}

impl Subtype {
    /// Its name in result messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::MaxTurns => "error_max_turns",
            Self::MaxBudget => "error_max_budget_usd",
            Self::DuringExecution => "error_during_execution",
        }
    }
}

/// Why the loop stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// The model had said everything.
    Completed,
    /// No more rounds.
    MaxTurns,
    /// No more money.
    BudgetExhausted,
    /// Interrupted while the model was talking.
    AbortedStreaming,
    /// Interrupted while tools were running.
    AbortedTools,
    /// A hook stopped it.
    HookStopped,
    /// A hook put the only call of a reply off.
    ToolDeferred,
    /// The tool of a call that was put off is gone.
    ToolDeferredUnavailable,
    /// The model could not answer.
    ApiError,
    /// The conversation is too long, also after it was summarized.
    PromptTooLong,
    /// The model made the same calls with the same results again and again.
    RepeatedCalls,
    /// The engine or the loop has a defect.
    EngineFault,
    /// What was said made no sense, and the model was not asked.
    Refused,
}

impl EndReason {
    /// Its name in result messages.
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

/// A call that was not permitted, or put off.
#[derive(Debug, Clone, PartialEq)]
pub struct Denial {
    /// The tool.
    pub tool_name: String,
    /// The provider's id of the call.
    pub tool_use_id: String,
    /// Its arguments.
    pub tool_input: Value,
}
