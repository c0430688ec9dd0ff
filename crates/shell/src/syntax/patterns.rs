//! Tildes and patterns in unquoted text.
//!
//! Whether bash finds a pattern can depend on the values of expansions. The parser then assumes a
//! pattern.

use super::words::{PlacedPart, WordPieces};
use super::{ParseResult, Parser};
use crate::ast::PartKind;

impl Parser<'_> {
    /// Splits tilde prefixes off unquoted text.
    ///
    /// `value` means that this is the value of an assignment. With `assignment`, a tilde after an
    /// unquoted `=` or `:` is expanded as well.
    pub(super) fn expand_tildes(
        &self,
        pieces: Vec<PlacedPart>,
        value: bool,
        assignment: bool,
    ) -> Vec<PlacedPart> {
        let mut result: Vec<PlacedPart> = Vec::with_capacity(pieces.len() + 2);
        let mut pieces = pieces.into_iter().peekable();
        let mut first = true;
        let mut seen_sign = value;
        while let Some(piece) = pieces.next() {
            let text = match &piece.kind {
                PartKind::Text(text) if !piece.quoted => text.clone(),
                _ => {
                    let mut piece = piece;
                    if let PartKind::Brace(texts) = &mut piece.kind
                        && pieces.peek().is_some_and(starts_with_tilde)
                    {
                        // If an alternative is empty, that tilde becomes the first character.
                        *texts = None;
                    }
                    first = false;
                    result.push(piece);
                    continue;
                }
            };
            let places = self.places(&piece);
            let characters: Vec<char> = text.chars().collect();
            let mut from = 0;
            let mut at = 0;
            while at < characters.len() {
                let begins = at == 0 && first
                    || assignment
                        && at > 0
                        && (characters[at - 1] == ':' && seen_sign
                            || characters[at - 1] == '=' && !seen_sign);
                seen_sign |= at > 0 && characters[at - 1] == '=';
                if characters[at] != '~' || !begins {
                    at += 1;
                    continue;
                }
                let prefix = characters[at..]
                    .iter()
                    .position(|&next| next == '/' || assignment && next == ':');
                let end = at + prefix.unwrap_or(characters.len() - at);
                let followed_by_brace = matches!(
                    pieces.peek(),
                    Some(PlacedPart {
                        quoted: false,
                        kind: PartKind::Brace(_),
                        ..
                    })
                );
                let cut_off = prefix.is_none() && pieces.peek().is_some() && !followed_by_brace;
                if cut_off || characters[at..end].iter().any(|next| "*?[".contains(*next)) {
                    at += 1;
                    continue;
                }
                let piece_of = |from: usize, to: usize| -> PlacedPart {
                    self.part_of(&piece, &places, &characters, from, to)
                };
                if from < at {
                    result.push(piece_of(from, at));
                }
                let mut tilde = piece_of(at, end);
                tilde.kind = PartKind::Tilde(characters[at..end].iter().collect());
                result.push(tilde);
                from = end;
                at = end;
                if prefix.is_none()
                    && let Some(next) = pieces.peek_mut()
                {
                    // The name of the home directory continues in the braces.
                    next.kind = PartKind::Brace(None);
                }
            }
            first = false;
            if from < characters.len() {
                result.push(self.part_of(&piece, &places, &characters, from, characters.len()));
            }
        }
        result
    }

    /// Splits pattern characters off unquoted text.
    pub(super) fn find_globs(&self, pieces: Vec<PlacedPart>) -> Vec<PlacedPart> {
        // For each piece: whether a later piece can close a bracket.
        let mut closable = vec![false; pieces.len()];
        let mut later = false;
        for (index, piece) in pieces.iter().enumerate().rev() {
            closable[index] = later;
            later |= match &piece.kind {
                PartKind::Text(text) => !piece.quoted && text.contains(']'),
                _ => !piece.quoted,
            };
        }
        let mut result = Vec::with_capacity(pieces.len() + 2);
        for (piece, closable) in pieces.into_iter().zip(closable) {
            match &piece.kind {
                PartKind::Text(text) if !piece.quoted && text.contains(['*', '?', '[']) => {
                    let characters: Vec<char> = text.chars().collect();
                    self.split_globs(&piece, &characters, closable, &mut result);
                }
                _ => result.push(piece),
            }
        }
        result
    }

    fn split_globs(
        &self,
        piece: &PlacedPart,
        characters: &[char],
        closable: bool,
        result: &mut Vec<PlacedPart>,
    ) {
        let places = self.places(piece);
        let last_close = characters.iter().rposition(|&next| next == ']');
        let mut from = 0;
        let mut at = 0;
        // If one bracket has no end, no later one has: a single search is enough.
        let mut endless = false;
        while at < characters.len() {
            let end = match characters[at] {
                '*' | '?' => Some(at + 1),
                '[' if last_close.is_some_and(|close| close > at) => {
                    let end = match endless {
                        true => None,
                        false => bracket_end(characters, at),
                    };
                    endless |= end.is_none();
                    Some(end.unwrap_or(at + 1))
                }
                '[' if closable => Some(at + 1),
                _ => None,
            };
            let Some(end) = end else {
                at += 1;
                continue;
            };
            if from < at {
                result.push(self.part_of(piece, &places, characters, from, at));
            }
            let mut glob = self.part_of(piece, &places, characters, at, end);
            glob.kind = PartKind::Glob(characters[at..end].iter().collect());
            match result.last_mut() {
                Some(PlacedPart {
                    end: last,
                    kind: PartKind::Glob(before),
                    ..
                }) if *last == glob.start => {
                    before.extend(&characters[at..end]);
                    *last = glob.end;
                }
                _ => result.push(glob),
            }
            from = end;
            at = end;
        }
        if from < characters.len() {
            result.push(self.part_of(piece, &places, characters, from, characters.len()));
        }
    }

    /// Returns a range of an unquoted text piece, as a piece.
    pub(super) fn part_of(
        &self,
        piece: &PlacedPart,
        places: &[usize],
        characters: &[char],
        from: usize,
        to: usize,
    ) -> PlacedPart {
        let place = |at: usize, otherwise: usize| places.get(at).copied().unwrap_or(otherwise);
        PlacedPart {
            start: place(from, piece.end),
            end: place(to, piece.end),
            quoted: false,
            kind: PartKind::Text(characters[from..to].iter().collect()),
        }
    }

    /// Parses `@(…)` and similar patterns on the right side of `==` in `[[ ]]`.
    pub(super) fn extended_pattern(&mut self, pieces: &mut WordPieces) -> ParseResult<()> {
        let start = self.at;
        self.at += 1;
        let mut depth = 0_usize;
        let mut text = self.source.text[start..self.at].to_owned();
        loop {
            match self.peek() {
                None => return Err(self.error(start, self.at, "a pattern without its end")),
                Some(b'$' | b'`' | b'"' | b'\'' | b'\\' | b'<' | b'>' | b'\n') => {
                    return Err(self.unexpected("an extended pattern that is not plain text"));
                }
                Some(byte) => {
                    let from = self.at;
                    self.bump();
                    text.push_str(&self.source.text[from..self.at]);
                    match byte {
                        b'(' => depth += 1,
                        b')' if depth == 1 => break,
                        b')' => depth -= 1,
                        _ => {}
                    }
                }
            }
        }
        pieces.push(PlacedPart {
            start,
            end: self.at,
            quoted: false,
            kind: PartKind::Glob(text),
        });
        Ok(())
    }
}

fn starts_with_tilde(piece: &PlacedPart) -> bool {
    matches!(&piece.kind, PartKind::Text(text) if !piece.quoted && text.starts_with('~'))
}

/// Returns the offset after the bracket that closes the one at `open`.
fn bracket_end(characters: &[char], open: usize) -> Option<usize> {
    let mut at = open + 1;
    if matches!(characters.get(at), Some('!' | '^')) {
        at += 1;
    }
    if characters.get(at) == Some(&']') {
        at += 1;
    }
    while let Some(&next) = characters.get(at) {
        at += 1;
        if next == ']' {
            return Some(at);
        }
        if next == '[' && characters.get(at) == Some(&':') {
            let class = characters[at + 1..]
                .iter()
                .take_while(|inner| inner.is_ascii_alphabetic());
            let end = at + 1 + class.count();
            if characters.get(end) == Some(&':') && characters.get(end + 1) == Some(&']') {
                at = end + 2;
            }
        }
    }
    None
}
