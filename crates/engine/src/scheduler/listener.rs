//! Measurement of calls, for telemetry.

use std::time::SystemTime;

use serde_json::Value;

use crate::{CallResult, hooks::AgentIdentity, pipeline::ApprovalSource};

/// Receives every call whose permission was decided, once it has finished: the calls of a reply, of
/// subagents, of the user, and nested calls.
///
/// Called from the call's own task: implementations must be quick and must not panic.
pub trait CallListener: Send + Sync {
    /// Called when a call has finished.
    fn on_call_ended(&self, ended: &EndedCall<'_>);

    /// Called for a call of a reply that was answered before its permission was evaluated, because
    /// it is invalid.
    fn on_call_not_evaluated(&self, result: &CallResult) {
        let _ = result;
    }
}

/// A finished call.
#[derive(Debug)]
pub struct EndedCall<'a> {
    /// The result.
    pub result: &'a CallResult,
    /// The completed input. It may contain secrets.
    pub input: &'a Value,
    /// The agent that made it.
    pub agent: &'a AgentIdentity,
    /// The time at which the call was started. It may then have waited for a slot.
    pub began: SystemTime,
    /// The source of the approval, if it was permitted.
    pub approval: Option<ApprovalSource>,
}
