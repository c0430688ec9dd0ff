//! Wraps lines at words, so that each row fits.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::{text::TextLine, width::grapheme_width};

/// Returns the byte ranges of the rows. Spaces at a break belong to no row; a word that is longer
/// than a row is broken between clusters. An empty text is one empty row.
///
/// `first` is the width of the first row, `rest` that of the others (they differ by an indent). A
/// cluster wider than a row is placed on its own row.
pub fn wrap_ranges(text: &str, first: usize, rest: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let mut row = RowInProgress::new(0);
    let mut width = first.max(1);
    let mut at = 0;
    while let Some(grapheme) = text[at..].graphemes(true).next() {
        let cells = grapheme_width(grapheme);
        let end = at + grapheme.len();
        if grapheme == " " {
            row.blank(at, end, cells);
            at = end;
            continue;
        }
        // Wide clusters are separate words: text without spaces breaks between them.
        if cells == 2 {
            row.may_break_at(at);
        }
        if row.columns + cells > width && at > row.start {
            let (row_end, next) = row.opportunity.unwrap_or((at, at));
            rows.push(row.start..row_end);
            width = rest.max(1);
            // The part that moves to the next row is measured again, because that row may be
            // narrower.
            row = RowInProgress::new(next);
            at = next;
            continue;
        }
        row.columns += cells;
        if cells == 2 {
            row.may_break_at(end);
        }
        at = end;
    }
    let end = match text[row.start..].trim_end_matches(' ') {
        // All spaces of a line that contains only spaces are dropped.
        kept if rows.is_empty() || !kept.is_empty() => row.start + kept.len(),
        _ => return rows,
    };
    rows.push(row.start..end);
    rows
}

struct RowInProgress {
    start: usize,
    columns: usize,
    /// The position where the row may end, and where the next would start.
    opportunity: Option<(usize, usize)>,
}

impl RowInProgress {
    fn new(start: usize) -> Self {
        Self {
            start,
            columns: 0,
            opportunity: None,
        }
    }

    fn blank(&mut self, at: usize, end: usize, cells: usize) {
        self.columns += cells;
        self.opportunity = match self.opportunity {
            // The space continues a run of spaces.
            Some((row_end, next)) if next == at => Some((row_end, end)),
            // Spaces at the start are an indent.
            _ if at == self.start => None,
            _ => Some((at, end)),
        };
    }

    fn may_break_at(&mut self, at: usize) {
        if at > self.start && self.opportunity.is_none_or(|(_, next)| next < at) {
            self.opportunity = Some((at, at));
        }
    }
}

/// Wraps a line into rows of at most `width` cells.
pub fn wrap(line: &TextLine, width: usize) -> Vec<TextLine> {
    wrap_with_indent(line, width, width)
}

/// Like [`wrap`], but all rows except the first are indented by `indent` cells, if that leaves them
/// at least half of the width.
pub fn wrap_hanging(line: &TextLine, width: usize, indent: usize) -> Vec<TextLine> {
    let indent = if indent * 2 <= width { indent } else { 0 };
    let rows = wrap_with_indent(line, width, width - indent);
    let indented = |(number, row): (usize, TextLine)| match number {
        0 => row,
        _ => {
            let mut hung = TextLine::plain(&" ".repeat(indent));
            hung.append(&row);
            hung
        }
    };
    rows.into_iter().enumerate().map(indented).collect()
}

/// Like [`wrap`], but the first row has a different width than the others.
pub fn wrap_with_indent(line: &TextLine, first: usize, rest: usize) -> Vec<TextLine> {
    let rows = wrap_ranges(line.text(), first, rest);
    rows.into_iter().map(|row| line.slice(row)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::width::text_width;

    fn rows(text: &str, width: usize) -> Vec<&str> {
        let ranges = wrap_ranges(text, width, width);
        ranges.into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn lines_break_at_words() {
        let cases: [(&str, usize, &[&str]); 12] = [
            ("", 5, &[""]),
            ("   ", 2, &[""]),
            ("one two three", 7, &["one two", "three"]),
            ("one two three", 8, &["one two", "three"]),
            ("one  two", 4, &["one", "two"]),
            ("  indented text", 10, &["  indented", "text"]),
            ("abcdefgh", 3, &["abc", "def", "gh"]),
            ("a bcdefgh", 3, &["a", "bcd", "efg", "h"]),
            ("漢字漢字", 5, &["漢字", "漢字"]),
            ("ab漢字", 3, &["ab", "漢", "字"]),
            ("trailing   ", 20, &["trailing"]),
            (
                "e\u{301}e\u{301}e\u{301}",
                2,
                &["e\u{301}e\u{301}", "e\u{301}"],
            ),
        ];
        for (text, width, expected) in cases {
            assert_eq!(rows(text, width), expected, "{text:?} at {width}");
        }
    }

    #[test]
    fn the_first_row_may_have_another_width() {
        let ranges = wrap_ranges("one two three four", 3, 9);
        let rows: Vec<_> = ranges
            .into_iter()
            .map(|range| &"one two three four"[range])
            .collect();
        assert_eq!(rows, ["one", "two three", "four"]);
    }

    /// What must hold of any text; the fuzz target checks the same.
    fn check(text: &str, width: usize) {
        let ranges = wrap_ranges(text, width, width);
        let mut last = 0;
        for range in &ranges {
            assert!(range.start >= last && text[last..range.start].chars().all(|c| c == ' '));
            let row = &text[range.clone()];
            let cells = text_width(row);
            assert!(
                cells <= width || row.graphemes(true).count() == 1,
                "{row:?} at {width}"
            );
            last = range.end;
        }
        assert!(text[last..].chars().all(|c| c == ' '));
    }

    proptest! {
        #[test]
        fn no_row_is_too_wide_and_only_blanks_are_lost(
            text in "[a-c漢👩\u{200d}e\u{301} ]{0,60}", width in 1usize..12
        ) {
            check(&text, width);
        }
    }
}
