//! Syntax highlighting, with a table per language and a lexer state that is carried from line to
//! line.
//!
//! The lexer recognises comments, strings, numbers, keywords, types and calls. It needs only the
//! current line and the state at the end of the previous line. Unknown text stays plain; the lexer
//! never fails.

mod languages;
mod scan;

use std::ops::Range;

use crate::{
    style::{TextStyle, Theme},
    text::TextLine,
};
use languages::LanguageSyntax;

/// The maximum length in bytes of a highlighted line. Longer lines stay plain.
const MAX_LINE: usize = 2000;

/// The kind of a token of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum CodeToken {
    Plain,
    Comment,
    String,
    Number,
    Keyword,
    Type,
    Call,
    /// A line that a diff adds.
    Added,
    Removed,
}

impl CodeToken {
    /// Returns the token's style in a theme.
    pub fn style(self, theme: &Theme) -> TextStyle {
        match self {
            Self::Plain => TextStyle::new(),
            Self::Comment => theme.comment,
            Self::String => theme.string,
            Self::Number => theme.number,
            Self::Keyword => theme.keyword,
            Self::Type => theme.type_name,
            Self::Call => theme.call,
            Self::Added => theme.success,
            Self::Removed => theme.failure,
        }
    }
}

/// A construct that continues after the end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LexState {
    #[default]
    Code,
    /// A comment: the index of its rule, and its nesting depth.
    Comment(usize, u32),
    /// A string: the index of its rule.
    Text(usize),
}

/// Highlights code line by line.
#[derive(Debug, Clone, Default)]
pub struct CodeLexer {
    language: Option<&'static LanguageSyntax>,
    state: LexState,
}

impl CodeLexer {
    /// Creates a lexer for a language name or file extension, as in Markdown fences (`rust`, `rs`,
    /// `rust,ignore`). An unknown language stays plain.
    pub fn new(name: &str) -> Self {
        let name = name
            .trim()
            .split([',', ' ', '{', ':'])
            .next()
            .unwrap_or_default();
        Self {
            language: languages::find(&name.to_lowercase()),
            state: LexState::default(),
        }
    }

    /// Creates a lexer for a file, by its name.
    pub fn for_path(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
        match languages::find(&name) {
            Some(_) => Self::new(&name),
            None => Self::new(name.rsplit_once('.').map_or("", |(_, end)| end)),
        }
    }

    /// Returns whether the language is known.
    pub fn is_known(&self) -> bool {
        self.language.is_some()
    }

    /// Returns the tokens of the next line, in order and without gaps.
    pub fn line(&mut self, text: &str) -> Vec<(Range<usize>, CodeToken)> {
        match self.language {
            Some(language) if text.len() <= MAX_LINE => {
                let (tokens, state) = scan::line(language, self.state, text);
                self.state = state;
                tokens
            }
            _ if text.is_empty() => Vec::new(),
            _ => vec![(0..text.len(), CodeToken::Plain)],
        }
    }

    /// Returns the next line with the theme's colours.
    pub fn styled(&mut self, text: &str, theme: &Theme) -> TextLine {
        let mut line = TextLine::new();
        for (range, token) in self.line(text) {
            line.push(&text[range], token.style(theme));
        }
        line
    }
}

#[cfg(test)]
#[path = "code_tests.rs"]
mod tests;
