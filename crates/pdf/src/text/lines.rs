//! Joins positioned characters to lines of text.
//!
//! A page may be drawn in any order: word by word, letter by letter, or with separate accents. So
//! pieces that are next to one another become one line, regardless of the order in which they were
//! drawn, and a gap becomes a space.

use super::{direction, interpret::ShownGlyph};

/// The width of a gap that becomes a space, in font sizes.
const BLANK: f32 = 0.15;
/// The width of a gap that ends a line, in font sizes. The text after it is another column or cell.
const CELL: f32 = 1.0;
/// The maximum distance of equal baselines, in font sizes.
const SAME_LINE: f32 = 0.25;

/// A line, or a cell of a table, without gaps.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PdfTextLine {
    pub(super) text: String,
    pub(super) left: f32,
    pub(super) right: f32,
    /// The vertical position of the baseline; larger is higher on the page.
    pub(super) baseline: f32,
    pub(super) size: f32,
}

impl PdfTextLine {
    pub(super) fn top(&self) -> f32 {
        self.baseline + self.size * 0.8
    }

    pub(super) fn bottom(&self) -> f32 {
        self.baseline - self.size * 0.2
    }
}

/// A piece of a line that is not complete yet.
#[derive(Debug, Clone)]
struct LinePiece {
    glyphs: Vec<PlacedText>,
    left: f32,
    right: f32,
    baseline: f32,
    size: f32,
}

#[derive(Debug, Clone)]
struct PlacedText {
    text: String,
    left: f32,
    right: f32,
}

/// Joins the characters to lines, in no particular order.
pub(super) fn build_lines(glyphs: &[ShownGlyph]) -> Vec<PdfTextLine> {
    let (vertical, horizontal): (Vec<_>, Vec<_>) =
        glyphs.iter().partition(|glyph| glyph.is_vertical);
    let mut lines: Vec<PdfTextLine> = join_pieces(pieces(&horizontal))
        .into_iter()
        .filter_map(line_text)
        .collect();
    lines.extend(vertical_lines(&vertical));
    lines
}

/// Joins characters in drawing order, as long as each continues where the previous one ended.
fn pieces(glyphs: &[&ShownGlyph]) -> Vec<LinePiece> {
    let mut pieces: Vec<LinePiece> = Vec::new();
    for glyph in glyphs {
        let ((left, baseline), right) = (glyph.origin, glyph.end.0);
        let placed = PlacedText {
            text: glyph.text.clone(),
            left: left.min(right),
            right: right.max(left),
        };
        let follows = pieces.last().is_some_and(|piece| {
            let size = piece.size.max(glyph.size);
            let gap = piece
                .glyphs
                .last()
                .map_or(0.0, |last| placed.left - last.right);
            (piece.baseline - baseline).abs() < size * 0.05
                && (piece.size - glyph.size).abs() < size * 0.05
                && (-0.3 * size..CELL * size).contains(&gap)
        });
        match pieces.last_mut() {
            Some(piece) if follows => {
                piece.left = piece.left.min(placed.left);
                piece.right = piece.right.max(placed.right);
                piece.glyphs.push(placed);
            }
            _ => pieces.push(LinePiece {
                left: placed.left,
                right: placed.right,
                glyphs: vec![placed],
                baseline,
                size: glyph.size,
            }),
        }
    }
    // Characters that are drawn twice with a small offset imitate bold text.
    let mut kept: Vec<LinePiece> = Vec::new();
    for piece in pieces {
        let is_shadow = kept.iter().rev().take(200).any(|other| {
            (other.baseline - piece.baseline).abs() < piece.size * 0.15
                && (other.left - piece.left).abs() < piece.size * 0.15
                && other.glyphs.len() == piece.glyphs.len()
                && other
                    .glyphs
                    .iter()
                    .zip(&piece.glyphs)
                    .all(|(one, two)| one.text == two.text)
        });
        if !is_shadow {
            kept.push(piece);
        }
    }
    kept
}

/// Joins pieces that are close to one another on the same line, regardless of their drawing order.
fn join_pieces(mut pieces: Vec<LinePiece>) -> Vec<LinePiece> {
    pieces.retain(|piece| {
        let has_ink = |glyph: &PlacedText| !glyph.text.trim().is_empty();
        piece.glyphs.iter().any(has_ink)
    });
    // Largest first, so that superscripts and subscripts join the main text and not the reverse.
    pieces.sort_by(|one, two| {
        let by_size = two.size.total_cmp(&one.size);
        by_size.then(one.left.total_cmp(&two.left))
    });
    let mut lines: Vec<LinePiece> = Vec::new();
    for piece in pieces {
        let mut line = piece;
        // A piece may close the gap between two others.
        while let Some(near) = lines.iter().position(|other| are_near(other, &line)) {
            let mut other = lines.swap_remove(near);
            if other.size < line.size {
                (other.baseline, other.size) = (line.baseline, line.size);
            }
            other.left = other.left.min(line.left);
            other.right = other.right.max(line.right);
            other.glyphs.append(&mut line.glyphs);
            line = other;
        }
        lines.push(line);
    }
    lines
}

fn are_near(one: &LinePiece, two: &LinePiece) -> bool {
    let (large, small) = match one.size >= two.size {
        true => (one, two),
        false => (two, one),
    };
    let raised = small.baseline - large.baseline;
    let is_same_line = match small.size > large.size * 0.85 {
        true => raised.abs() < SAME_LINE * large.size,
        // A superscript or a subscript.
        false => (-0.35 * large.size..0.6 * large.size).contains(&raised),
    };
    if !is_same_line {
        return false;
    }
    let gap = (one.left - two.right).max(two.left - one.right);
    if gap >= CELL * small.size.max(large.size * 0.5) * 0.9 {
        return false;
    }
    // Text printed over other text does not belong to it, but a superscript above a subscript does.
    gap >= 0.0 || small.size <= large.size * 0.85 || overlap_fraction(one, two) < 0.5
}

/// Returns the fraction of the shorter piece that overlaps characters of the other one, from 0 to
/// 1.
fn overlap_fraction(one: &LinePiece, two: &LinePiece) -> f32 {
    let (long, short) = match one.glyphs.len() >= two.glyphs.len() {
        true => (one, two),
        false => (two, one),
    };
    let shared: f32 = long
        .glyphs
        .iter()
        .filter(|glyph| !glyph.text.trim().is_empty())
        .map(|glyph| (glyph.right.min(short.right) - glyph.left.max(short.left)).max(0.0))
        .sum();
    shared / (short.right - short.left).max(0.01)
}

/// Converts a line to text, with spaces for gaps.
fn line_text(mut line: LinePiece) -> Option<PdfTextLine> {
    line.glyphs
        .sort_by(|one, two| one.left.total_cmp(&two.left));
    let (left, right) = (line.left, line.right);
    let blank = blank_width(&line);
    let mut parts: Vec<String> = Vec::new();
    let mut last: Option<&PlacedText> = None;
    for glyph in &line.glyphs {
        let gap = last.map_or(0.0, |last| glyph.left - last.right);
        if gap > blank {
            parts.push(" ".to_owned());
        }
        parts.push(glyph.text.clone());
        last = match last {
            Some(last) if last.right > glyph.right => Some(last),
            _ => Some(glyph),
        };
    }
    let text = direction::in_reading_order(parts);
    let text = tidy(&text);
    (!text.is_empty()).then_some(PdfTextLine {
        text,
        left,
        right,
        baseline: line.baseline,
        size: line.size,
    })
}

/// Normalizes white space to single spaces, and shortens long rows of dots.
fn tidy(text: &str) -> String {
    const LEADER: &str = "....";
    let mut words: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let is_dots = word.len() > 3 && word.bytes().all(|byte| byte == b'.');
        let word = if is_dots { LEADER } else { word };
        if word == "." && words.ends_with(&[".", ".", "."]) {
            words.truncate(words.len() - 3);
            words.push(LEADER);
        } else if !(matches!(word, "." | LEADER) && words.last() == Some(&LEADER)) {
            words.push(word);
        }
    }
    words.join(" ")
}

/// Returns the minimum gap that becomes a space. It is larger in letter-spaced text.
fn blank_width(line: &LinePiece) -> f32 {
    let mut gaps: Vec<f32> = line
        .glyphs
        .windows(2)
        .filter(|pair| !pair.iter().any(|glyph| glyph.text.trim().is_empty()))
        // The dots between a heading and its page number do not show the letter spacing.
        .filter(|pair| !pair.iter().all(|glyph| glyph.text == "."))
        .map(|pair| pair[1].left - pair[0].right)
        .collect();
    if gaps.len() < 4 {
        return BLANK * line.size;
    }
    gaps.sort_unstable_by(f32::total_cmp);
    let usual = gaps[gaps.len() / 2].max(0.0);
    (BLANK * line.size).max(usual + 0.12 * line.size)
}

/// Joins vertical text, whose columns run from right to left: each column becomes a line.
fn vertical_lines(glyphs: &[&ShownGlyph]) -> Vec<PdfTextLine> {
    let mut columns: Vec<(f32, f32, Vec<&ShownGlyph>)> = Vec::new();
    for glyph in glyphs {
        let (x, _) = glyph.origin;
        let column = columns.iter_mut().find(|(center, size, glyphs)| {
            let is_beside = (*center - x).abs() < *size * 0.4;
            let follows = glyphs.last().is_some_and(|last| {
                let gap = last.end.1 - glyph.origin.1;
                (-0.5 * *size..3.0 * *size).contains(&gap)
            });
            is_beside && follows
        });
        match column {
            Some((_, _, glyphs)) => glyphs.push(glyph),
            None => columns.push((x, glyph.size, vec![glyph])),
        }
    }
    columns.sort_by(|one, two| two.0.total_cmp(&one.0));
    let top = glyphs.iter().map(|glyph| glyph.origin.1);
    let top = top.fold(f32::NEG_INFINITY, f32::max);
    // The columns are placed below one another, in reading order.
    let mut baseline = top;
    let mut lines = Vec::new();
    for (x, size, glyphs) in columns {
        let text: String = glyphs.iter().map(|glyph| glyph.text.as_str()).collect();
        let text = text.trim().to_owned();
        if text.is_empty() {
            continue;
        }
        lines.push(PdfTextLine {
            text,
            left: x - size / 2.0,
            right: x + size / 2.0,
            baseline,
            size,
        });
        baseline -= size * 1.2;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glyph(text: &str, left: f32, baseline: f32, size: f32) -> ShownGlyph {
        let width = size * 0.5 * text.chars().count() as f32;
        ShownGlyph {
            text: text.to_owned(),
            origin: (left, baseline),
            end: (left + width, baseline),
            size,
            is_vertical: false,
        }
    }

    fn texts(glyphs: &[ShownGlyph]) -> Vec<String> {
        let mut lines = build_lines(glyphs);
        lines.sort_by(|one, two| two.baseline.total_cmp(&one.baseline));
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn gaps_become_blanks_and_wide_ones_cells() {
        let glyphs = [
            glyph("ab", 0.0, 100.0, 10.0),
            glyph("cd", 10.2, 100.0, 10.0),
            glyph("ef", 23.0, 100.0, 10.0),
            glyph("far", 90.0, 100.0, 10.0),
            glyph("below", 0.0, 88.0, 10.0),
        ];
        assert_eq!(texts(&glyphs), ["abcd ef", "far", "below"]);
    }

    #[test]
    fn exponents_and_words_drawn_in_any_order_are_part_of_their_line() {
        let glyphs = [
            glyph("= 9", 12.0, 100.0, 10.0),
            glyph("2", 5.5, 104.0, 7.0),
            glyph("x", 0.0, 100.0, 10.0),
        ];
        assert_eq!(texts(&glyphs), ["x2 = 9"]);
    }

    #[test]
    fn spread_letters_are_one_word_and_shadows_nothing() {
        let mut glyphs: Vec<ShownGlyph> = "SPREAD"
            .chars()
            .zip(0_u8..)
            .map(|(letter, index)| glyph(&letter.to_string(), f32::from(index) * 8.0, 50.0, 10.0))
            .collect();
        assert_eq!(texts(&glyphs), ["SPREAD"]);
        glyphs = vec![
            glyph("bold", 0.0, 50.0, 10.0),
            glyph("bold", 0.3, 50.0, 10.0),
        ];
        assert_eq!(texts(&glyphs), ["bold"]);
    }

    #[test]
    fn dots_that_lead_somewhere_are_few() {
        assert_eq!(tidy("Chapter 1 . . . . . . . . 12"), "Chapter 1 .... 12");
        assert_eq!(tidy("end ......... 3"), "end .... 3");
        assert_eq!(tidy("so . . . what"), "so . . . what");
    }

    #[test]
    fn what_is_written_downwards_is_read_from_the_right() {
        let column = |text: &str, x: f32| -> Vec<ShownGlyph> {
            text.chars()
                .zip(0_u8..)
                .map(|(letter, index)| {
                    let top = 700.0 - f32::from(index) * 10.0;
                    ShownGlyph {
                        text: letter.to_string(),
                        origin: (x, top),
                        end: (x, top - 10.0),
                        size: 10.0,
                        is_vertical: true,
                    }
                })
                .collect()
        };
        let glyphs = [column("二行目", 480.0), column("一行目", 500.0)].concat();
        assert_eq!(texts(&glyphs), ["一行目", "二行目"]);
    }
}
