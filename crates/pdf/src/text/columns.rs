//! Puts lines into reading order: columns one after the other, tables row by row.
//!
//! A page is split at a vertical gap between two columns of running text. Lines that cross the gap
//! (a title, a wide figure) are read before or after the columns. The remaining lines are read from
//! top to bottom and each row from left to right, so that the cells of a table stay together.

use super::lines::PdfTextLine;

/// The minimum width of the gap between columns, in font sizes.
const GUTTER: f32 = 0.8;
/// The minimum number of lines in a column of text.
const COLUMN_LINES: usize = 3;
/// The minimum average number of characters in a line of a column. Cells of tables are shorter.
const COLUMN_CHARS: usize = 16;
/// A page with at least this number of lines is treated as a drawing without columns.
const MAX_LINES: usize = 20_000;
/// The maximum nesting depth of columns.
const DEPTH: usize = 6;
/// The separator between the cells of a row.
const BETWEEN_CELLS: &str = "  ";

/// Returns the text of all lines.
pub(super) fn text_in_order(lines: Vec<PdfTextLine>) -> String {
    let mut text = String::new();
    for block in blocks(lines, DEPTH) {
        let block = rows(block);
        if !text.is_empty() && !block.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&block);
    }
    text
}

/// Splits the page into blocks in reading order that contain no columns.
fn blocks(lines: Vec<PdfTextLine>, depth: usize) -> Vec<Vec<PdfTextLine>> {
    let gutter = match depth {
        0 => None,
        _ => gutter(&lines),
    };
    let Some(gutter) = gutter else {
        return vec![lines];
    };
    let mut zones = zones(lines, gutter);
    zones.retain(|zone| !zone.lines.is_empty());
    let mut blocks_of_all = Vec::new();
    for zone in zones {
        match zone.is_across {
            true => blocks_of_all.push(zone.lines),
            false => {
                let (left, right) = zone
                    .lines
                    .into_iter()
                    .partition(|line: &PdfTextLine| line.right <= gutter);
                blocks_of_all.extend(blocks(left, depth - 1));
                blocks_of_all.extend(blocks(right, depth - 1));
            }
        }
    }
    blocks_of_all.retain(|block| !block.is_empty());
    blocks_of_all
}

/// Returns the horizontal position of the gap between two columns, if any.
fn gutter(lines: &[PdfTextLine]) -> Option<f32> {
    if !(2 * COLUMN_LINES..MAX_LINES).contains(&lines.len()) {
        return None;
    }
    let size = usual_size(lines);
    // The possible gaps begin at the ends of lines.
    let mut ends: Vec<f32> = lines.iter().map(|line| line.right).collect();
    ends.sort_unstable_by(f32::total_cmp);
    ends.dedup_by(|one, two| (*one - *two).abs() < 0.5);
    let mut best: Option<(usize, f32, f32)> = None;
    for end in ends {
        let at = end + 0.1;
        let (mut left, mut right, mut across) = (Vec::new(), Vec::new(), 0);
        for line in lines {
            match line {
                line if line.right <= at => left.push(line),
                line if line.left >= at => right.push(line),
                _ => across += 1,
            }
        }
        if !(is_column(&left) && is_column(&right) && are_side_by_side(&left, &right)) {
            continue;
        }
        let next = right.iter().map(|line| line.left);
        let width = next.fold(f32::INFINITY, f32::min) - end;
        let beside = left.len().min(right.len());
        if width < GUTTER * size || across > beside * 2 {
            continue;
        }
        let is_better = best
            .is_none_or(|(least, widest, _)| across < least || (across == least && width > widest));
        if is_better {
            best = Some((across, width, end + width.min(size) / 2.0));
        }
    }
    best.map(|(_, _, at)| at)
}

fn usual_size(lines: &[PdfTextLine]) -> f32 {
    let mut sizes: Vec<f32> = lines.iter().map(|line| line.size).collect();
    sizes.sort_unstable_by(f32::total_cmp);
    sizes.get(sizes.len() / 2).copied().unwrap_or(0.0)
}

fn is_column(lines: &[&PdfTextLine]) -> bool {
    let chars: usize = lines.iter().map(|line| weight(&line.text)).sum();
    lines.len() >= COLUMN_LINES && chars >= lines.len() * COLUMN_CHARS
}

/// Returns the number of characters. Each character of a script without spaces has the weight 2,
/// because it is twice as wide.
fn weight(text: &str) -> usize {
    text.chars()
        .map(|character| if character > '\u{2e7f}' { 2 } else { 1 })
        .sum()
}

/// Returns whether the columns overlap vertically by more than 40 % of the shorter one.
fn are_side_by_side(left: &[&PdfTextLine], right: &[&PdfTextLine]) -> bool {
    let extent = |lines: &[&PdfTextLine]| {
        let tops = lines.iter().map(|line| line.top());
        let bottoms = lines.iter().map(|line| line.bottom());
        (
            tops.fold(f32::NEG_INFINITY, f32::max),
            bottoms.fold(f32::INFINITY, f32::min),
        )
    };
    let ((left_top, left_bottom), (right_top, right_bottom)) = (extent(left), extent(right));
    let shared = left_top.min(right_top) - left_bottom.max(right_bottom);
    shared > 0.4 * (left_top - left_bottom).min(right_top - right_bottom)
}

struct PageZone {
    is_across: bool,
    lines: Vec<PdfTextLine>,
}

/// Splits the lines from top to bottom into zones that cross the gap and zones with columns.
fn zones(mut lines: Vec<PdfTextLine>, gutter: f32) -> Vec<PageZone> {
    lines.sort_by(|one, two| two.baseline.total_cmp(&one.baseline));
    let mut zones: Vec<PageZone> = Vec::new();
    for line in lines {
        let is_across = line.left < gutter && line.right > gutter;
        match zones.last_mut() {
            Some(zone) if zone.is_across == is_across => zone.lines.push(line),
            _ => zones.push(PageZone {
                is_across,
                lines: vec![line],
            }),
        }
    }
    zones
}

/// Joins the lines from top to bottom, with the cells of a row in one line. Inserts an empty line
/// where the distance is larger than usual.
fn rows(mut lines: Vec<PdfTextLine>) -> String {
    lines.sort_by(|one, two| two.baseline.total_cmp(&one.baseline));
    let mut rows: Vec<Vec<PdfTextLine>> = Vec::new();
    for line in lines {
        let belongs = rows
            .last()
            .and_then(|row| row.first())
            .is_some_and(|first| {
                (first.baseline - line.baseline).abs() < 0.3 * first.size.min(line.size)
            });
        match rows.last_mut() {
            Some(row) if belongs => row.push(line),
            _ => rows.push(vec![line]),
        }
    }
    let distances: Vec<f32> = rows
        .windows(2)
        .map(|pair| pair[0][0].baseline - pair[1][0].baseline)
        .collect();
    let mut lines: Vec<String> = Vec::new();
    for (index, mut row) in rows.into_iter().enumerate() {
        if let Some(distance) = index.checked_sub(1).map(|index| distances[index]) {
            // The distances of the surrounding lines determine the usual distance.
            let around = &distances[index.saturating_sub(4)..(index + 3).min(distances.len())];
            let usual = around.iter().copied().fold(f32::INFINITY, f32::min);
            let size = row[0].size;
            if distance > usual.max(size) * 1.35 + 0.1 * size {
                lines.push(String::new());
            }
        }
        row.sort_by(|one, two| one.left.total_cmp(&two.left));
        let cells: Vec<&str> = row.iter().map(|cell| cell.text.as_str()).collect();
        lines.push(cells.join(BETWEEN_CELLS));
    }
    join_divided_words(&mut lines);
    lines.join("\n")
}

/// Joins words that were hyphenated at the end of a line.
fn join_divided_words(lines: &mut [String]) {
    for index in 1..lines.len() {
        let (before, after) = lines.split_at_mut(index);
        let (Some(line), Some(next)) = (before.last_mut(), after.first_mut()) else {
            continue;
        };
        let Some(start) = line.strip_suffix(['-', '\u{ad}', '\u{2010}']) else {
            continue;
        };
        if !start.ends_with(char::is_lowercase) || !next.starts_with(char::is_lowercase) {
            continue;
        }
        let (rest, others) = next.split_once(' ').unwrap_or((next, ""));
        *line = format!("{start}{rest}");
        *next = others.trim_start().to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, left: f32, right: f32, baseline: f32) -> PdfTextLine {
        PdfTextLine {
            text: text.to_owned(),
            left,
            right,
            baseline,
            size: 10.0,
        }
    }

    #[test]
    fn columns_are_read_one_after_the_other_and_a_title_before_them() {
        let mut lines = vec![line("A title across the whole page", 60.0, 500.0, 740.0)];
        for row in 0..4 {
            let baseline = 700.0 - 12.0 * row as f32;
            let (left, right) = (
                format!("left line number {row} of it"),
                format!("right line number {row} of it"),
            );
            lines.push(line(&right, 310.0, 540.0, baseline - 3.0));
            lines.push(line(&left, 50.0, 290.0, baseline));
        }
        insta::assert_snapshot!(text_in_order(lines), @r"
        A title across the whole page

        left line number 0 of it
        left line number 1 of it
        left line number 2 of it
        left line number 3 of it

        right line number 0 of it
        right line number 1 of it
        right line number 2 of it
        right line number 3 of it
        ");
    }

    #[test]
    fn divided_words_are_joined() {
        let mut lines =
            ["a divi-", "ded word, a range 1-", "2 and a Jean-", "Paul"].map(str::to_owned);
        join_divided_words(&mut lines);
        let expected = ["a divided", "word, a range 1-", "2 and a Jean-", "Paul"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn tables_are_read_row_by_row() {
        let mut lines = Vec::new();
        for row in 0..4 {
            let baseline = 700.0 - 12.0 * row as f32;
            lines.push(line(&format!("{row}.50"), 310.0, 340.0, baseline));
            lines.push(line(&format!("item number {row}"), 50.0, 150.0, baseline));
        }
        lines.push(line("after it", 50.0, 150.0, 600.0));
        insta::assert_snapshot!(text_in_order(lines), @r"
        item number 0  0.50
        item number 1  1.50
        item number 2  2.50
        item number 3  3.50

        after it
        ");
    }
}
