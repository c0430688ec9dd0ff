//! What can go wrong, in words for the reader of the page.

use std::time::Duration;

/// Why the browser did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChromiumError {
    /// The pipe is closed: the program ended, crashed or was killed.
    #[error("the browser ended")]
    Ended,
    /// The program did not answer in time.
    #[error("{what} did not end within {} s", .after.as_secs_f32().round())]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        after: Duration,
    },
    /// What the program says is longer than what is read of it.
    #[error("the answer is longer than {megabytes} MB")]
    TooLong {
        /// The most that is read.
        megabytes: usize,
    },
    /// The program refused a command.
    #[error("{method}: {message}")]
    Protocol {
        /// The command.
        method: String,
        /// Its words.
        message: String,
    },
    /// The element of a ref is no more.
    #[error("e{number} is gone: {why}. Take a snapshot.")]
    Gone {
        /// The number of the ref.
        number: u32,
        /// What became of it.
        why: String,
    },
    /// Something lies over the element.
    #[error("e{number} is covered by {by}.")]
    Covered {
        /// The number of the ref.
        number: u32,
        /// The line of the element above it.
        by: String,
    },
    /// The page waits for an answer.
    #[error("a {kind} dialog is open: \"{message}\". Answer it with the action dialog.")]
    DialogOpen {
        /// `confirm`, `prompt` …
        kind: String,
        /// What it asks.
        message: String,
    },
    /// The process of the page died.
    #[error("The page crashed; navigate again.")]
    Crashed,
    /// The tab was closed.
    #[error("tab {0} is closed")]
    TabClosed(u32),
    /// The judge of requests refused it.
    #[error("{0}")]
    Refused(String),
    /// The page could not be loaded.
    #[error("{error} at {url}.")]
    Unreachable {
        /// `net::ERR_…`.
        error: String,
        /// Where.
        url: String,
    },
    /// What was asked for makes no sense here; the words say what would.
    #[error("{0}")]
    Unusable(String),
}

pub(crate) type Result<T> = std::result::Result<T, ChromiumError>;

pub(crate) fn unusable(words: impl Into<String>) -> ChromiumError {
    ChromiumError::Unusable(words.into())
}
