//! Servers that are still connecting and whose tools are not available yet.

use crate::BoxFuture;

/// Lists the servers that are connecting. A service, as `Arc<dyn PendingServers>`.
pub trait PendingServers: Send + Sync {
    /// Returns the names of the servers that are neither connected nor given up.
    fn pending(&self) -> Vec<String>;

    /// Waits until none of these servers is connecting any longer; an empty list means all of them.
    /// The tools of connected servers are available after that.
    fn wait_until_connected(&self, servers: Vec<String>) -> BoxFuture<'_, ()>;
}
