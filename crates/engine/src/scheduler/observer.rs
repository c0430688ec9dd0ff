//! Who writes down what ran.

use crate::{CallResult, pipeline::Admitted};

/// Observes calls as they start and end, in whatever order that happens: results are handed back in
/// the order of the calls, so a call that ended may otherwise wait unseen behind an earlier one.
///
/// Called from the call's own task, between its steps: be quick, and do not panic.
pub trait CallObserver: Send + Sync {
    /// The call is permitted and its tool is run as soon as this returns. A call that is refused or
    /// makes no sense never gets here.
    fn started(&self, call: &Admitted);

    /// The call is over: this is its result. Also for calls that never started, unless they were
    /// settled the moment they were pushed.
    fn ended(&self, finished: &CallResult);
}
