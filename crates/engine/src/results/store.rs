//! The folder of stored results. Files are named by their content, readable only by the owner, and
//! bounded in number and size.

use std::{
    collections::VecDeque,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock},
};

use haft_contract::Content;

use super::preview::preview;
use crate::{hooks::LongTextStore, settings::real_path};

/// The budget of stored results; the oldest are removed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultBudget {
    /// The maximum number of bytes.
    pub bytes: u64,
    /// The maximum number of files.
    pub files: usize,
}

impl Default for ResultBudget {
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            files: 1_000,
        }
    }
}

/// Stores results that are too long for the model. Creates nothing on disk before the first one.
#[derive(Debug)]
pub struct ResultStore {
    folder: PathBuf,
    /// The real path of the folder, resolved only once because every permission decision needs it.
    real: OnceLock<PathBuf>,
    budget: ResultBudget,
    kept: Mutex<VecDeque<(PathBuf, u64)>>,
}

impl ResultStore {
    /// Creates a store in this folder, such as `SESSION/tool-results`.
    pub fn new(folder: PathBuf, budget: ResultBudget) -> Self {
        Self {
            folder,
            real: OnceLock::new(),
            budget,
            kept: Mutex::default(),
        }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder with all symlinks resolved.
    pub(crate) fn real_folder(&self) -> &Path {
        self.real
            .get_or_init(|| real_path::resolve_links(&self.folder))
    }

    /// If the texts together are longer than `cap` characters, stores them and replaces them with
    /// their size, the path and a preview.
    pub(crate) fn cap_content(&self, content: &mut Vec<Content>, cap: usize) -> Option<PathBuf> {
        let texts = || content.iter().filter_map(Content::as_text);
        // There are never fewer bytes than characters, so the usual short result needs no counting.
        let bytes: usize = texts().map(str::len).sum();
        if bytes <= cap {
            return None;
        }
        let characters: usize = texts().map(|text| text.chars().count()).sum();
        if characters <= cap {
            return None;
        }
        let whole = texts().collect::<Vec<_>>().join("\n");
        let (place, path) = match self.store(&whole) {
            Ok(path) => (
                format!(
                    "The whole text is in {} (Read it in parts).",
                    path.display()
                ),
                Some(path),
            ),
            Err(error) => (format!("The whole text could not be saved: {error}."), None),
        };
        let lines = whole.lines().count();
        let notice = format!(
            "Result too long to show: {characters} characters, {lines} lines. {place}\n\
             Beginning and end:\n\n{}",
            preview(&whole)
        );
        content.retain(|block| block.as_text().is_none());
        content.insert(0, Content::text(notice));
        path
    }

    /// Stores a text; the same text is stored only once.
    fn store(&self, text: &str) -> io::Result<PathBuf> {
        let name = format!("{}.txt", &blake3::hash(text.as_bytes()).to_hex()[..32]);
        let path = self.folder.join(name);
        let mut kept = self
            .kept
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(at) = kept.iter().position(|(known, _)| *known == path) {
            // The text was stored again: it is now the newest.
            let entry = kept.remove(at);
            kept.extend(entry);
            return Ok(path);
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        write_whole(&path, text)?;
        kept.push_back((path.clone(), text.len() as u64));
        self.drop_oldest(&mut kept);
        Ok(path)
    }

    fn drop_oldest(&self, kept: &mut VecDeque<(PathBuf, u64)>) {
        let mut bytes: u64 = kept.iter().map(|(_, size)| size).sum();
        while kept.len() > 1 && (kept.len() > self.budget.files || bytes > self.budget.bytes) {
            if let Some((oldest, size)) = kept.pop_front() {
                bytes -= size;
                if let Err(error) = fs::remove_file(&oldest) {
                    tracing::warn!(path = %oldest.display(), %error, "stored result not removed");
                }
            }
        }
    }
}

impl LongTextStore for ResultStore {
    fn store(&self, text: &str, longest: usize) -> Option<String> {
        let mut content = vec![Content::text(text)];
        self.cap_content(&mut content, longest)?;
        let shown = content.iter().filter_map(Content::as_text);
        Some(shown.collect::<Vec<_>>().join("\n"))
    }
}

/// Writes to a temporary file first, so that a reader never sees an incomplete result.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let partial = path.with_extension("partial");
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&partial, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn store(dir: &Path, budget: ResultBudget) -> ResultStore {
        ResultStore::new(dir.join("session/tool-results"), budget)
    }

    #[test]
    fn a_long_result_is_kept_whole_and_only_its_owner_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path(), ResultBudget::default());
        let long: String = (0..500).map(|n| format!("row {n}\n")).collect();
        let mut content = vec![Content::text(long.clone())];
        let path = store.cap_content(&mut content, 100).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), long);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            fs::metadata(store.folder()).unwrap().permissions().mode() & 0o777,
            0o700
        );
        let told = content[0].as_text().unwrap();
        assert!(told.contains("3890 characters, 500 lines"), "{told}");
        assert!(told.contains(path.to_str().unwrap()), "{told}");
        // The same text again is the same file.
        assert_eq!(
            store.cap_content(&mut vec![Content::text(long)], 100),
            Some(path)
        );
        assert_eq!(fs::read_dir(store.folder()).unwrap().count(), 1);
    }

    #[test]
    fn the_cap_counts_characters_not_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path(), ResultBudget::default());
        let mut content = vec![Content::text("é".repeat(100))];
        assert_eq!(store.cap_content(&mut content, 100), None);
        assert!(
            !store.folder().exists(),
            "nothing is made before it is needed"
        );
    }

    #[test]
    fn the_oldest_goes_when_the_budget_is_used_up() {
        let dir = tempfile::tempdir().unwrap();
        for budget in [
            ResultBudget {
                bytes: 250,
                files: 100,
            },
            ResultBudget {
                bytes: 1 << 20,
                files: 2,
            },
        ] {
            let store = store(dir.path(), budget);
            let paths: Vec<_> = ["a", "b", "c"]
                .map(|letter| store.store(&letter.repeat(100)).unwrap())
                .into();
            assert!(
                !paths[0].exists() && paths[1].exists() && paths[2].exists(),
                "{budget:?}"
            );
            fs::remove_dir_all(store.folder()).unwrap();
        }
    }

    #[test]
    fn a_result_that_cannot_be_kept_is_still_previewed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("session"),
            "a file where the folder should be",
        )
        .unwrap();
        let store = store(dir.path(), ResultBudget::default());
        let mut content = vec![Content::text("x".repeat(5000))];
        assert_eq!(store.cap_content(&mut content, 100), None);
        assert!(content[0].as_text().unwrap().contains("could not be saved"));
    }
}
