//! What would be decided about a call, and why: for people who ask before anything runs.
//!
//! Facts and decision come from the functions that judge real calls, so that an explanation cannot differ from
//! what happens.

mod judge;
mod question;
mod stand_in;

use std::sync::Arc;

use haft_contract::Confinement;
use haft_engine::permissions::{
    Behavior, Covered, Decision, Facts, Policy, confine, decide, parts, profile,
    sandbox::{ProfileReason, SettingsHosts},
    suggest, uncovered,
};
use serde_json::Value;

pub use self::{judge::CallJudge, question::CallQuestion};
use crate::{OpenError, Permitted, SessionConfig, SessionParts, open_tools};

/// A call that was only asked about, and what would become of it.
pub struct ExplainedCall {
    /// What is known of it.
    pub facts: Facts,
    /// What may be done, and why.
    pub decision: Decision,
    /// Rules that would allow it, where it would be asked about.
    pub rules: Vec<String>,
    /// The parts of its command line by their place, and what covers each.
    pub parts: Vec<(usize, Covered)>,
    /// How its command would be confined. `None`: it has none, or would not run.
    pub confinement: Option<ExplainedConfinement>,
    /// Settings that wait for trust.
    pub left_out: Vec<String>,
    /// What does not hold of the confinement on this machine.
    pub sandbox_warning: Option<String>,
}

/// How a command would be confined, and why.
pub struct ExplainedConfinement {
    /// How.
    pub confinement: Confinement,
    /// Why in this profile.
    pub reason: ProfileReason,
    /// The hosts that settings and rules name.
    pub hosts: SettingsHosts,
    /// What was asked for that this machine cannot do.
    pub missing: Option<&'static str>,
}

impl ExplainedCall {
    /// All of it, as a text.
    pub fn in_words(&self) -> String {
        let Decision { behavior, because } = &self.decision;
        let mut text = format!("{}: {because}", behavior.name());
        if let Some(shell) = &self.facts.shell {
            let all = &shell.analysis.parts;
            for (at, covered) in &self.parts {
                let part = &all[*at];
                let indent = "  ".repeat(parts::part_depth(all, part) + 1);
                let covered = match covered {
                    Covered::Harmless => "harmless".to_owned(),
                    Covered::By(because) => format!("allowed: {because}"),
                    Covered::Nothing(why) => format!("asks: {why}"),
                };
                let name = parts::part_text(part, &shell.line).replace('\n', " ");
                text += &format!("\n{indent}{name}  {covered}");
                for effect in &part.finding.effects {
                    text += &format!("\n{indent}    {}", parts::effect_text(effect));
                }
            }
        }
        if let Some(confined) = &self.confinement {
            let profile = confined.confinement.profile.name();
            text += &format!("\nprofile: {profile}, because {}", confined.reason);
        }
        if !self.rules.is_empty() {
            text += &format!("\nwould be allowed by: {}", self.rules.join(", "));
        }
        text
    }
}

/// Judges a call as a session of this configuration would find it.
pub async fn explain_call(
    config: &SessionConfig,
    parts: SessionParts,
    tool: &str,
    input: Value,
) -> Result<ExplainedCall, OpenError> {
    let mut config = config.clone();
    // A directory that is missing makes no session, and no difference here.
    config.directories.retain(|directory| directory.is_dir());
    let left_out = Permitted::load(&config)?.settings.left_out;
    let haft = open_tools(&config, parts).await?;
    let context = haft.context();
    let mut policy = haft.engine().policy(&context);
    let folder = haft.engine().folder().to_path_buf();
    let judge = CallJudge::new(haft.services().clone(), folder).await?;
    let facts = judge.facts(tool, input, &context).await;
    let facts = facts.map_err(anyhow::Error::msg)?;
    // As it would be decided: a command that counts on being confined is asked about where it is not.
    let (unconfined, sandbox_warning) = match facts.shell {
        Some(_) => sandbox(&config),
        None => (false, None),
    };
    Arc::make_mut(&mut policy.sandbox).unconfined = unconfined;
    let decision = decide(&policy, &facts);
    let rules = match decision.behavior {
        Behavior::Ask => suggest(&policy, &facts, &context.bases()),
        Behavior::Allow | Behavior::Deny => Vec::new(),
    };
    Ok(ExplainedCall {
        rules,
        parts: uncovered(&policy, &facts),
        confinement: match decision.behavior {
            Behavior::Deny => None,
            Behavior::Allow | Behavior::Ask => confinement(&policy, &facts),
        },
        decision,
        left_out,
        sandbox_warning,
        facts,
    })
}

fn confinement(policy: &Policy, facts: &Facts) -> Option<ExplainedConfinement> {
    let (_, reason) = profile(policy, facts)?;
    Some(ExplainedConfinement {
        confinement: confine(policy, facts)?,
        reason,
        hosts: SettingsHosts::of(policy),
        missing: policy.sandbox.missing(),
    })
}

/// Whether nothing confines commands here, and what does not hold: by trying it.
#[cfg(feature = "shell")]
fn sandbox(config: &SessionConfig) -> (bool, Option<String>) {
    let among = config.environment.temporary_folder();
    let mechanism = haft_tools::sandbox::strongest(config.program.as_deref(), &among);
    let unconfined = mechanism == haft_tools::sandbox::Mechanism::None;
    (unconfined, mechanism.warning())
}

/// A build without commands confines none.
#[cfg(not(feature = "shell"))]
fn sandbox(_: &SessionConfig) -> (bool, Option<String>) {
    (true, None)
}
