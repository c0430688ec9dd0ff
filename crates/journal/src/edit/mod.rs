//! Replacing text in bytes: finding the place and planning the change.
//!
//! [`plan`] finds the place or fails; [`apply`] splices. Both are pure. The file stays bytes
//! throughout: only matched ranges are replaced, so everything outside them stays the same in any
//! encoding.
//!
//! - `exact`, `typography`, `trailing`, `end_of_file`, `line_numbers`, `indentation`: the tiers,
//!   from strict to tolerant; each finds all its candidates
//! - `file`: the text of the file, and the conversion of text changes to byte changes
//! - `fold`: normalized texts with a mapping back to the original
//! - `projection`, `line_diff`: what tolerant tiers write; `breaks`: which line breaks are written
//! - `not_found_hints`, `similarity`: hints for text that was not found
//! - `range_edit`: changes at ranges that another search found
//! - `error`, `places`: errors and line numbers for reports

mod breaks;
mod end_of_file;
mod error;
mod exact;
mod file;
mod fold;
mod indentation;
mod line_diff;
mod line_numbers;
mod not_found_hints;
mod places;
mod projection;
mod range_edit;
mod similarity;
mod trailing;
mod typography;

use std::cell::{Cell, OnceCell};
use std::ops::Range;

use crate::text::Encoding;
use breaks::TypedChange;
pub use error::EditError;
use file::{DraftPiece, EditFile, SpliceDraft};
use fold::FoldedText;
pub use indentation::IndentShift;
pub use not_found_hints::explain_missing;
pub use places::{LineRange, SplicePlace};
pub use range_edit::{EditableText, NewText, TextChange};

const BOM: char = '\u{feff}';

/// An edit: replaces `old` by `new`, in one place or in all.
#[derive(Debug, Clone, Copy)]
pub struct EditRequest<'a> {
    /// The text that is replaced.
    pub old: &'a str,
    /// The new text.
    pub new: &'a str,
    /// Replaces every match; otherwise there must be exactly one.
    pub replace_all: bool,
}

/// The matching rule that found the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchTier {
    /// Byte for byte, with CRLF and LF treated as equal.
    Exact,
    /// Quotes, dashes and spaces of all kinds treated as equal.
    Typography,
    /// Like `Typography`, with spaces and tabs at line ends ignored.
    TrailingBlanks,
    /// The file lacks the line break that ends the old text.
    EndOfFile,
    /// The old text has the line numbers of Read, and they are correct.
    LineNumbers,
    /// Whole lines with different indentation.
    Indentation,
    /// Whole lines whose indentation differs everywhere by the same prefix; the new text was shifted
    /// by it.
    IndentationShift(IndentShift),
}

impl MatchTier {
    /// Returns whether this tier allows changes in several places.
    fn allows_all(self) -> bool {
        matches!(self, Self::Exact | Self::Typography | Self::TrailingBlanks)
    }

    /// Returns whether the file's own text stays where the old and the new text agree.
    fn projects(self) -> bool {
        matches!(self, Self::Typography | Self::TrailingBlanks)
    }
}

/// Finds all candidates of one tier.
type TierSearch = fn(&EditSearch<'_, '_>) -> Result<Option<TierMatch>, EditError>;

/// The tiers in order. The next tier is tried only if one finds nothing. A tier that finds a match
/// but cannot decide what is meant fails the edit.
const TIERS: [TierSearch; 6] = [
    |search| Ok(exact::find(search)),
    |search| Ok(typography::find(search)),
    trailing::find,
    |search| Ok(end_of_file::find(search)),
    |search| Ok(line_numbers::find(search)),
    |search| Ok(indentation::find(search)),
];

/// A replacement of bytes of the file by `text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The replaced range, in offsets of the old file.
    pub range: Range<usize>,
    /// The bytes that are written there.
    pub text: Vec<u8>,
}

/// An edit whose places are certain: ascending splices that do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditPlan {
    /// The replacements.
    pub splices: Vec<Splice>,
    /// The rule that found the places.
    pub tier: MatchTier,
    /// The line numbers of each splice.
    pub places: Vec<SplicePlace>,
}

/// Finds the places of a change and plans what is written; explains a miss.
pub fn plan(file: &[u8], change: &EditRequest<'_>) -> Result<EditPlan, EditError> {
    match find(file, change) {
        Err(EditError::NotFound { .. }) => Err(EditError::NotFound {
            help: explain_missing(file, change.old, change.new),
        }),
        result => result,
    }
}

/// Like [`plan`], but without the costly explanation of a miss.
pub(crate) fn find(file: &[u8], change: &EditRequest<'_>) -> Result<EditPlan, EditError> {
    if change.old == change.new {
        return Err(EditError::Identical);
    }
    let file = EditFile::parse(file)?;
    if is_blank_old(change.old, file.mark_length()) {
        return file.fill(change.new);
    }
    if let Encoding::Legacy { likely } = file.view.encoding
        && !change.old.is_ascii()
    {
        return Err(EditError::LegacyEncoding { likely });
    }
    let breaks = FoldedText::breaks(file.text(), file.style);
    let search = EditSearch::new(&file, *change, &breaks);
    let tiers = if search.conversion { 1 } else { TIERS.len() };
    let mut asked = TIERS[..tiers].iter().map(|tier| tier(&search));
    let Some(found) = asked.find_map(Result::transpose).transpose()? else {
        return Err(match search.inside_character.get() {
            Some(at) => EditError::InsideCharacter {
                line: places::line_of(&file, at),
            },
            None => EditError::NotFound {
                help: String::new(),
            },
        });
    };
    let TierMatch {
        tier,
        ranges,
        old,
        new,
    } = found;
    let ranges = match ranges.len() {
        1 => ranges,
        _ if change.replace_all && tier.allows_all() => without_overlaps(ranges),
        count => {
            let listed = ranges.iter().take(places::LISTED);
            return Err(EditError::Ambiguous {
                count,
                lines: places::lines_of(&file, listed.map(|range| range.start)),
                tier,
            });
        }
    };
    let mut writing = EditWriter {
        file: &file,
        writer: breaks::BreakWriter::new(&file),
        tier,
        conversion: search.conversion,
    };
    let typed = TypedChange::new(&old, &new, file.style);
    let mut drafts = Vec::with_capacity(ranges.len());
    for (index, range) in ranges.iter().enumerate() {
        let next_start = ranges.get(index + 1).map_or(usize::MAX, |next| next.start);
        drafts.push(writing.draft(range.clone(), next_start, &typed)?);
    }
    file.finish(drafts, tier)
}

/// Applies a plan. `file` must be the bytes that the plan was made for.
pub fn apply(file: &[u8], plan: &EditPlan) -> Vec<u8> {
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

/// A search for the old text, with the file in the folded forms that the tiers search.
struct EditSearch<'a, 'f> {
    file: &'f EditFile<'f>,
    change: EditRequest<'a>,
    /// Old and new differ only in breaks, so breaks are compared and written literally.
    conversion: bool,
    breaks: &'f FoldedText<'f>,
    typography: OnceCell<FoldedText<'f>>,
    /// The offset of the first match that was skipped because it may cut a character.
    inside_character: Cell<Option<usize>>,
}

impl<'a, 'f> EditSearch<'a, 'f> {
    fn new(file: &'f EditFile<'f>, change: EditRequest<'a>, breaks: &'f FoldedText<'f>) -> Self {
        Self {
            file,
            change,
            conversion: differ_only_in_breaks(change.old, change.new),
            breaks,
            typography: OnceCell::new(),
            inside_character: Cell::new(None),
        }
    }

    /// Returns the file with breaks and typography folded.
    fn typography(&self) -> &FoldedText<'f> {
        self.typography
            .get_or_init(|| match self.file.view.encoding {
                // The code page is unknown, so no byte is known to be a quote.
                Encoding::Legacy { .. } => FoldedText::unchanged(&self.breaks.text),
                _ => FoldedText::typography(&self.breaks.text),
            })
    }

    /// Maps an offset in [`Self::typography`] to one in the file's text.
    fn original(&self, offset: usize) -> usize {
        self.breaks.original(self.typography().original(offset))
    }

    fn matched(&self, tier: MatchTier, ranges: Vec<Range<usize>>) -> Option<TierMatch> {
        (!ranges.is_empty()).then(|| TierMatch {
            tier,
            ranges,
            old: self.change.old.to_owned(),
            new: self.change.new.to_owned(),
        })
    }
}

/// All candidates of a tier, and the old and new text as this tier reads them.
struct TierMatch {
    tier: MatchTier,
    /// Ascending, and at least one; they may overlap.
    ranges: Vec<Range<usize>>,
    old: String,
    new: String,
}

/// Writes the new text at the places of one change.
struct EditWriter<'f> {
    file: &'f EditFile<'f>,
    writer: breaks::BreakWriter<'f>,
    tier: MatchTier,
    conversion: bool,
}

impl EditWriter<'_> {
    fn draft(
        &mut self,
        found: Range<usize>,
        next_start: usize,
        typed: &TypedChange<'_>,
    ) -> Result<SpliceDraft, EditError> {
        let file = self.file;
        // A byte order mark that `old_string` repeats stays out of the replaced range.
        let mut range = found.start.max(file.mark_length())..found.end;
        let old = if range.start > found.start {
            file.without_mark(typed.old)
        } else {
            typed.old
        };
        let new = file.without_second_mark(range.start, typed.new);
        let unmarked = TypedChange::new(old, new, file.style);
        let typed = match (old.len(), new.len()) == (typed.old.len(), typed.new.len()) {
            true => typed,
            false => &unmarked,
        };
        if new.is_empty() && !file.ends_in_break(old) {
            range.end = file.end_of_deletion(&range, next_start);
        }
        let pieces = if self.conversion {
            vec![DraftPiece::Typed(new.as_bytes().to_vec())]
        } else if self.tier.projects() && !new.is_empty() {
            projection::project(file, &range, typed, &mut self.writer)?
        } else {
            vec![DraftPiece::Typed(self.writer.write(&range, typed))]
        };
        Ok(SpliceDraft { range, pieces })
    }
}

/// Returns whether `old` is empty. A byte order mark alone is treated as empty.
fn is_blank_old(old: &str, mark_length: usize) -> bool {
    old.is_empty() || (mark_length > 0 && old.strip_prefix(BOM) == Some(""))
}

/// Returns whether old and new text differ only in line breaks. Then breaks are compared and
/// written literally.
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

/// Drops ranges that overlap an earlier one.
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
#[path = "effort_tests.rs"]
mod effort_tests;
#[cfg(test)]
#[path = "plan_tests.rs"]
mod plan_tests;
