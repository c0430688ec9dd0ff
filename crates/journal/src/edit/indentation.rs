//! Tier 6: whole lines that are equal apart from their indentation.
//!
//! Applied only if nothing has to be assumed. There is exactly one match in the whole file. Each
//! indentation of `old_string` corresponds to one of the file and vice versa. Whitespace at line
//! ends and empty lines are equal. And `new_string` shows which indentation it uses.
//!
//! If all lines of the file differ from `old_string` by the same added or removed prefix (see
//! [`IndentShift`]), two line diffs decide: one from `old_string` to `new_string`, and one from the
//! matched lines of the file to `new_string`. They count the lines that stay.
//!
//! - If more lines of `old_string` stay, all lines of `new_string` are shifted by the prefix, also
//!   those with a new depth.
//! - If only lines of the file stay, the rule below decides whether `new_string` is written
//!   unchanged.
//! - Otherwise the tier is not applied.
//!
//! In all other cases, `new_string` uses the indentation
//!
//! - of `old_string`, if they share lines that the file does not have. Then all its lines are
//!   mapped; a line with an indentation that `old_string` does not have fails the tier.
//! - of the file, if they share lines that `old_string` does not have. Then it is written
//!   unchanged.
//!
//! If both or neither holds, the tier is not applied. It is not applied either if the other reading
//! is possible as well, that is, if all indentations of `new_string` also occur in the other text.
//! Lines may be equal by chance if one text is the other one, indented by one step.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::iter;
use std::ops::Range;

use memchr::memmem;

use super::breaks::typed_lines;
use super::exact::NeedleOccurrences;
use super::line_diff;
use super::{EditFile, EditSearch, MatchTier, TierMatch};
use crate::lines::{Line, split_lines};
use crate::step_counter::spend;

/// The id of a line that is not one of the searched lines.
const OTHER: u32 = u32::MAX;

/// The reason if the lines of the new text do not show which indentation they have.
const UNCLEAR: &str =
    "It is unclear whether new_string has the indentation of old_string or that of the file.";

/// A line of the file and the range of its text.
struct PlacedLine<'f> {
    range: Range<usize>,
    line: Line<'f>,
}

fn placed_lines<'f>(file: &'f EditFile<'_>) -> impl Iterator<Item = PlacedLine<'f>> {
    let mut start = file.mark_length();
    split_lines(&file.text()[start..], file.style).map(move |line| {
        let range = start..start + line.text.len();
        start = range.end
            + line
                .line_break
                .map_or(0, |line_break| line_break.bytes().len());
        PlacedLine { range, line }
    })
}

pub(super) fn find(search: &EditSearch<'_, '_>) -> Option<TierMatch> {
    let file = search.file;
    let (old, new) = (
        file.without_mark(search.change.old),
        file.without_mark(search.change.new),
    );
    let [start] = places(file, &typed_lines(old, file.style))[..] else {
        return None;
    };
    match_at(file, start, old, new).ok()
}

/// Returns why the edit is not made at `start`, the only line where `old` begins if indentation is
/// ignored.
pub(super) fn refusal(file: &EditFile<'_>, start: usize, old: &str, new: &str) -> Option<String> {
    match_at(file, start, old, new).err()
}

/// Matches the lines from `start` on with `old`. An error says why the edit is not made there.
fn match_at(file: &EditFile<'_>, start: usize, old: &str, new: &str) -> Result<TierMatch, String> {
    const TOO_FEW: &str = "The file has fewer line breaks than old_string.";
    let old_lines = typed_lines(old, file.style);
    let matched: Vec<_> = placed_lines(file)
        .skip(start)
        .take(old_lines.len())
        .collect();
    let (Some(first), Some(last), Some(last_old)) =
        (matched.first(), matched.last(), old_lines.last())
    else {
        return Err(TOO_FEW.to_owned());
    };
    let mut end = last.range.end;
    if last_old.line_break.is_some() {
        end += last.line.line_break.ok_or(TOO_FEW)?.bytes().len();
    }
    let indents = indents(&old_lines, &matched).ok_or(
        "Its lines differ from the file by more than one change of indentation, \
         or whitespace at line ends differs.",
    )?;
    let new_lines = typed_lines(new, file.style);
    let (tier, new) = match uniform_shift(&old_lines, &matched) {
        Some(shift) => match count_kept_lines(&old_lines, &matched, &new_lines) {
            (from_old, from_file) if from_old > from_file => (
                MatchTier::IndentationShift(shift.measure()),
                shifted(&new_lines, &shift, &indents)?,
            ),
            (0, 1..)
                if written_in(&old_lines, &matched, &new_lines) == Some(IndentSource::File) =>
            {
                (MatchTier::Indentation, new.to_owned())
            }
            (0, 0) => {
                let why = "new_string keeps no line of old_string or of the file, so it is unclear \
                           which indentation it has.";
                return Err(why.to_owned());
            }
            _ => return Err(UNCLEAR.to_owned()),
        },
        None => match written_in(&old_lines, &matched, &new_lines) {
            Some(IndentSource::File) => (MatchTier::Indentation, new.to_owned()),
            Some(IndentSource::Old) => (
                MatchTier::Indentation,
                reindented(&new_lines, &indents)
                    .ok_or("new_string has an indentation that old_string does not have.")?,
            ),
            None => return Err(UNCLEAR.to_owned()),
        },
    };
    Ok(TierMatch {
        tier,
        ranges: iter::once(first.range.start..end).collect(),
        old: old.to_owned(),
        new,
    })
}

/// Returns the indexes of all lines at which `old` begins, ignoring indentation.
pub(super) fn places(file: &EditFile<'_>, old: &[Line<'_>]) -> Vec<usize> {
    let longest = old
        .iter()
        .map(|line| trim(line.text))
        .max_by_key(|line| line.len());
    let longest = longest.unwrap_or_default();
    // Most searches find no such line, and a plain search is faster than numbering the lines.
    if longest.is_empty() || memmem::find(file.text(), longest).is_none() {
        return Vec::new();
    }
    let mut known: HashMap<&[u8], u32> = HashMap::new();
    let mut lengths = vec![false; longest.len() + 1];
    // Encoding line ids as bytes turns a search for lines into a search for text.
    let mut needle = Vec::with_capacity(4 * old.len());
    for line in old {
        let next = known.len() as u32;
        let id = *known.entry(trim(line.text)).or_insert(next);
        lengths[trim(line.text).len()] = true;
        needle.extend_from_slice(&id.to_le_bytes());
    }
    let mut text = Vec::new();
    for line in split_lines(&file.text()[file.mark_length()..], file.style) {
        let line = trim(line.text);
        let id = match lengths.get(line.len()) {
            Some(true) => known.get(line).copied().unwrap_or(OTHER),
            _ => OTHER,
        };
        text.extend_from_slice(&id.to_le_bytes());
    }
    NeedleOccurrences::new(&text, &needle)
        .filter(|position| position % 4 == 0)
        .map(|position| position / 4)
        .collect()
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim(line: &[u8]) -> &[u8] {
    spend!(line.len() + 1);
    let start = line.iter().position(|byte| !is_blank(byte));
    let end = line.iter().rposition(|byte| !is_blank(byte));
    match (start, end) {
        (Some(start), Some(end)) => &line[start..=end],
        _ => &[],
    }
}

fn indent(line: &[u8]) -> &[u8] {
    let length = line.iter().take_while(|byte| is_blank(byte)).count();
    &line[..length]
}

/// The indentation of the file for each indentation of the old text. Lines of whitespace only
/// (marked `true`) are mapped separately: they say nothing about the others.
type IndentMap<'o> = HashMap<(bool, &'o [u8]), Vec<u8>>;

fn indents<'o>(old: &[Line<'o>], matched: &[PlacedLine<'_>]) -> Option<IndentMap<'o>> {
    let mut there = IndentMap::new();
    let mut back = HashMap::new();
    for (old, file) in old.iter().zip(matched) {
        let (old, file) = (old.text, file.line.text);
        let (old_indent, file_indent) = (indent(old), indent(file));
        let blank = old_indent.len() == old.len();
        if blank && (old.is_empty() || file.is_empty()) {
            // An empty line says nothing about indentation, but must be equal.
            if old != file {
                return None;
            }
            continue;
        }
        if old[old_indent.len()..] != file[file_indent.len()..] {
            return None; // whitespace at the end differs: it is not known which one to write
        }
        if there
            .entry((blank, old_indent))
            .or_insert_with(|| file_indent.to_vec())
            != file_indent
            || *back.entry((blank, file_indent)).or_insert(old_indent) != old_indent
        {
            return None;
        }
    }
    Some(there)
}

/// The prefix of spaces and tabs that all lines of the file have and those of the old text lack, or
/// the other way round.
enum PrefixShift<'t> {
    Added(&'t [u8]),
    Removed(&'t [u8]),
}

impl PrefixShift<'_> {
    fn measure(&self) -> IndentShift {
        let (prefix, is_added) = match *self {
            Self::Added(prefix) => (prefix, true),
            Self::Removed(prefix) => (prefix, false),
        };
        let tabs = prefix.iter().filter(|&&byte| byte == b'\t').count();
        IndentShift {
            tabs,
            spaces: prefix.len() - tabs,
            is_added,
        }
    }
}

/// The difference between the indentation of the old text and that of the file, where it is the
/// same for all lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndentShift {
    /// The number of tabs.
    pub tabs: usize,
    /// The number of spaces.
    pub spaces: usize,
    /// Whether the new text was indented; otherwise the prefix was removed.
    pub is_added: bool,
}

impl fmt::Display for IndentShift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |count: usize, noun: &str| match count {
            0 => None,
            1 => Some(format!("one {noun}")),
            count => Some(format!("{count} {noun}s")),
        };
        let parts = [named(self.tabs, "tab"), named(self.spaces, "space")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let side = if self.is_added { "right" } else { "left" };
        write!(f, "shifted by {} to the {side}", parts.join(" and "))
    }
}

/// Returns the prefix by which all lines differ, if it is the same for all. Blank lines are ignored.
fn uniform_shift<'t>(old: &[Line<'t>], matched: &'t [PlacedLine<'_>]) -> Option<PrefixShift<'t>> {
    let lines = old.iter().zip(matched);
    let mut pairs = lines
        .map(|(old, file)| (old.text, file.line.text))
        .filter(|(old, _)| has_text(old));
    let (old, file) = pairs.clone().next()?;
    if let Some(prefix) = file.strip_suffix(old) {
        let is_shifted = |(old, file): (&[u8], &[u8])| file.strip_prefix(prefix) == Some(old);
        return (!prefix.is_empty() && pairs.all(is_shifted)).then_some(PrefixShift::Added(prefix));
    }
    let prefix = old.strip_suffix(file)?;
    let is_shifted = |(old, file): (&[u8], &[u8])| old.strip_prefix(prefix) == Some(file);
    pairs
        .all(is_shifted)
        .then_some(PrefixShift::Removed(prefix))
}

/// Returns how many lines with text the new text has in common with the old text, in order, and how
/// many with the matched lines of the file.
fn count_kept_lines(
    old: &[Line<'_>],
    matched: &[PlacedLine<'_>],
    new: &[Line<'_>],
) -> (usize, usize) {
    // Blank lines are equal everywhere: a diff that pairs them may leave out lines with text.
    let mut new = line_diff::texts(new);
    new.retain(has_text);
    let new_lines: HashSet<&[u8]> = new.iter().copied().collect();
    let kept_from = |mut lines: Vec<&[u8]>| -> usize {
        lines.retain(has_text);
        let runs = line_diff::runs(&lines, &new);
        let equal = runs.iter().filter(|run| run.equal);
        // The diff of very long texts is coarse.
        match equal.map(|run| run.old.len()).sum() {
            0 => usize::from(lines.iter().any(|line| new_lines.contains(line))),
            kept => kept,
        }
    };
    let file = matched.iter().map(|placed| placed.line.text).collect();
    (kept_from(line_diff::texts(old)), kept_from(file))
}

/// Returns the new text with all lines shifted. Whitespace-only lines are mapped like those of the
/// old text.
fn shifted(
    new: &[Line<'_>],
    shift: &PrefixShift<'_>,
    indents: &IndentMap<'_>,
) -> Result<String, String> {
    let mut text = Vec::new();
    for (index, line) in new.iter().enumerate() {
        match shift {
            _ if !has_text(&line.text) => {
                let mapped = indents.get(&(true, line.text));
                text.extend_from_slice(mapped.map_or(line.text, |mapped| mapped));
            }
            PrefixShift::Added(prefix) => {
                text.extend_from_slice(prefix);
                text.extend_from_slice(line.text);
            }
            PrefixShift::Removed(prefix) => {
                let rest = line.text.strip_prefix(*prefix).ok_or_else(|| {
                    format!(
                        "The file is indented less than old_string, but line {} of new_string \
                         does not begin with the indentation to remove.",
                        index + 1
                    )
                })?;
                text.extend_from_slice(rest);
            }
        }
        if line.line_break.is_some() {
            text.push(b'\n');
        }
    }
    // Only spaces and tabs were added or removed.
    String::from_utf8(text).map_err(|_| UNCLEAR.to_owned())
}

#[derive(Debug, PartialEq, Eq)]
enum IndentSource {
    Old,
    File,
}

/// Returns whose indentation the new text has; `None` if that is not clear.
fn written_in(
    old: &[Line<'_>],
    matched: &[PlacedLine<'_>],
    new: &[Line<'_>],
) -> Option<IndentSource> {
    let old_lines = || old.iter().map(|line| line.text);
    let file_lines = || matched.iter().map(|placed| placed.line.text);
    let (old, file): (HashSet<_>, HashSet<_>) = (old_lines().collect(), file_lines().collect());
    let kept_old = new
        .iter()
        .any(|line| old.contains(line.text) && !file.contains(line.text));
    let kept_file = new
        .iter()
        .any(|line| file.contains(line.text) && !old.contains(line.text));
    let old_indents: HashSet<_> = old_lines().filter(has_text).map(indent).collect();
    let file_indents: HashSet<_> = file_lines().filter(has_text).map(indent).collect();
    let new_indents = || {
        new.iter()
            .map(|line| line.text)
            .filter(has_text)
            .map(indent)
    };
    let all_as_in = |indents: &HashSet<&[u8]>| new_indents().all(|indent| indents.contains(indent));
    match (kept_old, kept_file) {
        (true, false) if !all_as_in(&file_indents) => Some(IndentSource::Old),
        (false, true) if !all_as_in(&old_indents) => {
            // An indentation that only the old text has contradicts this.
            let contradicts =
                |indent| old_indents.contains(indent) && !file_indents.contains(indent);
            (!new_indents().any(contradicts)).then_some(IndentSource::File)
        }
        _ => None,
    }
}

fn has_text(line: &&[u8]) -> bool {
    !trim(line).is_empty()
}

fn reindented(new: &[Line<'_>], indents: &IndentMap<'_>) -> Option<String> {
    let mut text = Vec::new();
    for line in new {
        let (old_indent, rest) = line.text.split_at(indent(line.text).len());
        if !line.text.is_empty() {
            text.extend_from_slice(indents.get(&(rest.is_empty(), old_indent))?);
            text.extend_from_slice(rest);
        }
        if line.line_break.is_some() {
            text.push(b'\n');
        }
    }
    String::from_utf8(text).ok()
}
