//! JSON that was serialized once and is sent many times.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// How a provider wants things written; two dialects never share a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect(pub(crate) u32);

/// A finished piece of a request's body.
#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    pub(crate) bytes: Bytes,
    /// Where a cache mark can be put in: before the closing brace of the last block that may bear one.
    pub(crate) mark_at: Option<usize>,
}

impl Fragment {
    /// Appends it, with the mark if one is given and there is a place for it.
    pub(crate) fn write(&self, out: &mut Vec<u8>, mark: Option<&str>) {
        match (self.mark_at, mark) {
            (Some(at), Some(mark)) => {
                out.extend_from_slice(&self.bytes[..at]);
                out.extend_from_slice(mark.as_bytes());
                out.extend_from_slice(&self.bytes[at..]);
            }
            _ => out.extend_from_slice(&self.bytes),
        }
    }
}

/// The fragments of one thing, by dialect; a session knows one or two.
#[derive(Debug, Default)]
pub(crate) struct Fragments(Mutex<Vec<(Dialect, Fragment)>>);

impl Fragments {
    pub(crate) fn get(&self, dialect: Dialect, make: impl FnOnce() -> Fragment) -> Fragment {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, fragment)) = known.iter().find(|(of, _)| *of == dialect) {
            return fragment.clone();
        }
        let mut fragment = make();
        // It stays as long as the conversation does: with no room to spare.
        fragment.bytes = Bytes::copy_from_slice(&fragment.bytes);
        known.reserve_exact(1);
        known.push((dialect, fragment.clone()));
        fragment
    }
}
