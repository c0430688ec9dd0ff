//! The exit codes of the process.

use std::{io, process::ExitCode};

use haft_host::{StopKind, error_chain};

use crate::show;

/// The exit codes of `haft`; `haft --help` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded.
    Success = 0,
    /// The command line was wrong or the session could not be set up, so nothing ran. With `haft
    /// -p`: the run failed. With `haft doctor`: a check failed.
    Usage = 1,
    /// The call's result is an error: the call failed, was denied, or did not fit the tool's
    /// schema. With `haft -p --fail-on-deny`: a call was denied.
    CallFailed = 2,
    /// Interrupted from the keyboard (SIGINT).
    Interrupted = 130,
    /// Terminated (SIGTERM).
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<StopKind> for Exit {
    fn from(kind: StopKind) -> Self {
        match kind {
            StopKind::Interrupt => Self::Interrupted,
            StopKind::Terminate => Self::Terminated,
        }
    }
}

/// Prints an error. A closed stdout is not an error: `haft tools | head` succeeds.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<io::Error>().is_some_and(closed) {
        return Exit::Success;
    }
    show::warn(&format!("haft: {}", error_chain(error)));
    Exit::Usage
}
