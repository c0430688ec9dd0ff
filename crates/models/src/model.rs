//! The one trait.

use std::fmt::Debug;

use futures_util::stream::BoxStream;
use haft_contract::CancellationToken;

use crate::{ModelError, ModelEvent, ModelRequest};

/// What a model says, as it says it. After an error there is nothing more.
pub type EventStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// Something that answers requests: a provider, or a wrapper around one.
pub trait Model: Send + Sync + Debug {
    /// Sends a request once the stream is polled. Dropping the stream ends the request; cancelling
    /// ends it with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream;
}
