//! Why a call gave no output.

use std::{io, path::PathBuf, time::Duration};

/// Why a call produced no output. The model reads the text, so it says what to do next.
///
/// Failures that must end the turn are the engine's own errors, never this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The input is not what the schema asks for; one problem a line.
    #[error("{0}")]
    Input(String),
    /// The call makes no sense as things are (a missing file, a file that was never read).
    #[error("{0}")]
    Refused(String),
    /// It was tried and did not work.
    #[error("{0}")]
    Failed(String),
    /// A file could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The session has no such service; which.
    #[error("the service {0} is not available in this session")]
    NoService(&'static str),
    /// Something that the tool needs is not there.
    #[error("{0} is not available in this session")]
    Unavailable(&'static str),
    /// Someone interrupted it.
    #[error("cancelled")]
    Cancelled,
    /// It ran longer than it may.
    #[error(
        "timed out after {}; ask for less at once or narrow the call, then try again",
        seconds(.0)
    )]
    TimedOut(Duration),
}

fn seconds(duration: &Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
