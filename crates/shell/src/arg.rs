//! A word as a program would get it.

use crate::ast::Span;

/// One argument, or what is known of it before the shell has expanded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// Where it is written.
    pub span: Span,
    /// What it will be.
    pub value: Value,
}

/// What an argument will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Exactly this, quotes and escapes resolved.
    Literal(String),
    /// One of the texts of a brace expansion. Certain, but not written out.
    Braced(String),
    /// Names of files, any number: an unquoted pattern, as written.
    Glob(String),
    /// Whatever an expansion gives.
    Unknown {
        /// It begins with this.
        prefix: String,
        /// It stays one argument.
        one: bool,
    },
}

impl Arg {
    /// A literal one.
    pub fn literal(text: impl Into<String>, span: Span) -> Self {
        Self {
            span,
            value: Value::Literal(text.into()),
        }
    }

    /// Its text, if that is certain.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Literal(text) | Value::Braced(text) => Some(text),
            Value::Glob(_) | Value::Unknown { .. } => None,
        }
    }

    /// Is it certainly this?
    pub fn is(&self, text: &str) -> bool {
        self.text() == Some(text)
    }
}
