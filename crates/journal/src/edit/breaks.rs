//! The line breaks of written text: the model types LF, and the file's style decides.
//!
//! A written line gets the break of the line it replaces. Additional lines get the prevalent break
//! of the matched range, otherwise of the line the range ends in, otherwise of the file, otherwise
//! LF.

use std::{cell::OnceCell, ops::Range};

use super::EditFile;
use super::line_diff::{runs, texts};
use crate::diff::LineRun;
use crate::lines::{BreakCounts, BreakStyle, Line, LineBreak, find_break, split_lines};

/// The old and the new text as the model typed them. Their lines are compared only once, however
/// many matches the edit has.
pub(super) struct TypedChange<'t> {
    pub(super) old: &'t str,
    pub(super) new: &'t str,
    style: BreakStyle,
    lines: OnceCell<[Vec<Line<'t>>; 2]>,
    runs: OnceCell<Vec<LineRun>>,
}

impl<'t> TypedChange<'t> {
    /// Prepares the texts for a file of this style.
    pub(super) fn new(old: &'t str, new: &'t str, style: BreakStyle) -> Self {
        Self {
            old,
            new,
            style,
            lines: OnceCell::new(),
            runs: OnceCell::new(),
        }
    }

    pub(super) fn old_lines(&self) -> &[Line<'t>] {
        &self.lines()[0]
    }

    pub(super) fn new_lines(&self) -> &[Line<'t>] {
        &self.lines()[1]
    }

    fn lines(&self) -> &[Vec<Line<'t>>; 2] {
        let split = |text| typed_lines(text, self.style);
        self.lines.get_or_init(|| [self.old, self.new].map(split))
    }

    /// Returns the runs of unchanged and changed lines.
    pub(super) fn runs(&self) -> &[LineRun] {
        self.runs
            .get_or_init(|| runs(&texts(self.old_lines()), &texts(self.new_lines())))
    }
}

pub(super) struct BreakWriter<'a> {
    file: &'a EditFile<'a>,
    /// The offset and kind of the break found last. It is reused while it is still ahead, so that
    /// many matches on one long line do not each scan to its end.
    ahead: Option<(usize, Option<LineBreak>)>,
}

impl<'a> BreakWriter<'a> {
    pub(super) fn new(file: &'a EditFile<'a>) -> Self {
        Self { file, ahead: None }
    }

    /// Returns the new text for `range`, which matched the old text. Ranges must be ascending.
    pub(super) fn write(&mut self, range: &Range<usize>, typed: &TypedChange<'_>) -> Vec<u8> {
        let (style, new) = (self.file.style, typed.new);
        if find_break(new.as_bytes(), style).is_none()
            && !(style == BreakStyle::Cr && new.contains('\n'))
        {
            return new.as_bytes().to_vec();
        }
        let new_lines = typed.new_lines();
        let breaks = self.breaks(range, typed);
        let mut text = Vec::with_capacity(new.len() + new_lines.len());
        for (line, line_break) in new_lines.iter().zip(breaks) {
            text.extend_from_slice(line.text);
            if line.line_break.is_some() {
                text.extend_from_slice(line_break.bytes());
            }
        }
        text
    }

    /// Returns the break for each new line. Ranges must be ascending.
    pub(super) fn breaks(
        &mut self,
        range: &Range<usize>,
        typed: &TypedChange<'_>,
    ) -> Vec<LineBreak> {
        let style = self.file.style;
        let matched = &self.file.text()[range.clone()];
        let counts = BreakCounts::from_bytes(matched);
        let extra = match counts.majority() {
            Some(line_break) if style == BreakStyle::Cr || line_break != LineBreak::Cr => {
                line_break
            }
            _ => self
                .break_after(range.end)
                .or(self.file.counts.majority())
                .unwrap_or(LineBreak::Lf),
        };
        if style != BreakStyle::Mixed {
            return vec![extra; typed.new_lines().len()];
        }
        let mut replaced: Vec<Option<LineBreak>> = split_lines(matched, style)
            .map(|line| line.line_break)
            .collect();
        // The match ends within a line: use the break after the match.
        match replaced.last_mut() {
            Some(Some(_)) => {}
            Some(last) => *last = self.break_after(range.end),
            None => replaced.push(self.break_after(range.end)),
        }
        aligned(&replaced, typed, extra)
    }

    fn break_after(&mut self, position: usize) -> Option<LineBreak> {
        if let Some((at, line_break)) = self.ahead
            && at >= position
        {
            return line_break;
        }
        let found = find_break(&self.file.text()[position..], self.file.style);
        self.ahead = Some(match found {
            Some((distance, line_break)) => (position + distance, Some(line_break)),
            None => (usize::MAX, None),
        });
        found.map(|(_, line_break)| line_break)
    }
}

/// Splits text that the model typed into lines. In a CR file, CR, LF and CRLF all end a line.
pub(super) fn typed_lines(text: &str, style: BreakStyle) -> Vec<Line<'_>> {
    if style != BreakStyle::Cr {
        return split_lines(text.as_bytes(), BreakStyle::Mixed).collect();
    }
    let mut lines = Vec::new();
    for line in split_lines(text.as_bytes(), BreakStyle::Mixed) {
        let pieces = line.text.split(|&byte| byte == b'\r').count();
        for (index, text) in line.text.split(|&byte| byte == b'\r').enumerate() {
            let last = index + 1 == pieces;
            if last && text.is_empty() && line.line_break.is_none() {
                continue; // the CR just before ended the last line
            }
            let line_break = if last {
                line.line_break
            } else {
                Some(LineBreak::Cr)
            };
            lines.push(Line { text, line_break });
        }
    }
    lines
}

/// Assigns breaks to the new lines, given those of the replaced lines.
fn aligned(
    replaced: &[Option<LineBreak>],
    typed: &TypedChange<'_>,
    extra: LineBreak,
) -> Vec<LineBreak> {
    let mut breaks = vec![extra; typed.new_lines().len()];
    for run in typed.runs() {
        for (old_index, new_index) in run.old.clone().zip(run.new.clone()) {
            if let Some(Some(line_break)) = replaced.get(old_index) {
                breaks[new_index] = *line_break;
            }
        }
    }
    breaks
}
