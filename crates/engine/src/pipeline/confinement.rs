//! The confinement of a call's command: the intended one, and its strength on this machine.

use std::sync::Arc;

use haft_contract::{CallContext, Confinement, ConfinementStrength, ProbeConfinement};

use crate::permissions::{CallFacts, Policy, confine};

/// Computes the confinement of a call's command, on a blocking thread. If that fails, it is the
/// strictest.
pub(super) async fn resolve_confinement(policy: &Policy, facts: CallFacts) -> Confinement {
    let policy = policy.clone();
    let looked_up = tokio::task::spawn_blocking(move || confine(&policy, &facts));
    looked_up.await.ok().flatten().unwrap_or_default()
}

/// Returns the real strength of the confinement, if the session has a probe.
pub(super) async fn probe_strength(
    confinement: &Confinement,
    cx: &CallContext,
) -> Option<ConfinementStrength> {
    let probe = cx.services.get::<Arc<dyn ProbeConfinement>>().ok()?;
    tokio::select! {
        strength = probe.strength(confinement) => strength,
        () = cx.cancel.cancelled() => None,
    }
}
