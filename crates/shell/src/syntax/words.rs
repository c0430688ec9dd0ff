//! Shell words: adjacent pieces of quoted and unquoted text and expansions.

use std::mem;

use super::cursor::{ends_word, in_name, starts_name};
use super::{ParseResult, Parser};
use crate::ast::{PartKind, ShellWord, WordPart};

/// The quoting context of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteContext {
    /// Unquoted.
    None,
    /// `"…"`
    Double,
    /// `${…}` inside double quotes.
    BracedDouble,
    /// The body of a here-document with an unquoted tag.
    HereDocument,
    /// An arithmetic expression, or a subscript.
    Arithmetic,
}

/// The places where a tilde means a home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TildePlaces {
    /// At the start, and after `=` and `:` if the word looks like an assignment.
    Start,
    /// At the start and after each `:`.
    Value,
}

/// The expansions that apply to unquoted text, depending on its place in the grammar.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpansionStyle {
    pub(super) braces: bool,
    pub(super) globs: bool,
    /// `@(…)` and similar forms are patterns: only on the right side of `==` and `!=` in `[[ ]]`.
    pub(super) extended: bool,
    pub(super) tildes: TildePlaces,
}

impl ExpansionStyle {
    /// Arguments, and other words that may be split.
    pub(super) const ARGUMENT: ExpansionStyle = ExpansionStyle {
        braces: true,
        globs: true,
        extended: false,
        tildes: TildePlaces::Start,
    };
    /// A word that is never split.
    pub(super) const SINGLE: ExpansionStyle = ExpansionStyle {
        braces: false,
        globs: false,
        extended: false,
        tildes: TildePlaces::Start,
    };
    /// The value of an assignment.
    pub(super) const VALUE: ExpansionStyle = ExpansionStyle {
        tildes: TildePlaces::Value,
        ..ExpansionStyle::SINGLE
    };
    /// A pattern of `case`.
    pub(super) const PATTERN: ExpansionStyle = ExpansionStyle {
        globs: true,
        ..ExpansionStyle::SINGLE
    };
    /// A pattern of `[[ ]]`.
    pub(super) const EXTENDED_PATTERN: ExpansionStyle = ExpansionStyle {
        extended: true,
        ..ExpansionStyle::PATTERN
    };
}

/// A part whose offsets still refer to the text being read.
#[derive(Debug, Clone)]
pub(super) struct PlacedPart {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) quoted: bool,
    pub(super) kind: PartKind,
}

/// Pieces in order. Consecutive texts with the same quoting are merged, but never across a quote.
#[derive(Default)]
pub(super) struct WordPieces {
    pub(super) list: Vec<PlacedPart>,
    open: bool,
}

impl WordPieces {
    pub(super) fn push(&mut self, piece: PlacedPart) {
        self.open = false;
        self.list.push(piece);
    }

    pub(super) fn text(&mut self, start: usize, end: usize, quoted: bool, text: &str) {
        if self.open
            && let Some(PlacedPart {
                end: last,
                quoted: same,
                kind: PartKind::Text(before),
                ..
            }) = self.list.last_mut()
            && *same == quoted
        {
            before.push_str(text);
            *last = end;
            return;
        }
        self.list.push(PlacedPart {
            start,
            end,
            quoted,
            kind: PartKind::Text(text.to_owned()),
        });
        self.open = true;
    }

    /// Ends the current piece, so that the next text starts a new one.
    pub(super) fn close(&mut self) {
        self.open = false;
    }
}

impl Parser<'_> {
    /// Parses the word at the cursor, which must exist.
    pub(super) fn word(&mut self, style: ExpansionStyle) -> ParseResult<ShellWord> {
        if self.peek() == Some(b'#') {
            return Err(self.unexpected("a comment where a word should be"));
        }
        let word = self.word_or_nothing(style)?;
        if word.parts.is_empty() {
            return Err(self.unexpected("expected a word"));
        }
        Ok(word)
    }

    /// Parses the word at the cursor. Without a word there, the result has no parts.
    pub(super) fn word_or_nothing(&mut self, style: ExpansionStyle) -> ParseResult<ShellWord> {
        self.peek();
        let start = self.at;
        let mut pieces = WordPieces::default();
        let outer = mem::take(&mut self.odd_braces);
        self.pieces(&mut pieces, style.extended)?;
        let odd = mem::replace(&mut self.odd_braces, outer);
        if odd && style.braces {
            self.refuse_stray_braces(start)?;
        }
        self.finish_word(start, pieces, style)
    }

    /// Reads pieces up to the end of an unquoted word.
    fn pieces(&mut self, pieces: &mut WordPieces, extended: bool) -> ParseResult<()> {
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.second() == Some(b'(') => {
                    self.process_substitution(pieces)?;
                }
                _ if ends_word(byte) => break,
                b'@' | b'!' | b'?' | b'*' | b'+' if extended && self.second() == Some(b'(') => {
                    self.extended_pattern(pieces)?;
                }
                _ => self.unquoted_piece(pieces, extended)?,
            }
        }
        Ok(())
    }

    /// Reads a piece of an unquoted word that begins with neither a delimiter nor a process
    /// substitution.
    pub(super) fn unquoted_piece(
        &mut self,
        pieces: &mut WordPieces,
        single: bool,
    ) -> ParseResult<()> {
        match self.peek() {
            Some(b'\\') => self.escaped(pieces),
            Some(b'\'') => self.single_quoted(pieces),
            Some(b'"') => {
                let start = self.at;
                self.double_quoted(start, pieces)
            }
            Some(b'`') => self.backquoted(QuoteContext::None, pieces),
            Some(b'$') => self.dollar(QuoteContext::None, pieces),
            _ => {
                let start = self.at;
                self.bump();
                if !single {
                    let bytes = self.source.text.as_bytes();
                    while bytes.get(self.at).is_some_and(|&byte| {
                        !ends_word(byte)
                            && !matches!(
                                byte,
                                b'\\' | b'\'' | b'"' | b'`' | b'$' | b'/' | b'{' | b'}'
                            )
                    }) {
                        self.at += 1;
                    }
                }
                pieces.text(start, self.at, false, &self.source.text[start..self.at]);
                Ok(())
            }
        }
    }

    /// Reads a backslash and the character that it quotes.
    pub(super) fn escaped(&mut self, pieces: &mut WordPieces) -> ParseResult<()> {
        let start = self.at;
        if self.byte(start + 1).is_none() {
            return Err(self.error(start, start + 1, "a backslash at the end of the text"));
        }
        if self.in_substituted_list {
            let message = "a backslash in a list inside a substitution: use quotes";
            return Err(self.error(start, start + 1, message));
        }
        self.at = self.character_end(start + 1);
        pieces.text(start, self.at, true, &self.source.text[start + 1..self.at]);
        Ok(())
    }

    /// Applies the meaning of unquoted text, and converts offsets to places in the line.
    pub(super) fn finish_word(
        &mut self,
        start: usize,
        pieces: WordPieces,
        style: ExpansionStyle,
    ) -> ParseResult<ShellWord> {
        let mut pieces = pieces.list;
        let has = |pieces: &[PlacedPart], wanted: &[char]| {
            pieces.iter().any(|piece| match &piece.kind {
                PartKind::Text(text) => !piece.quoted && text.contains(wanted),
                _ => false,
            })
        };
        if style.braces && has(&pieces, &['{']) {
            pieces = self.expand_braces(pieces)?;
        }
        if has(&pieces, &['~']) {
            let value = style.tildes == TildePlaces::Value;
            let assignment = value || pieces.first().is_some_and(looks_like_assignment);
            pieces = self.expand_tildes(pieces, value, assignment);
        }
        if style.globs && has(&pieces, &['*', '?', '[']) {
            pieces = self.find_globs(pieces);
        }
        let end = pieces.last().map_or(start, |piece| piece.end);
        Ok(ShellWord {
            span: self.span(start, end),
            parts: self.parts(pieces),
        })
    }

    pub(super) fn parts(&self, pieces: Vec<PlacedPart>) -> Vec<WordPart> {
        let part = |piece: PlacedPart| WordPart {
            span: self.span(piece.start, piece.end),
            quoted: piece.quoted,
            kind: piece.kind,
        };
        let mut parts: Vec<WordPart> = pieces.into_iter().map(part).collect();
        parts.shrink_to_fit();
        parts
    }

    /// Returns the offsets of the characters of an unquoted text piece, which may contain continued
    /// lines.
    pub(super) fn places(&self, piece: &PlacedPart) -> Vec<usize> {
        let bytes = self.source.text.as_bytes();
        let mut places = Vec::new();
        let mut at = piece.start;
        while at < piece.end {
            if bytes[at] == b'\\' {
                at += 2;
                continue;
            }
            places.push(at);
            at = self.character_end(at);
        }
        places
    }
}

/// Returns whether a word starts with `name=`, `name+=` or `name[…]=`.
fn looks_like_assignment(piece: &PlacedPart) -> bool {
    let PartKind::Text(text) = &piece.kind else {
        return false;
    };
    let bytes = text.as_bytes();
    if piece.quoted || !bytes.first().copied().is_some_and(starts_name) {
        return false;
    }
    let name = bytes.iter().take_while(|&&byte| in_name(byte)).count();
    match &bytes[name..] {
        [b'=', ..] | [b'+', b'=', ..] => true,
        // The end of the subscript does not matter: an additional tilde only makes the value less
        // certain.
        [b'[', rest @ ..] => rest.contains(&b'='),
        _ => false,
    }
}
