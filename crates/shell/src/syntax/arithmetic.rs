//! Arithmetic: stored as text, with its expansions as parts.
//!
//! Bash finds the end of `((` and `$((` by counting parentheses and skipping quotes, before it
//! parses the content. The parser does the same, and then requires the parsed content to end at
//! exactly that place.

use super::words::{PlacedPart, QuoteContext, WordPieces};
use super::{MAX_ARITHMETIC, ParseResult, Parser};
use crate::ast::{ArithmeticExpression, PartKind, ShellWord};

/// The closing parenthesis that matches an opening one.
pub(super) struct ClosingParenthesis {
    at: usize,
    /// The next byte is a closing parenthesis too, so the content is arithmetic.
    pub(super) doubled: bool,
    /// The next byte is a line break.
    pub(super) broken: bool,
    /// Bash certainly finds the same parenthesis.
    certain: bool,
}

impl ClosingParenthesis {
    pub(super) fn must_be_certain(&self, parser: &Parser<'_>) -> ParseResult<()> {
        if self.certain {
            return Ok(());
        }
        let message = "parentheses with quotes inside quotes, whose end is ambiguous";
        Err(parser.error(self.at, self.at + 1, message))
    }
}

/// The end of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpressionEnd {
    /// The parenthesis at this offset.
    Parenthesis(usize),
    /// `]` of `$[…]`.
    Bracket,
    /// `]` of a subscript.
    Subscript,
    /// `:` or `}` of `${x:a:b}`.
    Slice,
}

impl Parser<'_> {
    /// Finds the parenthesis that closes the one at `from`, with bash's counting rules.
    pub(super) fn matching_parenthesis(&self, from: usize) -> ParseResult<ClosingParenthesis> {
        let bytes = self.source.text.as_bytes();
        let mut depth = 0_usize;
        let mut certain = true;
        let mut at = from;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 1,
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        let doubled = bytes.get(at + 1) == Some(&b')');
                        let broken = bytes.get(at + 1) == Some(&b'\n');
                        return Ok(ClosingParenthesis {
                            at,
                            doubled,
                            broken,
                            certain,
                        });
                    }
                }
                b'\'' | b'"' | b'`' => {
                    let ansi = byte == b'\'' && at > from && bytes[at - 1] == b'$';
                    let opened = at;
                    at += 1;
                    while bytes.get(at).is_some_and(|&inner| inner != byte) {
                        if bytes[at] == b'\\' && (byte != b'\'' || ansi) {
                            at += 1;
                        }
                        at += 1;
                    }
                    let inside = bytes.get(opened + 1..at).unwrap_or_default();
                    // For quotes inside quotes, bash's several ways of skipping differ.
                    let unsure: &[u8] = match byte {
                        b'"' => b"`({",
                        b'`' => b"'\"\\()",
                        _ => b"",
                    };
                    certain &= !inside.iter().any(|inner| unsure.contains(inner));
                }
                _ => {}
            }
            at += 1;
        }
        Err(self.error(from, from + 1, "a parenthesis without its end"))
    }

    /// Enters a command that begins with `((` and whose end was found in advance.
    pub(super) fn enter_scanned(&mut self) -> ParseResult<()> {
        self.bounds.scanned += 1;
        match self.bounds.scanned > MAX_ARITHMETIC {
            true => Err(self.error(self.at, self.at, "`((` is nested too deeply")),
            false => Ok(()),
        }
    }

    /// Parses the content of `((…))`; the cursor is after both opening parentheses.
    pub(super) fn parenthesized_arithmetic(
        &mut self,
        close: ClosingParenthesis,
    ) -> ParseResult<ArithmeticExpression> {
        let expression = self.expression(ExpressionEnd::Parenthesis(close.at))?;
        if self.at != close.at {
            return Err(self.unexpected("expected `))`"));
        }
        self.at = close.at + 2;
        Ok(expression)
    }

    /// Parses the three expressions of `for ((…))`.
    pub(super) fn arithmetic_clauses(
        &mut self,
        close: ClosingParenthesis,
    ) -> ParseResult<Vec<ArithmeticExpression>> {
        let whole = self.at;
        let mut clauses = Vec::new();
        loop {
            clauses.push(self.expression(ExpressionEnd::Parenthesis(close.at))?);
            if self.at == close.at {
                break;
            }
            self.at += 1;
        }
        if clauses.len() != 3 {
            return Err(self.error(whole, close.at, "`for ((` takes three expressions"));
        }
        self.at = close.at + 2;
        Ok(clauses)
    }

    /// Parses the content of `$[…]`; the cursor is after the bracket.
    pub(super) fn bracketed_arithmetic(&mut self) -> ParseResult<ArithmeticExpression> {
        let expression = self.expression(ExpressionEnd::Bracket)?;
        self.expect(b']', "at the end of `$[`")?;
        Ok(expression)
    }

    /// Parses the content of `[…]` after a variable name; the cursor is after the bracket.
    pub(super) fn subscript(&mut self) -> ParseResult<ArithmeticExpression> {
        let expression = self.expression(ExpressionEnd::Subscript)?;
        self.expect(b']', "at the end of a subscript")?;
        Ok(expression)
    }

    /// Parses the offset and length of `${x:…}`; the cursor is after the first `:`.
    pub(super) fn slice(&mut self) -> ParseResult<Vec<ArithmeticExpression>> {
        let start = self.at;
        let mut bounds = vec![self.expression(ExpressionEnd::Slice)?];
        if self.eat(b':') {
            bounds.push(self.expression(ExpressionEnd::Slice)?);
        }
        if bounds[0].span.start == bounds[0].span.end && bounds.len() == 1 {
            return Err(self.error(start, self.at, "a slice without an offset"));
        }
        self.expect(b'}', "at the end of a slice")?;
        Ok(bounds)
    }

    /// Like [`Self::subscript`], but returns a shell word, for assignments.
    pub(super) fn subscript_word(&mut self) -> ParseResult<ShellWord> {
        let start = self.at;
        let pieces = self.expression_pieces(ExpressionEnd::Subscript)?;
        let span = self.span(start, self.at);
        self.expect(b']', "at the end of a subscript")?;
        Ok(ShellWord {
            span,
            parts: self.parts(pieces),
        })
    }

    fn expression(&mut self, end: ExpressionEnd) -> ParseResult<ArithmeticExpression> {
        let start = self.at;
        let mut expansions = self.expression_pieces(end)?;
        expansions.retain(|piece| !matches!(piece.kind, PartKind::Text(_)));
        Ok(ArithmeticExpression {
            span: self.span(start, self.at),
            text: self.source.text[start..self.at].replace("\\\n", ""),
            parts: self.parts(expansions),
        })
    }

    fn expression_pieces(&mut self, end: ExpressionEnd) -> ParseResult<Vec<PlacedPart>> {
        if self.bounds.arithmetic == MAX_ARITHMETIC {
            return Err(self.error(self.at, self.at, "arithmetic is nested too deeply"));
        }
        self.enter()?;
        self.bounds.arithmetic += 1;
        let start = self.at;
        let mut pieces = WordPieces::default();
        let mut brackets = 0_usize;
        let mut parentheses = 0_usize;
        while let Some(byte) = self.peek() {
            match (byte, end) {
                (b')', ExpressionEnd::Parenthesis(close)) if self.at >= close => break,
                (b';', ExpressionEnd::Parenthesis(_)) if parentheses == 0 => break,
                (b']', ExpressionEnd::Bracket | ExpressionEnd::Subscript) if brackets == 0 => break,
                (b':' | b'}', ExpressionEnd::Slice) if parentheses == 0 => break,
                _ => {}
            }
            match byte {
                b'(' => parentheses += 1,
                b')' if parentheses == 0 => {
                    return Err(self.unexpected("a parenthesis too many"));
                }
                b')' => parentheses -= 1,
                b'[' => brackets += 1,
                b']' => brackets = brackets.saturating_sub(1),
                _ => {}
            }
            self.arithmetic_piece(byte, end, &mut pieces)?;
        }
        if parentheses > 0 {
            return Err(self.unexpected("a parenthesis without its end"));
        }
        if let ExpressionEnd::Parenthesis(close) = end
            && (self.at > close || self.byte(self.at).is_none())
        {
            return Err(self.error(start, close, "arithmetic whose end is ambiguous"));
        }
        self.bounds.arithmetic -= 1;
        self.leave();
        Ok(pieces.list)
    }

    fn arithmetic_piece(
        &mut self,
        byte: u8,
        end: ExpressionEnd,
        pieces: &mut WordPieces,
    ) -> ParseResult<()> {
        match byte {
            b'$' if matches!(self.second(), Some(b'\'' | b'"')) => {}
            b'$' => return self.dollar(QuoteContext::Arithmetic, pieces),
            b'`' => return self.backquoted(QuoteContext::Arithmetic, pieces),
            b'"' if end != ExpressionEnd::Slice => {
                self.odd_braces = true;
                let start = self.at;
                return self.double_quoted(start, pieces);
            }
            b'\'' if end == ExpressionEnd::Subscript => {
                return self.plain_single_quoted(pieces).map(drop);
            }
            b'\\' | b'\'' | b'"' | b'{' | b'}' | b';' => {}
            b'<' | b'>'
                if matches!(end, ExpressionEnd::Subscript | ExpressionEnd::Slice)
                    && self.second() == Some(b'(') => {}
            // Bash may treat this as a comment while it searches for the end, unless it is the `#`
            // of `16#ff`.
            b'#' if self.at == 0
                || !self
                    .byte(self.at - 1)
                    .is_some_and(|before| before.is_ascii_digit()) => {}
            _ => {
                let start = self.at;
                self.bump();
                pieces.text(start, self.at, true, &self.source.text[start..self.at]);
                return Ok(());
            }
        }
        Err(self.unexpected("arithmetic with a character whose meaning is not certain"))
    }
}
