//! Files that a search must not read, regardless of ignore files.

use std::{fmt, path::Path, sync::Arc};

/// The files and directories to exclude; none by default.
#[derive(Clone, Default)]
pub struct Exclusions(Option<Arc<ExcludeFn>>);

type ExcludeFn = dyn Fn(&Path) -> bool + Send + Sync;

impl Exclusions {
    /// Excludes the paths for which the function returns true. It is called with absolute paths.
    pub fn from_fn(is_left_out: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_left_out)))
    }

    /// Returns whether nothing is excluded.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn excludes(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|asked| asked(path))
    }
}

impl fmt::Debug for Exclusions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exclusions")
            .field(&self.0.is_some())
            .finish()
    }
}
