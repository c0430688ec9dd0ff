//! Progress updates from a running call.
//!
//! Progress never blocks a tool and never carries a result. Without a listener, or if the listener
//! is too slow, an update is dropped.

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::CallId;

/// The number of updates that wait for a slow listener before further ones are dropped.
const WAITING: usize = 256;

/// A progress update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ProgressUpdate {
    /// `done` of `total` steps are finished.
    Step {
        /// The number of finished steps.
        done: u64,
        /// The number of all steps, if known.
        total: Option<u64>,
    },
    /// A short description of the current activity.
    Note {
        /// The description.
        text: String,
    },
    /// Output as it arrives.
    Text {
        /// The next part of the output.
        text: String,
    },
}

/// The sending half, part of every [`CallContext`](crate::CallContext).
#[derive(Debug, Clone)]
pub struct ProgressSender {
    call: CallId,
    listener: Option<mpsc::Sender<(CallId, ProgressUpdate)>>,
    /// The listener distinguishes calls of subagents from those of the main agent.
    includes_subagents: bool,
}

/// The receiving half.
#[derive(Debug)]
pub struct ProgressUpdates(mpsc::Receiver<(CallId, ProgressUpdate)>);

/// Creates both halves of a progress channel; [`ProgressSender::for_call`] creates senders for
/// further calls.
pub fn channel(call: CallId) -> (ProgressSender, ProgressUpdates) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (
        ProgressSender {
            call,
            listener: Some(sender),
            includes_subagents: false,
        },
        ProgressUpdates(receiver),
    )
}

impl ProgressSender {
    /// Creates a sender without a listener.
    pub fn disabled(call: CallId) -> Self {
        Self {
            call,
            listener: None,
            includes_subagents: false,
        }
    }

    /// Returns a sender for a listener that distinguishes calls of subagents from those of the main
    /// agent. It receives updates of both.
    #[must_use]
    pub fn including_subagents(mut self) -> Self {
        self.includes_subagents = true;
        self
    }

    /// Returns whether the listener receives updates of subagents' calls.
    pub fn includes_subagents(&self) -> bool {
        self.includes_subagents
    }

    /// Returns a sender to the same listener for another call.
    pub fn for_call(&self, call: CallId) -> Self {
        Self {
            call,
            listener: self.listener.clone(),
            includes_subagents: self.includes_subagents,
        }
    }

    /// Returns whether the sender has no listener, so that a caller need not prepare an update.
    pub fn is_silent(&self) -> bool {
        self.listener.is_none()
    }

    /// Sends an update if there is a listener with free capacity. Never blocks.
    pub fn report(&self, update: ProgressUpdate) {
        if let Some(listener) = &self.listener {
            let _ = listener.try_send((self.call, update));
        }
    }
}

impl ProgressUpdates {
    /// Receives the next update; `None` once every sender is dropped.
    pub async fn recv(&mut self) -> Option<(CallId, ProgressUpdate)> {
        self.0.recv().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_listener_loses_news_and_never_blocks() {
        let (progress, mut updates) = channel(CallId::new());
        for done in 0..2 * WAITING as u64 {
            progress.report(ProgressUpdate::Step { done, total: None });
        }
        drop(progress);
        let mut kept = 0;
        while updates.0.try_recv().is_ok() {
            kept += 1;
        }
        assert_eq!(kept, WAITING);
    }
}
