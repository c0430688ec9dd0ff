//! The width of text in cells. The width is measured in grapheme clusters. Clusters of ambiguous
//! width are narrow, and tabs go to the next multiple of 4.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The distance of tab stops in cells.
pub const TAB: usize = 4;

/// Returns the width of a grapheme cluster in cells, which is at most two.
pub fn grapheme_width(grapheme: &str) -> usize {
    match grapheme.as_bytes() {
        [byte] => usize::from((0x20..0x7f).contains(byte)),
        _ => grapheme.width().min(2),
    }
}

/// Returns the width of a single-line text that starts at column 0, in cells.
pub fn text_width(text: &str) -> usize {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return text.len();
    }
    text.graphemes(true)
        .fold(0, |column, grapheme| match grapheme {
            "\t" => tab_stop(column),
            _ => column + grapheme_width(grapheme),
        })
}

/// Returns the end column of a tab that starts at this column.
pub fn tab_stop(column: usize) -> usize {
    (column / TAB + 1) * TAB
}

/// Returns whether all terminals agree on the width. They disagree on clusters of several
/// characters, unless the cluster is a letter with combining marks.
pub fn is_certain(text: &str) -> bool {
    text.is_ascii()
        || text.graphemes(true).all(|grapheme| {
            let mut characters = grapheme.chars();
            let first = characters.next();
            characters.as_str().is_empty()
                || (first.is_some_and(char::is_alphabetic) && grapheme_width(grapheme) == 1)
        })
}

/// Returns the beginning of a text that fits into `cells` cells.
pub fn prefix(text: &str, cells: usize) -> &str {
    let mut column = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        column += grapheme_width(grapheme);
        if column > cells {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_clusters() {
        let cases = [
            ("", 0),
            ("abc", 3),
            ("漢字", 4),
            ("e\u{301}", 1),
            ("❤\u{fe0f}", 2),
            ("👩\u{200d}👩\u{200d}👧", 2),
            ("🇩🇪", 2),
            ("±", 1),
            ("a\tb", 5),
            ("abcd\tb", 9),
        ];
        for (text, cells) in cases {
            assert_eq!(text_width(text), cells, "{text:?}");
        }
    }

    #[test]
    fn a_prefix_never_cuts_a_cluster() {
        assert_eq!(prefix("漢字", 3), "漢");
        assert_eq!(prefix("ab", 5), "ab");
        assert_eq!(prefix("👩\u{200d}👧x", 1), "");
    }

    #[test]
    fn only_what_terminals_agree_on_is_certain() {
        for (text, expected) in [("abc é 漢", true), ("e\u{301}", true), ("❤\u{fe0f}", false)] {
            assert_eq!(is_certain(text), expected, "{text}");
        }
    }
}
