//! The file that a call may open: the one that the permission check resolved.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::editor_buffers::UnsavedText;
use crate::error::JournalError;
use crate::open::{ResolvedPath, resolve};

/// A path, with the real path that it resolved to when access was permitted.
///
/// Another process may replace a part of the path by a link afterwards. So the path is resolved
/// again and must lead to the same real path, which is then opened without following any link: the
/// file that is opened is the file that was checked.
#[derive(Debug, Clone)]
pub struct FileTarget {
    given: PathBuf,
    authorized_path: Option<PathBuf>,
    /// The unsaved text of its editor, if it differs from the disk.
    pub(crate) unsaved: Option<Arc<UnsavedText>>,
}

impl FileTarget {
    /// Creates a target without a check of the real path: for users at the command line, and for
    /// paths that no permission check resolved.
    pub fn unrestricted(given: impl Into<PathBuf>) -> Self {
        Self {
            given: given.into(),
            authorized_path: None,
            unsaved: None,
        }
    }

    /// Creates a target that is opened only if the path resolves to `real`.
    pub fn authorized(given: impl Into<PathBuf>, real: impl Into<PathBuf>) -> Self {
        Self {
            given: given.into(),
            authorized_path: Some(real.into()),
            unsaved: None,
        }
    }

    /// Returns the path as the caller named it.
    pub fn path(&self) -> &Path {
        &self.given
    }

    /// Returns the path if it was its own real path when it was checked: it had no links.
    pub(crate) fn link_free_path(&self) -> Option<&Path> {
        self.authorized_path
            .as_deref()
            .filter(|judged| *judged == self.given)
    }

    /// Resolves the path. Fails if the result is not the real path that was checked.
    pub fn resolve(&self) -> Result<ResolvedPath, JournalError> {
        let resolved = resolve(&self.given)?;
        match &self.authorized_path {
            Some(judged) if *judged != resolved.real => Err(JournalError::LeadsElsewhere {
                path: self.given.clone(),
            }),
            _ => Ok(resolved),
        }
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for FileTarget {
    fn from(path: &P) -> Self {
        Self::unrestricted(path.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_that_leads_elsewhere_than_it_did_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("file"), "x").unwrap();
        fs::write(root.join("other"), "y").unwrap();
        symlink("file", root.join("link")).unwrap();
        let target = FileTarget::authorized(root.join("link"), root.join("file"));
        assert_eq!(target.resolve().unwrap().real, root.join("file"));
        fs::remove_file(root.join("link")).unwrap();
        symlink("other", root.join("link")).unwrap();
        let error = target.resolve().unwrap_err();
        assert!(matches!(error, JournalError::LeadsElsewhere { .. }));
        let free = FileTarget::from(&root.join("link"));
        assert_eq!(free.resolve().unwrap().real, root.join("other"));
    }
}
