//! Classifies lines by the block that they start, continue or end.

use super::open_block;
use crate::code::CodeLexer;

/// The block that is not committed yet.
#[derive(Debug, Clone, Default)]
pub(super) enum OpenBlock {
    #[default]
    None,
    Paragraph {
        text: String,
        indent: usize,
    },
    Item {
        marker: String,
        text: String,
        indent: usize,
        hang: usize,
    },
    Quote {
        text: String,
    },
    Table {
        text: String,
    },
    Code {
        fence: CodeFence,
        lexer: CodeLexer,
        indent: usize,
    },
}

impl OpenBlock {
    pub(super) fn code(fence: CodeFence, language: &str, indent: usize) -> Self {
        Self::Code {
            fence,
            lexer: CodeLexer::new(language),
            indent,
        }
    }

    /// Returns the text of a block of prose.
    pub(super) fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Paragraph { text, .. } | Self::Item { text, .. } | Self::Quote { text } => {
                Some(text)
            }
            Self::None | Self::Table { .. } | Self::Code { .. } => None,
        }
    }

    /// Closes open emphasis marks, so that the block can be drawn.
    pub(super) fn close_marks(&mut self) {
        if let Some(text) = self.text_mut() {
            *text = open_block::closed(text);
        }
    }
}

/// The delimiter of a code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeFence {
    mark: char,
    length: usize,
}

impl CodeFence {
    pub(super) fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

/// The kind of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineKind {
    Blank,
    Fence(CodeFence, String),
    Heading(usize, String),
    /// Turns the paragraph above it into a heading.
    Underline(usize),
    Rule,
    Item {
        column: usize,
        marker: String,
        text: String,
    },
    Quote(String),
    /// Turns the line above it into a table head.
    TableStart,
    TableRow,
    IndentedCode,
    Text,
}

pub(super) fn classify(line: &str, open: &OpenBlock) -> LineKind {
    let trimmed = line.trim();
    let column = indent_of(line);
    if trimmed.is_empty() {
        return LineKind::Blank;
    }
    if let Some(fence) = fence(trimmed) {
        return fence;
    }
    let goes_on = matches!(
        open,
        OpenBlock::Paragraph { .. } | OpenBlock::Item { .. } | OpenBlock::Quote { .. }
    );
    if column >= 4 && !goes_on && !trimmed.starts_with(['-', '*', '+']) && item(trimmed).is_none() {
        return LineKind::IndentedCode;
    }
    if let OpenBlock::Paragraph { text, .. } = open {
        if trimmed.chars().all(|c| c == '=') {
            return LineKind::Underline(1);
        }
        if trimmed.chars().all(|c| c == '-') && trimmed.len() >= 2 {
            return LineKind::Underline(2);
        }
        if !text.contains('\n') && text.contains('|') && is_delimiter_row(trimmed) {
            return LineKind::TableStart;
        }
    }
    if matches!(open, OpenBlock::Table { .. }) && trimmed.contains('|') {
        return LineKind::TableRow;
    }
    if let Some((level, text)) = heading(trimmed) {
        return LineKind::Heading(level, text);
    }
    if is_rule(trimmed) {
        return LineKind::Rule;
    }
    if let Some((marker, text)) = item(trimmed) {
        // A number inside a paragraph is not a list item, unless it is 1.
        let is_list = !matches!(open, OpenBlock::Paragraph { indent, .. } if column >= *indent)
            || marker.len() == 1
            || marker.starts_with("1.");
        if is_list {
            return LineKind::Item {
                column,
                marker: marker.to_owned(),
                text: text.to_owned(),
            };
        }
    }
    if let Some(text) = trimmed.strip_prefix('>') {
        return LineKind::Quote(text.strip_prefix(' ').unwrap_or(text).to_owned());
    }
    LineKind::Text
}

/// Returns the column of the first letter; tabs go to the next multiple of four.
pub(super) fn indent_of(line: &str) -> usize {
    let mut column = 0;
    for character in line.chars() {
        match character {
            ' ' => column += 1,
            '\t' => column = crate::width::tab_stop(column),
            _ => break,
        }
    }
    column
}

/// Removes the indent of the list item from a line of code inside it.
pub(super) fn without_indent(line: &str, most: usize) -> &str {
    let blanks = line
        .bytes()
        .take(most)
        .take_while(|byte| *byte == b' ')
        .count();
    &line[blanks..]
}

pub(super) fn add_line(text: &mut String, line: &str) {
    text.push('\n');
    text.push_str(line);
}

fn fence(line: &str) -> Option<LineKind> {
    let mark = line
        .chars()
        .next()
        .filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    let language = line[length..].trim();
    // Inline code is not a fence.
    if length < 3 || (mark == '`' && language.contains('`')) {
        return None;
    }
    Some(LineKind::Fence(
        CodeFence { mark, length },
        language.to_owned(),
    ))
}

fn heading(line: &str) -> Option<(usize, String)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[level..];
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let text = rest.trim();
    let without = text.trim_end_matches('#');
    let text = if without.is_empty() || without.ends_with(' ') {
        without.trim_end()
    } else {
        text
    };
    Some((level, text.to_owned()))
}

fn is_rule(line: &str) -> bool {
    let mark = line.chars().next();
    let marks = line.chars().filter(|c| *c != ' ');
    matches!(mark, Some('-' | '*' | '_'))
        && marks.clone().count() >= 3
        && marks.clone().all(|c| Some(c) == mark)
}

/// Splits a line into the marker of a list item and its text.
fn item(line: &str) -> Option<(&str, &str)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let length = match (digits, line.as_bytes().get(digits)?) {
        (0, b'-' | b'*' | b'+') => 1,
        (1..=9, b'.' | b')') => digits + 1,
        _ => return None,
    };
    let (marker, text) = line.split_at(length);
    match text.is_empty() || text.starts_with([' ', '\t']) {
        true => Some((marker, text.trim_start())),
        false => None,
    }
}

/// Matches `|---|:-:|`.
fn is_delimiter_row(line: &str) -> bool {
    let mut cells = line.trim_matches('|').split('|').map(str::trim);
    line.contains('-')
        && cells.all(|cell| {
            let dashes = cell.strip_prefix(':').unwrap_or(cell);
            let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
            !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-')
        })
}

/// Returns whether a line consists only of marks. Its kind is still open, so it is not drawn yet.
pub(super) fn is_only_marks(line: &str) -> bool {
    let rest = line.trim().trim_start_matches(|c: char| c.is_ascii_digit());
    rest.chars().all(|c| {
        matches!(
            c,
            '-' | '*' | '+' | '#' | '>' | '`' | '~' | '=' | '_' | '|' | '.' | ')' | ':' | ' '
        )
    })
}
