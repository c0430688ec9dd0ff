//! Reports to the model after the calls of a reply have finished, such as new diagnostics for
//! changed files. The agent loop knows only this trait; the implementation is in another crate.

use std::{fmt, sync::Arc};

use crate::{BoxFuture, Services};

/// Produces a report after the calls of a session.
pub trait CallFollowUp: Send + Sync {
    /// Returns the report that the model should read along with the results of the calls that have
    /// just finished, if any. `services` are those of the agent that made the calls.
    fn report_after_calls<'a>(&'a self, services: &'a Services) -> BoxFuture<'a, Option<String>>;
}

/// The service through which the agent loop reaches the implementation.
#[derive(Clone)]
pub struct CallFollowUpService(pub Arc<dyn CallFollowUp>);

impl fmt::Debug for CallFollowUpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallFollowUpService")
    }
}
