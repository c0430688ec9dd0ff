//! The text being read. Backquotes and here-documents are rewritten before bash reads them; the
//! rewritten text remembers where its bytes came from, so that spans always point into the line.

use crate::ast::Span;

/// From this byte of the text on, bytes come from this place of the line and those behind it.
#[derive(Clone, Copy)]
struct Stretch {
    start: usize,
    origin: usize,
}

/// A text, and where in the line its bytes are.
pub(super) struct Source<'t> {
    pub(super) text: &'t str,
    /// Sorted; empty for the line itself.
    stretches: Vec<Stretch>,
}

impl<'t> Source<'t> {
    /// The line itself.
    pub(super) fn whole(text: &'t str) -> Self {
        Source {
            text,
            stretches: Vec::new(),
        }
    }

    /// Where in the line a byte of this text is. What was left out belongs to the byte before it.
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

/// A text under construction, made of stretches of another.
pub(super) struct Rewritten {
    pub(super) text: String,
    stretches: Vec<Stretch>,
}

impl Rewritten {
    /// Begins with what stands at `at`.
    pub(super) fn new(source: &Source<'_>, at: usize) -> Self {
        Rewritten {
            text: String::new(),
            stretches: vec![Stretch {
                start: 0,
                origin: source.origin(at),
            }],
        }
    }

    /// Takes over a stretch as it is.
    pub(super) fn keep(&mut self, source: &Source<'_>, from: usize, to: usize) {
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
            _ => self.stretches.push(Stretch { start, origin }),
        }
    }

    /// Forgets what was taken since the text had this length.
    pub(super) fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
        // The first tells where the text begins, even if there is none.
        while self.stretches.len() > 1
            && self
                .stretches
                .last()
                .is_some_and(|stretch| stretch.start >= length)
        {
            self.stretches.pop();
        }
    }

    pub(super) fn source(&self) -> Source<'_> {
        Source {
            text: &self.text,
            stretches: self.stretches.clone(),
        }
    }
}
