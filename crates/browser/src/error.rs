//! Errors of the browser, with texts for the reader of the page.

use std::time::Duration;

/// The reason why the browser did not do what was requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChromiumError {
    /// The pipe is closed: the process exited, crashed or was killed.
    #[error("the browser ended")]
    Ended,
    /// The browser did not answer in time.
    #[error("{what} did not end within {} s", .after.as_secs_f32().round())]
    Timeout {
        /// The operation that was awaited.
        what: String,
        /// The time limit.
        after: Duration,
    },
    /// The response of the browser exceeds the size limit.
    #[error("the answer is longer than {megabytes} MB")]
    TooLong {
        /// The limit in megabytes.
        megabytes: usize,
    },
    /// The browser refused a command.
    #[error("{method}: {message}")]
    Protocol {
        /// The command.
        method: String,
        /// The error message of the browser.
        message: String,
    },
    /// The element of a ref no longer exists.
    #[error("e{number} no longer exists: {why}. Take a snapshot.")]
    Gone {
        /// The number of the ref.
        number: u32,
        /// The reason why it no longer exists.
        why: String,
    },
    /// Another element covers the element.
    #[error("e{number} is covered by {by}.")]
    Covered {
        /// The number of the ref.
        number: u32,
        /// The snapshot line of the covering element.
        by: String,
    },
    /// A dialog is open and waits for an answer.
    #[error("a {kind} dialog is open: \"{message}\". Answer it with the action dialog.")]
    DialogOpen {
        /// `confirm`, `prompt` …
        kind: String,
        /// The message of the dialog.
        message: String,
    },
    /// The renderer process of the page crashed.
    #[error("The page crashed; navigate again.")]
    Crashed,
    /// The tab was closed.
    #[error("tab {0} is closed")]
    TabClosed(u32),
    /// The interceptor refused a request.
    #[error("{0}")]
    Refused(String),
    /// The page could not be loaded.
    #[error("{error} at {url}.")]
    Unreachable {
        /// `net::ERR_…`.
        error: String,
        /// The address.
        url: String,
    },
    /// The request is invalid; the text says what to do instead.
    #[error("{0}")]
    Unusable(String),
}

pub(crate) type Result<T> = std::result::Result<T, ChromiumError>;

pub(crate) fn unusable(text: impl Into<String>) -> ChromiumError {
    ChromiumError::Unusable(text.into())
}
