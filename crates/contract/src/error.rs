//! Errors of tool calls.

use std::{io, path::PathBuf, time::Duration};

/// The reason why a call produced no output. The model reads the text, so it says what to do next.
///
/// Failures that must end the turn are the engine's own errors, never a `ToolError`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The input does not match the schema; one problem per line.
    #[error("{0}")]
    Input(String),
    /// The call cannot work in the current state (a missing file, a file that was never read).
    #[error("{0}")]
    Refused(String),
    /// The call ran and failed.
    #[error("{0}")]
    Failed(String),
    /// A file could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The session does not have the named service.
    #[error("the service {0} is not available in this session")]
    NoService(&'static str),
    /// A thing that the tool needs is not available.
    #[error("{0} is not available in this session")]
    Unavailable(&'static str),
    /// The call was interrupted.
    #[error("cancelled")]
    Cancelled,
    /// The call exceeded its timeout.
    #[error(
        "timed out after {}; ask for less at once or narrow the call, then try again",
        seconds(.0)
    )]
    TimedOut(Duration),
}

fn seconds(duration: &Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
