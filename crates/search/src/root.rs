//! Where a search begins, opened before anything is searched.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::SearchError;
use crate::handle::Directory;

/// The place, opened: what is searched is this very directory or file.
#[derive(Debug)]
pub(crate) struct Root {
    /// After all links.
    pub(crate) real: PathBuf,
    pub(crate) opened: Opened,
}

#[derive(Debug)]
pub(crate) enum Opened {
    Directory(Directory),
    File(File),
}

/// Opens what the path leads to, links followed. If `judged` says where it led when it was
/// permitted, it must lead there still.
pub(crate) fn open(path: &Path, judged: Option<&Path>) -> Result<Root, SearchError> {
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(SearchError::NulByte { field: "path" });
    }
    let owned = || path.to_path_buf();
    // Most paths have no link in them, and one call of the kernel finds that out.
    #[cfg(target_os = "linux")]
    if let Some(directory) = Directory::without_links(path) {
        if judged.is_some_and(|judged| judged != path) {
            return Err(SearchError::LeadsElsewhere { path: owned() });
        }
        return Ok(Root {
            real: owned(),
            opened: Opened::Directory(directory),
        });
    }
    if !path.is_absolute() {
        return Err(SearchError::PathNotAbsolute { path: owned() });
    }
    let failed = |source: io::Error| match source.kind() {
        // `a.txt/b` is "not a directory" to the system and simply missing to a reader.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            SearchError::PathMissing { path: owned() }
        }
        _ => SearchError::PathUnreadable {
            path: owned(),
            source,
        },
    };
    let real = fs::canonicalize(path).map_err(failed)?;
    if judged.is_some_and(|judged| judged != real) {
        return Err(SearchError::LeadsElsewhere { path: owned() });
    }
    let kind = fs::symlink_metadata(&real).map_err(failed)?.file_type();
    let opened = if kind.is_dir() {
        Opened::Directory(Directory::at(&real).map_err(failed)?)
    } else {
        let not_searchable = || SearchError::NotSearchable { path: owned() };
        let (Some(above), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(not_searchable());
        };
        if !kind.is_file() {
            return Err(not_searchable());
        }
        let above = Directory::through(above).map_err(failed)?;
        let file = above.open(name).map_err(failed)?;
        Opened::File(file.ok_or_else(not_searchable)?)
    };
    Ok(Root { real, opened })
}
