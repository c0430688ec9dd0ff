//! Replacing text in bytes: where, and with what.
//!
//! [`plan`] finds the place or refuses; [`apply`] splices. Both are pure. The
//! file stays bytes throughout: only matched ranges are ever replaced, so what
//! lies outside them cannot change, whatever its encoding.

mod breaks;
mod exact;
mod explain;
mod places;
mod similarity;

use std::ops::Range;

use crate::lines::{BreakCounts, BreakStyle, find_break};
use crate::text::{self, Encoding};
pub use explain::explain_missing;
pub use places::{LineRange, Place};

const BOM: char = '\u{feff}';

/// Replace `old` by `new`, in one place or in all.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub replace_all: bool,
}

/// Which rule of equality found the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tier {
    /// Byte for byte, with CRLF and LF taken as equal.
    Exact,
}

/// These bytes of the file are replaced by `text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    pub range: Range<usize>,
    pub text: Vec<u8>,
}

/// A change that is certain: ascending splices that do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub splices: Vec<Splice>,
    pub tier: Tier,
    /// One for each splice.
    pub places: Vec<Place>,
}

/// Why a change is not made. Worded for the model, which also learns the path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    #[error("old_string and new_string are identical: there is nothing to change.")]
    Identical,
    #[error(
        "old_string is empty but the file is not. Use Write to replace the whole file, or put the text to be replaced into old_string."
    )]
    OldEmpty,
    #[error("String to replace not found.{}", help_below(.help))]
    NotFound { help: String },
    #[error("Found {count} matches of the string to replace, at {}. Add surrounding lines to old_string so that it names one place, or set replace_all to change all of them.", places::list(.lines, *.count))]
    Ambiguous { count: usize, lines: Vec<u64> },
    #[error(
        "String to replace not found as whole characters: its only match, on line {line}, may begin inside a double-byte character (the file is not UTF-8). Include the text before it in old_string."
    )]
    InsideCharacter { line: u64 },
    #[error(
        "the edit would leave the file as it is: what is written equals what is there (line breaks and the byte order mark follow the file)."
    )]
    NoEffect,
    #[error("it is a binary file; text cannot be replaced in it.")]
    Binary,
    #[error(
        "the file is {encoding}, which cannot be edited in place. Convert it to UTF-8 with a shell command first, or edit it with one."
    )]
    Encoding { encoding: Encoding },
    #[error(
        "the file is not UTF-8 (likely {likely}) and new_string has characters outside ASCII whose bytes there are not certain. Use ASCII only, or convert the file to UTF-8 first."
    )]
    LegacyEncoding { likely: &'static str },
}

fn help_below(help: &str) -> String {
    if help.is_empty() {
        " Read the file again and copy the text exactly, without line numbers.".to_owned()
    } else {
        format!("\n{help}")
    }
}

/// Finds the places of a change and what is written there; explains a miss.
pub fn plan(file: &[u8], change: &Change<'_>) -> Result<Plan, EditError> {
    match find(file, change) {
        Err(EditError::NotFound { .. }) => Err(EditError::NotFound {
            help: explain_missing(file, change.old, change.new),
        }),
        result => result,
    }
}

/// [`plan`] without the costly explanation of a miss.
pub(crate) fn find(file: &[u8], change: &Change<'_>) -> Result<Plan, EditError> {
    if change.old == change.new {
        return Err(EditError::Identical);
    }
    let file = File::of(file)?;
    if is_blank_old(change.old, file.mark_length) {
        return file.fill(change.new);
    }

    let conversion = differ_only_in_breaks(change.old, change.new);
    let found = exact::candidates(&file, change.old, conversion);
    let ranges = match found.ranges.len() {
        0 => {
            return Err(match found.first_inside_character {
                Some(at) => EditError::InsideCharacter {
                    line: places::line_of(&file, at),
                },
                None => EditError::NotFound {
                    help: String::new(),
                },
            });
        }
        1 => found.ranges,
        _ if change.replace_all => without_overlaps(found.ranges),
        count => {
            let starts = found
                .ranges
                .iter()
                .take(places::LISTED)
                .map(|range| range.start);
            return Err(EditError::Ambiguous {
                count,
                lines: places::lines_of(&file, starts),
            });
        }
    };
    if file.encoding == Encoding::Legacy && !change.new.is_ascii() {
        return Err(EditError::LegacyEncoding {
            likely: text::likely_code_page(file.bytes),
        });
    }
    let mut writer = breaks::Writer::new(&file);
    let splices: Vec<Splice> = (0..ranges.len())
        .map(|index| {
            let next_start = ranges
                .get(index + 1)
                .map_or(usize::MAX, |range| range.start);
            file.splice(
                ranges[index].clone(),
                next_start,
                change,
                conversion,
                &mut writer,
            )
        })
        .collect();
    if splices
        .iter()
        .all(|splice| file.bytes[splice.range.clone()] == splice.text)
    {
        return Err(EditError::NoEffect);
    }
    let places = places::of(&file, &splices);
    Ok(Plan {
        splices,
        tier: Tier::Exact,
        places,
    })
}

/// Makes the planned change. `file` must be the bytes the plan was made for.
pub fn apply(file: &[u8], plan: &Plan) -> Vec<u8> {
    let added: usize = plan.splices.iter().map(|splice| splice.text.len()).sum();
    let mut result = Vec::with_capacity(file.len() + added);
    let mut done = 0;
    for splice in &plan.splices {
        result.extend_from_slice(&file[done..splice.range.start]);
        result.extend_from_slice(&splice.text);
        done = splice.range.end;
    }
    result.extend_from_slice(&file[done..]);
    result
}

/// A file that may be edited, with what the rules need to know about it.
struct File<'a> {
    bytes: &'a [u8],
    mark_length: usize,
    encoding: Encoding,
    style: BreakStyle,
    counts: BreakCounts,
}

impl<'a> File<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, EditError> {
        let text::Kind::Text {
            encoding,
            mark_length,
        } = text::detect(bytes)
        else {
            return Err(EditError::Binary);
        };
        if !matches!(encoding, Encoding::Utf8 | Encoding::Legacy) {
            return Err(EditError::Encoding { encoding });
        }
        let counts = BreakCounts::of(&bytes[mark_length..]);
        Ok(Self {
            bytes,
            mark_length,
            encoding,
            style: counts.style(),
            counts,
        })
    }

    /// An empty `old_string` fills an empty file and touches no other.
    fn fill(&self, new: &str) -> Result<Plan, EditError> {
        if self.bytes.len() > self.mark_length {
            return Err(EditError::OldEmpty);
        }
        let text = self
            .without_second_mark(self.mark_length, new)
            .as_bytes()
            .to_vec();
        if text.is_empty() {
            return Err(EditError::NoEffect);
        }
        let splices = vec![Splice {
            range: self.mark_length..self.mark_length,
            text,
        }];
        let places = places::of(self, &splices);
        Ok(Plan {
            splices,
            tier: Tier::Exact,
            places,
        })
    }

    fn splice(
        &self,
        range: Range<usize>,
        next_start: usize,
        change: &Change<'_>,
        conversion: bool,
        writer: &mut breaks::Writer<'_>,
    ) -> Splice {
        // A mark that `old_string` repeated stays out of the replaced range.
        let mut range = range.start.max(self.mark_length)..range.end;
        let new = self.without_second_mark(range.start, change.new);
        if new.is_empty() && !self.ends_in_break(change.old) {
            range.end = self.end_of_deletion(&range, next_start);
        }
        let text = if conversion {
            new.as_bytes().to_vec()
        } else {
            writer.write(&range, change.old, new)
        };
        Splice { range, text }
    }

    /// Deleting exactly whole lines takes the break of the last one along.
    fn end_of_deletion(&self, range: &Range<usize>, next_start: usize) -> usize {
        let before = &self.bytes[self.mark_length..range.start];
        let at_line_start = match before.last() {
            None => true,
            Some(&byte) => byte == crate::lines::break_byte(self.style),
        };
        let after = &self.bytes[range.end..self.bytes.len().min(range.end + 2)];
        match find_break(after, self.style) {
            Some((0, line_break)) if at_line_start => {
                let end = range.end + line_break.bytes().len();
                if end <= next_start { end } else { range.end }
            }
            _ => range.end,
        }
    }

    fn ends_in_break(&self, typed: &str) -> bool {
        typed.ends_with('\n') || (self.style == BreakStyle::Cr && typed.ends_with('\r'))
    }

    fn without_second_mark<'t>(&self, start: usize, new: &'t str) -> &'t str {
        if self.mark_length > 0 && start == self.mark_length {
            new.strip_prefix(BOM).unwrap_or(new)
        } else {
            new
        }
    }
}

/// A byte order mark is no text, so naming only it names nothing.
fn is_blank_old(old: &str, mark_length: usize) -> bool {
    old.is_empty() || (mark_length > 0 && old.strip_prefix(BOM) == Some(""))
}

/// Whoever changes nothing but breaks wants exactly those breaks.
fn differ_only_in_breaks(old: &str, new: &str) -> bool {
    fn folded(text: &str) -> impl Iterator<Item = u8> {
        let bytes = text.as_bytes();
        bytes
            .iter()
            .enumerate()
            .filter_map(move |(position, &byte)| match byte {
                b'\r' if bytes.get(position + 1) == Some(&b'\n') => None,
                b'\r' => Some(b'\n'),
                byte => Some(byte),
            })
    }
    folded(old).eq(folded(new))
}

/// Leftmost first; a range that overlaps an accepted one is passed over.
fn without_overlaps(ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut end = 0;
    ranges
        .into_iter()
        .filter(|range| {
            let free = range.start >= end;
            if free {
                end = range.end;
            }
            free
        })
        .collect()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod plan_tests;
