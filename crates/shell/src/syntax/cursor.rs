//! The cursor in the text.
//!
//! Outside single quotes and comments, bash never sees a backslash before a line break, so
//! [`Parser::peek`] skips both.

use super::{MAX_DEPTH, MAX_REWRITTEN, ParseResult, Parser, SyntaxError};
use crate::ast::Span;

/// Returns whether the byte ends an unquoted word.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>'
    )
}

pub(super) fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(super) fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A short unquoted word that ends at a delimiter.
#[derive(Clone, Copy)]
pub(super) struct BareWord {
    bytes: [u8; 9],
    length: usize,
    /// The offset after the word.
    pub(super) end: usize,
}

impl BareWord {
    pub(super) fn text(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Parser<'_> {
    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.source.text.as_bytes().get(at).copied()
    }

    /// Returns the first offset from `at` on that is not a continued line.
    fn joined(&self, mut at: usize) -> usize {
        while self.byte(at) == Some(b'\\') && self.byte(at + 1) == Some(b'\n') {
            at += 2;
        }
        at
    }

    /// Returns the next byte.
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.at = self.joined(self.at);
        self.byte(self.at)
    }

    /// Returns the byte after the one that [`Parser::peek`] has just returned.
    pub(super) fn second(&self) -> Option<u8> {
        self.byte(self.joined(self.at + 1))
    }

    /// Skips the character that [`Parser::peek`] has just returned.
    pub(super) fn bump(&mut self) {
        self.at = self.character_end(self.at);
    }

    /// Returns the offset after the character at `at`.
    pub(super) fn character_end(&self, at: usize) -> usize {
        let text = self.source.text;
        let mut end = (at + 1).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        end
    }

    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn expect(&mut self, byte: u8, why: &str) -> ParseResult<()> {
        if self.eat(byte) {
            return Ok(());
        }
        Err(self.unexpected(&format!("expected `{}` {why}", char::from(byte))))
    }

    /// Reads a variable name at the cursor. The name may be empty.
    pub(super) fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(byte) = self.peek() {
            let fits = match name.is_empty() {
                true => starts_name(byte),
                false => in_name(byte),
            };
            if !fits {
                break;
            }
            name.push(char::from(byte));
            self.at += 1;
        }
        name
    }

    pub(super) fn digits(&mut self) -> String {
        let mut digits = String::new();
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            digits.push(char::from(byte));
            self.at += 1;
        }
        digits
    }

    /// Returns the word at the cursor, if it is short and ends where an unquoted word does.
    pub(super) fn bare(&mut self) -> Option<BareWord> {
        self.peek();
        let mut bare = BareWord {
            bytes: [0; 9],
            length: 0,
            end: self.at,
        };
        loop {
            let at = self.joined(bare.end);
            match self.byte(at) {
                None => break,
                Some(b'<' | b'>') if self.byte(self.joined(at + 1)) == Some(b'(') => return None,
                Some(byte) if ends_word(byte) => break,
                Some(byte) => {
                    if bare.length == bare.bytes.len() || !byte.is_ascii() {
                        return None;
                    }
                    bare.bytes[bare.length] = byte;
                    bare.length += 1;
                    bare.end = at + 1;
                }
            }
        }
        (bare.length > 0).then_some(bare)
    }

    /// Returns whether the word at the cursor is exactly this.
    pub(super) fn at_bare(&mut self, text: &str) -> bool {
        self.bare().is_some_and(|bare| bare.text() == text)
    }

    /// Skips the word at the cursor if it is this one.
    pub(super) fn eat_bare(&mut self, text: &str) -> bool {
        match self.bare() {
            Some(bare) if bare.text() == text => {
                self.at = bare.end;
                true
            }
            _ => false,
        }
    }

    /// Returns whether an unquoted word would end here.
    pub(super) fn at_word_end(&mut self) -> bool {
        match self.peek() {
            None => true,
            Some(b'<' | b'>') => self.second() != Some(b'('),
            Some(byte) => ends_word(byte),
        }
    }

    /// Skips spaces and tabs.
    pub(super) fn blanks(&mut self) {
        while let Some(b' ' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Skips spaces, tabs and a comment after them, up to the line break.
    pub(super) fn gap(&mut self) -> ParseResult<()> {
        self.blanks();
        if self.peek() == Some(b'#') {
            if self.bounds.is_scanned() {
                return Err(self.unexpected("a comment inside `((`"));
            }
            let rest = &self.source.text.as_bytes()[self.at..];
            self.at += rest
                .iter()
                .position(|&byte| byte == b'\n')
                .unwrap_or(rest.len());
        }
        Ok(())
    }

    /// Skips spaces, tabs, comments and line breaks. The bodies of here-documents begin after a
    /// line break.
    pub(super) fn newlines(&mut self) -> ParseResult<()> {
        loop {
            self.gap()?;
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    /// Skips a line break.
    pub(super) fn newline(&mut self) -> ParseResult<()> {
        self.at += 1;
        self.gather_documents()
    }

    pub(super) fn error(&self, start: usize, end: usize, message: &str) -> SyntaxError {
        SyntaxError {
            message: message.to_owned(),
            span: self.source.span(start, end),
        }
    }

    /// Returns an error about the text at the cursor.
    pub(super) fn unexpected(&mut self, message: &str) -> SyntaxError {
        match self.peek() {
            None => self.error(self.at, self.at, &format!("{message}: the line ends here")),
            Some(_) => {
                let end = self.character_end(self.at);
                let found = &self.source.text[self.at..end];
                self.error(self.at, end, &format!("{message}, found {found:?}"))
            }
        }
    }

    /// Enters one nesting level, which [`Parser::leave`] exits. After an error, the parse ends
    /// anyway.
    pub(super) fn enter(&mut self) -> ParseResult<()> {
        self.bounds.depth += 1;
        if self.bounds.depth > MAX_DEPTH {
            return Err(self.error(self.at, self.at, "constructs are nested too deeply"));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.bounds.depth -= 1;
    }

    /// Parses a rewritten text that is part of this one.
    pub(super) fn within<T>(
        &mut self,
        rewritten: &super::source::RewrittenSource,
        read: impl FnOnce(&mut Parser<'_>) -> ParseResult<T>,
    ) -> ParseResult<T> {
        if self.bounds.rewritten == MAX_REWRITTEN {
            return Err(self.error(
                self.at,
                self.at,
                "backquotes or here-documents are nested too deeply",
            ));
        }
        let mut bounds = self.bounds;
        bounds.rewritten += 1;
        let mut parser = Parser {
            source: rewritten.source(),
            at: 0,
            bounds,
            documents: super::HereDocuments::default(),
            in_substitution: false,
            in_substituted_list: false,
            odd_braces: false,
            expansions: 0,
            semicolons: 0,
            in_double_quotes: self.in_double_quotes,
        };
        let result = read(&mut parser)?;
        self.bounds.alternatives = parser.bounds.alternatives;
        self.bounds.braced_words = parser.bounds.braced_words;
        self.bounds.braced_bytes = parser.bounds.braced_bytes;
        self.expansions += parser.expansions;
        Ok(result)
    }

    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        self.source.span(start, end)
    }
}
