//! The choices of rules in a question, and the effect of an answer on the call itself.

use std::sync::{Arc, atomic::Ordering};

use haft_contract::{
    ApprovalAnswer, ConfinementProfile, ConfinementStrength, ContextPatch, RuleList, RuleOffer,
    rule_offer::OfferKind,
};

use super::{CallAdmission, confinement};
use crate::permissions::{CallFacts, RuleSource, SettingsScope, suggest};

impl CallAdmission<'_> {
    /// Returns the choices of rules. Those that rely on the whole sandbox are offered only if it
    /// works; the choice to run without network is the last one after another answer to it.
    pub(super) async fn offers(&mut self, facts: &CallFacts) -> Vec<RuleOffer> {
        let bases = self.context.bases();
        Arc::make_mut(&mut self.policy.sandbox).whole = true;
        let mut offers = suggest(&self.policy, facts, &bases);
        if !offers.iter().any(relies_on_sandbox) {
            return offers;
        }
        if !self.has_whole_sandbox(facts).await {
            let sandbox = Arc::make_mut(&mut self.policy.sandbox);
            (sandbox.whole, sandbox.unwitnessed) = (false, true);
            offers = suggest(&self.policy, facts, &bases);
        }
        if self.engine.offline_was_declined.load(Ordering::Relaxed) {
            offers.sort_by_key(|offer| offer.kind() == OfferKind::Offline);
        }
        offers
    }

    /// Returns whether the command would be confined completely, and undo would cover its changes if it
    /// can make any.
    async fn has_whole_sandbox(&self, facts: &CallFacts) -> bool {
        let confinement = confinement::resolve_confinement(&self.policy, facts.clone()).await;
        let strength = confinement::probe_strength(&confinement, self.cx).await;
        strength == Some(ConfinementStrength::Whole)
            && (confinement.profile == ConfinementProfile::ReadOnly
                || confinement::is_witnessed(&confinement, self.cx).await)
    }

    /// Applies the rules of an answer that decide how commands run: the call itself runs like the next
    /// ones. Also records whether the user prefers another choice to a run without network.
    pub(super) fn apply_grants(&mut self, answer: &ApprovalAnswer, offers: &[RuleOffer]) {
        let mut added: Vec<&String> = Vec::new();
        match answer {
            ApprovalAnswer::AllowAlways => {
                added.extend(offers.first().into_iter().flat_map(|offer| &offer.rules));
            }
            ApprovalAnswer::Updated { patches, keep, .. } => {
                added.extend(keep);
                added.extend(patches.iter().filter_map(|patch| match patch {
                    ContextPatch::AddRule {
                        list: RuleList::Allow,
                        rule,
                    } => Some(rule),
                    _ => None,
                }));
            }
            ApprovalAnswer::Unavailable => return,
            ApprovalAnswer::Allow
            | ApprovalAnswer::InputEdited { .. }
            | ApprovalAnswer::Deny { .. } => {}
        }
        let chosen = RuleOffer {
            rules: added.into_iter().cloned().collect(),
            asks_again: Vec::new(),
        };
        let was_offered = offers
            .iter()
            .any(|offer| offer.kind() == OfferKind::Offline);
        if was_offered && chosen.kind() != OfferKind::Offline {
            self.engine
                .offline_was_declined
                .store(true, Ordering::Relaxed);
        }
        if !relies_on_sandbox(&chosen) {
            return;
        }
        let bases = self.context.bases();
        let rules = Arc::make_mut(&mut self.policy.rules);
        for rule in &chosen.rules {
            let source = RuleSource::from_scope(SettingsScope::Session);
            // An invalid rule is reported when it is added to the session.
            let _ = rules.add(RuleList::Allow, rule, source, &bases);
        }
    }
}

fn relies_on_sandbox(offer: &RuleOffer) -> bool {
    matches!(offer.kind(), OfferKind::Offline | OfferKind::ReadDomains)
}
