//! Which lines of a text a pattern without a rare word may match in.
//!
//! Every match of `\b[a-z]{2}\d{3}\b` has two small letters and three digits in a row. Such a *run* of
//! classes is found many times faster than a regex goes through a text: blocks without a byte of its
//! rarest class are passed at the speed of memory. Where the run is, the pattern itself decides, line
//! by line.

use grep_matcher::{LineMatchKind, LineTerminator, Match, Matcher};
use grep_regex::{RegexCaptures, RegexMatcher};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::GrepQuery;

/// So many classes are looked for in a row.
const LONGEST: usize = 8;
/// Nested deeper than this it is not worth the trouble.
const DEEPEST: usize = 200;
/// A run at more places than this is no help.
const MOST_OFTEN: f64 = 0.004;
/// The same for its rarest class alone.
const MOST_OFTEN_ONE: f64 = 0.1;
/// A class of more ranges takes long to look for.
const MOST_RANGES: usize = 4;
/// So many bytes are looked at together.
const BLOCK: usize = 64;

/// The run that every match of a pattern has.
#[derive(Debug)]
pub(super) struct LineFilter {
    /// In which places of the run a byte may be: one bit each.
    places: Box<[u8; 256]>,
    length: usize,
    /// The place of the rarest class.
    rarest: usize,
    /// Its bytes, first and how many more.
    ranges: Vec<(u8, u8)>,
    /// There are characters of several bytes in it: a line with any such may match.
    is_wide: bool,
}

impl LineFilter {
    /// `None`: there is no run that is rare enough, or the pattern looks beyond its line.
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
        if !stays_in_line(&parsed) {
            return None;
        }
        let mut run = read(&parsed, 0).rarest();
        if !query.multiline {
            // No match goes beyond its line.
            for class in &mut run {
                class.remove(b'\n');
            }
        }
        Self::of(&run)
    }

    fn of(run: &[ByteClass]) -> Option<Self> {
        let often: f64 = run.iter().map(ByteClass::often).product();
        let (rarest, class) = run
            .iter()
            .enumerate()
            .min_by(|(_, a), (_, b)| a.often().total_cmp(&b.often()))?;
        let mut ranges = class.ranges();
        if often > MOST_OFTEN || class.often() > MOST_OFTEN_ONE || ranges.len() > MOST_RANGES {
            return None;
        }
        let is_wide = run.iter().any(|class| class.is_wide);
        if is_wide {
            ranges.push((0x80, 0x7f));
        }
        let mut places = Box::new([0; 256]);
        for (place, class) in run.iter().enumerate() {
            for byte in (0..=u8::MAX).filter(|byte| class.holds(*byte)) {
                places[usize::from(byte)] |= 1 << place;
            }
        }
        Some(Self {
            places,
            length: run.len(),
            rarest,
            ranges,
            is_wide,
        })
    }

    /// A place in the first line that may match.
    pub(super) fn next(&self, text: &[u8]) -> Option<usize> {
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        for (number, block) in blocks.iter().enumerate() {
            if self.is_worth_a_look(block) {
                let start = number * BLOCK;
                let found = (start..start + BLOCK).find(|at| self.is_at(text, *at));
                if found.is_some() {
                    return found;
                }
            }
        }
        (text.len() - rest.len()..text.len()).find(|at| self.is_at(text, *at))
    }

    /// Written so that many bytes are compared at once.
    fn is_worth_a_look(&self, block: &[u8; BLOCK]) -> bool {
        self.ranges.iter().any(|(first, more)| {
            let is_in = |byte: &u8| u8::from(byte.wrapping_sub(*first) <= *more);
            block.iter().fold(0, |found, byte| found | is_in(byte)) != 0
        })
    }

    fn is_at(&self, text: &[u8], at: usize) -> bool {
        let byte = text[at];
        if self.is_wide && byte >= 0x80 {
            return true;
        }
        if self.places[usize::from(byte)] >> self.rarest & 1 == 0 {
            return false;
        }
        let run = at
            .checked_sub(self.rarest)
            .and_then(|start| text.get(start..start + self.length));
        run.is_some_and(|run| {
            let is_in = |(place, byte): (usize, &u8)| {
                self.places[usize::from(*byte)] >> place & 1 == 1
            };
            run.iter().enumerate().all(is_in)
        })
    }
}

/// Whether a line matches can be said without the lines around it.
pub(super) fn stays_in_line(hir: &Hir) -> bool {
    let looks = hir.properties().look_set();
    !looks.contains_anchor_haystack() && !looks.contains_anchor_crlf()
}

/// Bytes that may be in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ByteClass {
    bytes: [u64; 4],
    /// There may be a character of several bytes instead.
    is_wide: bool,
}

impl ByteClass {
    fn of(class: &Class) -> Self {
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
        self.bytes[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    fn remove(&mut self, byte: u8) {
        self.bytes[usize::from(byte / 64)] &= !(1 << (byte % 64));
    }

    fn holds(&self, byte: u8) -> bool {
        self.bytes[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }

    fn or(mut self, other: &Self) -> Self {
        for (word, other) in self.bytes.iter_mut().zip(other.bytes) {
            *word |= other;
        }
        self.is_wide |= other.is_wide;
        self
    }

    /// How often such a byte is in texts of programs, roughly.
    fn often(&self) -> f64 {
        let held = (0..=u8::MAX).filter(|byte| self.holds(*byte));
        held.map(often).sum::<f64>().min(1.0)
    }

    /// First and how many more.
    fn ranges(&self) -> Vec<(u8, u8)> {
        let mut ranges: Vec<(u8, u8)> = Vec::new();
        for byte in (0..=u8::MAX).filter(|byte| self.holds(*byte)) {
            match ranges.last_mut() {
                Some((first, more)) if *first + *more + 1 == byte => *more += 1,
                _ => ranges.push((byte, 0)),
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

/// What is known of a part of a pattern.
#[derive(Clone, Debug, Default)]
struct Part {
    /// Every match begins with these classes, and ends with those.
    first: Vec<ByteClass>,
    last: Vec<ByteClass>,
    /// `first` is all there is.
    is_exact: bool,
    /// The rarest run inside.
    inner: Vec<ByteClass>,
}

impl Part {
    fn exact(classes: Vec<ByteClass>) -> Self {
        match classes.len() <= LONGEST {
            true => Self {
                last: classes.clone(),
                first: classes,
                is_exact: true,
                inner: Vec::new(),
            },
            false => Self {
                first: classes[..LONGEST].to_vec(),
                last: classes[classes.len() - LONGEST..].to_vec(),
                is_exact: false,
                inner: rarest_of(&[&classes]),
            },
        }
    }

    fn then(self, next: Self) -> Self {
        if self.is_exact && next.is_exact {
            return Self::exact([self.first, next.first].concat());
        }
        let between = [&*self.last, &*next.first].concat();
        let inner = rarest_of(&[&self.inner, &next.inner, &between]);
        let mut first = self.first;
        if self.is_exact {
            first.extend(next.first);
            first.truncate(LONGEST);
        }
        let mut last = next.last;
        if next.is_exact {
            last = [self.last, last].concat();
            last.drain(..last.len().saturating_sub(LONGEST));
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

    fn rarest(&self) -> Vec<ByteClass> {
        rarest_of(&[&self.first, &self.last, &self.inner])
    }
}

/// The rarest run in any of these.
fn rarest_of(runs: &[&[ByteClass]]) -> Vec<ByteClass> {
    let often = |run: &[ByteClass]| run.iter().map(ByteClass::often).product::<f64>();
    let parts = runs
        .iter()
        .filter(|run| !run.is_empty())
        .flat_map(|run| run.windows(run.len().min(LONGEST)));
    let rarest = parts.min_by(|a, b| often(a).total_cmp(&often(b)));
    rarest.unwrap_or_default().to_vec()
}

fn read(hir: &Hir, depth: usize) -> Part {
    if depth > DEEPEST {
        return Part::default();
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Part::exact(Vec::new()),
        HirKind::Literal(literal) => {
            Part::exact(literal.0.iter().map(|byte| ByteClass::only(*byte)).collect())
        }
        HirKind::Class(class) => Part::exact(vec![ByteClass::of(class)]),
        HirKind::Repetition(repetition) => of_repetition(repetition, depth),
        HirKind::Capture(capture) => read(&capture.sub, depth + 1),
        HirKind::Concat(parts) => parts
            .iter()
            .map(|part| read(part, depth + 1))
            .fold(Part::exact(Vec::new()), Part::then),
        HirKind::Alternation(parts) => parts
            .iter()
            .map(|part| read(part, depth + 1))
            .reduce(Part::or)
            .unwrap_or_default(),
    }
}

fn of_repetition(repetition: &Repetition, depth: usize) -> Part {
    if repetition.max == Some(0) {
        return Part::exact(Vec::new());
    }
    if repetition.min == 0 {
        return Part::default();
    }
    let one = read(&repetition.sub, depth + 1);
    let times = repetition.min.min(LONGEST as u32);
    let mut part = (1..times).fold(one.clone(), |part, _| part.then(one.clone()));
    part.is_exact &= repetition.max == Some(times);
    part
}

/// A pattern that is asked only about lines that may match.
pub(super) struct Narrowed<'a> {
    exact: &'a RegexMatcher,
    lines: Option<&'a LineFilter>,
    relaxed: Option<&'a RegexMatcher>,
}

impl<'a> Narrowed<'a> {
    /// At least one of the two says which lines those are.
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

    /// A place in the first line that may match.
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
            let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |it| it + 1);
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |it| at + it);
            if !matches!(relaxed.is_match(&text[start..end]), Ok(false)) {
                return Some(at);
            }
            from = text.len().min(end + 1);
        }
    }
}

/// Everything is as the pattern says, but where the searcher looks for a line.
impl Matcher for Narrowed<'_> {
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
