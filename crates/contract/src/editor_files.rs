//! The files that the user has open in an editor, for sessions that an editor drives.

use std::path::Path;

use crate::BoxFuture;

/// The editor's versions of files, saved or not. A service, as `Arc<dyn EditorFiles>`. It only
/// knows what the user sees; the content on disk is authoritative.
pub trait EditorFiles: Send + Sync {
    /// Returns the editor's text of this file (a real path). `None`: it has none, cannot say, or
    /// takes too long.
    fn text<'a>(&'a self, real: &'a Path) -> BoxFuture<'a, Option<String>>;

    /// Returns whether the editor can write files.
    fn can_write(&self) -> bool;

    /// Returns whether the user reviews changes in the editor first. If so, the editor
    /// writes the files.
    fn reviews_changes(&self) -> bool;

    /// Lets the editor write the file. The error is the reason of a failure, as text for the model.
    fn write<'a>(&'a self, real: &'a Path, text: &'a str) -> BoxFuture<'a, Result<(), String>>;
}
