//! Observation of running calls, for recording them.

use crate::{
    CallResult,
    pipeline::{AdmittedCall, PreparedCall},
};

/// Observes calls as they start and end, in the order in which that happens. Results are returned
/// in the order of the calls, so a call that has ended may otherwise stay unnoticed until the
/// earlier ones end.
///
/// Called from the call's own task, between its steps: implementations must be quick and must not
/// panic.
pub trait CallObserver: Send + Sync {
    /// Called when a call is valid, but not yet permitted; it may still wait for others. Called by
    /// the code that pushes the call, before anything else happens to it.
    fn on_bound(&self, call: &PreparedCall) {
        let _ = call;
    }

    /// Called when a call is permitted, right before its tool runs. Calls that are denied or
    /// invalid do not get here.
    fn on_started(&self, call: &AdmittedCall);

    /// Called with the result of a call that has ended. This includes denied calls, but not calls
    /// that are invalid or were interrupted before they began.
    fn on_ended(&self, finished: &CallResult);

    /// May take the result of a call without patches as soon as it ends. The batch does not return
    /// it then. Only for batches whose results are read with
    /// [`next_ended`](super::CallBatch::next_ended).
    fn take_result(&self, finished: CallResult) -> Option<CallResult> {
        Some(finished)
    }
}
