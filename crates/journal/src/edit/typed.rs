//! A change as it was typed: its lines, compared once however many places it has.

use std::cell::OnceCell;

use super::breaks::typed_lines;
use super::line_diff::{runs, texts};
use crate::diff::Run;
use crate::lines::{BreakStyle, Line};

pub(super) struct Typed<'t> {
    pub(super) old: &'t str,
    pub(super) new: &'t str,
    style: BreakStyle,
    lines: OnceCell<[Vec<Line<'t>>; 2]>,
    runs: OnceCell<Vec<Run>>,
}

impl<'t> Typed<'t> {
    /// For a file of this style.
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

    /// Which lines stay and which change.
    pub(super) fn runs(&self) -> &[Run] {
        self.runs
            .get_or_init(|| runs(&texts(self.old_lines()), &texts(self.new_lines())))
    }
}
