//! A prefilter that finds candidate lines for a pattern without a rare literal.
//!
//! Every match of `\b[a-z]{2}\d{3}\b` contains two lower-case letters and three digits in a row.
//! Such a *run* of byte classes is found many times faster than a regex scans a text, because many
//! bytes are compared at once. On the lines that contain the run, the pattern itself decides.

use grep_matcher::{LineMatchKind, LineTerminator, Match, Matcher};
use grep_regex::{RegexCaptures, RegexMatcher};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::GrepQuery;

/// The maximum length of a run, in classes.
const MAX_LENGTH: usize = 8;
/// The maximum number of runs of a pattern to choose from.
const MAX_RUNS: usize = 40;
/// The maximum number of further runs that a line must contain.
const MAX_OTHER_RUNS: usize = 2;
/// Patterns nested deeper than this are not analysed.
const MAX_DEPTH: usize = 200;
/// The highest frequency at which a run is still useful: the estimated share of positions it occurs
/// at.
const MAX_FREQUENCY: f64 = 0.012;
/// Like [`MAX_FREQUENCY`], but for the rarest class of the run alone.
const MAX_CLASS_FREQUENCY: f64 = 0.1;
/// A class with more ranges than this is not compared in blocks.
const MAX_RANGES: usize = 3;
/// The number of positions compared at a time.
const BLOCK: usize = 64;

/// The runs that every match of a pattern contains.
#[derive(Debug)]
pub(super) struct LineFilter {
    rarest: ClassRun,
    /// Further runs that the same line must contain; each is quick to find.
    others: Vec<ClassRun>,
}

impl LineFilter {
    /// Builds the filter. Returns `None` if no run is rare enough, if the pattern depends on the
    /// text beyond its line, or if it is a set of literals, which the regex engine finds faster.
    pub(super) fn build(query: &GrepQuery) -> Option<Self> {
        let parsed = ParserBuilder::new()
            .utf8(false)
            .unicode(true)
            .octal(false)
            .multi_line(true)
            .dot_matches_new_line(query.multiline)
            .case_insensitive(query.case_insensitive)
            .build()
            .parse(&format!("(?:{})", query.pattern))
            .ok()?;
        if !stays_in_line(&parsed) || parsed.properties().is_alternation_literal() {
            return None;
        }
        let mut runs = read(&parsed, 0).all();
        if !query.multiline {
            // No match extends beyond its line.
            for class in runs.iter_mut().flatten() {
                class.remove(b'\n');
            }
        }
        let often = |run: &[ByteClass]| run.iter().map(ByteClass::often).product::<f64>();
        runs.sort_by(|a, b| often(a).total_cmp(&often(b)));
        let (rarest, others) = runs.split_first()?;
        if often(rarest) > MAX_FREQUENCY {
            return None;
        }
        let is_part =
            |run: &[ByteClass], of: &[ByteClass]| of.windows(run.len()).any(|it| it == run);
        let mut chosen: Vec<&Vec<ByteClass>> = vec![rarest];
        for run in others {
            if !chosen.iter().any(|it| is_part(run, it)) {
                chosen.push(run);
            }
        }
        let others = chosen[1..]
            .iter()
            .filter_map(|run| ClassRun::from_classes(run));
        let is_quick = |run: &ClassRun| run.byte.is_some() && !run.is_wide;
        Some(Self {
            rarest: ClassRun::from_classes(rarest)?,
            others: match query.multiline {
                true => Vec::new(),
                false => others.filter(is_quick).take(MAX_OTHER_RUNS).collect(),
            },
        })
    }

    /// Returns a position in the first line that may match. The text must start at the start of a
    /// line.
    pub(super) fn next(&self, text: &[u8]) -> Option<usize> {
        let mut from = 0;
        loop {
            let at = from + self.rarest.find(&text[from..])?;
            if self.others.is_empty() {
                return Some(at);
            }
            let (start, end) = line_at(text, at);
            let line = &text[start..end];
            if self.others.iter().all(|run| run.find(line).is_some()) {
                return Some(at);
            }
            from = text.len().min(end + 1);
        }
    }
}

/// Returns the start and end of the line that contains this position.
fn line_at(text: &[u8], at: usize) -> (usize, usize) {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |it| it + 1);
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |it| at + it);
    (start, end)
}

/// A sequence of byte classes.
#[derive(Debug)]
struct ClassRun {
    /// For each byte, a bit mask of the places in the run where it may occur.
    places: Box<[u8; 256]>,
    length: usize,
    /// The places of the run that are compared in blocks, the rarest first, with the ranges of
    /// their bytes.
    in_blocks: Vec<(usize, Vec<ByteRange>)>,
    /// The rarest place, if only one byte may occur there.
    byte: Option<(usize, u8)>,
    /// A class inside the run accepts multi-byte characters: any line that contains one may match.
    is_wide: bool,
}

impl ClassRun {
    fn from_classes(run: &[ByteClass]) -> Option<Self> {
        let mut run = run.to_vec();
        // At either end of the run a multi-byte character is adjacent to its neighbour with one of
        // its own bytes, so any of these bytes is accepted there.
        for end in [0, run.len().checked_sub(1)?] {
            if std::mem::take(&mut run[end].is_wide) {
                (0x80..=u8::MAX).for_each(|byte| run[end].add(byte));
            }
        }
        let mut order: Vec<(usize, &ByteClass)> = run.iter().enumerate().collect();
        order.sort_by(|(_, a), (_, b)| a.often().total_cmp(&b.often()));
        let in_blocks: Vec<_> = order
            .iter()
            .map(|(place, class)| (*place, class.ranges()))
            .filter(|(_, ranges)| ranges.len() <= MAX_RANGES)
            .collect();
        let (rarest, class) = *order.first()?;
        let ranges = class.ranges();
        if class.often() > MAX_CLASS_FREQUENCY || ranges.len() > MAX_RANGES {
            return None;
        }
        let byte = match &*ranges {
            [ByteRange { first, more: 0 }] => Some((rarest, *first)),
            _ => None,
        };
        let mut places = Box::new([0; 256]);
        for (place, class) in run.iter().enumerate() {
            for byte in (0..=u8::MAX).filter(|byte| class.holds(*byte)) {
                places[usize::from(byte)] |= 1 << place;
            }
        }
        Some(Self {
            places,
            length: run.len(),
            in_blocks,
            byte,
            is_wide: run.iter().any(|class| class.is_wide),
        })
    }

    /// Returns the position of the first run, or of a multi-byte character that may be part of one.
    fn find(&self, text: &[u8]) -> Option<usize> {
        if let Some((place, byte)) = self.byte
            && !self.is_wide
        {
            let starts = memchr::memchr_iter(byte, text).filter_map(|at| at.checked_sub(place));
            return starts.into_iter().find(|at| self.is_at(text, *at));
        }
        let mut start = 0;
        while let Some(window) = text.get(start..start + BLOCK + self.length) {
            if self.may_contain_run(window) {
                let found = (start..start + BLOCK).find(|at| self.is_at(text, *at));
                if found.is_some() {
                    return found;
                }
            }
            start += BLOCK;
        }
        (start..text.len()).find(|at| self.is_at(text, *at))
    }

    /// Returns whether a run starts in this block, or may start in it. Written so that many bytes
    /// are compared at once.
    fn may_contain_run(&self, window: &[u8]) -> bool {
        let (blocks, _) = window.as_chunks::<BLOCK>();
        if self.is_wide && blocks.first().is_none_or(|block| !block.is_ascii()) {
            return true;
        }
        let mut found = [u8::MAX; BLOCK];
        for (place, ranges) in &self.in_blocks {
            let Some(bytes) = window[*place..].first_chunk::<BLOCK>() else {
                return true;
            };
            let mut is_in = [0; BLOCK];
            for range in ranges {
                for (is_in, byte) in is_in.iter_mut().zip(bytes) {
                    *is_in |= range.mask(*byte);
                }
            }
            let mut any = 0;
            for (found, is_in) in found.iter_mut().zip(is_in) {
                *found &= is_in;
                any |= *found;
            }
            if any == 0 {
                return false;
            }
        }
        true
    }

    fn is_at(&self, text: &[u8], at: usize) -> bool {
        if self.is_wide && text[at] >= 0x80 {
            return true;
        }
        let is_in = |(place, byte): (usize, &u8)| self.places[usize::from(*byte)] >> place & 1 == 1;
        let run = text.get(at..at + self.length);
        run.is_some_and(|run| run.iter().enumerate().all(is_in))
    }
}

/// A range of consecutive byte values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByteRange {
    first: u8,
    more: u8,
}

impl ByteRange {
    /// Returns a mask with all bits set if the byte is in the range, otherwise 0.
    fn mask(self, byte: u8) -> u8 {
        match byte.wrapping_sub(self.first) <= self.more {
            true => u8::MAX,
            false => 0,
        }
    }
}

/// Returns whether a line can be matched without the lines around it.
pub(super) fn stays_in_line(hir: &Hir) -> bool {
    let looks = hir.properties().look_set();
    !looks.contains_anchor_haystack() && !looks.contains_anchor_crlf()
}

/// The bytes that may occur at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ByteClass {
    bytes: [u64; 4],
    /// The estimated frequency of these bytes in source code.
    often: f64,
    /// A multi-byte character may occur here instead.
    is_wide: bool,
}

impl ByteClass {
    fn from_class(class: &Class) -> Self {
        let mut bytes = Self::default();
        match class {
            Class::Unicode(class) => {
                for range in class.ranges() {
                    let last = range.end().min('\x7f');
                    for character in range.start()..=last {
                        bytes.add(character as u8);
                    }
                    bytes.is_wide |= range.end() > '\x7f';
                }
            }
            Class::Bytes(class) => {
                for range in class.ranges() {
                    (range.start()..=range.end()).for_each(|byte| bytes.add(byte));
                }
            }
        }
        bytes
    }

    fn only(byte: u8) -> Self {
        let mut bytes = Self::default();
        bytes.add(byte);
        bytes
    }

    fn add(&mut self, byte: u8) {
        if !self.holds(byte) {
            self.often += often(byte);
        }
        self.bytes[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    fn remove(&mut self, byte: u8) {
        if self.holds(byte) {
            self.often -= often(byte);
        }
        self.bytes[usize::from(byte / 64)] &= !(1 << (byte % 64));
    }

    fn holds(&self, byte: u8) -> bool {
        self.bytes[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }

    fn or(mut self, other: &Self) -> Self {
        for byte in (0..=u8::MAX).filter(|byte| other.holds(*byte)) {
            self.add(byte);
        }
        self.is_wide |= other.is_wide;
        self
    }

    fn often(&self) -> f64 {
        self.often.clamp(0.0, 1.0)
    }

    fn ranges(&self) -> Vec<ByteRange> {
        let mut ranges: Vec<ByteRange> = Vec::new();
        for byte in (0..=u8::MAX).filter(|byte| self.holds(*byte)) {
            match ranges.last_mut() {
                Some(range) if range.first + range.more + 1 == byte => range.more += 1,
                _ => ranges.push(ByteRange {
                    first: byte,
                    more: 0,
                }),
            }
        }
        ranges
    }
}

fn often(byte: u8) -> f64 {
    match byte {
        b' ' => 0.17,
        b'\n' => 0.03,
        b'a'..=b'z' | b'_' => 0.021,
        b'A'..=b'Z' => 0.0025,
        b'0'..=b'9' => 0.004,
        b'(' | b')' | b'.' | b',' | b';' | b':' | b'"' | b'/' | b'=' | b'-' => 0.01,
        0x80.. => 0.0005,
        _ => 0.003,
    }
}

/// The byte classes that every match of a part of a pattern contains.
#[derive(Clone, Debug, Default)]
struct PatternPart {
    /// Every match starts with the classes in `first` and ends with those in `last`.
    first: Vec<ByteClass>,
    last: Vec<ByteClass>,
    /// `first` describes the whole match.
    is_exact: bool,
    /// Runs inside the match.
    inner: Vec<Vec<ByteClass>>,
}

impl PatternPart {
    fn exact(classes: Vec<ByteClass>) -> Self {
        match classes.len() <= MAX_LENGTH {
            true => Self {
                last: classes.clone(),
                first: classes,
                is_exact: true,
                inner: Vec::new(),
            },
            false => Self {
                first: classes[..MAX_LENGTH].to_vec(),
                last: classes[classes.len() - MAX_LENGTH..].to_vec(),
                is_exact: false,
                inner: vec![rarest_of(&classes)],
            },
        }
    }

    fn then(self, next: Self) -> Self {
        if self.is_exact && next.is_exact {
            return Self::exact([self.first, next.first].concat());
        }
        let between = rarest_of(&[&*self.last, &*next.first].concat());
        let mut inner = [self.inner, next.inner].concat();
        inner.push(between);
        // Bounded; any selection of runs is correct.
        inner.truncate(MAX_RUNS);
        let mut first = self.first;
        if self.is_exact {
            first.extend(next.first);
            first.truncate(MAX_LENGTH);
        }
        let mut last = next.last;
        if next.is_exact {
            last = [self.last, last].concat();
            last.drain(..last.len().saturating_sub(MAX_LENGTH));
        }
        Self {
            first,
            last,
            is_exact: false,
            inner,
        }
    }

    fn or(self, other: Self) -> Self {
        let first = self.first.iter().zip(&other.first);
        let first: Vec<_> = first.map(|(one, two)| one.or(two)).collect();
        let last = self.last.iter().rev().zip(other.last.iter().rev());
        let mut last: Vec<_> = last.map(|(one, two)| one.or(two)).collect();
        last.reverse();
        Self {
            is_exact: self.is_exact && other.is_exact && self.first.len() == other.first.len(),
            first,
            last,
            inner: Vec::new(),
        }
    }

    /// Returns all runs that every match contains.
    fn all(self) -> Vec<Vec<ByteClass>> {
        let mut all = self.inner;
        all.extend([self.first, self.last]);
        all.retain(|run| !run.is_empty());
        all
    }
}

/// Returns the rarest part of a run, at most `MAX_LENGTH` classes long.
fn rarest_of(run: &[ByteClass]) -> Vec<ByteClass> {
    let often = |run: &[ByteClass]| run.iter().map(ByteClass::often).product::<f64>();
    let parts = run.windows(run.len().clamp(1, MAX_LENGTH));
    let rarest = parts.min_by(|a, b| often(a).total_cmp(&often(b)));
    rarest.unwrap_or_default().to_vec()
}

fn read(hir: &Hir, depth: usize) -> PatternPart {
    if depth > MAX_DEPTH {
        return PatternPart::default();
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => PatternPart::exact(Vec::new()),
        HirKind::Literal(literal) => PatternPart::exact(
            literal
                .0
                .iter()
                .map(|byte| ByteClass::only(*byte))
                .collect(),
        ),
        HirKind::Class(class) => PatternPart::exact(vec![ByteClass::from_class(class)]),
        HirKind::Repetition(repetition) => read_repetition(repetition, depth),
        HirKind::Capture(capture) => read(&capture.sub, depth + 1),
        HirKind::Concat(parts) => parts
            .iter()
            .map(|part| read(part, depth + 1))
            .fold(PatternPart::exact(Vec::new()), PatternPart::then),
        HirKind::Alternation(parts) => parts
            .iter()
            .map(|part| read(part, depth + 1))
            .reduce(PatternPart::or)
            .unwrap_or_default(),
    }
}

fn read_repetition(repetition: &Repetition, depth: usize) -> PatternPart {
    if repetition.max == Some(0) {
        return PatternPart::exact(Vec::new());
    }
    if repetition.min == 0 {
        return PatternPart::default();
    }
    let one = read(&repetition.sub, depth + 1);
    let times = repetition.min.min(MAX_LENGTH as u32);
    let mut part = (1..times).fold(one.clone(), |part, _| part.then(one.clone()));
    part.is_exact &= repetition.max == Some(times);
    part
}

/// A matcher that applies the pattern only to lines that may match.
pub(super) struct PrefilteredMatcher<'a> {
    exact: &'a RegexMatcher,
    lines: Option<&'a LineFilter>,
    relaxed: Option<&'a RegexMatcher>,
}

impl<'a> PrefilteredMatcher<'a> {
    /// Creates the matcher. At least one of the two filters, which select the lines, must be present.
    pub(super) fn new(
        exact: &'a RegexMatcher,
        lines: Option<&'a LineFilter>,
        relaxed: Option<&'a RegexMatcher>,
    ) -> Self {
        Self {
            exact,
            lines,
            relaxed,
        }
    }

    /// Returns a position in the first line that may match.
    fn next(&self, text: &[u8]) -> Option<usize> {
        let Some(lines) = self.lines else {
            let Ok(found) = self.relaxed?.find_candidate_line(text) else {
                return Some(0);
            };
            return found.map(|found| match found {
                LineMatchKind::Confirmed(at) | LineMatchKind::Candidate(at) => at,
            });
        };
        let mut from = 0;
        loop {
            let at = from + lines.next(&text[from..])?;
            let Some(relaxed) = self.relaxed else {
                return Some(at);
            };
            let (start, end) = line_at(text, at);
            if !matches!(relaxed.is_match(&text[start..end]), Ok(false)) {
                return Some(at);
            }
            from = text.len().min(end + 1);
        }
    }
}

/// Behaves exactly like the pattern, except where the searcher asks for a candidate line.
impl Matcher for PrefilteredMatcher<'_> {
    type Captures = RegexCaptures;
    type Error = grep_matcher::NoError;

    fn find_at(&self, text: &[u8], at: usize) -> Result<Option<Match>, Self::Error> {
        self.exact.find_at(text, at)
    }

    fn new_captures(&self) -> Result<Self::Captures, Self::Error> {
        self.exact.new_captures()
    }

    fn is_match_at(&self, text: &[u8], at: usize) -> Result<bool, Self::Error> {
        self.exact.is_match_at(text, at)
    }

    fn shortest_match_at(&self, text: &[u8], at: usize) -> Result<Option<usize>, Self::Error> {
        self.exact.shortest_match_at(text, at)
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.exact.line_terminator()
    }

    fn find_candidate_line(&self, text: &[u8]) -> Result<Option<LineMatchKind>, Self::Error> {
        Ok(self.next(text).map(LineMatchKind::Candidate))
    }
}

#[cfg(test)]
#[path = "narrow_tests.rs"]
mod tests;
