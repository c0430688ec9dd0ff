//! On whose behalf a file is changed, and where it may lie.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::buffers::WriteThrough;
use crate::error::JournalError;
use crate::open::resolve;
use crate::stamp::Stamp;
use crate::target::FileTarget;

/// What every mutation must show: which call it belongs to, and where that call may write.
///
/// A file whose real path lies in none of the permitted ones is not written, whatever link led
/// there, and what is opened afterwards is opened by that real path without following any link.
#[derive(Debug, Clone)]
pub struct WriteGrant {
    /// The call's id, under which it can be undone.
    pub call: String,
    /// The tool of the call.
    pub tool: String,
    within: Vec<PathBuf>,
    /// The same after all links; looked up when first needed, which waits for the disk.
    real: OnceLock<Vec<PathBuf>>,
    /// Who writes single text files in place of the journal.
    pub(crate) through: Option<Arc<dyn WriteThrough>>,
    follower: Option<Follower>,
}

/// Is given what was written.
#[derive(Clone)]
struct Follower(Arc<Follow>);

type Follow = dyn Fn(&Path, &[u8], &Stamp) + Send + Sync;

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Follower")
    }
}

impl WriteGrant {
    /// `within`: directories, each with everything below it, and single files, which need not
    /// exist. One that leads nowhere permits nothing.
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

    /// The same; each content that is written under it is shown, with the real path and what the file
    /// was right after, once all files of the change are written.
    #[must_use]
    pub fn followed(
        mut self,
        follow: impl Fn(&Path, &[u8], &Stamp) + Send + Sync + 'static,
    ) -> Self {
        self.follower = Some(Follower(Arc::new(follow)));
        self
    }

    /// Shows what was written.
    pub(crate) fn wrote(&self, real: &Path, content: &[u8], stamp: &Stamp) {
        if let Some(Follower(follow)) = &self.follower {
            follow(real, content, stamp);
        }
    }

    /// May write anywhere: for a person at the command line, and where all is permitted.
    pub fn unconfined(call: impl Into<String>, tool: impl Into<String>) -> Self {
        Self::new(call, tool, [PathBuf::from("/")])
    }

    /// The same, which may also write these.
    #[must_use]
    pub fn and(self, more: impl IntoIterator<Item = PathBuf>) -> Self {
        let within = self.within.into_iter().chain(more);
        Self {
            follower: self.follower,
            through: self.through,
            ..Self::new(self.call, self.tool, within)
        }
    }

    /// The same, whose files an editor writes. What it makes of them is looked at, and can be undone.
    #[must_use]
    pub fn through(mut self, editor: Arc<dyn WriteThrough>) -> Self {
        self.through = Some(editor);
        self
    }

    /// Is a real path inside?
    pub fn covers(&self, real: &Path) -> bool {
        let roots = self.real.get_or_init(|| {
            let resolved = self.within.iter().filter_map(|path| resolve(path).ok());
            resolved.map(|resolved| resolved.real).collect()
        });
        roots.iter().any(|root| real.starts_with(root))
    }

    /// Refuses a real path that is not inside.
    pub(crate) fn admit(&self, given: &Path, real: &Path) -> Result<(), JournalError> {
        if self.covers(real) {
            return Ok(());
        }
        Err(JournalError::Outside {
            path: given.to_path_buf(),
            real: real.to_path_buf(),
        })
    }

    /// Where a path leads, if that is what was judged and this ticket permits writing there.
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
