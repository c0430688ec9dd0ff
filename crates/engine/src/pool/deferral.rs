//! Which tools are sent by name only, until something activates them.
//!
//! Those that say so of themselves, as tools of servers do, as long as there is a tool that finds them. Beyond
//! that, where definitions would cost more than a session wants to spend on each request, the largest. What was
//! sent once is not deferred later: a definition that is taken out costs the provider's cache.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use haft_contract::{ToolRole, ToolSpec};

use super::{Filters, PoolTool, definitions::estimated_tokens};

/// Whether tools are sent by name only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Deferral {
    /// Those that can be are.
    #[default]
    On,
    /// None is; and nothing is offered that would find them.
    Off,
    /// Those that can be are, as soon as their definitions reach this many tokens.
    At(usize),
}

/// What decides.
pub(super) struct DeferralInput<'a> {
    pub(super) tools: &'a [Arc<PoolTool>],
    pub(super) filters: &'a Filters,
    /// Those that someone asked for by name.
    pub(super) named: &'a BTreeSet<String>,
    /// Tools that were there before: was each of them deferred? Empty at the start.
    pub(super) before: &'a BTreeMap<String, bool>,
}

impl DeferralInput<'_> {
    /// The names of tools that are deferred. The tool that finds them is among them as long as there is nothing
    /// to find.
    pub(super) fn decide(&self) -> BTreeSet<String> {
        let is_off = self.filters.deferral == Deferral::Off;
        let mut deferred: BTreeSet<String> = match is_off {
            true => BTreeSet::new(),
            false => self.by_themselves(),
        };
        if !is_off && self.has_finder() {
            self.hold_budget(&mut deferred);
        }
        if deferred.is_empty() {
            let finders = self.specs().filter(|spec| is_finder(spec));
            deferred.extend(finders.map(|spec| spec.name.clone()));
        }
        deferred
    }

    /// Those that can be, whatever the rest costs.
    fn by_themselves(&self) -> BTreeSet<String> {
        let (is_start, has_finder) = (self.before.is_empty(), self.has_finder());
        let can_be = |spec: &&ToolSpec| {
            let by_server = spec.profile.origin.server().is_some();
            // An embedder may activate tools of its own without a tool that finds them.
            let is_found = has_finder || (!by_server && (is_start || self.was_deferred(spec)));
            spec.profile.deferred && !self.is_core(spec) && is_found
        };
        let able: Vec<&ToolSpec> = self.specs().filter(can_be).collect();
        if let Deferral::At(tokens) = self.filters.deferral
            && able
                .iter()
                .map(|spec| estimated_tokens(spec))
                .sum::<usize>()
                < tokens
        {
            return BTreeSet::new();
        }
        let was_sent = |spec: &ToolSpec| self.before.get(&spec.name) == Some(&false);
        let able = able.into_iter().filter(|spec| !was_sent(spec));
        able.map(|spec| spec.name.clone()).collect()
    }

    /// Defers the largest of the rest, until what is sent fits.
    fn hold_budget(&self, deferred: &mut BTreeSet<String>) {
        let Some(budget) = self.filters.budget else {
            return;
        };
        let sent = self.specs().filter(|spec| !deferred.contains(&spec.name));
        let sent: Vec<(usize, &ToolSpec)> =
            sent.map(|spec| (estimated_tokens(spec), spec)).collect();
        let mut total: usize = sent.iter().map(|(tokens, _)| tokens).sum();
        let is_free =
            |spec: &ToolSpec| !self.is_core(spec) && !self.before.contains_key(&spec.name);
        let mut free: Vec<_> = sent.into_iter().filter(|(_, spec)| is_free(spec)).collect();
        free.sort_unstable_by_key(|(tokens, spec)| (Reverse(*tokens), &spec.name));
        for (tokens, spec) in free {
            if total <= budget {
                return;
            }
            total -= tokens;
            deferred.insert(spec.name.clone());
        }
    }

    /// One that is never deferred.
    fn is_core(&self, spec: &ToolSpec) -> bool {
        let profile = &spec.profile;
        // A server whose tools are not to be deferred was told so by a person.
        let by_wish = profile.origin.server().is_some() && !profile.deferred;
        let is_named = self.named.contains(&spec.name);
        profile.basic || profile.always_sent || by_wish || is_named || is_finder(spec)
    }

    fn was_deferred(&self, spec: &ToolSpec) -> bool {
        self.before.get(&spec.name) == Some(&true)
    }

    fn has_finder(&self) -> bool {
        self.specs().any(is_finder)
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|tool| tool.spec())
    }
}

pub(super) fn is_finder(spec: &ToolSpec) -> bool {
    spec.profile.role == Some(ToolRole::FindsTools)
}
