//! Who measures what runs.

use std::time::SystemTime;

use serde_json::Value;

use crate::{CallResult, hooks::Identity, pipeline::ApprovalSource};

/// Learns of every call that was judged, once it is over: those of a reply, of subagents, those that people make and
/// those that calls make themselves.
///
/// Called from the call's own task: be quick, and do not panic.
pub trait CallListener: Send + Sync {
    /// One is over.
    fn on_call_ended(&self, ended: &EndedCall<'_>);

    /// One was answered before anything could be decided about it: it fits no tool.
    fn on_call_unjudged(&self, result: &CallResult) {
        let _ = result;
    }
}

/// A call that is over.
#[derive(Debug)]
pub struct EndedCall<'a> {
    /// What came of it.
    pub result: &'a CallResult,
    /// What the model sent, with everything filled in. It may hold secrets.
    pub input: &'a Value,
    /// Who made it.
    pub agent: &'a Identity,
    /// When it was its turn.
    pub began: SystemTime,
    /// How it came to be permitted, if it was.
    pub approval: Option<ApprovalSource>,
}
