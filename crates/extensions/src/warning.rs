//! What is wrong with a file.

use std::{fmt, path::PathBuf};

/// What is wrong with something that was found: everything else is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where it is written; `None` for what was given in words.
    pub file: Option<PathBuf>,
    /// On which line, from 1.
    pub line: Option<u64>,
    /// What is wrong, and what becomes of it.
    pub what: String,
}

impl Warning {
    /// About a file.
    pub fn of(file: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self {
            file: Some(file.into()),
            line: None,
            what: what.into(),
        }
    }

    /// The same, on a line.
    pub(crate) fn at(self, line: Option<u64>) -> Self {
        Self { line, ..self }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}", file.display())?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            write!(f, ": ")?;
        }
        f.write_str(&self.what)
    }
}
