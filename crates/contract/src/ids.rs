//! Ids of sessions and calls: UUIDv7, so that they sort by time and can be created anywhere.

use std::{
    cell::RefCell,
    fmt,
    sync::atomic::{AtomicU16, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

/// The id of a session: a conversation with its working directory, its read ledger and its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub Uuid);

/// The id of a tool call, independent of the provider's id. Undo uses it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub Uuid);

impl SessionId {
    /// Creates an id for a new session.
    #[expect(
        clippy::new_without_default,
        reason = "two defaults would not be equal"
    )]
    pub fn new() -> Self {
        Self(time_ordered())
    }
}

impl CallId {
    /// Creates an id for a new call.
    #[expect(
        clippy::new_without_default,
        reason = "two defaults would not be equal"
    )]
    pub fn new() -> Self {
        Self(time_ordered())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns a UUIDv7 whose 12 bits after the time are a counter, so that ids of the same millisecond
/// sort in creation order.
fn time_ordered() -> Uuid {
    static MADE: AtomicU16 = AtomicU16::new(0);
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis();
    let mut random = random();
    random[..2].copy_from_slice(&MADE.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    Builder::from_unix_timestamp_millis(u64::try_from(millis).unwrap_or(u64::MAX), &random)
        .into_uuid()
}

/// Returns unpredictable bytes. They are fetched 64 at a time, because each fetch is a system call.
fn random() -> [u8; 10] {
    const AT_ONCE: usize = 64;
    thread_local! {
        static LEFT: RefCell<Vec<[u8; 10]>> = const { RefCell::new(Vec::new()) };
    }
    LEFT.with_borrow_mut(|left| {
        if left.is_empty() {
            let mut bytes = [0; 10 * AT_ONCE];
            // Without entropy the id is still unique in this process, by time and counter.
            let _ = getrandom::getrandom(&mut bytes);
            left.extend(bytes.as_chunks().0);
        }
        left.pop().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_7_and_differ() {
        let (a, b) = (CallId::new(), CallId::new());
        assert_eq!(a.0.get_version_num(), 7);
        assert_ne!(a, b);
    }
}
