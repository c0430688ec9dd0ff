//! What learns that the calls of a reply are over, and may have something to say about what they changed. The
//! loop knows only this; who follows stands below.

use std::{fmt, sync::Arc};

use crate::{BoxFuture, Services};

/// Follows the calls of a session.
pub trait FollowCalls: Send + Sync {
    /// The calls of a reply are over: what the model should know before it goes on, beside their results. `services`
    /// are those of the one whose calls they were.
    fn after_calls<'a>(&'a self, services: &'a Services) -> BoxFuture<'a, Option<String>>;
}

/// The service by which the loop reaches it.
#[derive(Clone)]
pub struct CallFollower(pub Arc<dyn FollowCalls>);

impl fmt::Debug for CallFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallFollower")
    }
}
