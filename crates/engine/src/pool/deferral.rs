//! Deferral: sending only the names of some tools until they are activated.
//!
//! Tools whose profile requests it, such as those of MCP servers, are deferred if the session has a
//! tool that finds them. If the remaining definitions exceed the token budget of a request, the
//! largest are deferred too. A definition that was already sent is not deferred later, since
//! removing it would invalidate the provider's cache.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use haft_contract::{ToolRole, ToolSpec};

use super::{PoolTool, ToolFilters, definitions::estimated_tokens};

/// The condition under which tools are deferred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeferralMode {
    /// All tools that can be deferred are deferred.
    #[default]
    On,
    /// No tool is deferred, and the tool that finds deferred ones is not offered.
    Off,
    /// All tools that can be deferred are deferred if their definitions together have at least this
    /// number of tokens.
    At(usize),
}

/// The input of the decision.
pub(super) struct DeferralInput<'a> {
    pub(super) tools: &'a [Arc<PoolTool>],
    pub(super) filters: &'a ToolFilters,
    /// Tools that were requested by name.
    pub(super) named: &'a BTreeSet<String>,
    /// The tools that existed before, and whether each of them was deferred. Empty at the start.
    pub(super) before: &'a BTreeMap<String, bool>,
}

impl DeferralInput<'_> {
    /// Returns the names of the deferred tools. The tool that finds them is deferred too while no
    /// other tool is deferred.
    pub(super) fn decide(&self) -> BTreeSet<String> {
        let is_off = self.filters.deferral == DeferralMode::Off;
        let mut deferred: BTreeSet<String> = match is_off {
            true => BTreeSet::new(),
            false => self.deferrable_tools(),
        };
        if !is_off && self.has_finder() {
            self.enforce_budget(&mut deferred);
        }
        if deferred.is_empty() {
            let finders = self.specs().filter(|spec| is_finder(spec));
            deferred.extend(finders.map(|spec| spec.name.clone()));
        }
        deferred
    }

    /// Returns the tools that can be deferred, regardless of the budget.
    fn deferrable_tools(&self) -> BTreeSet<String> {
        let (is_start, has_finder) = (self.before.is_empty(), self.has_finder());
        let can_be = |spec: &&ToolSpec| {
            let by_server = spec.profile.origin.server().is_some();
            // An embedder may activate its own tools without a tool that finds them.
            let is_found = has_finder || (!by_server && (is_start || self.was_deferred(spec)));
            spec.profile.deferred && !self.is_core(spec) && is_found
        };
        let able: Vec<&ToolSpec> = self.specs().filter(can_be).collect();
        if let DeferralMode::At(tokens) = self.filters.deferral
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

    /// Defers the largest remaining tools until the rest fits into the budget.
    fn enforce_budget(&self, deferred: &mut BTreeSet<String>) {
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

    /// Returns whether a tool is never deferred.
    fn is_core(&self, spec: &ToolSpec) -> bool {
        let profile = &spec.profile;
        // A server's tools can be deferred unless the user has configured the server otherwise.
        let by_wish = profile.origin.server().is_some() && !profile.deferred;
        let is_named = self.named.contains(&spec.name);
        profile.basic || profile.never_deferred || by_wish || is_named || is_finder(spec)
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
