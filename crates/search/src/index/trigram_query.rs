//! Derives from a pattern the trigrams that a text must contain for the pattern to match in it.
//!
//! The pattern is parsed as grep-regex parses it and analysed bottom-up. For each part either all
//! texts it can match are known (*exact*), or how every match starts and ends and what it must
//! contain. If nothing can be derived, the result is [`TrigramQuery::Any`]: a plan may select too
//! many files, but never too few.

use std::collections::BTreeSet;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::trigram::{self, Trigram};

/// The maximum number of texts in an exact set.
const MAX_EXACT: usize = 48;
/// The maximum number of texts in a set of prefixes or suffixes.
const MAX_EDGES: usize = 32;
/// A character class with more characters than this may match anything.
const MAX_CHARACTERS: usize = 24;
/// The maximum length in bytes of a stored prefix or suffix.
const EDGE: usize = 8;
/// The maximum length in bytes of a text in an exact set.
const MAX_LENGTH: usize = 120;
/// The maximum number of times a repetition is unrolled.
const MAX_REPEATED: u32 = 4;
/// Patterns nested deeper than this may match anything.
const MAX_DEPTH: usize = 200;

/// The condition on the trigrams of a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TrigramQuery {
    /// Every text satisfies this.
    Any,
    One(Trigram),
    And(Vec<TrigramQuery>),
    /// At least one of the parts. Without parts, no text satisfies it.
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

    /// Removes repeated parts, lists with one part, and [`TrigramQuery::Any`] from `And` lists.
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

/// Returns the plan of a grep pattern.
pub(crate) fn plan(pattern: &str, case_insensitive: bool, multiline: bool) -> TrigramQuery {
    let parsed = ParserBuilder::new()
        .utf8(false)
        .unicode(true)
        .octal(false)
        .multi_line(true)
        .dot_matches_new_line(multiline)
        .case_insensitive(case_insensitive)
        .build()
        // Wrapped as grep-regex wraps it, so that inline flags have the same scope.
        .parse(&format!("(?:{pattern})"));
    match parsed {
        Ok(hir) => read(&hir, 0).query().tidy(),
        Err(_) => TrigramQuery::Any,
    }
}

type TextSet = BTreeSet<Vec<u8>>;

/// The known constraints on the texts that a part of a pattern can match.
#[derive(Clone, Debug)]
enum KnownTexts {
    /// Every match is one of these texts, in lower case.
    Exact(TextSet),
    Partly {
        /// Every match starts with one of the texts in `first` and ends with one of those in
        /// `last`.
        first: TextSet,
        last: TextSet,
        /// Every text with a match satisfies this.
        has: TrigramQuery,
    },
}

impl KnownTexts {
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

    /// Converts exact knowledge to prefixes, suffixes and a condition.
    fn partly(self) -> (TextSet, TextSet, TrigramQuery) {
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
            && one.len().saturating_mul(two.len()) <= MAX_EXACT
            && longest(one) + longest(two) <= MAX_LENGTH
        {
            return Self::Exact(joined(one, two));
        }
        // The trigrams that span the boundary between the two parts.
        let (left, right) = (self.clone().last(), next.clone().first());
        let between = match left.len().saturating_mul(right.len()) <= MAX_EDGES * MAX_EDGES {
            true => one_of(&joined(&left, &right)),
            false => TrigramQuery::Any,
        };
        let first = match &self {
            Self::Exact(texts) if texts.len().saturating_mul(right.len()) <= MAX_EXACT => {
                beginnings(&joined(texts, &right))
            }
            _ => self.clone().first(),
        };
        let last = match &next {
            Self::Exact(texts) if texts.len().saturating_mul(left.len()) <= MAX_EXACT => {
                ends(&joined(&left, texts))
            }
            _ => next.clone().last(),
        };
        let has = self.partly().2.and(next.partly().2).and(between);
        Self::Partly { first, last, has }
    }

    fn first(self) -> TextSet {
        self.partly().0
    }

    fn last(self) -> TextSet {
        self.partly().1
    }

    /// Combines alternatives.
    fn any_of(parts: Vec<Self>) -> Self {
        let exact = parts.iter().map(|part| match part {
            Self::Exact(texts) => Some(texts),
            Self::Partly { .. } => None,
        });
        if let Some(exact) = exact.collect::<Option<Vec<_>>>() {
            let texts: TextSet = exact.into_iter().flatten().cloned().collect();
            if texts.len() <= MAX_EXACT {
                return Self::Exact(texts);
            }
        }
        // Prefixes and suffixes carry less than a whole text, so the condition is built from the
        // alternatives first.
        let queries = parts.iter().map(Self::query);
        let has = queries.fold(TrigramQuery::Or(Vec::new()), TrigramQuery::or);
        let (mut first, mut last) = (TextSet::new(), TextSet::new());
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

    /// Converts to the knowledge about a repetition: there may be more text between the prefix and
    /// the suffix.
    fn repeated(self) -> Self {
        let (first, last, has) = self.partly();
        Self::Partly { first, last, has }
    }
}

fn nothing() -> TextSet {
    BTreeSet::from([Vec::new()])
}

fn longest(texts: &TextSet) -> usize {
    texts.iter().map(Vec::len).max().unwrap_or(0)
}

fn joined(one: &TextSet, two: &TextSet) -> TextSet {
    let pairs = one
        .iter()
        .flat_map(|left| two.iter().map(move |right| (left, right)));
    pairs
        .map(|(left, right)| [left.as_slice(), right].concat())
        .collect()
}

/// Returns the condition that a text contains all trigrams of at least one of these texts. If
/// `texts` is empty, the condition is never satisfied.
fn one_of(texts: &TextSet) -> TrigramQuery {
    let mut query = TrigramQuery::Or(Vec::new());
    for text in texts {
        let text = &text[..text.len().min(2 * MAX_LENGTH)];
        let all = trigram::folded_trigrams(text).map(TrigramQuery::One);
        query = query.or(all.fold(TrigramQuery::Any, TrigramQuery::and));
        if query == TrigramQuery::Any {
            break;
        }
    }
    query
}

fn beginnings(texts: &TextSet) -> TextSet {
    edges(texts, |text, length| {
        text[..text.len().min(length)].to_vec()
    })
}

fn ends(texts: &TextSet) -> TextSet {
    edges(texts, |text, length| {
        text[text.len().saturating_sub(length)..].to_vec()
    })
}

/// Shortens the texts until there are at most `MAX_EDGES` different ones.
fn edges(texts: &TextSet, cut: impl Fn(&[u8], usize) -> Vec<u8>) -> TextSet {
    for length in (1..=EDGE).rev() {
        let edges: TextSet = texts.iter().map(|text| cut(text, length)).collect();
        if edges.len() <= MAX_EDGES {
            return edges;
        }
    }
    nothing()
}

fn read(hir: &Hir, depth: usize) -> KnownTexts {
    if depth > MAX_DEPTH {
        return KnownTexts::anything();
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => KnownTexts::empty(),
        HirKind::Literal(literal) => {
            let text: Vec<u8> = literal.0.iter().map(|byte| trigram::fold(*byte)).collect();
            KnownTexts::Exact(BTreeSet::from([text]))
        }
        HirKind::Class(class) => {
            read_class(class).map_or_else(KnownTexts::anything, KnownTexts::Exact)
        }
        HirKind::Repetition(repetition) => read_repetition(repetition, depth),
        HirKind::Capture(capture) => read(&capture.sub, depth + 1),
        HirKind::Concat(parts) => parts
            .iter()
            .map(|part| read(part, depth + 1))
            .reduce(KnownTexts::then)
            .unwrap_or_else(KnownTexts::empty),
        HirKind::Alternation(parts) => {
            KnownTexts::any_of(parts.iter().map(|part| read(part, depth + 1)).collect())
        }
    }
}

fn read_repetition(repetition: &Repetition, depth: usize) -> KnownTexts {
    let once = || read(&repetition.sub, depth + 1);
    match (repetition.min, repetition.max) {
        (_, Some(0)) => KnownTexts::empty(),
        (0, Some(1)) => KnownTexts::any_of(vec![once(), KnownTexts::empty()]),
        (0, _) => KnownTexts::anything(),
        (1, Some(1)) => once(),
        (least, most) => {
            let times = least.min(MAX_REPEATED);
            let one = once();
            let known = (1..times).fold(one.clone(), |known, _| known.then(one.clone()));
            match most == Some(times) {
                true => known,
                false => known.repeated(),
            }
        }
    }
}

/// Returns all texts that a small class can match, or `None` for "anything". For a class
/// without characters, `None` is correct too, because every plan may select too many files.
fn read_class(class: &Class) -> Option<TextSet> {
    let mut texts = TextSet::new();
    match class {
        Class::Unicode(class) => {
            let count: usize = class.ranges().iter().map(|range| range.len()).sum();
            if count > MAX_CHARACTERS {
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
            if count > MAX_CHARACTERS {
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
