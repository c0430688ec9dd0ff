//! The context of a check: the problems and evaluated parts collected so far, and the current
//! location.

use std::{cell::Cell, collections::HashSet};

use serde_json::Value;

use super::{NodeId, SchemaProblem, SchemaProblemKind, draft::escaped};

/// The maximum number of steps of one check. Applying one schema to one value is one step.
const MAX_STEPS: u32 = 1_000_000;
/// The maximum number of schemas that are applied within each other, to the same value or a part of
/// it.
pub(super) const MAX_DEPTH: u32 = 200;

/// The maximum number of characters of a value in a message.
const MAX_SHOWN: usize = 60;

/// The current path in the value, and the resources and references that led to it.
#[derive(Clone, Copy)]
pub(super) struct InstanceLocation<'a> {
    pub(super) path: Option<&'a PathStep<'a>>,
    pub(super) scope: Option<&'a DynamicScope<'a>>,
    /// The number of enclosing checks.
    pub(super) depth: u32,
    pub(super) effort: &'a CheckEffort,
}

/// The number of steps that a check may still take. It is limited because a schema from another
/// program may require an excessive number.
pub(super) struct CheckEffort {
    steps: Cell<u32>,
}

impl CheckEffort {
    pub(super) fn new() -> Self {
        Self {
            steps: Cell::new(MAX_STEPS),
        }
    }

    /// Uses up `steps`. Returns `false` if no step is left then, which ends the whole check.
    pub(super) fn spend(&self, steps: usize) -> bool {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.steps.set(self.steps.get().saturating_sub(steps));
        !self.is_exhausted()
    }

    /// Ends the whole check.
    pub(super) fn exhaust(&self) {
        self.steps.set(0);
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.get() == 0
    }
}

pub(super) struct PathStep<'a> {
    pub(super) up: Option<&'a PathStep<'a>>,
    pub(super) part: PathSegment<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum PathSegment<'a> {
    Name(&'a str),
    Item(usize),
}

pub(super) struct DynamicScope<'a> {
    pub(super) up: Option<&'a DynamicScope<'a>>,
    pub(super) resource: usize,
    /// The target node of a reference, and the value it was checked against.
    pub(super) node: NodeId,
    pub(super) value: *const Value,
}

/// The parts of a value that some schema has evaluated.
#[derive(Default)]
pub(super) struct EvaluatedParts<'v> {
    pub(super) names: HashSet<&'v str>,
    pub(super) all_names: bool,
    pub(super) items: HashSet<usize>,
    pub(super) first_items: usize,
}

impl<'v> EvaluatedParts<'v> {
    pub(super) fn add(&mut self, other: Self) {
        self.names.extend(other.names);
        self.all_names |= other.all_names;
        self.items.extend(other.items);
        self.first_items = self.first_items.max(other.first_items);
    }
}

pub(super) type ProblemSink<'p, 'v> = Option<&'p mut Vec<SchemaProblem<'v>>>;

/// The results that a check collects besides whether the value is valid.
pub(super) struct CheckContext<'n, 'v> {
    /// The problems found; `None` if only the validity is needed.
    pub(super) problems: ProblemSink<'n, 'v>,
    /// The evaluated parts; recorded only if an `unevaluated…` keyword needs them.
    pub(super) seen: Option<&'n mut EvaluatedParts<'v>>,
}

impl<'v> CheckContext<'_, 'v> {
    pub(super) fn fail(
        &mut self,
        at: InstanceLocation<'_>,
        value: &'v Value,
        kind: impl FnOnce() -> SchemaProblemKind,
    ) -> bool {
        if let Some(problems) = &mut self.problems {
            problems.push(SchemaProblem {
                pointer: pointer(at.path),
                value,
                kind: kind(),
            });
        }
        false
    }

    pub(super) fn fail_with_text(
        &mut self,
        at: InstanceLocation<'_>,
        value: &'v Value,
        words: impl FnOnce() -> String,
    ) -> bool {
        self.fail(at, value, || SchemaProblemKind::Other(words()))
    }

    /// Returns the context for a part of the value. Its problems are collected, but not its
    /// evaluated parts.
    pub(super) fn inner(&mut self) -> CheckContext<'_, 'v> {
        CheckContext {
            problems: self.problems.as_deref_mut(),
            seen: None,
        }
    }

    pub(super) fn mark_property(&mut self, name: &'v str) {
        if let Some(seen) = &mut self.seen {
            seen.names.insert(name);
        }
    }
}

fn pointer(path: Option<&PathStep<'_>>) -> String {
    let mut parts = Vec::new();
    let mut step = path;
    while let Some(here) = step {
        parts.push(match here.part {
            PathSegment::Name(name) => escaped(name),
            PathSegment::Item(index) => index.to_string(),
        });
        step = here.up;
    }
    parts.iter().rev().map(|part| format!("/{part}")).collect()
}

/// Returns a shortened value.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= MAX_SHOWN {
        return text;
    }
    let head: String = text.chars().take(MAX_SHOWN).collect();
    format!("{head}…")
}
