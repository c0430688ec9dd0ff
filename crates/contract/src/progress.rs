//! News from a running call.
//!
//! Progress never blocks a tool and never carries a result: with no one listening, or a listener
//! that is slow, an update is dropped.

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::CallId;

/// How many updates wait for a slow listener before further ones are dropped.
const WAITING: usize = 256;

/// One piece of news.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Update {
    /// This many of that many things are done.
    Step {
        /// Done so far.
        done: u64,
        /// Of how many, where known.
        total: Option<u64>,
    },
    /// What it is doing now, in a few words.
    Note {
        /// The words.
        text: String,
    },
    /// Output as it comes.
    Text {
        /// The next part of it.
        text: String,
    },
}

/// The sending side, part of every [`CallContext`](crate::CallContext).
#[derive(Debug, Clone)]
pub struct Progress {
    call: CallId,
    listener: Option<mpsc::Sender<(CallId, Update)>>,
    /// The listener knows calls of subagents from those of the main agent.
    tells_calls_apart: bool,
}

/// The receiving side.
#[derive(Debug)]
pub struct Updates(mpsc::Receiver<(CallId, Update)>);

/// Both sides of a new line of progress; [`Progress::of`] makes senders for further calls.
pub fn channel(call: CallId) -> (Progress, Updates) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (
        Progress {
            call,
            listener: Some(sender),
            tells_calls_apart: false,
        },
        Updates(receiver),
    )
}

impl Progress {
    /// No one listens.
    pub fn silent(call: CallId) -> Self {
        Self {
            call,
            listener: None,
            tells_calls_apart: false,
        }
    }

    /// The same, for a listener that knows the calls of subagents from those of the main agent: it gets
    /// news of both.
    #[must_use]
    pub fn of_subagents_too(mut self) -> Self {
        self.tells_calls_apart = true;
        self
    }

    /// Does the listener get news of subagents' calls?
    pub fn tells_calls_apart(&self) -> bool {
        self.tells_calls_apart
    }

    /// The same listener, for another call.
    pub fn of(&self, call: CallId) -> Self {
        Self {
            call,
            listener: self.listener.clone(),
            tells_calls_apart: self.tells_calls_apart,
        }
    }

    /// No one listens: nothing need be looked up to be reported.
    pub fn is_silent(&self) -> bool {
        self.listener.is_none()
    }

    /// Tells the listener, if there is one with room. Never blocks.
    pub fn report(&self, update: Update) {
        if let Some(listener) = &self.listener {
            let _ = listener.try_send((self.call, update));
        }
    }
}

impl Updates {
    /// The next piece of news; `None` once every sender is gone.
    pub async fn recv(&mut self) -> Option<(CallId, Update)> {
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
            progress.report(Update::Step { done, total: None });
        }
        drop(progress);
        let mut kept = 0;
        while updates.0.try_recv().is_ok() {
            kept += 1;
        }
        assert_eq!(kept, WAITING);
    }
}
