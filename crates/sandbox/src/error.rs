//! Why a command could not be started.

use std::io;

use crate::Mechanism;

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
    /// Commands can only be confined in a weaker way than the caller accepts.
    #[error("commands can only be confined in a weaker way here: {}", found.name())]
    TooWeak {
        /// The best way that works.
        found: Mechanism,
    },
    /// The shell could not be started, or did not answer.
    #[error("the shell cannot be started: {0}")]
    Shell(#[source] io::Error),
    /// A program that is to be confined for long could not be started.
    #[error("{0}")]
    Program(#[source] io::Error),
    /// The folder for temporary files could not be made.
    #[error("no folder for temporary files: {0}")]
    Scratch(#[source] io::Error),
}
