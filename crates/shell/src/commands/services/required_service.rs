//! The user's service that a reading command queries.
//!
//! Such a command changes nothing, but it cannot work without the service. Its verdict is therefore
//! [`EffectVerdict::ReadsNetwork`] and not [`EffectVerdict::ReadOnly`].

use crate::{
    arg::Arg,
    effect::{CommandFinding, Effect, EffectVerdict, OwnService},
};

/// Programs, the service that each queries, and the verbs that query no service.
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

/// Arguments with which all of these programs only print.
const PRINTS: [&str; 4] = ["--help", "--version", "-v", "--client"];

/// Changes a read-only finding to [`EffectVerdict::ReadsNetwork`] if the command needs a service.
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
