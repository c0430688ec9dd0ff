//! Who records what runs.

use crate::{
    CallResult,
    pipeline::{Admitted, Prepared},
};

/// Observes calls as they start and end, in whatever order that happens: results are handed back in
/// the order of the calls, so a call that ended may otherwise wait unseen behind an earlier one.
///
/// Called from the call's own task, between its steps: be quick, and do not panic.
pub trait CallObserver: Send + Sync {
    /// The call fits its tool. It has not been permitted, and may wait for others. Called from where it
    /// was pushed, before anything else happens to it.
    fn bound(&self, call: &Prepared) {
        let _ = call;
    }

    /// The call is permitted and its tool is run as soon as this returns. A call that is refused or
    /// makes no sense never gets here.
    fn started(&self, call: &Admitted);

    /// The call is over: this is its result. Also for calls that never started, unless they were
    /// settled the moment they were pushed.
    fn ended(&self, finished: &CallResult);

    /// May keep the result of a call that changes nothing of the session, the moment it is there: it is not handed
    /// out then. Only for turns whose results are taken by [`next_ended`](super::CallBatch::next_ended).
    fn take(&self, finished: CallResult) -> Option<CallResult> {
        Some(finished)
    }
}
