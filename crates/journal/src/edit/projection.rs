//! The output of tiers 2 and 3: the change from old to new text, applied to the file's own text.
//!
//! `old_string` is not exactly the text of the file, so `new_string` is not exactly what the file
//! should contain. Lines that both share keep the file's bytes. Changed lines are paired in order
//! and keep the file's bytes for their common beginning and end; only the part between is taken
//! from `new_string`. So a sign that the model copied wrongly never reaches the file, and one that
//! it typed on purpose is never replaced. The edit fails if the intention is unclear:
//!
//! - A line changes or loses its break, and old and new text end it with the same whitespace, but
//!   the file with different whitespace. Should the file's whitespace stay?
//! - The part that changes has a sign that differs from the file's, and the new part has that sign
//!   too. Was it intended, or copied wrongly again?
//! - A line that differs from the file's is moved or copied, or one of several lines that look the
//!   same to the model is removed. Which one is it? The same applies if lines are added or removed
//!   within a change, so that it is unclear which old line a new one replaces.

use std::collections::HashMap;
use std::ops::Range;

use super::breaks::BreakWriter;
use super::breaks::TypedChange;
use super::line_diff::texts;
use super::{DraftPiece, EditError, EditFile, fold, places};
use crate::diff::LineRun;
use crate::lines::split_lines;
use crate::step_counter::spend;

/// Applies a change to `range`, which matches its old text apart from signs and whitespace.
pub(super) fn project(
    file: &EditFile<'_>,
    range: &Range<usize>,
    typed: &TypedChange<'_>,
    writer: &mut BreakWriter<'_>,
) -> Result<Vec<DraftPiece>, EditError> {
    let (old_lines, new_lines) = (typed.old_lines(), typed.new_lines());
    let file_lines = ranges_of_lines(file, range);
    if file_lines.len() != old_lines.len() {
        // Unreachable: a match has the same breaks as the old text.
        return Err(EditError::NotFound {
            help: String::new(),
        });
    }
    let breaks = writer.breaks(range, typed);
    let (old_texts, new_texts) = (texts(old_lines), texts(new_lines));
    let runs = typed.runs();
    let line_number = |index: usize| places::line_of(file, range.start) + index as u64;
    let file_texts: Vec<&[u8]> = file_lines
        .iter()
        .map(|line| &file.text()[line.clone()])
        .collect();
    if let Some(index) = mistakable(&file_texts, &old_texts, &new_texts, runs) {
        return Err(EditError::LineInDoubt {
            line: line_number(index),
        });
    }
    let mut pieces = Vec::new();
    for run in runs {
        let even = run.old.len() == run.new.len();
        for (offset, index) in run.new.clone().enumerate() {
            let old_index = run.old.start + offset;
            let typed = new_texts[index];
            if old_index >= run.old.end {
                pieces.push(DraftPiece::Typed(typed.to_vec()));
            } else if run.equal {
                let joined = old_lines[old_index].line_break.is_some()
                    && new_lines[index].line_break.is_none();
                if joined {
                    LinePair::new(file, &file_lines[old_index], old_texts[old_index], typed)
                        .same_blanks()
                        .map_err(|doubt| doubt.on(line_number(old_index)))?;
                }
                pieces.push(DraftPiece::Kept(file_lines[old_index].clone()));
            } else {
                let pair = LinePair::new(file, &file_lines[old_index], old_texts[old_index], typed);
                let projected = pair.project(even, &mut pieces);
                projected.map_err(|doubt| doubt.on(line_number(old_index)))?;
            }
            if new_lines[index].line_break.is_some() {
                pieces.push(DraftPiece::Typed(breaks[index].bytes().to_vec()));
            }
        }
    }
    Ok(pieces)
}

/// Finds an old line that differs from the file's and may be confused with another one: it occurs
/// in the new text more often than it is kept, or lines that are equal in the old text differ in
/// the file.
fn mistakable(file: &[&[u8]], old: &[&[u8]], new: &[&[u8]], runs: &[LineRun]) -> Option<usize> {
    #[derive(Default)]
    struct LineGroup<'f> {
        /// The index of an old line that differs from the file's line.
        differing: Option<usize>,
        first: &'f [u8],
        uniform: bool,
        old: usize,
        kept: usize,
        new: usize,
    }
    let mut groups: HashMap<&[u8], LineGroup<'_>> = HashMap::new();
    for (index, (typed, real)) in old.iter().zip(file).enumerate() {
        let group = groups.entry(typed).or_insert(LineGroup {
            first: real,
            uniform: true,
            ..LineGroup::default()
        });
        group.old += 1;
        group.uniform &= group.first == *real;
        if typed != real {
            group.differing.get_or_insert(index);
        }
    }
    for run in runs.iter().filter(|run| run.equal) {
        for index in run.old.clone() {
            if let Some(group) = groups.get_mut(old[index]) {
                group.kept += 1;
            }
        }
    }
    for typed in new {
        if let Some(group) = groups.get_mut(typed) {
            group.new += 1;
        }
    }
    let in_doubt = |group: &LineGroup<'_>| {
        if group.uniform {
            group.new > group.kept
        } else {
            group.new > 0 && !(group.new == group.kept && group.old == group.kept)
        }
    };
    groups
        .values()
        .filter(|group| in_doubt(group))
        .filter_map(|group| group.differing)
        .min()
}

fn ranges_of_lines(file: &EditFile<'_>, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut start = range.start;
    split_lines(&file.text()[range.clone()], file.style)
        .map(|line| {
            let text = start..start + line.text.len();
            start = text.end
                + line
                    .line_break
                    .map_or(0, |line_break| line_break.bytes().len());
            text
        })
        .collect()
}

/// The reason why the intention for a changed line is unclear.
enum ProjectionDoubt {
    Blanks { file: String, old: String },
    Sign { file: char, old: char },
    Line,
}

impl ProjectionDoubt {
    fn on(self, line: u64) -> EditError {
        match self {
            Self::Blanks { file, old } => EditError::BlanksInDoubt { line, file, old },
            Self::Sign { file, old } => EditError::SignInDoubt { line, file, old },
            Self::Line => EditError::LineInDoubt { line },
        }
    }
}

/// A changed line: in the file, in the old text and in the new text.
struct LinePair {
    start: usize,
    file: Vec<char>,
    old: Vec<char>,
    new: Vec<char>,
}

impl LinePair {
    fn new(file: &EditFile<'_>, range: &Range<usize>, old: &[u8], new: &[u8]) -> Self {
        spend!(range.len() + old.len() + new.len());
        // All three are UTF-8: two were typed, and the file's line equals one of them after
        // folding.
        let characters = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().collect();
        Self {
            start: range.start,
            file: characters(&file.text()[range.clone()]),
            old: characters(old),
            new: characters(new),
        }
    }

    /// Fails if the change leaves the trailing whitespace alone, but the file's whitespace differs.
    fn same_blanks(&self) -> Result<(), ProjectionDoubt> {
        let [file, old, new] = [&self.file, &self.old, &self.new].map(|line| split_blanks(line).1);
        if old == new && old != file {
            return Err(ProjectionDoubt::Blanks {
                file: file.iter().collect(),
                old: old.iter().collect(),
            });
        }
        Ok(())
    }

    /// Applies the change to this line. `certain`: the new line certainly replaces this old one.
    fn project(&self, certain: bool, pieces: &mut Vec<DraftPiece>) -> Result<(), ProjectionDoubt> {
        self.same_blanks()?;
        let (file, _) = split_blanks(&self.file);
        let (old, old_blanks) = split_blanks(&self.old);
        let (new, new_blanks) = split_blanks(&self.new);
        let equal = |(left, right): &(&char, &char)| left == right;
        let head = old.iter().zip(new).take_while(equal).count();
        let ends = old[head..].iter().rev().zip(new[head..].iter().rev());
        let tail = ends.take_while(equal).count();
        let typed = &new[head..new.len() - tail];
        let replaced = head..old.len() - tail;
        // The lines are equal after folding, so only a few different signs occur, however long the
        // line is.
        let mut harmless = Vec::new();
        for (old, file) in old[replaced.clone()].iter().zip(&file[replaced.clone()]) {
            if old == file || harmless.contains(old) {
                continue;
            }
            spend!(typed.len());
            if typed.contains(old) {
                return Err(ProjectionDoubt::Sign {
                    file: *file,
                    old: *old,
                });
            }
            harmless.push(*old);
        }
        let as_typed = file[..head] == old[..head] && file[replaced.end..] == old[replaced.end..];
        if !certain && !as_typed {
            return Err(ProjectionDoubt::Line);
        }
        let bytes = |characters: &[char]| characters.iter().map(|c| c.len_utf8()).sum::<usize>();
        let kept_from = self.start + bytes(&file[..replaced.end]);
        pieces.push(DraftPiece::Kept(
            self.start..self.start + bytes(&file[..head]),
        ));
        pieces.push(typed_piece(typed));
        pieces.push(DraftPiece::Kept(kept_from..self.start + bytes(file)));
        if old_blanks == new_blanks {
            let end = self.start + bytes(&self.file);
            pieces.push(DraftPiece::Kept(self.start + bytes(file)..end));
        } else {
            pieces.push(typed_piece(new_blanks));
        }
        Ok(())
    }
}

fn typed_piece(characters: &[char]) -> DraftPiece {
    DraftPiece::Typed(characters.iter().collect::<String>().into_bytes())
}

fn split_blanks(line: &[char]) -> (&[char], &[char]) {
    let blanks = line
        .iter()
        .rev()
        .take_while(|c| fold::is_blank(**c))
        .count();
    line.split_at(line.len() - blanks)
}
