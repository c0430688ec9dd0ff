//! The files that a person has open in an editor, where an editor drives the session.

use std::path::Path;

use crate::BoxFuture;

/// What an editor has of files, saved or not. A service, as `Arc<dyn EditorFiles>`. It only knows what a person sees;
/// what is on disk decides.
pub trait EditorFiles: Send + Sync {
    /// The text that the editor has of this file (a real path). `None`: it has none, cannot say, or takes too long.
    fn text<'a>(&'a self, real: &'a Path) -> BoxFuture<'a, Option<String>>;

    /// Can it be asked to write a file?
    fn can_write(&self) -> bool;

    /// Does the person want to see changes in the editor first? Then files are written by it.
    fn reviews(&self) -> bool;

    /// Has the editor write the file. The error says why it did not, for a model to read.
    fn write<'a>(&'a self, real: &'a Path, text: &'a str) -> BoxFuture<'a, Result<(), String>>;
}
