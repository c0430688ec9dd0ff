//! Errors of setting up a session.

use std::fmt;

/// The reason why a session cannot be set up; prints as one line.
#[derive(Debug)]
pub struct OpenError(anyhow::Error);

impl OpenError {
    pub(crate) fn into_inner(self) -> anyhow::Error {
        self.0
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error_chain(&self.0))
    }
}

/// Formats an error and its causes as one line, without repeating a cause.
pub fn error_chain(error: &anyhow::Error) -> String {
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

impl std::error::Error for OpenError {}

impl From<anyhow::Error> for OpenError {
    fn from(error: anyhow::Error) -> Self {
        Self(error)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_is_named_once() {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "it is gone");
        let doubled = Err::<(), _>(gone()).with_context(|| format!("a.txt: {}", gone()));
        assert_eq!(error_chain(&doubled.unwrap_err()), "a.txt: it is gone");
        let plain = Err::<(), _>(gone()).context("a.txt");
        assert_eq!(error_chain(&plain.unwrap_err()), "a.txt: it is gone");
    }
}
