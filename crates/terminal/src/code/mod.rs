//! Colours for code: tables for some languages, one state from line to line.
//!
//! It knows comments, texts, numbers, words of the language, types and calls, and never needs more than the
//! line and the state behind the line before it. What it does not know stays plain; it never fails.

mod languages;
mod scan;

use std::ops::Range;

use crate::{
    style::{TextStyle, Theme},
    text::TextLine,
};
use languages::Language;

/// Longer lines stay plain.
const LONGEST_LINE: usize = 2000;

/// What a piece of code is.
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
    /// A line that a diff adds or removes.
    Added,
    Removed,
}

impl CodeToken {
    /// How it looks.
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

/// What goes on behind the end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LexState {
    #[default]
    Code,
    /// A comment: which rule, and how deep it is nested.
    Comment(usize, u32),
    /// A text: which rule.
    Text(usize),
}

/// Reads code line by line.
#[derive(Debug, Clone, Default)]
pub struct CodeLexer {
    language: Option<&'static Language>,
    state: LexState,
}

impl CodeLexer {
    /// For a language by its name or a file ending, as fences have them (`rust`, `rs`, `rust,ignore`); plain
    /// where it is not known.
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

    /// For a file, by its name.
    pub fn for_path(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
        match languages::find(&name) {
            Some(_) => Self::new(&name),
            None => Self::new(name.rsplit_once('.').map_or("", |(_, end)| end)),
        }
    }

    /// Is the language known?
    pub fn is_known(&self) -> bool {
        self.language.is_some()
    }

    /// The pieces of the next line, in order, without gaps.
    pub fn line(&mut self, text: &str) -> Vec<(Range<usize>, CodeToken)> {
        match self.language {
            Some(language) if text.len() <= LONGEST_LINE => {
                let (tokens, state) = scan::line(language, self.state, text);
                self.state = state;
                tokens
            }
            _ if text.is_empty() => Vec::new(),
            _ => vec![(0..text.len(), CodeToken::Plain)],
        }
    }

    /// The next line in colours.
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
