//! A file as the edit rules see it: its text, and the mapping back to its bytes.

use std::cell::OnceCell;
use std::ops::Range;

use super::{BOM, EditError, EditPlan, MatchTier, Splice, places};
use crate::encoding::{self, DecodedView};
use crate::lines::{BreakCounts, BreakStyle, break_byte, find_break};
use crate::text::Encoding;

/// A part of the written text.
pub(super) enum DraftPiece {
    /// A range of the file's text, written with its original bytes.
    Kept(Range<usize>),
    /// New text, in UTF-8.
    Typed(Vec<u8>),
}

/// A splice of the file's text, before it is converted to a splice of its bytes.
pub(super) struct SpliceDraft {
    pub(super) range: Range<usize>,
    pub(super) pieces: Vec<DraftPiece>,
}

/// A file that may be edited, with the facts that the rules need.
///
/// The rules work on its text; only `finish` converts back to bytes.
pub(super) struct EditFile<'a> {
    pub(super) view: DecodedView<'a>,
    pub(super) style: BreakStyle,
    pub(super) counts: BreakCounts,
    /// Offsets that are character boundaries only if the guessed code page is right.
    contested: OnceCell<Vec<usize>>,
}

impl<'a> EditFile<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, EditError> {
        DecodedView::decode(bytes)
            .ok_or(EditError::Binary)
            .map(Self::under)
    }

    pub(super) fn under(view: DecodedView<'a>) -> Self {
        let counts = BreakCounts::from_bytes(&view.text[view.mark_length..]);
        Self {
            view,
            style: counts.style(),
            counts,
            contested: OnceCell::new(),
        }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.view.text
    }

    pub(super) fn mark_length(&self) -> usize {
        self.view.mark_length
    }

    /// Returns whether the range may begin or end inside a character. This is uncertain if the code
    /// page is unknown, and even a guess that is marked certain may be wrong.
    pub(super) fn splits_character(&self, range: &Range<usize>) -> bool {
        match self.view.encoding {
            Encoding::Legacy { .. } => self.is_inside_character(range.start),
            Encoding::CodePage(page) => {
                let contested = self
                    .contested
                    .get_or_init(|| encoding::contested_offsets(page, self.view.source()));
                let source = self.view.source_range(range);
                [source.start, source.end]
                    .iter()
                    .any(|end| contested.binary_search(end).is_ok())
            }
            _ => false,
        }
    }

    /// Returns whether, in an unknown code page, this byte may be the second half of a double-byte
    /// character or a later part of a four-byte one (GB18030).
    fn is_inside_character(&self, position: usize) -> bool {
        let text = self.text();
        let at = |offset: isize| {
            let index = position.checked_add_signed(offset);
            index
                .and_then(|index| text.get(index))
                .copied()
                .unwrap_or(0)
        };
        let lead = |byte: u8| (0x81..=0xfe).contains(&byte);
        let four_bytes = |first: isize| {
            lead(at(first))
                && at(first + 1).is_ascii_digit()
                && lead(at(first + 2))
                && at(first + 3).is_ascii_digit()
        };
        at(-1) >= 0x80 && (0x40..=0x7e).contains(&at(0)) || four_bytes(-1) || four_bytes(-3)
    }

    /// Plans an edit with an empty `old_string`: it fills an empty file and fails for any other.
    pub(super) fn fill(&self, new: &str) -> Result<EditPlan, EditError> {
        let end = self.mark_length();
        if self.text().len() > end {
            return Err(EditError::OldEmpty);
        }
        let typed = self.without_second_mark(end, new).as_bytes().to_vec();
        let draft = SpliceDraft {
            range: end..end,
            pieces: vec![DraftPiece::Typed(typed)],
        };
        self.finish(vec![draft], MatchTier::Exact)
    }

    /// Converts drafts to splices: unchanged pieces keep their bytes, typed ones are encoded.
    pub(super) fn finish(
        &self,
        drafts: Vec<SpliceDraft>,
        tier: MatchTier,
    ) -> Result<EditPlan, EditError> {
        let in_text: Vec<Splice> = drafts
            .iter()
            .map(|draft| Splice {
                range: draft.range.clone(),
                text: draft
                    .pieces
                    .iter()
                    .flat_map(|piece| self.text_of(piece))
                    .copied()
                    .collect(),
            })
            .collect();
        let places = places::splice_places(self, &in_text);
        let splices = if self.view.is_source() {
            self.require_known(&drafts)?;
            in_text
        } else {
            let encoded = drafts.iter().map(|draft| self.encoded(draft));
            encoded.collect::<Result<Vec<_>, _>>()?
        };
        let source = self.view.source();
        if splices
            .iter()
            .all(|splice| source[splice.range.clone()] == splice.text)
        {
            return Err(EditError::NoEffect);
        }
        Ok(EditPlan {
            splices,
            tier,
            places,
        })
    }

    fn text_of<'p>(&'p self, piece: &'p DraftPiece) -> &'p [u8] {
        match piece {
            DraftPiece::Kept(range) => &self.text()[range.clone()],
            DraftPiece::Typed(text) => text,
        }
    }

    /// Fails if non-ASCII text is typed into a file of unknown code page: its bytes are not known.
    fn require_known(&self, drafts: &[SpliceDraft]) -> Result<(), EditError> {
        let Encoding::Legacy { likely } = self.view.encoding else {
            return Ok(());
        };
        let known = |piece: &DraftPiece| {
            matches!(piece, DraftPiece::Kept(_)) || self.text_of(piece).is_ascii()
        };
        if drafts.iter().flat_map(|draft| &draft.pieces).all(known) {
            Ok(())
        } else {
            Err(EditError::LegacyEncoding { likely })
        }
    }

    fn encoded(&self, draft: &SpliceDraft) -> Result<Splice, EditError> {
        let encoding = self.view.encoding;
        let mut bytes = Vec::new();
        for piece in &draft.pieces {
            match piece {
                DraftPiece::Kept(range) => {
                    bytes.extend_from_slice(&self.view.source()[self.view.source_range(range)]);
                }
                DraftPiece::Typed(text) => {
                    let typed = encoding::encode(&String::from_utf8_lossy(text), encoding);
                    bytes.extend(typed.map_err(|character| EditError::NotInCodePage {
                        character,
                        encoding,
                    })?);
                }
            }
        }
        Ok(Splice {
            range: self.view.source_range(&draft.range),
            text: bytes,
        })
    }

    /// Returns the end of a deletion: deleting exactly whole lines includes the break of the last
    /// one.
    pub(super) fn end_of_deletion(&self, range: &Range<usize>, next_start: usize) -> usize {
        let before = &self.text()[self.mark_length()..range.start];
        let at_line_start = match before.last() {
            None => true,
            Some(&byte) => byte == break_byte(self.style),
        };
        let after = &self.text()[range.end..self.text().len().min(range.end + 2)];
        match find_break(after, self.style) {
            Some((0, line_break)) if at_line_start => {
                let end = range.end + line_break.bytes().len();
                if end <= next_start { end } else { range.end }
            }
            _ => range.end,
        }
    }

    pub(super) fn ends_in_break(&self, typed: &str) -> bool {
        typed.ends_with('\n') || (self.style == BreakStyle::Cr && typed.ends_with('\r'))
    }

    pub(super) fn without_second_mark<'t>(&self, start: usize, new: &'t str) -> &'t str {
        if self.mark_length() > 0 && start == self.mark_length() {
            new.strip_prefix(BOM).unwrap_or(new)
        } else {
            new
        }
    }

    /// Removes a byte order mark that the model copied with the text.
    pub(super) fn without_mark<'t>(&self, typed: &'t str) -> &'t str {
        self.without_second_mark(self.mark_length(), typed)
    }
}
