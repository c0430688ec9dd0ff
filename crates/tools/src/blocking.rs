//! Where the disk may be waited for.

use std::panic::resume_unwind;

use haft_contract::ToolError;
use tokio::task::spawn_blocking;

/// Runs work that waits for the disk on a thread that may. Once begun it ends, even if no one waits
/// for the answer any more: a write is never left half done.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    // Boxed: tokio's code for a task stands once for each answer, not for each piece of work.
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    match spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down and never began it.
            Err(_) => Err(ToolError::Cancelled),
        },
    }
}
