//! The errors of starting a command.

use std::io;

use crate::Mechanism;

/// The reason why a command could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The requested isolation is not available here.
    #[error("the sandbox cannot be set up: {step}: {error}")]
    Unavailable {
        /// The step that failed.
        step: String,
        /// The error of the system.
        error: String,
    },
    /// Only a weaker mechanism than the caller accepts is available.
    #[error("commands can only be confined in a weaker way here: {}", found.name())]
    TooWeak {
        /// The best mechanism that works.
        found: Mechanism,
    },
    /// No guard can store what a command changes.
    #[error("what the command changes cannot be stored for undo here")]
    NoWitness,
    /// The shell could not be started, or did not answer.
    #[error("the shell cannot be started: {0}")]
    Shell(#[source] io::Error),
    /// A confined program could not be started.
    #[error("{0}")]
    Program(#[source] io::Error),
    /// The folder for temporary files could not be created.
    #[error("no folder for temporary files: {0}")]
    Scratch(#[source] io::Error),
}
