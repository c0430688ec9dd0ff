//! The tables of control files and of stores of secrets, for documentation and tests.

use super::{
    control_tables::{DIRECTORIES, ENDINGS, FILES, HOME_DATA},
    credential_stores,
};

/// A path in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TablePath {
    /// The program that obeys the file or stores secrets in it, or the reason of the entry.
    pub source: &'static str,
    /// The path, in small letters.
    pub path: &'static str,
}

/// The stores of secrets, below a home directory.
pub fn credential_paths() -> impl Iterator<Item = TablePath> {
    credential_stores::entries().flat_map(paths)
}

/// The directories of control files, below any directory.
pub fn control_directories() -> impl Iterator<Item = TablePath> {
    DIRECTORIES.iter().flat_map(paths)
}

/// The control files, below any directory.
pub fn control_files() -> impl Iterator<Item = TablePath> {
    FILES.iter().flat_map(paths)
}

/// The ends of the names of control files.
pub fn control_endings() -> impl Iterator<Item = TablePath> {
    ENDINGS.iter().flat_map(paths)
}

/// Paths below the home that begin with a dot and that a session in the home may write.
pub fn home_data() -> impl Iterator<Item = TablePath> {
    HOME_DATA.iter().flat_map(paths)
}

fn paths(
    (source, paths): &'static (&'static str, &'static [&'static str]),
) -> impl Iterator<Item = TablePath> {
    paths.iter().map(|path| TablePath { source, path })
}
