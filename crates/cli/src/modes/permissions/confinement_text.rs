//! Describes how the command of a call would be confined.

use std::path::PathBuf;

use haft::{
    NetworkAccess,
    engine::permissions::sandbox::{SettingsHost, SettingsHosts},
};
use haft_host::ExplainedConfinement;
use serde_json::{Value, json};

/// The confinement of a call's command, for display.
pub(super) struct ConfinementText<'a>(pub(super) &'a ExplainedConfinement);

impl ConfinementText<'_> {
    fn network(&self) -> &'static str {
        match &self.0.confinement.network {
            NetworkAccess::Nobody => "none",
            NetworkAccess::ByRule(_) => "by rule",
            NetworkAccess::Only(hosts) if hosts.lists().allowed.is_empty() => "none",
            NetworkAccess::Only(_) => "only the named hosts",
            NetworkAccess::Anybody => "open",
        }
    }

    /// Returns a description of one or two lines.
    pub(super) fn text(&self) -> String {
        let network = match self.0.confinement.network {
            NetworkAccess::ByRule(_) => format!("{} ({})", self.network(), hosts(&self.0.hosts)),
            _ => self.network().to_owned(),
        };
        let message = format!(
            "profile: {}, because {}; network: {network}",
            self.0.confinement.profile.name(),
            self.0.reason
        );
        let access = self.0.access.as_ref();
        let access = access.map_or_else(String::new, |access| format!("; with {access}"));
        let undo = if self.0.relies_on_undo {
            "; undo: on"
        } else {
            ""
        };
        let message = format!("{message}{access}{undo}");
        match self.0.missing {
            Some(missing) => format!("{message}\n{missing}"),
            None => message,
        }
    }

    /// Returns all details.
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
        let by_rule = matches!(self.0.confinement.network, NetworkAccess::ByRule(_));
        json!({
            "profile": self.0.confinement.profile.name(),
            "because": self.0.reason.to_string(),
            "missing": self.0.missing,
            "network": self.network(),
            "hosts": by_rule.then(|| json!({
                "allowed": texts(&self.0.hosts.allowed),
                "asked": texts(&self.0.hosts.asked),
                "denied": texts(&self.0.hosts.denied),
                "others": others(&self.0.hosts),
            })),
            "writable": paths(&self.0.confinement.writable),
            "protected": paths(&self.0.confinement.protected),
            "hidden": paths(&self.0.confinement.hidden),
            "closed": paths(&self.0.confinement.closed),
            "open": paths(&self.0.confinement.open),
            "untold": self.0.confinement.untold,
            "access": self.0.access,
            "undo": self.0.relies_on_undo,
        })
    }
}

/// Formats the host rules, for example `a.org, b.org allowed; c.org denied; others asked`.
fn hosts(rules: &SettingsHosts) -> String {
    let lists = [
        ("allowed", &rules.allowed),
        ("asked", &rules.asked),
        ("denied", &rules.denied),
    ];
    let mut message = String::new();
    for (word, list) in lists {
        if !list.is_empty() {
            let names: Vec<String> = list.iter().map(ToString::to_string).collect();
            message += &format!("{} {word}; ", names.join(", "));
        }
    }
    format!("{message}others {}", others(rules))
}

fn others(rules: &SettingsHosts) -> &'static str {
    if rules.closed { "denied" } else { "asked" }
}
