//! Line numbers of splices, before and after the change.

use std::ops::Range;

use memchr::memchr_iter;

use super::{EditFile, Splice};
use crate::lines::break_byte;
use crate::step_counter::spend;

/// The number of line numbers that an error lists.
pub(super) const LISTED: usize = 10;

/// Lines from `first` to `last`, both included, 1-based.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// The first line.
    pub first: u64,
    /// The last line.
    pub last: u64,
}

/// The lines of one splice, in the old and in the new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplicePlace {
    /// The lines it replaces.
    pub before: LineRange,
    /// The lines it writes.
    pub after: LineRange,
}

pub(super) fn splice_places(file: &EditFile<'_>, splices: &[Splice]) -> Vec<SplicePlace> {
    let (mut line, mut shift, mut counted) = (1_u64, 0_i64, 0);
    splices
        .iter()
        .map(|splice| {
            line += count(file, counted..splice.range.start);
            let removed = &file.text()[splice.range.clone()];
            let before = lines_from(line, removed, break_byte(file.style));
            // If a CR file turns into an LF file, its new breaks are LF.
            let new_break = if splice.text.contains(&b'\n') {
                b'\n'
            } else {
                break_byte(file.style)
            };
            let after = lines_from(line.saturating_add_signed(shift), &splice.text, new_break);
            let removed_breaks = memchr_iter(break_byte(file.style), removed).count();
            shift += memchr_iter(new_break, &splice.text).count() as i64 - removed_breaks as i64;
            line += removed_breaks as u64;
            counted = splice.range.end;
            SplicePlace { before, after }
        })
        .collect()
}

fn lines_from(first: u64, text: &[u8], break_byte: u8) -> LineRange {
    // A final break belongs to the last line and does not start another one.
    let inner = text.strip_suffix(&[break_byte]).unwrap_or(text);
    spend!(inner.len() + 1);
    LineRange {
        first,
        last: first + memchr_iter(break_byte, inner).count() as u64,
    }
}

/// Returns the line numbers of ascending positions, each number once.
pub(super) fn lines_of(file: &EditFile<'_>, positions: impl Iterator<Item = usize>) -> Vec<u64> {
    let (mut line, mut counted) = (1, 0);
    let mut lines: Vec<u64> = positions
        .map(|position| {
            line += count(file, counted..position);
            counted = position;
            line
        })
        .collect();
    lines.dedup();
    lines
}

pub(super) fn line_of(file: &EditFile<'_>, position: usize) -> u64 {
    1 + count(file, 0..position)
}

fn count(file: &EditFile<'_>, range: Range<usize>) -> u64 {
    spend!(range.len() + 1);
    memchr_iter(break_byte(file.style), &file.text()[range]).count() as u64
}

/// Formats `lines 1, 3 and 9`, or `lines 1, 3 and more`.
pub(super) fn list(lines: &[u64], count: usize) -> String {
    let numbers: Vec<String> = lines.iter().map(u64::to_string).collect();
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    match numbers.split_last() {
        _ if count > LISTED => format!("{noun} {} and more", numbers.join(", ")),
        Some((last, rest)) if !rest.is_empty() => format!("{noun} {} and {last}", rest.join(", ")),
        _ => format!("{noun} {}", numbers.concat()),
    }
}
