//! Which trigrams a text must have for a pattern to match in it.
//!
//! The pattern is parsed as grep-regex parses it and read from the inside out. Of each part is known
//! either all it can match (*exact*), or how every match of it begins and ends, and what must be
//! in it. Where nothing is known the answer is [`TrigramQuery::Any`]: a plan may ask for too many
//! files, never for too few.

use std::collections::BTreeSet;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::trigram::{self, Trigram};

/// More different texts than this are not followed one by one.
const MOST_EXACT: usize = 48;
/// The same for beginnings and ends.
const MOST_EDGES: usize = 32;
/// A class of more characters may be anything.
const MOST_CHARACTERS: usize = 24;
/// So much is kept of a beginning or an end.
const EDGE: usize = 8;
/// A text that is longer is asked for by this much of it.
const LONGEST: usize = 120;
/// What is repeated is unrolled so often.
const MOST_REPEATED: u32 = 4;
/// Patterns nested deeper than this may match anything.
const DEEPEST: usize = 200;

/// What a text must have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TrigramQuery {
    /// Nothing special.
    Any,
    One(Trigram),
    And(Vec<TrigramQuery>),
    /// Without parts: no text has it.
    Or(Vec<TrigramQuery>),
}

impl TrigramQuery {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, it) | (it, Self::Any) => it,
            (one, two) if one == two => one,
            (Self::And(mut parts), Self::And(more)) => {
                parts.extend(more);
                Self::And(parts)
            }
            (Self::And(mut parts), it) | (it, Self::And(mut parts)) => {
                parts.push(it);
                Self::And(parts)
            }
            (one, two) => Self::And(vec![one, two]),
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => Self::Any,
            (one, two) if one == two => one,
            (Self::Or(mut parts), Self::Or(more)) => {
                parts.extend(more);
                Self::Or(parts)
            }
            (Self::Or(mut parts), it) | (it, Self::Or(mut parts)) => {
                parts.push(it);
                Self::Or(parts)
            }
            (one, two) => Self::Or(vec![one, two]),
        }
    }

    /// Without repeated parts, lists of one, or lists inside lists of the same kind.
    fn tidy(self) -> Self {
        let tidied =
            |parts: Vec<Self>| -> BTreeSet<Self> { parts.into_iter().map(Self::tidy).collect() };
        match self {
            Self::And(parts) => {
                let mut parts: Vec<Self> = tidied(parts).into_iter().collect();
                parts.retain(|part| *part != Self::Any);
                match parts.len() {
                    0 => Self::Any,
                    1 => parts.remove(0),
                    _ => Self::And(parts),
                }
            }
            Self::Or(parts) => {
                let mut parts: Vec<Self> = tidied(parts).into_iter().collect();
                match parts.len() {
                    _ if parts.contains(&Self::Any) => Self::Any,
                    1 => parts.remove(0),
                    _ => Self::Or(parts),
                }
            }
            other => other,
        }
    }
}

/// The plan of a pattern of a grep.
pub(crate) fn plan(pattern: &str, case_insensitive: bool, multiline: bool) -> TrigramQuery {
    let parsed = ParserBuilder::new()
        .utf8(false)
        .unicode(true)
        .octal(false)
        .multi_line(true)
        .dot_matches_new_line(multiline)
        .case_insensitive(case_insensitive)
        .build()
        // As grep-regex puts it, so that flags inside reach as far.
        .parse(&format!("(?:{pattern})"));
    match parsed {
        Ok(hir) => read(&hir, 0).query().tidy(),
        Err(_) => TrigramQuery::Any,
    }
}

type Texts = BTreeSet<Vec<u8>>;

/// What is known of a part of a pattern.
#[derive(Clone, Debug)]
enum Known {
    /// Every match is one of these, folded.
    Exact(Texts),
    Partly {
        /// Every match begins with one of these, and ends with one of those.
        first: Texts,
        last: Texts,
        /// Every text with a match has this.
        has: TrigramQuery,
    },
}

impl Known {
    fn anything() -> Self {
        Self::Partly {
            first: nothing(),
            last: nothing(),
            has: TrigramQuery::Any,
        }
    }

    fn empty() -> Self {
        Self::Exact(nothing())
    }

    fn query(&self) -> TrigramQuery {
        match self {
            Self::Exact(texts) => one_of(texts),
            Self::Partly { first, last, has } => {
                let edges = one_of(first).and(one_of(last));
                has.clone().and(edges)
            }
        }
    }

    /// Gives up knowing everything.
    fn partly(self) -> (Texts, Texts, TrigramQuery) {
        match self {
            Self::Exact(texts) => {
                let has = one_of(&texts);
                (beginnings(&texts), ends(&texts), has)
            }
            Self::Partly { first, last, has } => (first, last, has),
        }
    }

    fn then(self, next: Self) -> Self {
        if let (Self::Exact(one), Self::Exact(two)) = (&self, &next)
            && one.len().saturating_mul(two.len()) <= MOST_EXACT
            && longest(one) + longest(two) <= LONGEST
        {
            return Self::Exact(joined(one, two));
        }
        // What spans the place where the two meet.
        let (left, right) = (self.clone().last(), next.clone().first());
        let between = match left.len().saturating_mul(right.len()) <= MOST_EDGES * MOST_EDGES {
            true => one_of(&joined(&left, &right)),
            false => TrigramQuery::Any,
        };
        let first = match &self {
            Self::Exact(texts) if texts.len().saturating_mul(right.len()) <= MOST_EXACT => {
                beginnings(&joined(texts, &right))
            }
            _ => self.clone().first(),
        };
        let last = match &next {
            Self::Exact(texts) if texts.len().saturating_mul(left.len()) <= MOST_EXACT => {
                ends(&joined(&left, texts))
            }
            _ => next.clone().last(),
        };
        let has = self.partly().2.and(next.partly().2).and(between);
        Self::Partly { first, last, has }
    }

    fn first(self) -> Texts {
        self.partly().0
    }

    fn last(self) -> Texts {
        self.partly().1
    }

    /// One of several.
    fn any_of(parts: Vec<Self>) -> Self {
        let exact = parts.iter().map(|part| match part {
            Self::Exact(texts) => Some(texts),
            Self::Partly { .. } => None,
        });
        if let Some(exact) = exact.collect::<Option<Vec<_>>>() {
            let texts: Texts = exact.into_iter().flatten().cloned().collect();
            if texts.len() <= MOST_EXACT {
                return Self::Exact(texts);
            }
        }
        // Edges are less than a whole text: what is known of each goes into the question first.
        let queries = parts.iter().map(Self::query);
        let has = queries.fold(TrigramQuery::Or(Vec::new()), TrigramQuery::or);
        let (mut first, mut last) = (Texts::new(), Texts::new());
        for part in parts {
            let (one, other, _) = part.partly();
            first.extend(one);
            last.extend(other);
        }
        Self::Partly {
            first: beginnings(&first),
            last: ends(&last),
            has,
        }
    }

    /// The same, but it may go on between a first and a last one.
    fn repeated(self) -> Self {
        let (first, last, has) = self.partly();
        Self::Partly { first, last, has }
    }
}

fn nothing() -> Texts {
    BTreeSet::from([Vec::new()])
}

fn longest(texts: &Texts) -> usize {
    texts.iter().map(Vec::len).max().unwrap_or(0)
}

fn joined(one: &Texts, two: &Texts) -> Texts {
    let pairs = one
        .iter()
        .flat_map(|left| two.iter().map(move |right| (left, right)));
    pairs
        .map(|(left, right)| [left.as_slice(), right].concat())
        .collect()
}

/// A text with a match has all trigrams of one of these. None of them can be, if there are none.
fn one_of(texts: &Texts) -> TrigramQuery {
    let mut query = TrigramQuery::Or(Vec::new());
    for text in texts {
        let text = &text[..text.len().min(2 * LONGEST)];
        let all = trigram::of_folded(text).map(TrigramQuery::One);
        query = query.or(all.fold(TrigramQuery::Any, TrigramQuery::and));
        if query == TrigramQuery::Any {
            break;
        }
    }
    query
}

fn beginnings(texts: &Texts) -> Texts {
    edges(texts, |text, length| {
        text[..text.len().min(length)].to_vec()
    })
}

fn ends(texts: &Texts) -> Texts {
    edges(texts, |text, length| {
        text[text.len().saturating_sub(length)..].to_vec()
    })
}

/// Shorter and shorter, until there are few.
fn edges(texts: &Texts, cut: impl Fn(&[u8], usize) -> Vec<u8>) -> Texts {
    for length in (1..=EDGE).rev() {
        let edges: Texts = texts.iter().map(|text| cut(text, length)).collect();
        if edges.len() <= MOST_EDGES {
            return edges;
        }
    }
    nothing()
}

fn read(hir: &Hir, depth: usize) -> Known {
    if depth > DEEPEST {
        return Known::anything();
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Known::empty(),
        HirKind::Literal(literal) => {
            let text: Vec<u8> = literal.0.iter().map(|byte| trigram::fold(*byte)).collect();
            Known::Exact(BTreeSet::from([text]))
        }
        HirKind::Class(class) => of_class(class).map_or_else(Known::anything, Known::Exact),
        HirKind::Repetition(repetition) => of_repetition(repetition, depth),
        HirKind::Capture(capture) => read(&capture.sub, depth + 1),
        HirKind::Concat(parts) => parts
            .iter()
            .map(|part| read(part, depth + 1))
            .reduce(Known::then)
            .unwrap_or_else(Known::empty),
        HirKind::Alternation(parts) => {
            Known::any_of(parts.iter().map(|part| read(part, depth + 1)).collect())
        }
    }
}

fn of_repetition(repetition: &Repetition, depth: usize) -> Known {
    let once = || read(&repetition.sub, depth + 1);
    match (repetition.min, repetition.max) {
        (_, Some(0)) => Known::empty(),
        (0, Some(1)) => Known::any_of(vec![once(), Known::empty()]),
        (0, _) => Known::anything(),
        (1, Some(1)) => once(),
        (least, most) => {
            let times = least.min(MOST_REPEATED);
            let one = once();
            let known = (1..times).fold(one.clone(), |known, _| known.then(one.clone()));
            match most == Some(times) {
                true => known,
                false => known.repeated(),
            }
        }
    }
}

/// All that a small class can match. A class that matches nothing is anything: such a pattern is
/// for the regex to refuse.
fn of_class(class: &Class) -> Option<Texts> {
    let mut texts = Texts::new();
    match class {
        Class::Unicode(class) => {
            let count: usize = class.ranges().iter().map(|range| range.len()).sum();
            if count > MOST_CHARACTERS {
                return None;
            }
            for range in class.ranges() {
                for character in range.start()..=range.end() {
                    let mut bytes = [0; 4];
                    let bytes = character.encode_utf8(&mut bytes).bytes();
                    texts.insert(bytes.map(trigram::fold).collect());
                }
            }
        }
        Class::Bytes(class) => {
            let count: usize = class.ranges().iter().map(|range| range.len()).sum();
            if count > MOST_CHARACTERS {
                return None;
            }
            for range in class.ranges() {
                texts.extend((range.start()..=range.end()).map(|byte| vec![trigram::fold(byte)]));
            }
        }
    }
    (!texts.is_empty()).then_some(texts)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
