//! How the command of a call is confined: as it should be, and as it really is.

use std::sync::Arc;

use haft_contract::{CallContext, Confinement, ConfinementStrength, ProbeConfinement};

use crate::permissions::{Facts, Policy, confine};

/// How the command of a call is to be confined: looked up on a thread that may take its time. The strictest
/// where that fails.
pub(super) async fn of(policy: &Policy, facts: Facts) -> Confinement {
    let policy = policy.clone();
    let looked_up = tokio::task::spawn_blocking(move || confine(&policy, &facts));
    looked_up.await.ok().flatten().unwrap_or_default()
}

/// How would it really be confined, if anything here can tell?
pub(super) async fn strength(
    confinement: &Confinement,
    cx: &CallContext,
) -> Option<ConfinementStrength> {
    let probe = cx.services.get::<Arc<dyn ProbeConfinement>>().ok()?;
    tokio::select! {
        strength = probe.strength(confinement) => strength,
        () = cx.cancel.cancelled() => None,
    }
}
