//! Explains the decision on a call and its reasons, without running anything.
//!
//! The facts and the decision come from the functions that evaluate real calls, so that an
//! explanation cannot differ from what happens.

mod call_explainer;
mod call_question;
mod placeholder_tools;

use std::{path::Path, sync::Arc};

use haft_contract::{Confinement, PermissionMode, RuleOffer};
use haft_engine::permissions::{
    CallFacts, Decision, DecisionBehavior, PartCoverage, Policy, PrivateTmp, approval_parts,
    confine, decide, profile,
    sandbox::{ProfileReason, SettingsHosts, is_witnessed},
    suggest, uncovered_parts,
};
use serde_json::Value;

pub use self::{call_explainer::CallExplainer, call_question::CallQuestion};
use crate::{OpenError, ResolvedSettings, SessionConfig, SessionParts, open_tools};

/// An explained call.
pub struct ExplainedCall {
    /// The facts of the call.
    pub facts: CallFacts,
    /// The decision and its reason.
    pub decision: Decision,
    /// The choices of rules that a question about it offers, if it would ask.
    pub offers: Vec<RuleOffer>,
    /// The parts of its command line with their nesting depth, and what covers each.
    pub parts: Vec<(usize, PartCoverage)>,
    /// The confinement of its command. `None`: it has no command, or would not run.
    pub confinement: Option<ExplainedConfinement>,
    /// Settings that are ignored until the directory is trusted.
    pub left_out: Vec<String>,
    /// The parts of the confinement that this machine cannot enforce.
    pub sandbox_warning: Option<String>,
}

/// The confinement of a command, with reasons.
pub struct ExplainedConfinement {
    /// The confinement.
    pub confinement: Confinement,
    /// The reason for the profile.
    pub reason: ProfileReason,
    /// The hosts that settings and rules name.
    pub hosts: SettingsHosts,
    /// The access that the command gets in addition once it is approved, as text.
    pub access: Option<String>,
    /// Whether the mode `auto` relies on undo for the command.
    pub relies_on_undo: bool,
    /// A setting that this machine cannot enforce.
    pub missing: Option<&'static str>,
}

impl ExplainedCall {
    /// Formats the explanation as text.
    pub fn to_text(&self) -> String {
        let Decision {
            behavior,
            reason: because,
        } = &self.decision;
        let mut text = format!("{}: {}", behavior.name(), because.headline());
        if let Some(shell) = &self.facts.shell {
            let all = &shell.analysis.parts;
            for (at, covered) in &self.parts {
                let part = &all[*at];
                let indent = "  ".repeat(approval_parts::part_depth(all, part) + 1);
                let covered = match approval_parts::part_decision(covered) {
                    (word, None) => word.to_owned(),
                    (word, Some(why)) => format!("{word}: {why}"),
                };
                let name = approval_parts::part_text(part, &shell.line).replace('\n', " ");
                text += &format!("\n{indent}{name}  {covered}");
                for effect in &part.finding.effects {
                    text += &format!("\n{indent}    {}", approval_parts::effect_text(effect));
                }
            }
        }
        if let Some(confined) = &self.confinement {
            let profile = confined.confinement.profile.name();
            text += &format!("\nprofile: {profile}, because {}", confined.reason);
        }
        for offer in &self.offers {
            text += &format!("\n{}: {}", offer_title(offer), offer.to_text());
        }
        text
    }
}

/// Explains a call as a session with this configuration would decide it.
pub async fn explain_call(
    config: &SessionConfig,
    parts: SessionParts,
    tool: &str,
    input: Value,
) -> Result<ExplainedCall, OpenError> {
    let mut config = config.clone();
    // A missing directory would prevent a session, but does not affect the explanation.
    config.directories.retain(|directory| directory.is_dir());
    let left_out = ResolvedSettings::load(&config)?.settings.left_out;
    let haft = open_tools(&config, parts).await?;
    let context = haft.context();
    let mut policy = haft.engine().policy(&context);
    let folder = haft.engine().folder().to_path_buf();
    let judge = CallExplainer::new(haft.services().clone(), folder).await?;
    let facts = judge.facts(tool, input, &context).await;
    let mut facts = facts.map_err(anyhow::Error::msg)?;
    // Decide as in a session: a command that relies on confinement asks if nothing confines it.
    let machine = match facts.shell {
        Some(_) => {
            let among = config.environment.temporary_folder();
            MachineSandbox::probe(config.program.as_deref(), &among)
        }
        None => MachineSandbox::default(),
    };
    let sandbox_warning = machine.warning;
    let settings = Arc::make_mut(&mut policy.sandbox);
    (settings.unconfined, settings.unwitnessed) = (machine.unconfined, machine.unwitnessed);
    settings.whole = !machine.unwitnessed;
    if facts.shell.is_some() && !policy.sandbox.unwitnessed {
        policy.private_tmp = Some(Arc::new(PrivateTmp::for_new_session(&policy)));
        facts.resolve_private_tmp(&policy);
    }
    let decision = decide(&policy, &facts);
    let offers = match decision.behavior {
        DecisionBehavior::Ask => suggest(&policy, &facts, &context.bases()),
        DecisionBehavior::Allow | DecisionBehavior::Deny => Vec::new(),
    };
    Ok(ExplainedCall {
        offers,
        parts: uncovered_parts(&policy, &facts),
        confinement: match decision.behavior {
            DecisionBehavior::Deny => None,
            DecisionBehavior::Allow | DecisionBehavior::Ask => confinement(&policy, &facts),
        },
        decision,
        left_out,
        sandbox_warning,
        facts,
    })
}

/// Returns the title of a choice of rules in an explanation.
pub fn offer_title(offer: &RuleOffer) -> &'static str {
    match offer.asks_again.is_empty() {
        true => "would be allowed by",
        false => "would partly be allowed by",
    }
}

fn confinement(policy: &Policy, facts: &CallFacts) -> Option<ExplainedConfinement> {
    let (_, reason) = profile(policy, facts)?;
    Some(ExplainedConfinement {
        confinement: confine(policy, facts)?,
        reason,
        hosts: SettingsHosts::from_policy(policy),
        access: approval_parts::approved_access_text(policy, facts),
        relies_on_undo: policy.mode == PermissionMode::Auto && is_witnessed(policy, facts),
        missing: policy.sandbox.missing(),
    })
}

/// The sandbox of this machine.
#[derive(Default)]
struct MachineSandbox {
    /// Whether nothing confines commands.
    unconfined: bool,
    /// Whether commands can change files without being seen.
    unwitnessed: bool,
    /// The warning about guarantees that are missing.
    warning: Option<String>,
}

impl MachineSandbox {
    /// Probes the sandbox.
    #[cfg(feature = "shell")]
    fn probe(program: Option<&Path>, among: &Path) -> Self {
        use haft_tools::sandbox::Mechanism;
        let mechanism = haft_tools::sandbox::strongest(program, among);
        Self {
            unconfined: mechanism == Mechanism::None,
            unwitnessed: matches!(mechanism, Mechanism::Reduced | Mechanism::None),
            warning: mechanism.warning(),
        }
    }

    /// A build without commands cannot confine any.
    #[cfg(not(feature = "shell"))]
    fn probe(_: Option<&Path>, _: &Path) -> Self {
        Self {
            unconfined: true,
            unwitnessed: true,
            warning: None,
        }
    }
}
