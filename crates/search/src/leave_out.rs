//! Files that a search must not look at, whatever the ignore files say.

use std::{fmt, path::Path, sync::Arc};

/// Files and directories to leave out; none by default.
#[derive(Clone, Default)]
pub struct LeaveOut(Option<Arc<Asked>>);

type Asked = dyn Fn(&Path) -> bool + Send + Sync;

impl LeaveOut {
    /// Those for which this says so; it is asked with absolute paths.
    pub fn when(is_left_out: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_left_out)))
    }

    /// Nothing is left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|asked| asked(path))
    }
}

impl fmt::Debug for LeaveOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeaveOut").field(&self.0.is_some()).finish()
    }
}
