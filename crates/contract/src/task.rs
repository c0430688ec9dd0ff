//! Tasks of the runtime.

use std::future::Future;

use tokio::task::JoinHandle;

use crate::BoxFuture;

/// `tokio::spawn`, boxed: the runtime's code for a task, some 7 KB, then stands once for each answer
/// and not once for each future.
#[track_caller]
pub fn spawn_boxed<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let future: BoxFuture<'static, T> = Box::pin(future);
    tokio::spawn(future)
}
