//! A store that also passes each new line to a callback.

use std::{fmt, path::Path, sync::Arc};

use super::{Store, StoreError};

/// Receives each line after it was written.
pub(super) type Hear = dyn Fn(&str) + Send + Sync;

pub(super) struct TeeStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) on_line: Box<Hear>,
}

impl Store for TeeStore {
    fn append(&self, expected: u64, line: &str) -> Result<(), StoreError> {
        self.store.append(expected, line)?;
        (self.on_line)(line);
        Ok(())
    }

    fn read(&self, from: u64) -> Result<Vec<String>, StoreError> {
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
