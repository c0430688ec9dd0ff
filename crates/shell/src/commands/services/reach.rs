//! Which of one's own services a reading command asks.
//!
//! Such a command changes nothing, and yet it cannot work without its socket: it is no harmless one,
//! but one that reads the network.

use crate::{
    arg::Arg,
    effect::{CommandFinding, Effect, EffectVerdict, OwnService},
};

/// A program, what it asks, and its verbs that ask nothing.
const PROGRAMS: &[(&str, OwnService, &[&str])] = &[
    (
        "gh",
        OwnService::CodeHost,
        &[
            "alias",
            "completion",
            "config",
            "extension",
            "help",
            "version",
        ],
    ),
    ("kubectl oc", OwnService::Cluster, LOCAL_CLUSTER),
    ("docker", OwnService::Containers, &["context", "help"]),
    ("podman", OwnService::Containers, &["help"]),
    ("systemctl", OwnService::Init, &[]),
    ("loginctl", OwnService::Init, &[]),
    ("hostnamectl", OwnService::Init, &[]),
    ("timedatectl", OwnService::Init, &["list-timezones"]),
    (
        "localectl",
        OwnService::Init,
        &["list-locales", "list-keymaps"],
    ),
];

const LOCAL_CLUSTER: &[&str] = &["completion", "config", "help", "options", "plugin"];

/// Words with which every one of them only prints.
const PRINTS: [&str; 4] = ["--help", "--version", "-v", "--client"];

/// The same finding, but for a harmless one that needs a service.
pub(in crate::commands) fn with_service(
    name: &str,
    argv: &[Arg],
    finding: CommandFinding,
) -> CommandFinding {
    if finding.verdict != EffectVerdict::ReadOnly {
        return finding;
    }
    let called =
        |(names, _, _): &&(&str, OwnService, &[&str])| names.split(' ').any(|one| one == name);
    let Some((_, service, local)) = PROGRAMS.iter().find(called) else {
        return finding;
    };
    let words = || argv.iter().skip(1).filter_map(Arg::text);
    let verb = words().find(|word| !word.starts_with('-'));
    let usage = argv.len() == 1 && *service != OwnService::Init;
    let buildx = verb == Some("buildx") && words().any(|word| word == "version");
    if usage
        || buildx
        || words().any(|word| PRINTS.contains(&word))
        || verb.is_some_and(|verb| local.contains(&verb))
    {
        return finding;
    }
    CommandFinding {
        verdict: EffectVerdict::ReadsNetwork,
        reason: service.reason().into(),
        ..finding.with(Effect::Service(*service))
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::find;
    use crate::effect::EffectVerdict;

    #[test]
    fn only_what_asks_a_service_reads_the_network() {
        let cases = [
            ("gh pr list", EffectVerdict::ReadsNetwork),
            ("gh --version", EffectVerdict::ReadOnly),
            ("gh config get editor", EffectVerdict::ReadOnly),
            ("gh pr merge 1", EffectVerdict::Mutating),
            ("kubectl get pods", EffectVerdict::ReadsNetwork),
            ("kubectl version --client", EffectVerdict::ReadOnly),
            ("kubectl config current-context", EffectVerdict::ReadOnly),
            ("docker ps -a", EffectVerdict::ReadsNetwork),
            ("docker compose ps", EffectVerdict::ReadsNetwork),
            ("docker context ls", EffectVerdict::ReadOnly),
            ("docker", EffectVerdict::ReadOnly),
            ("systemctl", EffectVerdict::ReadsNetwork),
            ("systemctl status ssh", EffectVerdict::ReadsNetwork),
            ("journalctl -u ssh", EffectVerdict::ReadOnly),
        ];
        for (line, verdict) in cases {
            assert_eq!(find(line).verdict, verdict, "{line}");
        }
    }
}
