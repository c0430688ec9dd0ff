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
    pub message: String,
}

impl ExtensionWarning {
    /// Creates a warning about a file.
    pub fn new(file: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self {
            file: Some(file.into()),
            line: None,
            message: what.into(),
        }
    }

    /// Adds the line.
    pub(crate) fn with_line(self, line: Option<u64>) -> Self {
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
        f.write_str(&self.message)
    }
}
