//! `name=value`, `name[…]=value`, `name=( … )`.

use std::mem;

use super::cursor::ends_word;
use super::words::{ExpansionStyle, PlacedPart, WordPieces};
use super::{ParseResult, Parser};
use crate::ast::{AssignedValue, Assignment, PartKind, ShellWord, WordPart};

impl Parser<'_> {
    /// Parses the assignment at the cursor, if any.
    pub(super) fn assignment(&mut self) -> ParseResult<Option<Assignment>> {
        self.peek();
        let start = self.at;
        let name = self.name();
        if name.is_empty() {
            return Ok(None);
        }
        let subscript = match self.peek() {
            Some(b'[') => {
                self.at += 1;
                Some(self.subscript_word()?)
            }
            _ => None,
        };
        let Some(append) = self.assignment_sign() else {
            if let Some(word) = &subscript {
                self.refuse_strange_subscript(start, word)?;
            }
            self.at = start;
            return Ok(None);
        };
        // A continued line must not come in between: bash requires the parenthesis directly after
        // the `=`.
        let value = if self.peek() == Some(b'(') {
            if subscript.is_some() {
                return Err(self.unexpected("a list cannot be assigned to one element"));
            }
            AssignedValue::Array(self.array()?)
        } else {
            AssignedValue::Word(self.word_or_nothing(ExpansionStyle::VALUE)?)
        };
        Ok(Some(Assignment {
            span: self.span(start, self.at),
            name,
            subscript,
            append,
            value,
        }))
    }

    /// Parses `=` or `+=`, and returns whether the operator appends.
    fn assignment_sign(&mut self) -> Option<bool> {
        match (self.peek(), self.second()) {
            (Some(b'='), _) => {
                self.at += 1;
                Some(false)
            }
            (Some(b'+'), Some(b'=')) => {
                self.at += 1;
                self.peek();
                self.at += 1;
                Some(true)
            }
            _ => None,
        }
    }

    /// Rejects a first word such as `a[1]` without `=` if its subscript is ambiguous: bash has read
    /// it as a subscript, so it must not contain text that means something else in a pattern.
    fn refuse_strange_subscript(&self, start: usize, subscript: &ShellWord) -> ParseResult<()> {
        let plain = |part: &WordPart| match &part.kind {
            PartKind::Text(text) => !text
                .bytes()
                .any(|byte| ends_word(byte) || matches!(byte, b'\'' | b'"')),
            _ => false,
        };
        if subscript.parts.iter().all(plain)
            && subscript.parts.len() <= 1
            && !self.source.text[start..self.at].contains(['\'', '"', '\\'])
        {
            return Ok(());
        }
        Err(self.error(start, self.at, "a command name with a bracket in it"))
    }

    /// Parses `( … )` after `=`: the elements.
    pub(super) fn array(&mut self) -> ParseResult<Vec<ShellWord>> {
        self.enter()?;
        let outer = mem::replace(&mut self.in_substituted_list, self.in_substitution);
        let elements = self.array_elements()?;
        self.in_substituted_list = outer;
        if !self.at_word_end() {
            return Err(self.unexpected("text directly after the end of a list"));
        }
        self.leave();
        Ok(elements)
    }

    fn array_elements(&mut self) -> ParseResult<Vec<ShellWord>> {
        let start = self.at;
        self.at += 1;
        let mut elements = Vec::new();
        loop {
            self.gap()?;
            match self.peek() {
                Some(b')') => break,
                Some(b'\n') => {
                    if self.documents.are_pending() {
                        return Err(self.unexpected("a here-document that begins inside a list"));
                    }
                    self.at += 1;
                }
                None => return Err(self.error(start, start + 1, "a list without its end")),
                Some(b'[') => elements.push(self.indexed_element()?),
                Some(_) => {
                    elements.push(self.word(ExpansionStyle::ARGUMENT)?);
                    if let Some(b'<' | b'>') = self.peek() {
                        return Err(self.unexpected("a redirection inside a list"));
                    }
                }
            }
        }
        self.at += 1;
        Ok(elements)
    }

    /// Parses `[…]=value`, or a pattern that begins with a bracket.
    fn indexed_element(&mut self) -> ParseResult<ShellWord> {
        let start = self.at;
        self.at += 1;
        let subscript = self.subscript_word()?;
        let after = self.at;
        if self.assignment_sign().is_none() {
            self.refuse_strange_subscript(start, &subscript)?;
            self.at = start;
            return self.word(ExpansionStyle::ARGUMENT);
        }
        let sign = self.at;
        let value = self.word_or_nothing(ExpansionStyle::VALUE)?;
        let text = |from: usize, to: usize| WordPart {
            span: self.span(from, to),
            quoted: true,
            kind: PartKind::Text(self.source.text[from..to].to_owned()),
        };
        let mut parts = vec![text(start, start + 1)];
        parts.extend(subscript.parts);
        parts.push(text(after - 1, sign));
        parts.extend(value.parts);
        Ok(ShellWord {
            span: self.span(start, self.at),
            parts,
        })
    }

    /// Parses `name=( … )` as an argument of `declare` and similar builtins.
    pub(super) fn declared_array(&mut self) -> ParseResult<Option<ShellWord>> {
        self.peek();
        let start = self.at;
        if self.name().is_empty() || self.assignment_sign().is_none() || self.peek() != Some(b'(') {
            self.at = start;
            return Ok(None);
        }
        let list = self.at;
        let elements = self.array()?;
        let mut pieces = WordPieces::default();
        pieces.text(start, list, true, &self.source.text[start..list]);
        pieces.push(PlacedPart {
            start: list,
            end: self.at,
            quoted: true,
            kind: PartKind::Array(elements),
        });
        Ok(Some(ShellWord {
            span: self.span(start, self.at),
            parts: self.parts(pieces.list),
        }))
    }
}
