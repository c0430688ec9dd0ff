//! Where a search begins, looked at before anything is searched.

use std::fs::{self, FileType};
use std::io;
use std::path::Path;

use crate::SearchError;

/// What the path leads to, links followed.
pub(crate) fn inspect(path: &Path) -> Result<FileType, SearchError> {
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(SearchError::NulByte { field: "path" });
    }
    let owned = || path.to_path_buf();
    if !path.is_absolute() {
        return Err(SearchError::PathNotAbsolute { path: owned() });
    }
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.file_type()),
        Err(source) => Err(match source.kind() {
            // `a.txt/b` is "not a directory" to the system and simply missing to a reader.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                SearchError::PathMissing { path: owned() }
            }
            _ => SearchError::PathUnreadable {
                path: owned(),
                source,
            },
        }),
    }
}
