//! docker, podman and compose.

use crate::{
    arg::Arg,
    commands::{
        options::{self, ParsedArguments},
        spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, UnsafeOption, runs, writes},
        verbs::{self, VerbProgram, change, unsure, verb},
    },
    effect::{CommandFinding, Effect, EffectVerdict},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Own("docker", docker),
    KnownCommand::Own("podman", podman),
    KnownCommand::Own("docker-compose podman-compose", launched_compose),
];

const UNKNOWN: &str = "what this verb does is not known, or it is a plugin";

const DOCKER: VerbProgram = VerbProgram {
    before: CommandSpec::prints("docker", "-Dv -l: --debug --log-level= --version --help")
        .style(OptionStyle::Posix)
        .strict()
        .refusing(&[
            runs("-H: --host= -c: --context=", "chooses another endpoint"),
            runs("--config=", "chooses another configuration"),
            runs(
                "--tls --tlsverify --tlscacert= --tlscert= --tlskey=",
                "chooses other credentials",
            ),
        ]),
    verbs: VERBS,
    others: OTHERS,
    unknown: UNKNOWN,
};

const PODMAN: VerbProgram = VerbProgram {
    before: CommandSpec::prints("podman", "-v --log-level= --version --help")
        .style(OptionStyle::Posix)
        .strict()
        .refusing(&[
            runs(
                "-r -c: --url= --connection= --remote --identity= --ssh=",
                "chooses another endpoint",
            ),
            runs(
                "--root= --runroot= --imagestore= --storage-driver= --storage-opt= --config= --module= \
                 --conmon= --runtime= --hooks-dir= --cgroup-manager= --network-cmd-path= \
                 --network-config-dir= --tmpdir= --volumepath= --out=",
                "chooses another configuration or program",
            ),
        ]),
    ..DOCKER
};

const VERBS: &[CommandSpec] = &[
    verb(
        "ps container/ls container/list container/ps pod/ps pod/ls",
        "-aqslhp -f: -n: --all --filter= --format= --last= --latest --no-trunc --quiet --size --help \
         --pod --sort= --namespace --external --noheading --ns --sync",
    ),
    verb(
        "images image/ls image/list",
        "-aqhn -f: --all --digests --filter= --format= --no-trunc --quiet --tree --help --sort= \
         --noheading --history",
    ),
    verb(
        "logs container/logs service/logs pod/logs",
        "-ftlc -n: --details --follow --since= --tail= --timestamps --until= --help --no-resolve \
         --no-task-ids --no-trunc --raw --names --latest --color",
    ),
    verb(
        "inspect container/inspect image/inspect network/inspect volume/inspect node/inspect \
         service/inspect plugin/inspect pod/inspect context/inspect",
        "-svl -f: --format= --size --type= --platform= --verbose --pretty --help --latest",
    ),
    verb("info system/info version", "-f: --format= --help"),
    verb("top container/top", "--help").with_evaluator(top),
    verb(
        "stats container/stats pod/stats",
        "-al -i: --all --format= --no-stream --no-trunc --help --latest --no-reset --interval=",
    ),
    verb(
        "diff container/diff port container/port image/diff",
        "-al --all --latest --format= --help",
    ),
    verb(
        "history image/history",
        "-Hq --format= --human --no-trunc --platform= --quiet --help",
    ),
    verb(
        "events system/events",
        "-f: --filter= --format= --since= --until= --no-trunc --stream --help",
    ),
    verb("system/df", "-v --format= --verbose --help"),
    verb("wait container/wait", "--help"),
    verb(
        "volume/ls volume/list network/ls network/list plugin/ls plugin/list node/ls node/list \
         service/ls service/list secret/ls secret/list config/ls config/list context/ls \
         context/list stack/ls stack/list service/ps node/ps stack/ps stack/services machine/ls \
         machine/list system/connection/ls system/connection/list manifest/exists image/exists \
         container/exists volume/exists network/exists pod/exists image/tree",
        "-q -f: --cluster --filter= --format= --quiet --no-trunc --no-resolve --noheading --help",
    ),
    verb("context/show", "--help"),
    verb("buildx/ls buildx/version", "--format= --no-trunc --help"),
    verb(
        "buildx/du builder/du",
        "--filter= --verbose --format= --help",
    ),
    verb("help", ""),
    // The arguments after `compose` belong to another program.
    verb("compose", "").with_evaluator(compose_behind),
];

const OTHERS: &[verbs::UnsafeVerbs] = &[
    unsure("search", "it queries a registry").contacting(),
    unsure(
        "manifest/inspect buildx/imagetools",
        "it queries a registry",
    )
    .contacting(),
    unsure("swarm/join-token swarm/unlock-key", "it prints a token"),
    unsure("config/inspect", "it prints what the configuration holds"),
    unsure("exec container/exec", "it runs a command in a container"),
    unsure("attach container/attach", "it takes part in a container"),
    change(
        "run container/run create container/create pod/create play/kube kube/play",
        "it makes a container",
    ),
    change(
        "start stop restart kill pause unpause container/start container/stop container/restart \
         container/kill container/pause container/unpause pod/start pod/stop",
        "it starts or stops containers",
    ),
    change(
        "rm container/rm container/prune rmi image/rm image/prune volume/rm volume/prune network/rm \
         network/prune system/prune builder/prune buildx/prune pod/rm pod/prune system/reset",
        "it deletes containers, images or volumes",
    ),
    change(
        "build image/build buildx/build builder/build buildx/bake commit container/commit tag image/tag \
         import image/import load image/load",
        "it makes an image",
    ),
    change("pull image/pull", "it downloads an image").contacting(),
    change("push image/push", "it uploads an image").contacting(),
    change("login logout", "it changes credentials").contacting(),
    change(
        "cp container/cp save image/save export container/export",
        "it writes files",
    ),
    change(
        "rename update volume/create network/create network/connect network/disconnect context/create \
         context/use context/rm context/update context/export context/import secret/create secret/rm \
         config/create config/rm service/create service/update service/rm service/scale stack/deploy \
         stack/rm swarm/init swarm/join swarm/leave node/update plugin/install plugin/rm",
        "it changes the daemon's objects",
    ),
];

fn docker(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&DOCKER, argv)
}

fn podman(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&PODMAN, argv)
}

/// Returns whether `container/ls`, `compose/ps` and similar verbs only read.
pub(in crate::commands) fn is_reading_verb(verb: &str) -> bool {
    match verb.strip_prefix("compose/") {
        Some(verb) => COMPOSE.verbs.iter().any(|spec| spec.is_called(verb)),
        // The next word selects what `docker compose` does.
        None => verb != "compose" && VERBS.iter().any(|spec| spec.is_called(verb)),
    }
}

/// `docker top c -o …` passes its arguments to ps on the host.
fn top(parsed: &ParsedArguments<'_>) -> CommandFinding {
    match parsed.operands.get(1) {
        Some(more) if parsed.verdict().is_none() => {
            CommandFinding::unknown("it hands options to ps").with_span(more.span)
        }
        _ => parsed.finding(OperandKind::Text),
    }
}

/// Analyzes `docker-compose`, a separate program that the workspace often provides.
fn launched_compose(argv: &[Arg]) -> CommandFinding {
    let finding = compose(argv);
    let asks = matches!(argv, [_, only] if only.is("--version") || only.is("version") || only.is("--help"));
    if finding.verdict == EffectVerdict::ReadOnly && !asks {
        return CommandFinding {
            effects: finding.effects,
            ..CommandFinding::unknown("it runs commands from files of the workspace")
        };
    }
    finding
}

fn compose_behind(parsed: &ParsedArguments<'_>) -> CommandFinding {
    compose(parsed.argv)
}

const COMPOSE: VerbProgram = VerbProgram {
    before: CommandSpec::prints(
        "compose",
        "-f< -p: -v --file< --project-name= --profile= --env-file< --project-directory= --ansi= \
         --progress= --parallel= --all-resources --compatibility --version --help",
    )
    .style(OptionStyle::Posix)
    .strict()
    .refusing(COMPOSE_REFUSED),
    verbs: &[
        verb(
            "ps images",
            "-aq --all --filter= --format= --quiet --services --status= --no-trunc --orphans --help",
        ),
        verb("ls", "-aq --all --filter= --format= --quiet --help"),
        verb(
            "logs",
            "-ft -n: --follow --timestamps --tail= --since= --until= --index= --no-color \
             --no-log-prefix --help",
        ),
        verb(
            "top port version volumes stats events",
            "--help --json --no-stream --format= --protocol= \
              --index= -f: --short -aq --all --quiet",
        ),
    ],
    others: &[
        unsure("exec run", "it runs a command in a container"),
        unsure(
            "config convert",
            "it prints what .env and the environment hold",
        ),
        change(
            "up down start stop restart kill rm build create pause unpause scale watch",
            "it starts, stops or deletes containers",
        ),
        change("pull push publish", "it talks to a registry").contacting(),
        change("cp export", "it writes files"),
    ],
    unknown: UNKNOWN,
};

const COMPOSE_REFUSED: &[UnsafeOption] = &[
    runs("-H: --host= -c: --context=", "chooses another endpoint"),
    runs(
        "--tls --tlsverify --tlscacert= --tlscert= --tlskey=",
        "chooses other credentials",
    ),
    writes("--dry-run", "is not known to be safe"),
];

fn compose(argv: &[Arg]) -> CommandFinding {
    let before = options::parse(&COMPOSE.before, argv);
    let finding = verbs::judge(&COMPOSE, argv);
    let files = before.options.iter().filter(|given| {
        let name = given.name;
        name == "-f" || name == "--file" || name == "--env-file"
    });
    let mut finding = finding;
    for given in files {
        let Some(value) = &given.value else { continue };
        let remote = value
            .text()
            .is_none_or(|text| text.contains("://") || text.starts_with("git@"));
        if remote {
            let effects = finding.effects;
            finding = CommandFinding::unknown("the file may be a remote one").with_span(given.span);
            finding.effects = effects;
            finding.effects.push(Effect::Net(None));
        } else if !value.is("-") {
            finding.effects.push(options::content(value));
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::testing::*, effect::RuleCoverage};

    #[test]
    fn reading_verbs_are_read_only() {
        assert_only_reads(&[
            "docker",
            "docker --version",
            "docker -v",
            "docker ps",
            "docker ps -a --format '{{.Names}}'",
            "docker ps -aq -f status=exited",
            "docker container ls --no-trunc",
            "docker images",
            "docker image ls -q",
            "docker logs -f --tail 100 web",
            "docker logs web -n 5",
            "docker inspect web --format '{{.State}}'",
            "docker image inspect x",
            "docker info",
            "docker version -f x",
            "docker top web",
            "docker stats --no-stream",
            "docker diff web",
            "docker port web",
            "docker history --no-trunc x",
            "docker -D volume ls",
            "docker network inspect bridge",
            "docker system df -v",
            "docker context ls",
            "docker run --help",
            "docker compose ps",
            "docker compose -f dev.yml -p x logs --tail=50 web",
            "docker compose ls -a",
            "docker-compose --version",
            "podman ps -a",
            "podman images",
            "podman pod ps",
            "podman volume inspect v",
        ]);
    }

    #[test]
    fn other_verbs_and_endpoints_are_not() {
        assert_not_read_only(&[
            "docker run x",
            "docker run -it --rm x --help",
            "docker exec web ls",
            "docker rm web",
            "docker rmi x",
            "docker system prune",
            "docker pull x",
            "docker push x",
            "docker build .",
            "docker cp web:/x .",
            "docker save -o f x",
            "docker login",
            "docker search x",
            "docker swarm join-token worker",
            "docker manifest inspect x",
            "docker ps $x",
            "docker ps --unknown",
            "docker top web -o args",
            "docker top web eww",
            "docker some-plugin",
            "docker $x ps",
            "docker compose up -d",
            "docker compose exec web sh",
            "docker compose -f https://example.com/x ps",
            "docker compose config",
            "docker-compose ps",
            "docker-compose config",
            "docker secret inspect x",
            "docker compose config -o f",
            "docker compose config --resolve-image-digests",
            "podman run x",
            "podman search x",
        ]);
        let exact = [
            "docker -H tcp://x ps",
            "docker --host=tcp://x ps",
            "docker --context other ps",
            "docker -c other ps",
            "docker --config /tmp/x ps",
            "docker --tlscacert f ps",
            "podman --url ssh://x ps",
            "podman --connection x ps",
            "podman --remote ps",
        ];
        for line in exact {
            let finding = find(line);
            assert_eq!(finding.coverage, RuleCoverage::Exact, "{line}");
            assert_ne!(finding.verdict, EffectVerdict::ReadOnly, "{line}");
        }
    }

    #[test]
    fn files_of_a_project_are_read() {
        assert_eq!(
            effects("docker compose -f x.yml ps"),
            ["read x.yml", "service Containers"]
        );
        assert_eq!(effects("docker pull x"), ["net ?"]);
    }

    #[test]
    fn tables_are_well_formed() {
        for program in [&DOCKER, &PODMAN, &COMPOSE] {
            program.assert_well_formed();
        }
    }
}
