//! Running blocking file access.

use std::panic::resume_unwind;

use haft_contract::ToolError;
use tokio::task::spawn_blocking;

/// Runs blocking work on a thread of the blocking pool. Work that has started always runs to its
/// end, even if the caller is dropped, so a write is never left half done.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    // Boxed, so that tokio's code for a task is compiled once per result type and not once per
    // closure.
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    match spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down and did not start the work.
            Err(_) => Err(ToolError::Cancelled),
        },
    }
}
