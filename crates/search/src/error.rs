//! The errors that stop a query from giving any result.
//!
//! The texts are read by a model, so each says what was wrong and what to do next. A problem with a
//! single file is not an error: it is listed in the report's `skipped`.

use std::io;
use std::path::PathBuf;

/// The reason why a query gave no result at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each says what it means")]
pub enum SearchError {
    #[error(
        "invalid regular expression: {diagnostic}\n\
         The pattern is a Rust regex: put a backslash before a literal ( ) [ ] {{ }} . * + ? | ^ $; \
         look-around and backreferences do not exist."
    )]
    InvalidRegex { diagnostic: String },

    #[error(
        "the pattern contains a line break, but lines are searched one at a time: \
         set `multiline: true` to match across lines, or search for one line's part"
    )]
    LineBreakInPattern,

    #[error(
        "`{field}` contains a NUL byte, which no path and no searchable text can hold: remove it"
    )]
    NulByte { field: &'static str },

    #[error("invalid glob `{glob}`: {diagnostic}")]
    InvalidGlob { glob: String, diagnostic: String },

    #[error("unknown file type `{name}`: {hint}")]
    UnknownFileType { name: String, hint: String },

    #[error(
        "{path} does not exist: check the spelling, or list the directory above it",
        path = path.display()
    )]
    PathMissing { path: PathBuf },

    #[error(
        "{path} now leads to another place than when this call was permitted: a symbolic link in it \
         was changed. Nothing was searched; repeat the call if you still need it",
        path = path.display()
    )]
    LeadsElsewhere { path: PathBuf },

    #[error("{path} is not an absolute path", path = path.display())]
    PathNotAbsolute { path: PathBuf },

    #[error("{path} is not a directory: name the directory to search", path = path.display())]
    NotADirectory { path: PathBuf },

    #[error(
        "{path} is neither a regular file nor a directory, so it cannot be searched",
        path = path.display()
    )]
    NotSearchable { path: PathBuf },

    #[error("cannot read {path}: {source}", path = path.display())]
    PathUnreadable { path: PathBuf, source: io::Error },
}
