//! Which file a call may open: the one that was meant when it was permitted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::buffers::UnsavedText;
use crate::error::JournalError;
use crate::open::{Resolved, resolve};

/// A path, and where it led when someone decided that it may be opened.
///
/// Anyone may put a link in its place afterwards. So it is resolved once more, must lead to the same
/// real path, and that one is opened without following any link: what is opened is what was judged.
#[derive(Debug, Clone)]
pub struct FileTarget {
    given: PathBuf,
    judged: Option<PathBuf>,
    /// What its editor has of it, if that is not what is on disk.
    pub(crate) unsaved: Option<Arc<UnsavedText>>,
}

impl FileTarget {
    /// Wherever it leads: for a person at the command line, and where nothing was judged.
    pub fn anywhere(given: impl Into<PathBuf>) -> Self {
        Self {
            given: given.into(),
            judged: None,
            unsaved: None,
        }
    }

    /// Only if it leads to this real path.
    pub fn judged(given: impl Into<PathBuf>, real: impl Into<PathBuf>) -> Self {
        Self {
            given: given.into(),
            judged: Some(real.into()),
            unsaved: None,
        }
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.given
    }

    /// The path, if it led to itself when it was judged: there was no link in it.
    pub(crate) fn led_to_itself(&self) -> Option<&Path> {
        self.judged
            .as_deref()
            .filter(|judged| *judged == self.given)
    }

    /// Where it leads, if that is where it led when it was judged.
    pub fn resolve(&self) -> Result<Resolved, JournalError> {
        let resolved = resolve(&self.given)?;
        match &self.judged {
            Some(judged) if *judged != resolved.real => Err(JournalError::LeadsElsewhere {
                path: self.given.clone(),
            }),
            _ => Ok(resolved),
        }
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for FileTarget {
    fn from(path: &P) -> Self {
        Self::anywhere(path.as_ref())
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
        let target = FileTarget::judged(root.join("link"), root.join("file"));
        assert_eq!(target.resolve().unwrap().real, root.join("file"));
        fs::remove_file(root.join("link")).unwrap();
        symlink("other", root.join("link")).unwrap();
        let error = target.resolve().unwrap_err();
        assert!(matches!(error, JournalError::LeadsElsewhere { .. }));
        let free = FileTarget::from(&root.join("link"));
        assert_eq!(free.resolve().unwrap().real, root.join("other"));
    }
}
