//! Contents that haft's own tools have just written, so that they need not be read again.
//!
//! The kernel reports that such a file was renamed into place, and no write under that name. If the
//! file has the identity that was passed with the content, the content is current. In any doubt the
//! file is read as usual.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::contents::{FileData, MAX_CACHED_LENGTH, ReadText, TextBudget};
use super::file_fingerprint::FileFingerprint;
use super::tree::LiveTree;
use crate::FileIdentity;

/// The maximum number of contents to store until the next query.
const MAX_COUNT: usize = 64;

/// The contents that were passed in since the last query.
#[derive(Debug, Default)]
pub(crate) struct WrittenContents(Vec<WrittenText>);

#[derive(Debug)]
struct WrittenText {
    /// The path relative to the root.
    path: PathBuf,
    bytes: Box<[u8]>,
    identity: FileIdentity,
}

impl WrittenContents {
    pub(crate) fn add(&mut self, path: &Path, bytes: &[u8], identity: &FileIdentity) {
        self.0.retain(|text| text.path != path);
        if self.0.len() < MAX_COUNT && bytes.len() as u64 <= MAX_CACHED_LENGTH {
            self.0.push(WrittenText {
                path: path.to_path_buf(),
                bytes: bytes.into(),
                identity: *identity,
            });
        }
    }

    /// Caches the contents that are still current. Called after the tree was brought up to date;
    /// contents whose rename event has not arrived by then are dropped.
    pub(crate) fn cache_current(
        &mut self,
        tree: &mut LiveTree<FileData>,
        budget: &Arc<TextBudget>,
    ) {
        let moved_here = std::mem::take(&mut tree.moved_here);
        for text in self.0.drain(..) {
            let entries = moved_here.iter().copied();
            let mut entries = entries.filter(|entry| tree.path_of(*entry) == text.path);
            let Some(number) = entries.next() else {
                continue;
            };
            let mark = tree.entries[number as usize].mark;
            if !is_of(&text, &mark) {
                continue;
            }
            // From here on the file itself is watched, under all its names.
            let watcher = tree.watcher.clone();
            let room = tree.file_watches.room();
            let watch = watcher.filter(|_| room > 0);
            let watch = watch.and_then(|it| it.watch_file_below(&tree.top, &text.path).ok());
            let now = tree.top.stat_below(&text.path);
            let is_same = now
                .is_some_and(|now| FileFingerprint::from_stat(&now) == mark && now.st_nlink == 1);
            if let Some(watch) = watch
                && tree.enter_watch(number, watch)
                && is_same
                && let Some(read) = ReadText::plain(&text.bytes, mark)
            {
                tree.entries[number as usize].data.held = read.hold(budget);
            }
        }
    }
}

fn is_of(text: &WrittenText, mark: &FileFingerprint) -> bool {
    let modified = i128::from(mark.modified.0) * 1_000_000_000 + i128::from(mark.modified.1);
    let found = FileIdentity {
        device: mark.device,
        inode: mark.inode,
        modified_ns: modified,
    };
    found == text.identity && mark.size == text.bytes.len() as u64
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::IndexSettings;
    use crate::index::tree_handle::TreeHandle;

    fn identity(path: &Path) -> FileIdentity {
        let found = fs::metadata(path).unwrap();
        FileIdentity {
            device: found.dev(),
            inode: found.ino(),
            modified_ns: i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()),
        }
    }

    #[test]
    fn a_content_is_held_unless_something_else_happened_to_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (aside, path) = (root.join("aside"), root.join("a.txt"));
        fs::write(&path, "old\n").unwrap();
        let settings = IndexSettings::default();
        let holder = TreeHandle::new(&root, &root, &TextBudget::new(1 << 20), 1, &settings);
        holder.read();
        let replace = |text: &str| {
            fs::write(&aside, text).unwrap();
            fs::rename(&aside, &path).unwrap();
            identity(&path)
        };
        let hand_over = |text: &str, identity: FileIdentity| {
            let handed = holder.with_exclusive(|kept| {
                kept.add_written_content(Path::new("a.txt"), text.as_bytes(), &identity);
                Ok(())
            });
            handed.unwrap();
            let held = holder.with_fresh(|kept, _| {
                let mut entries = kept.tree.entries.iter();
                let entry = entries.find(|entry| &*entry.name == "a.txt").unwrap();
                Ok(entry.data.held.clone())
            });
            held.unwrap().map(|held| held.bytes.to_vec())
        };
        let file = replace("new\n");
        assert_eq!(hand_over("new\n", file).as_deref(), Some(&b"new\n"[..]));
        // It is not reported this time.
        let file = replace("newer\n");
        fs::write(&path, "later\n").unwrap();
        assert_eq!(hand_over("newer\n", file), None, "written since");
        let file = replace("one\n");
        replace("two\n");
        assert_eq!(hand_over("one\n", file), None, "replaced since");
        let file = replace("short\n");
        assert_eq!(hand_over("shorter\n", file), None, "another length");
        let file = replace("with\0\n");
        assert_eq!(hand_over("with\0\n", file), None, "not searched as it is");
        fs::write(&path, "in place\n").unwrap();
        assert_eq!(hand_over("in place\n", identity(&path)), None);
        let file = replace("last\n");
        fs::hard_link(&path, root.join("other")).unwrap();
        assert_eq!(hand_over("last\n", file), None, "it has another name");
    }
}
