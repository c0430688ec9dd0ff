//! The root of a search, opened before anything is searched.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::SearchError;
use crate::handle::Directory;

/// The open root: exactly this directory or file is searched.
#[derive(Debug)]
pub(crate) struct SearchRoot {
    /// The path with all links resolved.
    pub(crate) real: PathBuf,
    pub(crate) opened: OpenedRoot,
}

#[derive(Debug)]
pub(crate) enum OpenedRoot {
    Directory(Directory),
    File(File),
}

/// Opens the target of a path, following links. If `authorized` is set, it is the real path that
/// the permission check resolved, and the path must still resolve to it.
pub(crate) fn open(path: &Path, authorized: Option<&Path>) -> Result<SearchRoot, SearchError> {
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(SearchError::NulByte { field: "path" });
    }
    let owned = || path.to_path_buf();
    // Most paths contain no link, and one system call detects that.
    #[cfg(target_os = "linux")]
    if let Some(directory) = Directory::without_links(path) {
        if authorized.is_some_and(|authorized| authorized != path) {
            return Err(SearchError::LeadsElsewhere { path: owned() });
        }
        return Ok(SearchRoot {
            real: owned(),
            opened: OpenedRoot::Directory(directory),
        });
    }
    if !path.is_absolute() {
        return Err(SearchError::PathNotAbsolute { path: owned() });
    }
    let failed = |source: io::Error| match source.kind() {
        // The system reports `a.txt/b` as "not a directory", but for a reader it is simply missing.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            SearchError::PathMissing { path: owned() }
        }
        _ => SearchError::PathUnreadable {
            path: owned(),
            source,
        },
    };
    let real = fs::canonicalize(path).map_err(failed)?;
    if authorized.is_some_and(|authorized| authorized != real) {
        return Err(SearchError::LeadsElsewhere { path: owned() });
    }
    let kind = fs::symlink_metadata(&real).map_err(failed)?.file_type();
    let opened = if kind.is_dir() {
        OpenedRoot::Directory(Directory::open_real(&real).map_err(failed)?)
    } else {
        let not_searchable = || SearchError::NotSearchable { path: owned() };
        let (Some(above), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(not_searchable());
        };
        if !kind.is_file() {
            return Err(not_searchable());
        }
        let above = Directory::open_for_entries(above).map_err(failed)?;
        let file = above.open(name).map_err(failed)?;
        OpenedRoot::File(file.ok_or_else(not_searchable)?)
    };
    Ok(SearchRoot { real, opened })
}
