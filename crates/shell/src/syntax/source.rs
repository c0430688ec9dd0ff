//! The text that the parser reads.
//!
//! Bash rewrites backquotes and here-documents before it reads them. A rewritten text remembers the
//! origin of its bytes, so that spans always point into the line.

use crate::ast::Span;

/// A range of the text, from `start` to the next stretch, whose bytes come from `origin` on in the
/// line.
#[derive(Clone, Copy)]
struct SourceStretch {
    start: usize,
    origin: usize,
}

/// A text, and the place of its bytes in the line.
pub(super) struct ParserSource<'t> {
    pub(super) text: &'t str,
    /// Sorted by `start`. Empty for the line itself.
    stretches: Vec<SourceStretch>,
}

impl<'t> ParserSource<'t> {
    /// Returns the line itself as a source.
    pub(super) fn from_line(text: &'t str) -> Self {
        ParserSource {
            text,
            stretches: Vec::new(),
        }
    }

    /// Returns the offset in the line of a byte of this text. Omitted bytes belong to the byte
    /// before them.
    pub(super) fn origin(&self, at: usize) -> usize {
        let index = self
            .stretches
            .partition_point(|stretch| stretch.start <= at);
        match index.checked_sub(1) {
            Some(index) => {
                let stretch = self.stretches[index];
                stretch.origin + (at - stretch.start)
            }
            None => at,
        }
    }

    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        Span {
            start: self.origin(start),
            end: self.origin(end),
        }
    }
}

/// A rewritten text under construction, made of stretches of another text.
pub(super) struct RewrittenSource {
    pub(super) text: String,
    stretches: Vec<SourceStretch>,
}

impl RewrittenSource {
    /// Creates an empty text whose origin is `at` in `source`.
    pub(super) fn new(source: &ParserSource<'_>, at: usize) -> Self {
        RewrittenSource {
            text: String::new(),
            stretches: vec![SourceStretch {
                start: 0,
                origin: source.origin(at),
            }],
        }
    }

    /// Copies a range of `source` unchanged.
    pub(super) fn copy_range(&mut self, source: &ParserSource<'_>, from: usize, to: usize) {
        if from >= to {
            return;
        }
        let base = self.text.len();
        self.stretch(base, source.origin(from));
        let first = source
            .stretches
            .partition_point(|stretch| stretch.start <= from);
        for stretch in source.stretches[first..]
            .iter()
            .take_while(|stretch| stretch.start < to)
        {
            self.stretch(base + (stretch.start - from), stretch.origin);
        }
        self.text.push_str(&source.text[from..to]);
    }

    fn stretch(&mut self, start: usize, origin: usize) {
        match self.stretches.last_mut() {
            Some(last) if last.start == start => last.origin = origin,
            Some(last) if last.origin + (start - last.start) == origin => {}
            _ => self.stretches.push(SourceStretch { start, origin }),
        }
    }

    /// Removes everything after this length.
    pub(super) fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
        // The first stretch holds the origin of the text, even if the text is empty.
        while self.stretches.len() > 1
            && self
                .stretches
                .last()
                .is_some_and(|stretch| stretch.start >= length)
        {
            self.stretches.pop();
        }
    }

    pub(super) fn source(&self) -> ParserSource<'_> {
        ParserSource {
            text: &self.text,
            stretches: self.stretches.clone(),
        }
    }
}
