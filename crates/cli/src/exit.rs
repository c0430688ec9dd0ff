//! How the process ends, as a number that means something.

use std::{io, process::ExitCode};

use haft_host::{StopKind, error_in_words};

use crate::show;

/// The exit codes of `haft`; `haft --help` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Success = 0,
    /// The command line was wrong, or the session could not be set up: nothing ran. Or `haft -p`: the
    /// run failed.
    Usage = 1,
    /// The call's result is an error: it failed, was refused, or never fitted its tool. Or `haft -p
    /// --fail-on-deny`: a call was refused.
    CallFailed = 2,
    /// Interrupted from the keyboard.
    Interrupted = 130,
    /// Terminated.
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

/// Says what went wrong. A reader that went away is no failure of ours: `haft tools | head` is fine.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<io::Error>().is_some_and(closed) {
        return Exit::Success;
    }
    show::warn(&format!("haft: {}", error_in_words(error)));
    Exit::Usage
}
