//! The note on a command that ran without network because of `sandbox.offlineCommands`: which hosts it
//! tried to reach, and which rules would open the network.

use haft_contract::{Confinement, NetworkAccess};
use haft_shell::{
    Analysis,
    commands::rule_families::{command_family, offline_bundle},
};

use super::sandbox_refusals::SandboxRefusal;

/// Returns whether a command with this confinement runs without network although its line needs no
/// permission for that.
pub(crate) fn is_offline(confinement: &Confinement) -> bool {
    match &confinement.network {
        NetworkAccess::Only(hosts) => hosts.lists().allowed.is_empty(),
        NetworkAccess::Nobody | NetworkAccess::ByRule(_) | NetworkAccess::Anybody => false,
    }
}

/// Returns the note, if the proxy refused connections (`refused`), or if the output names hosts that
/// the command could not reach (`seen`).
pub(crate) fn describe_refusal(
    analysis: &Analysis,
    refused: &[String],
    seen: &[SandboxRefusal],
) -> Option<String> {
    let mut hosts: Vec<&str> = refused
        .iter()
        .map(|line| line.split(": ").next().unwrap_or(line))
        .collect();
    let mut is_unnamed = false;
    for one in seen {
        match one {
            SandboxRefusal::Network(Some(host))
                if hosts.iter().all(|known| !known.contains(&**host)) =>
            {
                hosts.push(host);
            }
            SandboxRefusal::Network(None) => is_unnamed = true,
            _ => {}
        }
    }
    hosts.dedup();
    hosts.truncate(5);
    let tried = match (hosts.is_empty(), is_unnamed) {
        (false, _) => format!(
            "The sandbox refused the connection to {}. ",
            hosts.join("; ")
        ),
        (true, true) => "The sandbox refused the network. ".to_owned(),
        (true, false) => return None,
    };
    let mut rules: Vec<String> = Vec::new();
    for part in &analysis.parts {
        if offline_bundle(part).is_empty() {
            continue;
        }
        let rule = command_family(part).map(|family| format!("`Bash({} *)`", family.words));
        rules.extend(rule.filter(|rule| !rules.contains(rule)));
    }
    let remedy = match rules.is_empty() {
        true => "A rule in `permissions.allow` for the command opens it.".to_owned(),
        false => format!(
            "The rule {} in `permissions.allow` opens it.",
            rules.join(", ")
        ),
    };
    Some(format!(
        "{tried}The command ran without network because of `sandbox.offlineCommands`. {remedy}"
    ))
}

#[cfg(test)]
mod tests {
    use haft_shell::{LineLocation, analyze};

    use super::*;

    #[test]
    fn the_note_names_the_host_and_the_rule() {
        let place = LineLocation {
            cwd: "/p".into(),
            home: None,
        };
        let line = analyze("cd web && go test ./... && git status", &place);
        let refused = ["example.com, port 443: A rule denies example.com.".to_owned()];
        let text = "The sandbox refused the connection to example.com, port 443. The command ran \
                    without network because of `sandbox.offlineCommands`. The rule `Bash(go test *)` \
                    in `permissions.allow` opens it.";
        assert_eq!(
            describe_refusal(&line, &refused, &[]).as_deref(),
            Some(text)
        );
        let seen = [SandboxRefusal::Network(Some("example.com".to_owned()))];
        assert_eq!(
            describe_refusal(&line, &refused, &seen).as_deref(),
            Some(text)
        );
        assert!(
            describe_refusal(&line, &[], &seen)
                .unwrap()
                .contains("connection to example.com. ")
        );
        assert_eq!(describe_refusal(&line, &[], &[]), None);
    }
}
