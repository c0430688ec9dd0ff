//! The log of the proxy's decisions, for the user and the model.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateLogEntry {
    /// The requested host; escaped if it is invalid.
    pub host: String,
    /// The requested port.
    pub port: u16,
    /// The method of a plain HTTP request; `None` for a tunnel.
    pub method: Option<String>,
    /// Whether the request was allowed.
    pub allowed: bool,
    /// The reason.
    pub reason: String,
    /// The address of the connection; `None` if it was refused or the name was not resolved.
    pub address: Option<SocketAddr>,
}

/// The latest decisions, oldest first.
#[derive(Debug)]
pub(super) struct GateLog {
    entries: Mutex<VecDeque<GateLogEntry>>,
    most: usize,
}

impl GateLog {
    pub(super) fn new(most: usize) -> Self {
        Self {
            entries: Mutex::default(),
            most,
        }
    }

    pub(super) fn add(&self, entry: GateLogEntry) {
        let GateLogEntry {
            host,
            port,
            method,
            allowed,
            reason: because,
            address,
        } = &entry;
        tracing::info!(host, port, method, allowed, because, ?address, "egress");
        let mut entries = self.entries();
        entries.push_back(entry);
        while entries.len() > self.most {
            entries.pop_front();
        }
    }

    pub(super) fn all(&self) -> Vec<GateLogEntry> {
        self.entries().iter().cloned().collect()
    }

    // No code panics while it holds the lock, and each change leaves a valid list.
    fn entries(&self) -> MutexGuard<'_, VecDeque<GateLogEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
