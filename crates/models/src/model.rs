//! The [`Model`] trait.

use std::fmt::Debug;

use futures_util::stream::BoxStream;
use haft_contract::CancellationToken;

use crate::{ModelError, ModelEvent, ModelRequest};

/// The events of a reply, in the order in which they arrive. An error is always the last item.
pub type EventStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A model that answers requests: a provider, or a wrapper around one.
pub trait Model: Send + Sync + Debug {
    /// Returns the stream of the reply. The request is sent when the stream is first polled.
    /// Dropping the stream aborts the request. Cancelling ends it with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream;
}
