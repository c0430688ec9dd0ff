//! Servers that are still connecting, for tools that wait for them.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use haft_contract::{BoxFuture, CancellationToken, PendingServers};

use crate::input::SharedState;

/// The maximum waiting time. The timeout of each server is shorter.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The pending servers of a session. Holds only a weak reference to the session.
pub(crate) struct SessionPendingServers(Weak<SharedState>);

impl SessionPendingServers {
    /// Returns the pending servers of a session, if it has any servers.
    pub(crate) fn servers(shared: &Arc<SharedState>) -> Option<Arc<dyn PendingServers>> {
        let has_any = !shared.servers.list().servers.is_empty();
        has_any.then(|| Arc::new(Self(Arc::downgrade(shared))) as _)
    }
}

impl PendingServers for SessionPendingServers {
    fn pending(&self) -> Vec<String> {
        let Some(shared) = self.0.upgrade() else {
            return Vec::new();
        };
        let servers = shared.servers.list().servers.into_iter();
        let pending = servers.filter(|server| server.status == "pending");
        pending.map(|server| server.name).collect()
    }

    fn wait_until_connected(&self, servers: Vec<String>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(shared) = self.0.upgrade() else {
                return;
            };
            let never = CancellationToken::new();
            let wanted = |name: &String| servers.is_empty() || servers.contains(name);
            let waiting = shared
                .servers
                .wait(|entry| wanted(&entry.name), TIMEOUT, &never);
            waiting.await;
        })
    }
}
