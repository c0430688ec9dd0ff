//! Trees to search in, and rows as ripgrep would print them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use haft_search::{
    GrepMatches, GrepMode, GrepQuery, GrepReport, GrepRow, RowKind, SearchEngine, StopCondition,
};
use tempfile::TempDir;

pub(crate) const CONTENT: GrepMode = GrepMode::Content {
    before: 0,
    after: 0,
    only_matching: false,
};

/// A directory that goes away with the test.
pub(crate) struct Tree {
    _dir: Option<TempDir>,
    pub(crate) root: PathBuf,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        // The temporary directory may be named through a link.
        let root = dir.path().canonicalize().unwrap();
        Self {
            _dir: Some(dir),
            root,
        }
    }

    pub(crate) fn below(folder: &Path) -> Self {
        let dir = tempfile::tempdir_in(folder).unwrap();
        let root = dir.path().canonicalize().unwrap();
        Self {
            _dir: Some(dir),
            root,
        }
    }

    /// A directory that someone else removes.
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { _dir: None, root }
    }

    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let tree = Self::new();
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Gives files a time, in seconds after a fixed one.
    pub(crate) fn set_time(&self, path: &str, seconds: u64) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds);
        let file = fs::File::options()
            .write(true)
            .open(self.root.join(path))
            .unwrap();
        file.set_modified(time).unwrap();
    }

    pub(crate) fn query(&self, pattern: &str, mode: GrepMode) -> GrepQuery {
        GrepQuery {
            mode,
            ..GrepQuery::new(pattern, &self.root)
        }
    }

    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap().display().to_string()
    }

    /// The rows as lines, with paths relative to the root.
    pub(crate) fn lines(&self, report: &GrepReport) -> Vec<String> {
        match &report.found {
            GrepMatches::Rows(rows) => rows.iter().map(|row| self.line(row)).collect(),
            GrepMatches::Files(files) => files.iter().map(|path| self.relative(path)).collect(),
            GrepMatches::Counts(counts) => counts
                .iter()
                .map(|it| format!("{}:{}", self.relative(&it.path), it.count))
                .collect(),
        }
    }

    pub(crate) fn line(&self, row: &GrepRow) -> String {
        let path = self.relative(&row.path);
        let number = row.line.unwrap_or_default();
        match row.kind {
            RowKind::Match => format!("{path}:{number}:{}", row.text),
            RowKind::Context => format!("{path}-{number}-{}", row.text),
            RowKind::Break => "--".to_owned(),
            RowKind::Notice => format!("{path}: {}", row.text),
        }
    }
}

pub(crate) fn grep(query: &GrepQuery) -> GrepReport {
    SearchEngine::new()
        .grep(query, &StopCondition::never())
        .unwrap()
}
