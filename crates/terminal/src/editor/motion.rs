//! Positions in a text: clusters, words, lines.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::chip::ChipId;

/// Returns the position itself, or the start of the cluster that contains it.
pub(super) fn cluster_start(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        _ => previous(text, at),
    }
}

/// Returns the position itself, or the end of the cluster that contains it.
pub(super) fn cluster_end(text: &str, at: usize) -> usize {
    let start = cluster_start(text, at);
    if start == at { at } else { next(text, start) }
}

/// Returns the end of the cluster that starts here.
pub(super) fn next(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    cursor
        .next_boundary(text, 0)
        .ok()
        .flatten()
        .unwrap_or(text.len())
}

/// Returns the start of the cluster that ends here.
pub(super) fn previous(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

/// Returns the line that contains a position, without its line end.
pub(super) fn line(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    start..end
}

/// Returns the first position of a line that is not a space or a tab.
pub(super) fn first_word(text: &str, line: Range<usize>) -> usize {
    let content = &text[line.clone()];
    line.start + (content.len() - content.trim_start_matches([' ', '\t']).len())
}

/// The class of a letter for moves by words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LetterClass {
    Blank,
    Word,
    Punctuation,
}

pub(super) fn class(letter: char) -> LetterClass {
    match letter {
        _ if letter.is_whitespace() => LetterClass::Blank,
        '_' => LetterClass::Word,
        _ if letter.is_alphanumeric() || ChipId::from_char(letter).is_some() => LetterClass::Word,
        _ => LetterClass::Punctuation,
    }
}

/// Like [`class`], but everything that is not whitespace is a word.
pub(super) fn wide_class(letter: char) -> LetterClass {
    match letter.is_whitespace() {
        true => LetterClass::Blank,
        false => LetterClass::Word,
    }
}

/// Returns the end of the word at or after a position.
pub(super) fn word_end(text: &str, at: usize) -> usize {
    let is_word = |c: char| class(c) == LetterClass::Word;
    let rest = &text[at..];
    let Some(start) = rest.find(is_word) else {
        return text.len();
    };
    let length = rest[start..]
        .find(|c| !is_word(c))
        .unwrap_or(rest.len() - start);
    cluster_end(text, at + start + length)
}

/// Returns the start of the word at or before a position.
pub(super) fn word_start(text: &str, at: usize) -> usize {
    let is_word = |c: char| class(c) == LetterClass::Word;
    let before = text[..at].trim_end_matches(|c| !is_word(c));
    let start = before.trim_end_matches(is_word).len();
    cluster_start(text, start)
}

/// Returns the start of the run of non-whitespace before a position.
pub(super) fn blank_word_start(text: &str, at: usize) -> usize {
    let before = text[..at].trim_end();
    before.trim_end_matches(|c: char| !c.is_whitespace()).len()
}

/// Returns the number of grapheme clusters of a text.
pub(super) fn clusters(text: &str) -> usize {
    text.graphemes(true).count()
}
