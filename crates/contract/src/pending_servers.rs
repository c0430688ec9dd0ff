//! Servers whose tools are still to come.

use crate::BoxFuture;

/// Knows which servers are being connected. A service, as `Arc<dyn PendingServers>`.
pub trait PendingServers: Send + Sync {
    /// The names of those that are neither connected nor given up.
    fn pending(&self) -> Vec<String>;

    /// Waits until none of these is being connected any more; for all of them where none is named. The tools
    /// of those that are connected are there then.
    fn settled(&self, servers: Vec<String>) -> BoxFuture<'_, ()>;
}
