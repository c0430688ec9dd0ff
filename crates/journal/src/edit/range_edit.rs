//! Replacing given ranges of a text, for callers that searched it themselves. The splices follow
//! the rules of Edit.

use std::{iter, ops::Range};

use super::breaks::TypedChange;
use super::{
    DraftPiece, EditError, EditFile, EditPlan, MatchTier, SpliceDraft, breaks,
    differ_only_in_breaks, places,
};
use crate::lines::{BreakStyle, LineBreak};
use crate::text::Encoding;

/// The text of a file without its byte order mark, with the mapping back to its bytes.
pub struct EditableText<'a> {
    file: EditFile<'a>,
}

/// A range of the text and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChange {
    /// The replaced range, in bytes of the text.
    pub range: Range<usize>,
    /// The parts of the new text, in order.
    pub new: Vec<NewText>,
}

/// A part of the new text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewText {
    /// Text whose line breaks are adapted to the file.
    Typed(String),
    /// An unchanged range of the file's text, including its line breaks.
    Kept(Range<usize>),
}

impl<'a> EditableText<'a> {
    /// Parses the bytes of a file; an error if it is not text.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, EditError> {
        EditFile::parse(bytes).map(|file| Self { file })
    }

    /// Returns the text: decoded to UTF-8 if the encoding is known, otherwise the bytes themselves.
    pub fn text(&self) -> &[u8] {
        &self.file.text()[self.file.mark_length()..]
    }

    /// Returns the encoding of the file.
    pub fn encoding(&self) -> Encoding {
        self.file.view.encoding
    }

    /// Returns the bytes of the file that a range of the text corresponds to.
    pub fn source_range(&self, range: &Range<usize>) -> Range<usize> {
        self.file.view.source_range(&self.in_file(range))
    }

    /// Converts the changes into splices; they must be ascending and must not overlap. Returns
    /// `None` if nothing changes.
    pub fn plan(&self, changes: &[TextChange]) -> Result<Option<EditPlan>, EditError> {
        let file = &self.file;
        let mut writer = breaks::BreakWriter::new(file);
        let mut drafts = Vec::new();
        for change in changes {
            let range = self.in_file(&change.range);
            let cut = || EditError::InsideCharacter {
                line: places::line_of(file, range.start),
            };
            let old = str::from_utf8(&file.text()[range.clone()]).map_err(|_| cut())?;
            let new = ComposedText::compose(self, &change.new).ok_or_else(cut)?;
            let continues = |at: usize| matches!(file.text().get(at), Some(0x80..0xc0));
            if file.splits_character(&range) || continues(range.start) || continues(range.end) {
                return Err(cut());
            }
            let typed = match differ_only_in_breaks(old, &new.text) {
                true => new.text.into_bytes(),
                false => new.written(&mut writer, &range, old, file.style),
            };
            if typed != file.text()[range.clone()] {
                let pieces = vec![DraftPiece::Typed(typed)];
                drafts.push(SpliceDraft { range, pieces });
            }
        }
        match file.finish(drafts, MatchTier::Exact) {
            Ok(plan) => Ok(Some(plan)),
            Err(EditError::NoEffect) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn in_file(&self, range: &Range<usize>) -> Range<usize> {
        let mark = self.file.mark_length();
        range.start + mark..range.end + mark
    }
}

/// New text in one piece, with the line breaks that come from the file.
struct ComposedText {
    text: String,
    /// One entry for each line feed: its break in the file, if it comes from there.
    breaks: Vec<Option<LineBreak>>,
}

impl ComposedText {
    /// Returns `None` if an unchanged piece is not valid UTF-8.
    fn compose(file: &EditableText<'_>, parts: &[NewText]) -> Option<Self> {
        let (mut text, mut breaks) = (String::new(), Vec::new());
        for part in parts {
            let kept = matches!(part, NewText::Kept(_));
            let piece = match part {
                NewText::Typed(typed) => typed,
                NewText::Kept(range) => str::from_utf8(&file.text()[range.clone()]).ok()?,
            };
            for line in piece
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'))
            {
                breaks.push(match (kept, line.ends_with("\r\n")) {
                    (false, _) => None,
                    (true, true) => Some(LineBreak::CrLf),
                    (true, false) => Some(LineBreak::Lf),
                });
            }
            text += piece;
        }
        Some(Self { text, breaks })
    }

    fn written(
        &self,
        writer: &mut breaks::BreakWriter<'_>,
        range: &Range<usize>,
        old: &str,
        style: BreakStyle,
    ) -> Vec<u8> {
        let typed = TypedChange::new(old, &self.text, style);
        if style == BreakStyle::Cr || self.breaks.iter().all(Option::is_none) {
            return writer.write(range, &typed);
        }
        let mut text = Vec::with_capacity(self.text.len());
        let own = self.breaks.iter().chain(iter::repeat(&None));
        let lines = typed.new_lines().iter().zip(writer.breaks(range, &typed));
        for ((line, line_break), own) in lines.zip(own) {
            text.extend_from_slice(line.text);
            if line.line_break.is_some() {
                text.extend_from_slice(own.unwrap_or(line_break).bytes());
            }
        }
        text
    }
}
