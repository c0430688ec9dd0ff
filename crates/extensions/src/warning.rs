//! Warnings about files.

use std::{fmt, path::PathBuf};

/// A warning about an extension; everything else is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionWarning {
    /// The file; `None` for definitions that are not in a file.
    pub file: Option<PathBuf>,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The problem and its consequence.
    pub what: String,
}

impl ExtensionWarning {
    /// Creates a warning about a file.
    pub fn of(file: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self {
            file: Some(file.into()),
            line: None,
            what: what.into(),
        }
    }

    /// Adds the line.
    pub(crate) fn at(self, line: Option<u64>) -> Self {
        Self { line, ..self }
    }
}

impl fmt::Display for ExtensionWarning {
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
