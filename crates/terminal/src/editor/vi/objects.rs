//! Text objects: words, and the text between quotes or brackets.

use std::ops::Range;

use super::super::motion::{self, LetterClass, class, wide_class};

/// Returns the range of the text object at the caret. With `around` it includes the delimiters, or
/// the spaces after a word.
pub(super) fn find(text: &str, caret: usize, letter: char, around: bool) -> Option<Range<usize>> {
    match letter {
        'w' => word(text, caret, around, class),
        'W' => word(text, caret, around, wide_class),
        '"' | '\'' | '`' => quoted(text, caret, letter, around),
        '(' | ')' | 'b' => bracketed(text, caret, ('(', ')'), around),
        '[' | ']' => bracketed(text, caret, ('[', ']'), around),
        '{' | '}' | 'B' => bracketed(text, caret, ('{', '}'), around),
        '<' | '>' => bracketed(text, caret, ('<', '>'), around),
        _ => None,
    }
}

fn word(
    text: &str,
    caret: usize,
    around: bool,
    class_of: fn(char) -> LetterClass,
) -> Option<Range<usize>> {
    let line = motion::line(text, caret);
    let at = |place: usize| {
        text[place..]
            .chars()
            .next()
            .filter(|_| place < line.end)
            .map(class_of)
    };
    let here = at(caret)?;
    let is_same = |class: LetterClass| move |c: char| class_of(c) == class && c != '\n';
    let before = &text[line.start..caret];
    let start = line.start + before.trim_end_matches(is_same(here)).len();
    let extend = |from: usize, class: LetterClass| {
        let rest = &text[from..line.end];
        from + (rest.len() - rest.trim_start_matches(is_same(class)).len())
    };
    let end = extend(caret, here);
    if !around {
        return Some(start..end);
    }
    if here == LetterClass::Blank {
        // The spaces and the word after them.
        return Some(start..at(end).map_or(end, |class| extend(end, class)));
    }
    let with_blanks = extend(end, LetterClass::Blank);
    if with_blanks > end {
        return Some(start..with_blanks);
    }
    let before = &text[line.start..start];
    Some(line.start + before.trim_end_matches(is_same(LetterClass::Blank)).len()..end)
}

fn quoted(text: &str, caret: usize, quote: char, around: bool) -> Option<Range<usize>> {
    let line = motion::line(text, caret);
    let content = &text[line.clone()];
    let places: Vec<usize> = content
        .match_indices(quote)
        .map(|(at, _)| at)
        .filter(|at| !content[..*at].ends_with('\\'))
        .map(|at| line.start + at)
        .collect();
    let pair = places.chunks_exact(2).find(|pair| caret <= pair[1])?;
    Some(match around {
        true => pair[0]..pair[1] + quote.len_utf8(),
        false => pair[0] + quote.len_utf8()..pair[1],
    })
}

fn bracketed(
    text: &str,
    caret: usize,
    (open, close): (char, char),
    around: bool,
) -> Option<Range<usize>> {
    let mut depth = 0;
    let on_close = text[caret..].starts_with(close);
    let on_open = text[caret..].starts_with(open);
    let start = match on_open {
        true => caret,
        false => text[..caret]
            .char_indices()
            .rev()
            .find_map(|(at, letter)| {
                depth += i32::from(letter == close) - i32::from(letter == open);
                (depth < 0).then_some(at)
            })?,
    };
    let inner = start + open.len_utf8();
    depth = 0;
    let from = if on_close { caret } else { inner };
    let end = text[from..].char_indices().find_map(|(at, letter)| {
        depth += i32::from(letter == open) - i32::from(letter == close);
        (depth < 0).then_some(from + at)
    })?;
    Some(match around {
        true => start..end + close.len_utf8(),
        false => inner..end,
    })
}
