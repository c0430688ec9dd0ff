//! The confinement of a call's command: the intended one, and its strength on this machine.

use std::{path::PathBuf, sync::Arc};

use haft_contract::{
    CallContext, Confinement, ConfinementStrength, PermissionMode, ProbeConfinement, ToolUse,
};
use serde_json::json;

use crate::{
    Engine, SessionContext,
    permissions::{CallFacts, Policy, confine},
};

/// The tool that runs command lines.
const SHELL_TOOL: &str = "Bash";
/// A command line for each sandbox that most sessions need: one that only reads, one that writes.
const SAMPLE_LINES: [&str; 2] = ["true", "./program"];

/// Computes the confinement of a call's command, on a blocking thread. If that fails, returns the
/// strictest confinement.
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

/// Returns the directories that commands of the session have as their own: see
/// [`ProbeConfinement::private_tmp`].
pub(super) async fn private_tmp(cx: &CallContext, probes: bool) -> Vec<(PathBuf, PathBuf)> {
    let Ok(probe) = cx.services.get::<Arc<dyn ProbeConfinement>>() else {
        return Vec::new();
    };
    tokio::select! {
        directories = probe.private_tmp(probes) => directories,
        () = cx.cancel.cancelled() => Vec::new(),
    }
}

/// Returns whether undo will cover what a command with this confinement changes. Without a probe,
/// that is not known, and so not the case.
pub(super) async fn is_witnessed(confinement: &Confinement, cx: &CallContext) -> bool {
    let Ok(probe) = cx.services.get::<Arc<dyn ProbeConfinement>>() else {
        return false;
    };
    tokio::select! {
        witnessed = probe.is_witnessed(confinement, cx) => witnessed,
        () = cx.cancel.cancelled() => false,
    }
}

/// Returns the hosts that the user has allowed for commands in this session. Only the mode `auto`
/// decides by them before a command starts.
pub(super) fn allowed_hosts(policy: &Policy, cx: &CallContext) -> Vec<String> {
    match cx.services.get::<Arc<dyn ProbeConfinement>>() {
        Ok(probe) if policy.mode == PermissionMode::Auto => probe.allowed_hosts(),
        _ => Vec::new(),
    }
}

/// Sets up the sandboxes for the first commands of a session. Does nothing if the agent has no tool
/// that runs command lines.
pub(crate) async fn prepare_sandboxes(engine: &Engine, context: &SessionContext) {
    let probe = engine.services().get::<Arc<dyn ProbeConfinement>>();
    let (Ok(probe), Some(_)) = (probe, engine.pool().find(SHELL_TOOL)) else {
        return;
    };
    let policy = engine.policy(context);
    for line in SAMPLE_LINES {
        let call = ToolUse {
            id: String::new(),
            name: SHELL_TOOL.to_owned(),
            input: json!({ "command": line }),
        };
        if let Ok(facts) = super::facts(engine, call, context).await {
            probe
                .prepare(&resolve_confinement(&policy, facts).await)
                .await;
        }
    }
}
