//! The first choice of a question about a test, a build or a check: it runs this and similar commands
//! in the sandbox without network from now on.

use std::sync::Arc;

use haft_contract::{RuleOffer, rule_offer::OFFLINE_COMMAND};
use haft_shell::commands::rule_families::offline_bundle;

use super::{
    DecisionBehavior, DecisionReason, Policy, decide, offline,
    rule_offers::{LineProposals, MAX_COUNT, MAX_TRIED, ProposedRule},
    rules::RuleClass,
};

impl LineProposals<'_> {
    /// Returns the choice, if the sandbox is complete and a part that asks is such a command. Other
    /// parts that ask get their usual rules.
    pub(super) fn offline_choice(
        &self,
        asking: &[usize],
        families: &[Option<ProposedRule>],
    ) -> Option<RuleOffer> {
        if !self.policy.sandbox.whole || !offline::is_possible(self.policy) {
            return None;
        }
        let (mut entries, mut others) = (Vec::new(), Vec::new());
        for (at, family) in asking.iter().zip(families).take(MAX_TRIED) {
            // What the family does not cover, the entries of its bundle do not cover either.
            let bundle = match (family, self.shell.analysis.parts.get(*at)) {
                (Some(_), Some(part)) => offline_bundle(part),
                _ => Vec::new(),
            };
            let own = || match family {
                Some(family) => Some(family.text.clone()),
                None => self.exact_part(*at),
            };
            match bundle.is_empty() {
                true => others.extend(own()),
                false => entries.extend(bundle),
            }
        }
        if entries.is_empty() {
            return None;
        }
        let mut rules: Vec<String> = Vec::new();
        let entries = entries
            .into_iter()
            .map(|words| format!("{OFFLINE_COMMAND}({words} *)"));
        for rule in entries.chain(others.into_iter().take(MAX_COUNT)) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        self.tested_offline(rules)
    }

    /// Returns the choice with what it leaves open, or `None` if it does not help.
    fn tested_offline(&self, rules: Vec<String>) -> Option<RuleOffer> {
        let tried = self.with_rules(&rules)?;
        let decision = decide(&tried, self.facts);
        match (decision.behavior, decision.reason) {
            (DecisionBehavior::Allow, DecisionReason::Offline(_)) => RuleOffer::for_call(rules),
            (DecisionBehavior::Ask, DecisionReason::Command { .. }) => {
                let open = self.uncovered(&with_entries_as_commands(tried));
                self.partial(rules, open)
            }
            _ => None,
        }
    }
}

/// Returns the policy as it treats the parts of a line that runs offline.
fn with_entries_as_commands(mut policy: Policy) -> Policy {
    Arc::make_mut(&mut policy.rules)
        .treat_as_commands(|rule| rule.class == RuleClass::OfflineCommands);
    policy
}
