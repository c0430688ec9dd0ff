//! Parts of request bodies that are serialized once and sent many times.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// A variant of a provider's request format. Two variants never share a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BodyDialect(pub(crate) u32);

/// A serialized part of a request's body.
#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    pub(crate) bytes: Bytes,
    /// The offset at which a cache marker can be inserted: before the closing brace of the last
    /// block that may carry one.
    pub(crate) mark_at: Option<usize>,
}

impl Fragment {
    /// Appends the fragment, and the marker if it is set and the fragment has an offset for it.
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

/// The fragments of one value by dialect. A session uses one or two dialects.
#[derive(Debug, Default)]
pub(crate) struct Fragments(Mutex<Vec<(BodyDialect, Fragment)>>);

impl Fragments {
    pub(crate) fn get(&self, dialect: BodyDialect, make: impl FnOnce() -> Fragment) -> Fragment {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, fragment)) = known.iter().find(|(of, _)| *of == dialect) {
            return fragment.clone();
        }
        let mut fragment = make();
        // The fragment is cached as long as the conversation exists: copy it without spare
        // capacity.
        fragment.bytes = Bytes::copy_from_slice(&fragment.bytes);
        known.reserve_exact(1);
        known.push((dialect, fragment.clone()));
        fragment
    }
}
