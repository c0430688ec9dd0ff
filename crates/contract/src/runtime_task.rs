//! Async tasks.

use std::future::Future;

use tokio::task::JoinHandle;

use crate::BoxFuture;

/// Spawns a boxed future with `tokio::spawn`. The runtime's code for a task, some 7 KB, is then
/// compiled once per output type instead of once per future.
#[track_caller]
pub fn spawn_boxed<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let future: BoxFuture<'static, T> = Box::pin(future);
    tokio::spawn(future)
}
