//! The author of a change, and where it may write.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::editor_buffers::WriteThrough;
use crate::error::JournalError;
use crate::open::resolve;
use crate::stamp::Stamp;
use crate::target::FileTarget;

/// The permission that every change requires: the call that makes it, and the paths where it may
/// write.
///
/// A file is written only if its real path is inside a permitted directory, regardless of the links
/// that lead there; it is then opened by that real path without following any link.
#[derive(Debug, Clone)]
pub struct WriteGrant {
    /// The call's id, which is also the id for undo.
    pub call: String,
    /// The tool of the call.
    pub tool: String,
    within: Vec<PathBuf>,
    /// `within` with all links resolved; resolved when first needed, because that needs the disk.
    real: OnceLock<Vec<PathBuf>>,
    /// The editor that writes single text files instead of the journal.
    pub(crate) through: Option<Arc<dyn WriteThrough>>,
    follower: Option<WriteListener>,
}

/// A callback that receives what was written.
#[derive(Clone)]
struct WriteListener(Arc<WriteCallback>);

type WriteCallback = dyn Fn(&Path, &[u8], &Stamp) + Send + Sync;

impl fmt::Debug for WriteListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteListener")
    }
}

impl WriteGrant {
    /// Creates a grant. `within` has directories, including everything below them, and single
    /// files, which need not exist. A path that cannot be resolved permits nothing.
    pub fn new(
        call: impl Into<String>,
        tool: impl Into<String>,
        within: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        Self {
            call: call.into(),
            tool: tool.into(),
            within: within.into_iter().collect(),
            real: OnceLock::new(),
            through: None,
            follower: None,
        }
    }

    /// Adds a callback that receives the real path, the content and the new stamp of each file
    /// written with this grant, after all files of the change are written.
    #[must_use]
    pub fn followed(
        mut self,
        follow: impl Fn(&Path, &[u8], &Stamp) + Send + Sync + 'static,
    ) -> Self {
        self.follower = Some(WriteListener(Arc::new(follow)));
        self
    }

    /// Calls the callback for a written file.
    pub(crate) fn notify_written(&self, real: &Path, content: &[u8], stamp: &Stamp) {
        if let Some(WriteListener(follow)) = &self.follower {
            follow(real, content, stamp);
        }
    }

    /// Creates a grant for all paths: for users at the command line, and if everything is
    /// permitted.
    pub fn unconfined(call: impl Into<String>, tool: impl Into<String>) -> Self {
        Self::new(call, tool, [PathBuf::from("/")])
    }

    /// Permits these paths, too.
    #[must_use]
    pub fn with_paths(self, more: impl IntoIterator<Item = PathBuf>) -> Self {
        let within = self.within.into_iter().chain(more);
        Self {
            follower: self.follower,
            through: self.through,
            ..Self::new(self.call, self.tool, within)
        }
    }

    /// Lets an editor write the files. Its result is checked and can be undone.
    #[must_use]
    pub fn through(mut self, editor: Arc<dyn WriteThrough>) -> Self {
        self.through = Some(editor);
        self
    }

    /// Returns whether a real path is permitted.
    pub fn covers(&self, real: &Path) -> bool {
        let roots = self.real.get_or_init(|| {
            let resolved = self.within.iter().filter_map(|path| resolve(path).ok());
            resolved.map(|resolved| resolved.real).collect()
        });
        roots.iter().any(|root| real.starts_with(root))
    }

    /// Fails for a real path that is not permitted.
    pub(crate) fn admit(&self, given: &Path, real: &Path) -> Result<(), JournalError> {
        if self.covers(real) {
            return Ok(());
        }
        Err(JournalError::Outside {
            path: given.to_path_buf(),
            real: real.to_path_buf(),
        })
    }

    /// Resolves a target. Fails if it is not the file that was checked, or if writing there is not
    /// permitted.
    pub(crate) fn resolve(&self, target: &FileTarget) -> Result<PathBuf, JournalError> {
        let real = target.resolve()?.real;
        self.admit(target.path(), &real)?;
        Ok(real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_covers_whole_components_only() {
        let ticket = WriteGrant::new("c", "t", ["/w/a".into(), "/one/file".into()]);
        let cases = [
            ("/w/a", true),
            ("/w/a/b/c", true),
            ("/w/ab", false),
            ("/w", false),
            ("/one/file", true),
            ("/one/file2", false),
        ];
        for (path, covered) in cases {
            assert_eq!(ticket.covers(Path::new(path)), covered, "{path}");
        }
        assert!(WriteGrant::unconfined("c", "t").covers(Path::new("/etc/passwd")));
        assert!(!WriteGrant::new("c", "t", []).covers(Path::new("/etc/passwd")));
    }
}
