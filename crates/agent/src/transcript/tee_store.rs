//! A store that also passes each new line to a callback.

use std::{fmt, path::Path, sync::Arc};

use super::{TranscriptStore, TranscriptStoreError};

/// Receives each line after it was written.
pub(super) type LineCallback = dyn Fn(&str) + Send + Sync;

pub(super) struct TeeStore {
    pub(super) store: Arc<dyn TranscriptStore>,
    pub(super) on_line: Box<LineCallback>,
}

impl TranscriptStore for TeeStore {
    fn append(&self, expected: u64, line: &str) -> Result<(), TranscriptStoreError> {
        self.store.append(expected, line)?;
        (self.on_line)(line);
        Ok(())
    }

    fn read(&self, from: u64) -> Result<Vec<String>, TranscriptStoreError> {
        self.store.read(from)
    }

    fn path(&self) -> Option<&Path> {
        self.store.path()
    }
}

impl fmt::Debug for TeeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Heard").field(&self.store).finish()
    }
}
