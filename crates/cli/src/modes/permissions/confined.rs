//! How the command of a call would be confined, in words.

use std::path::PathBuf;

use haft::{
    Confinement, NetworkAccess,
    engine::permissions::{
        Behavior, Facts, Policy, confine, decide, profile,
        sandbox::{ProfileReason, SettingsHost, SettingsHosts},
    },
};
use serde_json::{Value, json};

/// How the command of a call would be confined.
pub(super) struct Confined {
    confinement: Confinement,
    reason: ProfileReason,
    hosts: SettingsHosts,
    /// What was asked for that this machine cannot do.
    missing: Option<&'static str>,
}

impl Confined {
    /// `None`: it has no command, or would not run.
    pub(super) fn of(policy: &Policy, facts: &Facts) -> Option<Self> {
        if decide(policy, facts).behavior == Behavior::Deny {
            return None;
        }
        let (_, reason) = profile(policy, facts)?;
        Some(Self {
            confinement: confine(policy, facts)?,
            reason,
            hosts: SettingsHosts::of(policy),
            missing: policy.sandbox.missing(),
        })
    }

    fn network(&self) -> &'static str {
        match self.confinement.network {
            NetworkAccess::Nobody => "none",
            NetworkAccess::ByRule(_) => "by rule",
            NetworkAccess::Anybody => "open",
        }
    }

    /// On one line, or two.
    pub(super) fn text(&self) -> String {
        let network = match self.confinement.network {
            NetworkAccess::ByRule(_) => format!("{} ({})", self.network(), hosts(&self.hosts)),
            _ => self.network().to_owned(),
        };
        let said = format!(
            "profile: {}, because {}; network: {network}",
            self.confinement.profile.name(),
            self.reason
        );
        match self.missing {
            Some(missing) => format!("{said}\n{missing}"),
            None => said,
        }
    }

    /// All of it.
    pub(super) fn json(&self) -> Value {
        let paths = |paths: &[PathBuf]| -> Vec<String> {
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        };
        let texts = |list: &[SettingsHost]| -> Vec<String> {
            list.iter().map(ToString::to_string).collect()
        };
        let by_rule = matches!(self.confinement.network, NetworkAccess::ByRule(_));
        json!({
            "profile": self.confinement.profile.name(),
            "because": self.reason.to_string(),
            "missing": self.missing,
            "network": self.network(),
            "hosts": by_rule.then(|| json!({
                "allowed": texts(&self.hosts.allowed),
                "asked": texts(&self.hosts.asked),
                "denied": texts(&self.hosts.denied),
                "others": others(&self.hosts),
            })),
            "writable": paths(&self.confinement.writable),
            "protected": paths(&self.confinement.protected),
            "hidden": paths(&self.confinement.hidden),
            "closed": paths(&self.confinement.closed),
            "open": paths(&self.confinement.open),
            "untold": self.confinement.untold,
        })
    }
}

/// `a.org, b.org allowed; c.org denied; others asked`
fn hosts(rules: &SettingsHosts) -> String {
    let lists = [
        ("allowed", &rules.allowed),
        ("asked", &rules.asked),
        ("denied", &rules.denied),
    ];
    let mut said = String::new();
    for (word, list) in lists {
        if !list.is_empty() {
            let names: Vec<String> = list.iter().map(ToString::to_string).collect();
            said += &format!("{} {word}; ", names.join(", "));
        }
    }
    format!("{said}others {}", others(rules))
}

fn others(rules: &SettingsHosts) -> &'static str {
    if rules.closed { "denied" } else { "asked" }
}
