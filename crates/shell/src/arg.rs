//! Arguments as a program receives them, after the shell has expanded the line.

use crate::ast::Span;

/// One argument, or the part of it that is known before the shell has expanded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// The argument's place in the line.
    pub span: Span,
    /// The argument's value.
    pub value: ArgValue,
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgValue {
    /// Exactly this text, with quotes and escapes resolved.
    Literal(String),
    /// One alternative of a brace expansion, or the name of a command from a variable that the line
    /// sets. The text is certain, but the line does not spell it out.
    Braced(String),
    /// An unquoted pattern, as written. It becomes any number of file names.
    Glob(String),
    /// The unknown result of an expansion.
    Unknown {
        /// The known text before the expansion.
        prefix: String,
        /// The value is always exactly one argument.
        one: bool,
    },
}

impl Arg {
    /// Returns a literal argument.
    pub fn literal(text: impl Into<String>, span: Span) -> Self {
        Self {
            span,
            value: ArgValue::Literal(text.into()),
        }
    }

    /// Returns the argument's text, if it is certain.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            ArgValue::Literal(text) | ArgValue::Braced(text) => Some(text),
            ArgValue::Glob(_) | ArgValue::Unknown { .. } => None,
        }
    }

    /// Returns whether the argument is certainly this text.
    pub fn is(&self, text: &str) -> bool {
        self.text() == Some(text)
    }
}
