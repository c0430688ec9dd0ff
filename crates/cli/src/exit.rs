//! How the process ends, as a number that means something.

use std::{io, process::ExitCode};

use haft_host::StopKind;

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
    /// Told to end.
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
    show::warn(&format!("haft: {}", in_words(error)));
    Exit::Usage
}

/// An error and its causes in one line; a cause that was named already is not named again.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_is_named_once() {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "it is gone");
        let doubled = Err::<(), _>(gone()).with_context(|| format!("a.txt: {}", gone()));
        assert_eq!(in_words(&doubled.unwrap_err()), "a.txt: it is gone");
        let plain = Err::<(), _>(gone()).context("a.txt");
        assert_eq!(in_words(&plain.unwrap_err()), "a.txt: it is gone");
    }
}
