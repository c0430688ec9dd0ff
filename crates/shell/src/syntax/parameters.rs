//! `${…}`.
//!
//! Bash searches for the closing brace by one set of quoting rules and expands the word inside by
//! another, which depends on the operator and on the surrounding quotes. The parser accepts only
//! texts that both read alike.

use super::cursor::{in_name, starts_name};
use super::words::{ExpansionStyle, PlacedPart, QuoteContext, WordPieces};
use super::{ParseResult, Parser};
use crate::ast::{ParameterExpansion, ParameterOperation, PartKind, ShellWord};

/// The purpose of a word inside `${…}`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandPurpose {
    /// A text that may replace the parameter.
    Value,
    /// A pattern, or its replacement.
    Pattern,
}

impl Parser<'_> {
    /// Parses the parameter after `${`, with the closing brace.
    pub(super) fn braced_parameter(
        &mut self,
        start: usize,
        quote: QuoteContext,
    ) -> ParseResult<ParameterExpansion> {
        let inner = match quote {
            QuoteContext::Double => QuoteContext::BracedDouble,
            other => other,
        };
        match (self.peek(), self.second()) {
            (Some(b'#'), Some(b'}')) | (Some(b'!'), Some(b'}')) => {}
            (Some(b'#'), _) => return self.parameter_length(),
            (Some(b'!'), _) => return self.indirect_parameter(start, inner),
            _ => {}
        }
        let (name, subscript) = self.parameter_name()?;
        let operation = self.operation(inner)?;
        Ok(ParameterExpansion {
            name,
            operation: match subscript {
                Some(subscript) => ParameterOperation::Subscript(subscript, Box::new(operation)),
                None => operation,
            },
        })
    }

    /// Parses the name, digits or special character, and a subscript.
    fn parameter_name(
        &mut self,
    ) -> ParseResult<(String, Option<crate::ast::ArithmeticExpression>)> {
        match self.peek() {
            Some(byte) if starts_name(byte) => {
                let name = self.name();
                let subscript = match self.eat(b'[') {
                    true => Some(self.subscript()?),
                    false => None,
                };
                Ok((name, subscript))
            }
            Some(b'0'..=b'9') => Ok((self.digits(), None)),
            Some(byte @ (b'@' | b'*' | b'?' | b'-' | b'$' | b'#' | b'!')) => {
                self.at += 1;
                Ok((char::from(byte).to_string(), None))
            }
            _ => Err(self.unexpected("`${` without the name of a parameter")),
        }
    }

    /// Parses `${#…}`; the cursor is at the `#`.
    fn parameter_length(&mut self) -> ParseResult<ParameterExpansion> {
        self.at += 1;
        let (name, subscript) = self.parameter_name()?;
        self.expect(b'}', "after the name in `${#`")?;
        let operation = match subscript {
            Some(subscript) => {
                ParameterOperation::Subscript(subscript, Box::new(ParameterOperation::Length))
            }
            None => ParameterOperation::Length,
        };
        Ok(ParameterExpansion { name, operation })
    }

    /// Parses `${!…}`; the cursor is at the `!`.
    fn indirect_parameter(
        &mut self,
        start: usize,
        quote: QuoteContext,
    ) -> ParseResult<ParameterExpansion> {
        self.at += 1;
        if !self
            .peek()
            .is_some_and(|byte| byte.is_ascii_digit() || starts_name(byte))
        {
            return Err(self.unexpected("`${!` without the name of a variable"));
        }
        let before = self.expansions;
        let (name, _) = self.parameter_name()?;
        match (self.peek(), self.second()) {
            (Some(b'*' | b'@'), Some(b'}')) => self.bump_two(),
            _ => {
                self.operation(quote)?;
            }
        }
        // The tree cannot represent them.
        if self.expansions != before {
            let message = "an expansion inside an indirect expansion";
            return Err(self.error(start, self.at, message));
        }
        Ok(ParameterExpansion {
            name,
            operation: ParameterOperation::Evaluates,
        })
    }

    fn bump_two(&mut self) {
        self.at += 1;
        self.peek();
        self.at += 1;
    }

    /// Parses the operation after the name, with the closing brace.
    fn operation(&mut self, quote: QuoteContext) -> ParseResult<ParameterOperation> {
        let first = self.peek();
        let second = self.second();
        let operation = match (first, second) {
            (Some(b'}'), _) => ParameterOperation::Plain,
            (Some(b':'), Some(b'-' | b'=' | b'?' | b'+')) => {
                self.at += 1;
                self.peek();
                self.value_operation(quote)?
            }
            (Some(b':'), _) => {
                self.at += 1;
                return Ok(ParameterOperation::Slice(self.slice()?));
            }
            (Some(b'-' | b'=' | b'?' | b'+'), _) => self.value_operation(quote)?,
            (Some(byte @ (b'#' | b'%' | b'^' | b',' | b'~')), _) => {
                self.at += 1;
                self.eat(byte);
                let pattern = self.operand(quote, OperandPurpose::Pattern, None)?;
                ParameterOperation::Pure(vec![pattern])
            }
            (Some(b'/'), _) => {
                self.at += 1;
                if let Some(b'/' | b'#' | b'%') = self.peek() {
                    self.at += 1;
                }
                let mut words = vec![self.operand(quote, OperandPurpose::Pattern, Some(b'/'))?];
                if self.eat(b'/') {
                    words.push(self.operand(quote, OperandPurpose::Pattern, None)?);
                }
                ParameterOperation::Pure(words)
            }
            (Some(b'@'), Some(b'U' | b'u' | b'L' | b'Q' | b'E' | b'A' | b'K' | b'a' | b'k')) => {
                self.bump_two();
                ParameterOperation::Pure(Vec::new())
            }
            (Some(b'@'), Some(b'P')) => {
                self.bump_two();
                ParameterOperation::Evaluates
            }
            _ => return Err(self.unexpected("an unknown operator in `${`")),
        };
        self.expect(b'}', "at the end of `${`")?;
        Ok(operation)
    }

    /// Parses `-`, `=`, `?` or `+` and the word after it.
    fn value_operation(&mut self, quote: QuoteContext) -> ParseResult<ParameterOperation> {
        let assigns = self.peek() == Some(b'=');
        self.at += 1;
        let value = self.operand(quote, OperandPurpose::Value, None)?;
        Ok(match assigns {
            true => ParameterOperation::Assign(value),
            false => ParameterOperation::Pure(vec![value]),
        })
    }

    /// Parses a word up to the closing brace, or up to the byte `stop`.
    fn operand(
        &mut self,
        quote: QuoteContext,
        operand: OperandPurpose,
        stop: Option<u8>,
    ) -> ParseResult<ShellWord> {
        self.peek();
        let start = self.at;
        let mut pieces = WordPieces::default();
        loop {
            match self.peek() {
                None => return Err(self.error(start, self.at, "`${` without its end")),
                Some(b'}') => break,
                Some(byte) if Some(byte) == stop => break,
                // Bash counts these parentheses while it searches for the end of the enclosing
                // `((`.
                Some(b'(' | b')') if self.bounds.is_scanned() => {
                    return Err(self.unexpected("a parenthesis in `${` inside `((`"));
                }
                Some(byte) => match quote {
                    QuoteContext::None => self.unquoted_operand(byte, operand, &mut pieces)?,
                    _ => self.quoted_operand(byte, quote, operand, &mut pieces)?,
                },
            }
        }
        let end = self.at;
        let mut word = match quote {
            QuoteContext::None => self.finish_word(start, pieces, ExpansionStyle::PATTERN)?,
            _ => self.finish_word(start, pieces, ExpansionStyle::SINGLE)?,
        };
        word.span = self.span(start, end);
        Ok(word)
    }

    fn unquoted_operand(
        &mut self,
        byte: u8,
        operand: OperandPurpose,
        pieces: &mut WordPieces,
    ) -> ParseResult<()> {
        match byte {
            b'<' | b'>' if self.second() == Some(b'(') => self.process_substitution(pieces),
            // Bash removes these quotes if there are double quotes anywhere around them.
            b'$' if self.second() == Some(b'\'') && self.in_double_quotes > 0 => {
                self.plain_ansi_quoted(pieces)?;
                let kept = |piece: &PlacedPart| match &piece.kind {
                    PartKind::Text(text) => text.bytes().all(in_name),
                    _ => false,
                };
                match operand == OperandPurpose::Pattern || pieces.list.last().is_some_and(kept) {
                    true => Ok(()),
                    false => Err(self.unexpected("`$'…'` in `${` inside double quotes")),
                }
            }
            b'{' => {
                self.odd_braces = true;
                self.unquoted_piece(pieces, true)
            }
            _ => self.unquoted_piece(pieces, false),
        }
    }

    fn quoted_operand(
        &mut self,
        byte: u8,
        quote: QuoteContext,
        operand: OperandPurpose,
        pieces: &mut WordPieces,
    ) -> ParseResult<()> {
        let braced = quote == QuoteContext::BracedDouble;
        match byte {
            b'<' | b'>' if self.second() == Some(b'(') => {}
            b'$' if self.second() == Some(b'\'')
                && braced
                && operand == OperandPurpose::Pattern =>
            {
                return self.plain_ansi_quoted(pieces);
            }
            b'$' if matches!(self.second(), Some(b'\'' | b'"')) => {}
            b'$' => return self.dollar(quote, pieces),
            b'`' => return self.backquoted(quote, pieces),
            b'"' if braced => {
                self.odd_braces = true;
                let start = self.at;
                return self.double_quoted(start, pieces);
            }
            b'\'' if braced => {
                self.odd_braces = true;
                let (from, to) = self.plain_single_quoted(pieces)?;
                // Such quotes are literal in a value, but not in a pattern.
                if operand == OperandPurpose::Value
                    && let Some(piece) = pieces.list.last_mut()
                {
                    piece.kind = PartKind::Text(self.source.text[from..to].to_owned());
                }
                return Ok(());
            }
            b'\'' | b'"' => {}
            b'\\' if quote == QuoteContext::Arithmetic => {}
            b'\\' => return self.double_quoted_escape(b"$`\"\\}", pieces),
            _ => {
                self.odd_braces |= byte == b'{';
                let start = self.at;
                self.bump();
                pieces.text(start, self.at, true, &self.source.text[start..self.at]);
                return Ok(());
            }
        }
        Err(self.unexpected("quotes or an expansion inside `${` whose meaning is not certain"))
    }

    /// Parses `'…'` with a text that means the same whether or not these are quotes. Returns its
    /// start and end.
    pub(super) fn plain_single_quoted(
        &mut self,
        pieces: &mut WordPieces,
    ) -> ParseResult<(usize, usize)> {
        let start = self.at;
        self.single_quoted(pieces)?;
        let text = &self.source.text[start + 1..self.at - 1];
        if text.contains(['$', '`', '"', '\\', '{', '}', '[', ']', '(', ')']) {
            let message = "single quotes here that may not be quotes to bash";
            return Err(self.error(start, self.at, message));
        }
        Ok((start, self.at))
    }

    /// Parses `$'…'` with a text that means the same even if bash reads it again.
    fn plain_ansi_quoted(&mut self, pieces: &mut WordPieces) -> ParseResult<()> {
        let start = self.at;
        self.at += 1;
        self.peek();
        self.odd_braces = true;
        self.ansi_quoted(start, pieces)?;
        match pieces.list.last().map(|piece| &piece.kind) {
            Some(PartKind::Text(text))
                if !text.contains(['$', '`', '"', '\\', '\'', '{', '}', '(', ')']) =>
            {
                Ok(())
            }
            _ => Err(self.error(start, self.at, "`$'…'` here that bash may read again")),
        }
    }
}
