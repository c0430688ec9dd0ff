//! Why a session cannot be had.

use std::fmt;

/// Why a session cannot be set up; it prints as one line.
#[derive(Debug)]
pub struct OpenError(anyhow::Error);

impl OpenError {
    pub(crate) fn into_inner(self) -> anyhow::Error {
        self.0
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for OpenError {}

impl From<anyhow::Error> for OpenError {
    fn from(error: anyhow::Error) -> Self {
        Self(error)
    }
}
