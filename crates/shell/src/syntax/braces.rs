//! Brace expansion, as bash does it: on the text of a shell word, before every other expansion.
//!
//! Therefore it can change the text after a `$`. The parser rejects a word in which that would
//! happen.

use super::cursor::starts_name;
use super::sequences::{self, BraceSequence, sequence};
use super::words::PlacedPart;
use super::{ParseResult, Parser};
use crate::ast::PartKind;

/// The maximum number of opening braces in a word whose expansions are listed.
const MAX_OPEN: usize = 20;
/// The maximum number of elements in such a word.
const MAX_LENGTH: usize = 10_000;
/// The maximum number of texts that one part lists.
const MAX_TEXTS: usize = 1_000;
/// The maximum number of bytes that one part lists.
const MAX_BYTES: usize = 65_536;

/// The maximum number of arguments that the brace expansions of one line may become. Bash holds
/// them all in memory.
pub(super) const MAX_WORDS: u64 = 100_000;
/// The maximum number of bytes that the brace expansions of one line may become.
pub(super) const MAX_EXPANDED: u64 = 1 << 26;

/// An element of a word during brace expansion: an unquoted character, or any other piece.
#[derive(Clone, Copy)]
enum WordElement {
    Character(char),
    Piece,
}

/// The word being expanded.
struct BracedWord {
    pieces: Vec<PlacedPart>,
    elements: Vec<WordElement>,
    /// For each element: the index of its piece, and its start and end in the text.
    origins: Vec<(usize, usize, usize)>,
    /// For each piece: whether it is `$name` without braces, whose end depends on the text after
    /// it.
    bare_names: Vec<bool>,
}

impl BracedWord {
    fn character(&self, at: usize) -> Option<char> {
        match self.elements.get(at) {
            Some(WordElement::Character(character)) => Some(*character),
            _ => None,
        }
    }

    fn piece(&self, at: usize) -> Option<&PlacedPart> {
        match self.elements.get(at) {
            Some(WordElement::Piece) => Some(&self.pieces[self.origins[at].0]),
            _ => None,
        }
    }

    /// Finds an unnested character the way bash does, in the range that begins at `start`. A
    /// closing brace matches only after an unnested comma or `..`.
    fn find(&self, start: usize, from: usize, to: usize, wanted: char) -> Option<usize> {
        let mut level = 0_usize;
        let mut separated = wanted != '}';
        for at in from..to {
            let Some(found) = self.character(at) else {
                continue;
            };
            if found == wanted && level == 0 && separated {
                // A `{}` at the start of the range is not an expansion.
                if !(found == '{' && at == start && self.character(at + 1) == Some('}')) {
                    return Some(at);
                }
                continue;
            }
            match found {
                '{' => level += 1,
                '}' => level = level.saturating_sub(1),
                ',' if level == 0 => separated = true,
                '.' if level == 0 && self.character(at + 1) == Some('.') => {
                    separated |= self.character(at + 2) != Some('}');
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the braces of the first brace expansion.
    fn first_group(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let mut at = from;
        loop {
            let open = self.find(from, at, to, '{')?;
            if let Some(close) = self.find(from, open + 1, to, '}') {
                return Some((open, close));
            }
            at = open + 1;
        }
    }

    /// Returns the offsets of the commas that separate the alternatives.
    fn commas(&self, open: usize, close: usize) -> Vec<usize> {
        let mut commas = Vec::new();
        let mut at = open + 1;
        while let Some(comma) = self.find(open + 1, at, close, ',') {
            commas.push(comma);
            at = comma + 1;
        }
        commas
    }

    /// Returns every text that a range may become, if all of it is plain.
    fn texts(&self, from: usize, to: usize) -> Option<Vec<String>> {
        let Some((open, close)) = self.first_group(from, to) else {
            return Some(vec![self.plain(from, to)?]);
        };
        let before = self.plain(from, open)?;
        let group = self.group_texts(open, close)?;
        let after = self.texts(close + 1, to)?;
        let bytes = (before.len() * group.len() + bytes(&group)) * after.len()
            + bytes(&after) * group.len();
        if group.len() * after.len() > MAX_TEXTS || bytes > MAX_BYTES {
            return None;
        }
        let mut texts = Vec::with_capacity(group.len() * after.len());
        for middle in &group {
            texts.extend(after.iter().map(|end| format!("{before}{middle}{end}")));
        }
        Some(texts)
    }

    /// Returns how many arguments a range becomes.
    fn word_count(&self, from: usize, to: usize) -> u64 {
        let mut count = 1_u64;
        let mut from = from;
        while let Some((open, close)) = self.first_group(from, to) {
            let commas = self.commas(open, close);
            let group = if commas.is_empty() {
                self.sequence_length(open, close)
            } else {
                let mut start = open + 1;
                let mut sum = 0_u64;
                for end in commas.into_iter().chain([close]) {
                    sum = sum.saturating_add(self.word_count(start, end));
                    start = end + 1;
                }
                sum
            };
            count = count.saturating_mul(group);
            from = close + 1;
        }
        count
    }

    fn sequence_length(&self, open: usize, close: usize) -> u64 {
        let mut text = String::new();
        for at in open + 1..close {
            match (self.character(at), self.piece(at).map(|piece| &piece.kind)) {
                (Some(found), _) => text.push(found),
                (None, Some(PartKind::Text(quoted))) => text.push_str(quoted),
                (None, _) => return 1,
            }
        }
        sequences::length(&text)
    }

    /// Returns whether the braces contain a comma that separates nothing, because it is quoted or
    /// nested. Bash then removes the braces instead of trying a sequence.
    fn hides_comma(&self, open: usize, close: usize) -> bool {
        let comma = |at: usize| match self.piece(at).map(|piece| &piece.kind) {
            Some(PartKind::Text(text)) => text.contains(','),
            _ => self.character(at) == Some(','),
        };
        self.commas(open, close).is_empty() && (open + 1..close).any(comma)
    }

    /// Returns every text that one brace expansion may become.
    fn group_texts(&self, open: usize, close: usize) -> Option<Vec<String>> {
        let commas = self.commas(open, close);
        if self.hides_comma(open, close) {
            return None;
        }
        if commas.is_empty() {
            return match self.sequence(open, close) {
                BraceSequence::Texts(texts) => Some(texts),
                BraceSequence::Literal => Some(vec![self.plain(open, close + 1)?]),
                BraceSequence::Uncertain => None,
            };
        }
        let mut texts = Vec::new();
        let mut size = 0;
        let mut from = open + 1;
        for end in commas.into_iter().chain([close]) {
            let more = self.texts(from, end)?;
            size += bytes(&more);
            texts.extend(more);
            if texts.len() > MAX_TEXTS || size > MAX_BYTES {
                return None;
            }
            from = end + 1;
        }
        Some(texts)
    }

    /// Parses `{x..y}` or `{x..y..step}`.
    fn sequence(&self, open: usize, close: usize) -> BraceSequence {
        let mut text = String::new();
        for at in open + 1..close {
            match self.character(at) {
                Some(found) if found.is_ascii_alphanumeric() || "+-.".contains(found) => {
                    text.push(found);
                }
                Some(_) => return BraceSequence::Literal,
                None => return BraceSequence::Uncertain,
            }
        }
        sequence(&text)
    }

    /// Returns the text of a range, if the range contains no expansion.
    fn plain(&self, from: usize, to: usize) -> Option<String> {
        let mut text = String::new();
        for at in from..to {
            match self.elements[at] {
                WordElement::Character('~' | '*' | '?' | '[' | ']') => return None,
                WordElement::Character(character) => text.push(character),
                WordElement::Piece => match &self.piece(at)?.kind {
                    PartKind::Text(quoted) => text.push_str(quoted),
                    _ => return None,
                },
            }
        }
        Some(text)
    }

    fn is_bare_name(&self, at: usize) -> bool {
        self.piece(at).is_some() && self.bare_names[self.origins[at].0]
    }

    /// Returns whether the element here would continue a variable name.
    fn continues_name(&self, at: usize) -> bool {
        match self.elements.get(at) {
            Some(WordElement::Character(next)) => {
                next.is_ascii_alphanumeric() || matches!(next, '_' | '{' | '[')
            }
            Some(WordElement::Piece) => !self.piece(at).is_some_and(|piece| piece.quoted),
            None => false,
        }
    }

    /// Returns whether the expansion of this group leaves every `$` with its current meaning.
    fn keeps_names(&self, open: usize, close: usize) -> bool {
        if open > 0 && self.is_bare_name(open - 1) {
            return false;
        }
        let ends: Vec<usize> = self.commas(open, close);
        (open + 1..close).all(|at| {
            let last = at + 1 == close || ends.binary_search(&(at + 1)).is_ok();
            !(self.is_bare_name(at) && last && self.continues_name(close + 1))
        })
    }
}

fn bytes(texts: &[String]) -> usize {
    texts.iter().map(String::len).sum()
}

impl Parser<'_> {
    /// Replaces brace expansions in unquoted text by separate parts.
    pub(super) fn expand_braces(
        &mut self,
        pieces: Vec<PlacedPart>,
    ) -> ParseResult<Vec<PlacedPart>> {
        let word = self.braced(pieces);
        let length = word.elements.len();
        let opening = |element: &&WordElement| matches!(element, WordElement::Character('{'));
        let opened = word.elements.iter().filter(opening).count();
        let many = length > MAX_LENGTH || opened > MAX_OPEN;
        self.refuse_many_words(&word, opened)?;
        let mut result = Vec::new();
        let mut from = 0;
        loop {
            let group = match many {
                true if from == 0 => Some((0, length - 1)),
                true => None,
                false => word.first_group(from, length),
            };
            let Some((open, close)) = group else {
                self.copy(&word, from, length, &mut result);
                return Ok(result);
            };
            self.copy(&word, from, open, &mut result);
            let literal = !many
                && word.commas(open, close).is_empty()
                && matches!(word.sequence(open, close), BraceSequence::Literal)
                && !word.hides_comma(open, close);
            if literal {
                self.copy(&word, open, close + 1, &mut result);
            } else {
                self.refuse_changed_names(&word, open, close, many)?;
                let texts = match many {
                    true => None,
                    false => word.group_texts(open, close),
                };
                self.push_group(&word, open, close, texts, &mut result);
            }
            from = close + 1;
        }
    }

    /// Rejects a brace expansion that would fill the memory of the shell, alone or together with
    /// others of the line.
    fn refuse_many_words(&mut self, word: &BracedWord, opened: usize) -> ParseResult<()> {
        let length = word.elements.len();
        if opened == 0 || length == 0 {
            return Ok(());
        }
        let words = match opened > MAX_OPEN {
            // Above this number of braces, nested groups are not counted.
            true => u64::MAX,
            false => word.word_count(0, length),
        };
        let (start, end) = (word.origins[0].1, word.origins[length - 1].2);
        let width = u64::try_from(end - start).unwrap_or(u64::MAX);
        let left = self.bounds.braced_words.checked_sub(words);
        let bytes_left = self
            .bounds
            .braced_bytes
            .checked_sub(words.saturating_mul(width));
        let (Some(left), Some(bytes_left)) = (left, bytes_left) else {
            let message = format!(
                "brace expansion into more than {MAX_WORDS} words or {MAX_EXPANDED} bytes, or in too \
                 many braces: use a loop"
            );
            return Err(self.error(start, end, &message));
        };
        self.bounds.braced_words = left;
        self.bounds.braced_bytes = bytes_left;
        Ok(())
    }

    fn braced(&self, pieces: Vec<PlacedPart>) -> BracedWord {
        let mut elements = Vec::new();
        let mut origins = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            match &piece.kind {
                PartKind::Text(text) if !piece.quoted => {
                    let places = self.places(piece);
                    for (at, character) in text.chars().enumerate() {
                        elements.push(WordElement::Character(character));
                        let end = places.get(at + 1).copied().unwrap_or(piece.end);
                        origins.push((index, places[at], end));
                    }
                }
                _ => {
                    elements.push(WordElement::Piece);
                    origins.push((index, piece.start, piece.end));
                }
            }
        }
        let bare = |piece: &PlacedPart| {
            let mut name = piece.start + 1;
            while self.byte(name) == Some(b'\\') {
                name += 2;
            }
            matches!(piece.kind, PartKind::Parameter(_))
                && !piece.quoted
                && self.byte(name).is_some_and(starts_name)
        };
        BracedWord {
            bare_names: pieces.iter().map(bare).collect(),
            pieces,
            elements,
            origins,
        }
    }

    /// Copies elements outside of every group unchanged.
    fn copy(&self, word: &BracedWord, from: usize, to: usize, result: &mut Vec<PlacedPart>) {
        let mut glue = false;
        for at in from..to {
            let (index, start, end) = word.origins[at];
            match word.elements[at] {
                WordElement::Piece => {
                    result.push(word.pieces[index].clone());
                    glue = false;
                }
                WordElement::Character(character) => {
                    match result.last_mut() {
                        Some(PlacedPart {
                            end: last,
                            kind: PartKind::Text(text),
                            ..
                        }) if glue => {
                            text.push(character);
                            *last = end;
                        }
                        _ => result.push(PlacedPart {
                            start,
                            end,
                            quoted: false,
                            kind: PartKind::Text(character.to_string()),
                        }),
                    }
                    glue = true;
                }
            }
        }
    }

    /// Adds one group. If there are expansions inside, adds them as separate parts, with brace
    /// parts without texts around them.
    fn push_group(
        &mut self,
        word: &BracedWord,
        open: usize,
        close: usize,
        texts: Option<Vec<String>>,
        result: &mut Vec<PlacedPart>,
    ) {
        let cost = texts
            .as_deref()
            .map_or(0, |texts| texts.len() + bytes(texts));
        let texts = match self.bounds.alternatives.checked_sub(cost) {
            Some(left) => {
                self.bounds.alternatives = left;
                texts
            }
            None => None,
        };
        let brace = |from: usize, to: usize, texts| PlacedPart {
            start: word.origins[from].1,
            end: word.origins[to].2,
            quoted: false,
            kind: PartKind::Brace(texts),
        };
        let mut from = open;
        for at in open..=close {
            let Some(piece) = word.piece(at) else {
                continue;
            };
            if matches!(piece.kind, PartKind::Text(_)) {
                continue;
            }
            if from < at {
                result.push(brace(from, at - 1, None));
            }
            result.push(piece.clone());
            from = at + 1;
        }
        if from <= close {
            let whole = from == open;
            result.push(brace(from, close, texts.filter(|_| whole)));
        }
    }

    fn refuse_changed_names(
        &self,
        word: &BracedWord,
        open: usize,
        close: usize,
        many: bool,
    ) -> ParseResult<()> {
        let length = word.elements.len();
        let dollar = (0..length).any(|at| word.character(at) == Some('$'));
        let names = (0..length).any(|at| word.is_bare_name(at));
        // The end of a name in a nested group would depend on the text after every enclosing group.
        let nested = names && (open + 1..close).any(|at| word.character(at) == Some('{'));
        if dollar || nested || (many && names) || !word.keeps_names(open, close) {
            let (start, end) = (word.origins[open].1, word.origins[close].2);
            let message = "brace expansion next to a `$`: write the name in braces";
            return Err(self.error(start, end, message));
        }
        Ok(())
    }

    /// Rejects braces where nested quotes make bash's brace expansion treat quoted braces as
    /// unquoted.
    pub(super) fn refuse_stray_braces(&self, start: usize) -> ParseResult<()> {
        let text = &self.source.text.as_bytes()[start..self.at];
        let stray = text
            .iter()
            .enumerate()
            .any(|(at, &byte)| byte == b'{' && (at == 0 || text[at - 1] != b'$'));
        match stray {
            true => Err(self.error(
                start,
                self.at,
                "braces and quotes nested so that bash may expand the braces",
            )),
            false => Ok(()),
        }
    }
}
