//! The targets of motions.

use super::super::motion::{self, LetterClass, class, wide_class};

/// The range that an operator derives from a motion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MotionKind {
    Exclusive,
    Inclusive,
    Linewise,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Motion {
    pub(super) to: usize,
    pub(super) kind: MotionKind,
}

impl Motion {
    fn exclusive(to: usize) -> Self {
        Self {
            to,
            kind: MotionKind::Exclusive,
        }
    }

    fn inclusive(to: usize) -> Self {
        Self {
            to,
            kind: MotionKind::Inclusive,
        }
    }

    /// Moves to a line by its number, starting at 1.
    pub(super) fn to_line(text: &str, number: usize) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        let start = starts.take(number.max(1)).last().unwrap_or(0);
        Self {
            to: motion::first_word(text, motion::line(text, start)),
            kind: MotionKind::Linewise,
        }
    }
}

/// The direction and end of a character search within the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindMotion {
    To,
    Till,
    BackTo,
    BackTill,
}

impl FindMotion {
    pub(super) fn reversed(self) -> Self {
        match self {
            Self::To => Self::BackTo,
            Self::Till => Self::BackTill,
            Self::BackTo => Self::To,
            Self::BackTill => Self::Till,
        }
    }
}

/// Finds a character. `is_again` is true for `;` and `,`, which skip a character next to the caret
/// that the last search has already reached.
pub(super) fn find(
    text: &str,
    caret: usize,
    find: FindMotion,
    letter: char,
    count: usize,
    is_again: bool,
) -> Option<Motion> {
    let line = motion::line(text, caret);
    let found = match find {
        FindMotion::To | FindMotion::Till => {
            let mut from = motion::next(text, caret).min(line.end);
            if is_again && find == FindMotion::Till {
                from = motion::next(text, from).min(line.end);
            }
            let mut found = text[from..line.end]
                .match_indices(letter)
                .map(|(at, _)| from + at);
            found.nth(count - 1)?
        }
        FindMotion::BackTo | FindMotion::BackTill => {
            let mut to = caret;
            if is_again && find == FindMotion::BackTill {
                to = motion::previous(text, to).max(line.start);
            }
            let mut found = text[line.start..to]
                .rmatch_indices(letter)
                .map(|(at, _)| line.start + at);
            found.nth(count - 1)?
        }
    };
    Some(match find {
        FindMotion::To => Motion::inclusive(found),
        FindMotion::Till => Motion::inclusive(motion::previous(text, found)),
        FindMotion::BackTo => Motion::exclusive(found),
        FindMotion::BackTill => Motion::exclusive(motion::next(text, found)),
    })
}

/// Returns the motion of a letter, or `None` if the letter is not a motion.
pub(super) fn by_letter(
    text: &str,
    caret: usize,
    letter: char,
    count: usize,
    has_count: bool,
    changes: bool,
) -> Option<Motion> {
    let line = motion::line(text, caret);
    let repeat = |step: fn(&str, usize) -> usize| (0..count).fold(caret, |at, _| step(text, at));
    let class_of: fn(char) -> LetterClass = match letter {
        'W' | 'B' | 'E' => wide_class,
        _ => class,
    };
    Some(match letter {
        'h' => Motion::exclusive(repeat(motion::previous).max(line.start)),
        'l' | ' ' => Motion::exclusive(repeat(motion::next).min(line.end)),
        '0' => Motion::exclusive(line.start),
        '^' => Motion::exclusive(motion::first_word(text, line)),
        '$' => {
            let last = (1..count).fold(line, |line, _| {
                motion::line(text, (line.end + 1).min(text.len()))
            });
            Motion::exclusive(last.end)
        }
        'w' | 'W' => {
            // `cw` on a word changes the word but not the space after it.
            let on_blank = text[caret..].chars().next().is_none_or(char::is_whitespace);
            if changes && !on_blank {
                let end = (1..count).fold(end_of_this(text, caret, class_of), |at, _| {
                    word_end(text, at, class_of)
                });
                return Some(Motion::inclusive(end));
            }
            Motion::exclusive((0..count).fold(caret, |at, _| word_forward(text, at, class_of)))
        }
        'b' | 'B' => {
            Motion::exclusive((0..count).fold(caret, |at, _| word_back(text, at, class_of)))
        }
        'e' | 'E' => {
            Motion::inclusive((0..count).fold(caret, |at, _| word_end(text, at, class_of)))
        }
        'G' => {
            let lines = text.matches('\n').count() + 1;
            Motion::to_line(text, if has_count { count.min(lines) } else { lines })
        }
        'j' | 'k' => {
            let number = text[..caret].matches('\n').count() + 1;
            let lines = text.matches('\n').count() + 1;
            let to = if letter == 'j' {
                number + count
            } else {
                number.checked_sub(count).filter(|to| *to > 0)?
            };
            if to > lines {
                return None;
            }
            Motion::to_line(text, to)
        }
        '}' => Motion::exclusive((0..count).fold(caret, |at, _| paragraph_forward(text, at))),
        '{' => Motion::exclusive((0..count).fold(caret, |at, _| paragraph_back(text, at))),
        _ => return None,
    })
}

fn class_at(text: &str, at: usize, class_of: fn(char) -> LetterClass) -> LetterClass {
    text[at..]
        .chars()
        .next()
        .map_or(LetterClass::Blank, class_of)
}

/// Returns the start of the next word; an empty line is treated as a word.
fn word_forward(text: &str, at: usize, class_of: fn(char) -> LetterClass) -> usize {
    let begun = class_at(text, at, class_of);
    let mut at = at;
    while at < text.len() && begun != LetterClass::Blank && class_at(text, at, class_of) == begun {
        at = motion::next(text, at);
    }
    while at < text.len() && class_at(text, at, class_of) == LetterClass::Blank {
        let is_line_end = text[at..].starts_with('\n');
        at = motion::next(text, at);
        if is_line_end && text[at..].starts_with('\n') {
            return at;
        }
    }
    at
}

fn word_back(text: &str, at: usize, class_of: fn(char) -> LetterClass) -> usize {
    let mut at = at;
    while at > 0 && class_at(text, motion::previous(text, at), class_of) == LetterClass::Blank {
        at = motion::previous(text, at);
    }
    if at == 0 {
        return 0;
    }
    let class = class_at(text, motion::previous(text, at), class_of);
    while at > 0 && class_at(text, motion::previous(text, at), class_of) == class {
        at = motion::previous(text, at);
    }
    at
}

/// Returns the last character of the next word.
fn word_end(text: &str, at: usize, class_of: fn(char) -> LetterClass) -> usize {
    let mut next = motion::next(text, at);
    while next < text.len() && class_at(text, next, class_of) == LetterClass::Blank {
        next = motion::next(text, next);
    }
    if next >= text.len() {
        return at;
    }
    end_of_this(text, next, class_of)
}

/// Returns the last character of the word at a position.
fn end_of_this(text: &str, at: usize, class_of: fn(char) -> LetterClass) -> usize {
    let class = class_at(text, at, class_of);
    let mut at = at;
    loop {
        let next = motion::next(text, at);
        if next >= text.len() || class_at(text, next, class_of) != class {
            return at;
        }
        at = next;
    }
}

fn paragraph_forward(text: &str, at: usize) -> usize {
    let mut line = motion::line(text, at);
    let mut seen_text = !line.is_empty();
    while line.end < text.len() {
        line = motion::line(text, line.end + 1);
        if line.is_empty() && seen_text {
            return line.start;
        }
        seen_text |= !line.is_empty();
    }
    text.len()
}

fn paragraph_back(text: &str, at: usize) -> usize {
    let mut line = motion::line(text, at);
    let mut seen_text = !line.is_empty();
    while line.start > 0 {
        line = motion::line(text, line.start - 1);
        if line.is_empty() && seen_text {
            return line.start;
        }
        seen_text |= !line.is_empty();
    }
    0
}
