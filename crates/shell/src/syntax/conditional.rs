//! `[[ … ]]`.

use super::words::{ExpansionStyle, PlacedPart, WordPieces};
use super::{ParseResult, Parser};
use crate::ast::{CommandKind, PartKind, ShellWord, TestItem};

const UNARY: [&str; 26] = [
    "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-n", "-o", "-p", "-r", "-s", "-t", "-u",
    "-v", "-w", "-x", "-z", "-G", "-L", "-N", "-O", "-R", "-S",
];
const BINARY: [&str; 9] = [
    "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
];

impl Parser<'_> {
    /// Parses the content after `[[`, and the `]]`.
    pub(super) fn conditional(&mut self, start: usize) -> ParseResult<CommandKind> {
        let mut items = Vec::new();
        let mut depth = 0_usize;
        loop {
            self.term(&mut items, &mut depth)?;
            loop {
                self.conditional_newlines()?;
                if self.peek() != Some(b')') || depth == 0 {
                    break;
                }
                self.operator(1, &mut items);
                depth -= 1;
            }
            match (self.peek(), self.second()) {
                (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) => {
                    self.operator(2, &mut items);
                }
                _ if self.at_bare("]]") => break,
                _ => return Err(self.unexpected("expected `]]`, `&&` or `||`")),
            }
        }
        if depth > 0 {
            return Err(self.error(start, self.at, "a parenthesis without its end in `[[`"));
        }
        self.eat_bare("]]");
        Ok(CommandKind::Test(items))
    }

    fn conditional_newlines(&mut self) -> ParseResult<()> {
        loop {
            self.gap()?;
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            if self.documents.are_pending() {
                return Err(self.unexpected("a here-document that begins inside `[[`"));
            }
            self.at += 1;
        }
    }

    /// Reads the next `length` bytes as an operator.
    fn operator(&mut self, length: usize, items: &mut Vec<TestItem>) {
        let start = self.at;
        let mut text = String::new();
        for _ in 0..length {
            text.extend(self.peek().map(char::from));
            self.at += 1;
        }
        items.push(TestItem::Operator(text, self.span(start, self.at)));
    }

    /// Reads the word at the cursor as an operator.
    fn word_operator(&mut self, end: usize, text: &str, items: &mut Vec<TestItem>) {
        let span = self.span(self.at, end);
        items.push(TestItem::Operator(text.to_owned(), span));
        self.at = end;
    }

    /// Parses one test, with the `!` and opening parentheses before it.
    fn term(&mut self, items: &mut Vec<TestItem>, depth: &mut usize) -> ParseResult<()> {
        loop {
            self.conditional_newlines()?;
            if self.peek() == Some(b'(') {
                self.operator(1, items);
                *depth += 1;
                continue;
            }
            match self.bare() {
                Some(bare) if bare.text() == "!" => self.word_operator(bare.end, "!", items),
                Some(bare) if UNARY.contains(&bare.text()) => {
                    self.word_operator(bare.end, bare.text(), items);
                    let operand = self.test_operand(ExpansionStyle::SINGLE)?;
                    items.push(TestItem::Word(operand));
                    return Ok(());
                }
                _ => break,
            }
        }
        let left = self.test_operand(ExpansionStyle::SINGLE)?;
        items.push(TestItem::Word(left));
        self.blanks();
        if let Some(b'<' | b'>') = self.peek() {
            // Bash would read both characters as one operator, which has no meaning here.
            if let Some(b'<' | b'>' | b'&' | b'|') = self.second() {
                return Err(self.unexpected("an operator that is not one of `[[`"));
            }
            self.operator(1, items);
            let right = self.test_operand(ExpansionStyle::SINGLE)?;
            items.push(TestItem::Word(right));
            return Ok(());
        }
        self.gap()?;
        if self.peek() == Some(b'\n') {
            return Err(self.unexpected("a line break after the first word of a test"));
        }
        let Some(bare) = self.bare() else {
            return Ok(());
        };
        let right = match bare.text() {
            "=" | "==" | "!=" => {
                self.word_operator(bare.end, bare.text(), items);
                self.test_operand(ExpansionStyle::EXTENDED_PATTERN)?
            }
            "=~" => {
                self.word_operator(bare.end, "=~", items);
                self.regular_expression()?
            }
            text if BINARY.contains(&text) => {
                self.word_operator(bare.end, text, items);
                self.test_operand(ExpansionStyle::SINGLE)?
            }
            _ => return Ok(()),
        };
        items.push(TestItem::Word(right));
        Ok(())
    }

    fn test_operand(&mut self, style: ExpansionStyle) -> ParseResult<ShellWord> {
        self.blanks();
        if self.at_bare("]]") {
            return Err(self.unexpected("expected an operand in `[[`"));
        }
        let word = self.word(style)?;
        self.refuse_strange_descriptor(&word)?;
        Ok(word)
    }

    /// Parses the right side of `=~`, where parentheses enclose everything up to their end,
    /// including spaces.
    fn regular_expression(&mut self) -> ParseResult<ShellWord> {
        self.blanks();
        if self.at_bare("]]") || self.peek() == Some(b'#') {
            return Err(self.unexpected("expected a regular expression"));
        }
        let start = self.at;
        let mut pieces = WordPieces::default();
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            let literal = match byte {
                b'(' => {
                    depth += 1;
                    true
                }
                b')' if depth > 0 => {
                    depth -= 1;
                    true
                }
                b'|' => true,
                b'<' | b'>' if self.second() == Some(b'(') => {
                    return Err(self.unexpected("process substitution in a regular expression"));
                }
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'<' | b'>' if depth > 0 => true,
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'<' | b'>' | b')' => break,
                _ => false,
            };
            if literal {
                pieces.text(self.at, self.at + 1, false, &char::from(byte).to_string());
                self.at += 1;
                continue;
            }
            let from = self.at;
            let before = pieces.list.len();
            self.unquoted_piece(&mut pieces, true)?;
            if depth > 0 {
                let last = pieces.list.get(before..).unwrap_or_default();
                self.refuse_nested_parentheses(from, last)?;
            }
        }
        if depth > 0 || pieces.list.is_empty() {
            return Err(self.unexpected("a regular expression without its end"));
        }
        let style = ExpansionStyle {
            globs: false,
            ..ExpansionStyle::SINGLE
        };
        self.finish_word(start, pieces, style)
    }

    /// Rejects parentheses in expansions: bash counts the parentheses of a regular expression
    /// without parsing expansions.
    fn refuse_nested_parentheses(&self, from: usize, pieces: &[PlacedPart]) -> ParseResult<()> {
        let text = &self.source.text[from..self.at];
        let expands = pieces
            .iter()
            .any(|piece| !matches!(piece.kind, PartKind::Text(_)));
        if expands && text.contains(['(', ')', '\'', '`']) {
            let message = "an expansion with parentheses inside a regular expression";
            return Err(self.error(from, self.at, message));
        }
        Ok(())
    }
}
