//! Hints for text that was not found: the most similar place and common mistakes.
//!
//! The hints only inform; no edit depends on them. The work is bounded: lines that occur very often
//! are ignored, only a few candidates are scored, and files above 5 MB get only the hints that need
//! no line comparison.

use std::collections::{BTreeSet, HashMap, HashSet};

use similar::{Algorithm, ChangeTag, capture_diff_slices};

use super::breaks::typed_lines;
use super::exact::candidates;
use super::fold::FoldedText;
use super::indentation;
use super::similarity::{ByteHistogram, likeness};
use super::{BOM, EditFile, places};
use crate::lines::{BreakStyle, split_lines};
use crate::step_counter::spend;

const COMPARED_SIZE: usize = 5 << 20;
const COMPARED_LINES: usize = 2_000;
const MAX_HELP_LINES: usize = 60;
const MAX_DIFF_LINES: usize = 30;
const MAX_LINE_CHARS: usize = 200;
/// The maximum number of occurrences of a line that votes. Lines that occur more often (`}`, empty
/// lines) do not help to find a place.
const MAX_VOTES_PER_LINE: usize = 200;
const JUDGED_WINDOWS: usize = 6;
const LIKE_ENOUGH: f64 = 0.5;
/// The minimum length in bytes of a text that is searched for. Shorter texts occur nearly everywhere.
const TELLING_LENGTH: usize = 3;

/// Returns hints for an `old` text that `file` does not contain, most useful first; may be empty.
pub fn explain_missing(file: &[u8], old: &str, new: &str) -> String {
    let Ok(file) = EditFile::parse(file) else {
        return String::new();
    };
    let mut hints = Vec::new();
    let old_text = old.trim_start_matches(BOM);
    if file.text().len() <= COMPARED_SIZE && !old_text.trim().is_empty() {
        let file_lines = lines_of(&file.text()[file.mark_length()..], file.style);
        let old_lines = lines_of(old_text.as_bytes(), BreakStyle::Mixed);
        let comparison = LineComparison::new(&file_lines, &old_lines);
        hints.extend(
            comparison
                .closest()
                .map(|start| comparison.describe(start, old)),
        );
        hints.extend(ignoring_indentation(&file, old_text, new));
    }
    hints.extend(typed_breaks(&file, old));
    hints.extend(already_there(&file, new));
    let text = hints.join("\n");
    text.lines()
        .take(MAX_HELP_LINES)
        .collect::<Vec<_>>()
        .join("\n")
}

fn lines_of(bytes: &[u8], style: BreakStyle) -> Vec<&[u8]> {
    split_lines(bytes, style).map(|line| line.text).collect()
}

fn typed_breaks(file: &EditFile<'_>, old: &str) -> Option<String> {
    if !old.contains("\\n") {
        return None;
    }
    let meant = old.replace("\\n", "\n");
    let first = first_place(file, &meant)?;
    Some(format!(
        "old_string has `\\n` as two characters where the file has a line break (line {}): send real line breaks.",
        places::line_of(file, first)
    ))
}

fn first_place(file: &EditFile<'_>, text: &str) -> Option<usize> {
    let folded = FoldedText::breaks(file.text(), file.style);
    let found = candidates(file, &folded, text);
    Some(found.ranges.first()?.start)
}

fn already_there(file: &EditFile<'_>, new: &str) -> Option<String> {
    if new.trim().len() < TELLING_LENGTH {
        return None;
    }
    let first = first_place(file, new)?;
    Some(format!(
        "new_string is already present at line {}: the edit may have been made.",
        places::line_of(file, first)
    ))
}

/// The id of a line that the old text does not have.
const UNKNOWN: u32 = u32::MAX;

/// The lines of both texts. Lines that are equal after trimming have equal ids.
struct LineComparison<'a> {
    file: &'a [&'a [u8]],
    old: &'a [&'a [u8]],
    file_ids: Vec<u32>,
    old_ids: Vec<u32>,
}

impl<'a> LineComparison<'a> {
    fn new(file: &'a [&'a [u8]], old: &'a [&'a [u8]]) -> Self {
        let mut known: HashMap<&[u8], u32> = HashMap::new();
        let mut lengths = HashSet::new();
        let old_ids = old
            .iter()
            .map(|line| {
                let (line, next) = (line.trim_ascii(), known.len() as u32);
                lengths.insert(line.len());
                *known.entry(line).or_insert(next)
            })
            .collect();
        let longest = lengths.iter().max().map_or(0, |longest| longest + 1);
        let lengths: Vec<bool> = (0..longest)
            .map(|length| lengths.contains(&length))
            .collect();
        let identify = |line: &&[u8]| {
            let line = line.trim_ascii();
            let may_be_known = lengths.get(line.len()).copied().unwrap_or(false);
            let id = may_be_known.then(|| known.get(line)).flatten();
            id.copied().unwrap_or(UNKNOWN)
        };
        let file_ids = file.iter().map(identify).collect();
        Self {
            file,
            old,
            file_ids,
            old_ids,
        }
    }

    /// Returns the first line (0-based) of the window that is most similar to the old text.
    fn closest(&self) -> Option<usize> {
        let mut starts = self.starts_by_equal_lines();
        starts.extend(self.starts_by_longest_line());
        let mut best: Option<(f64, usize)> = None;
        for start in starts {
            let score = self.score(start);
            if score >= LIKE_ENOUGH && best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, start));
            }
        }
        best.map(|(_, start)| start)
    }

    /// Returns candidates by voting: every line that occurs in both texts votes for the start it implies.
    fn starts_by_equal_lines(&self) -> BTreeSet<usize> {
        let mut places: HashMap<u32, Vec<usize>> = HashMap::new();
        let old_count = self.old_ids.iter().max().map_or(0, |highest| highest + 1);
        for (index, &id) in self
            .file_ids
            .iter()
            .enumerate()
            .filter(|(_, id)| **id < old_count)
        {
            places.entry(id).or_default().push(index);
        }
        let mut votes: HashMap<usize, u32> = HashMap::new();
        for (index, id) in self.old_ids.iter().enumerate().take(COMPARED_LINES) {
            let found = places
                .get(id)
                .filter(|found| found.len() <= MAX_VOTES_PER_LINE);
            if self.old[index].trim_ascii().is_empty() {
                continue;
            }
            spend!(found.map_or(0, Vec::len));
            for place in found.into_iter().flatten() {
                *votes.entry(place.saturating_sub(index)).or_default() += 1;
            }
        }
        let mut ranked: Vec<(usize, u32)> = votes.into_iter().collect();
        ranked.sort_unstable_by_key(|&(start, count)| (std::cmp::Reverse(count), start));
        ranked
            .into_iter()
            .take(JUDGED_WINDOWS)
            .map(|(start, _)| start)
            .collect()
    }

    /// Returns candidates for texts without any correct line: places of lines similar to the longest one.
    fn starts_by_longest_line(&self) -> BTreeSet<usize> {
        let longest = self.old.iter().take(COMPARED_LINES).enumerate();
        let Some((index, line)) = longest.max_by_key(|(_, line)| line.trim_ascii().len()) else {
            return BTreeSet::new();
        };
        let histogram = ByteHistogram::new(line);
        let mut ranked: Vec<(f64, usize)> = self
            .file
            .iter()
            .enumerate()
            .map(|(place, file_line)| (histogram.overlap(file_line), place))
            .filter(|(overlap, _)| *overlap >= LIKE_ENOUGH)
            .collect();
        ranked.sort_by(|left, right| right.0.total_cmp(&left.0));
        ranked.truncate(4 * JUDGED_WINDOWS);
        ranked
            .into_iter()
            .map(|(_, place)| place.saturating_sub(index))
            .collect()
    }

    fn score(&self, start: usize) -> f64 {
        let window = self.window(start);
        let compared = self.old.len().min(COMPARED_LINES);
        let sum: f64 = self.old[..compared]
            .iter()
            .zip(window)
            .map(|(old_line, file_line)| likeness(old_line, file_line))
            .sum();
        sum / compared as f64
    }

    fn window(&self, start: usize) -> &[&'a [u8]] {
        &self.file[start..self.file.len().min(start + self.old.len())]
    }

    fn describe(&self, start: usize, old: &str) -> String {
        let window = self.window(start);
        let (first, last) = (start + 1, start + window.len());
        let range = if first == last {
            format!("line {first}")
        } else {
            format!("lines {first}–{last}")
        };
        let differing = self
            .old
            .iter()
            .zip(window)
            .position(|(old_line, line)| old_line != line);
        let differing = match differing {
            Some(index) => index,
            None if self.old.len() > window.len() => window.len(),
            None if old.ends_with('\n') && last == self.file.len() => {
                return format!(
                    "Closest place: {range}, equal but for the line break at the end: old_string has one, the file may not."
                );
            }
            None => return format!("Closest place: {range}, equal but for the line breaks."),
        };
        let mut text = format!(
            "Closest place: {range}; first difference at line {} (- old_string, + file; · space, → tab, ␍ CR, ⍽ no-break space):",
            first + differing
        );
        // A few lines before the first difference, for orientation.
        let shown_from = differing.saturating_sub(2);
        let until = shown_from + MAX_DIFF_LINES;
        let old_part = &self.old[shown_from..self.old.len().min(until)];
        let file_part = &window[shown_from.min(window.len())..window.len().min(until)];
        let operations = capture_diff_slices(Algorithm::Myers, old_part, file_part);
        let changes = operations
            .iter()
            .flat_map(|operation| operation.iter_changes(old_part, file_part));
        for change in changes.take(MAX_DIFF_LINES) {
            let line: &[u8] = change.value();
            text.push('\n');
            match change.tag() {
                ChangeTag::Equal => text.push_str(&format!(" {}", shortened(line))),
                ChangeTag::Delete => text.push_str(&format!("-{}", visible(line))),
                ChangeTag::Insert => text.push_str(&format!("+{}", visible(line))),
            }
        }
        text
    }
}

fn ignoring_indentation(file: &EditFile<'_>, old: &str, new: &str) -> Option<String> {
    let places = indentation::places(file, &typed_lines(old, file.style));
    let listed: Vec<u64> = places
        .iter()
        .take(places::LISTED)
        .map(|&index| index as u64 + 1)
        .collect();
    let (times, advice) = match places[..] {
        [] => return None,
        [start] => {
            let mut advice = indentation::refusal(file, start, old, file.without_mark(new))
                .map_or_else(String::new, |reason| reason + " ");
            advice.push_str("Copy the indentation of the file.");
            ("once".to_owned(), advice)
        }
        _ => (
            format!("{} times", places.len()),
            "Copy the indentation of the place that you mean.".to_owned(),
        ),
    };
    Some(format!(
        "old_string matches {times} if indentation is ignored: {}. {advice}",
        places::list(&listed, places.len())
    ))
}

fn shortened(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * MAX_LINE_CHARS)]);
    let mut short: String = text.chars().take(MAX_LINE_CHARS).collect();
    if short.len() < line.len() && text.chars().count() > MAX_LINE_CHARS {
        short.push('…');
    }
    short
}

fn visible(line: &[u8]) -> String {
    shortened(line)
        .chars()
        .map(|character| match character {
            ' ' => '·',
            '\t' => '→',
            '\r' => '␍',
            '\u{a0}' | '\u{202f}' => '⍽',
            character => character,
        })
        .collect()
}
