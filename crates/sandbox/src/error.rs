//! Why a command could not be started.

use std::io;

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The isolation that was asked for cannot be had here.
    #[error("the sandbox cannot be set up: {step}: {error}")]
    Unavailable {
        /// What was tried.
        step: String,
        /// What the system said.
        error: String,
    },
    /// The shell could not be started, or did not answer.
    #[error("the shell cannot be started: {0}")]
    Shell(#[source] io::Error),
    /// The folder for temporary files could not be made.
    #[error("no folder for temporary files: {0}")]
    Scratch(#[source] io::Error),
}
