//! Subcommands that contact a remote.

use super::paths;
use crate::{
    arg::Arg,
    commands::{
        hosts,
        options::{self, ParsedArguments},
        spec::{CommandSpec, OperandKind, UnsafeOption, runs},
    },
    effect::{CommandFinding, Effect, RuleCoverage},
};

const REFUSED: &[UnsafeOption] = &[
    runs(
        "--upload-pack= --receive-pack= --exec=",
        "chooses the program that runs on the other side",
    ),
    runs("--config=", "injects configuration"),
];

pub(super) const SUBCOMMANDS: &[CommandSpec] = &[
    network_spec(
        "push",
        "-vqdnfu -o: -46 --repo= --push-option= --force-with-lease=? --recurse-submodules= \
         --signed=?",
    )
    .with_evaluator(push),
    network_spec("send-pack http-push", "").with_evaluator(push),
    network_spec(
        "pull",
        "-vqnfrapk -s: -X: -j: -o: -46 --cleanup= --strategy= --strategy-option= --depth= --jobs= \
         --shallow-since= --shallow-exclude= --deepen= --refmap= --server-option= --negotiation-tip= \
         --rebase=? --filter=",
    )
    .with_evaluator(pull),
    network_spec(
        "fetch",
        "-vqafmtnpPku -j: -o: -46 --depth= --jobs= --shallow-since= --shallow-exclude= --deepen= \
         --refmap= --server-option= --negotiation-tip= --filter=",
    )
    .with_evaluator(fetch),
    network_spec("fetch-pack http-fetch remote-http remote-https", "").with_evaluator(fetch),
    network_spec("ls-remote", "-qthb -o: --sort= --server-option=").with_evaluator(ls_remote),
    network_spec("send-email imap-send", "").with_evaluator(mail),
    network_spec(
        "clone",
        "-vqnls -j: -o: -b: -46 --template< --reference< --reference-if-able< --jobs= --origin= \
         --branch= --depth= --shallow-since= --shallow-exclude= --separate-git-dir= --server-option= \
         --filter= --bundle-uri= --ref-format= --recurse-submodules=? --recursive=? --revision=",
    )
    .refusing(&[
        runs("-u: --upload-pack=", "chooses the program that runs on the other side"),
        runs("-c: --config=", "injects configuration"),
    ])
    .with_evaluator(clone),
];

const fn network_spec(names: &'static str, options: &'static str) -> CommandSpec {
    CommandSpec::prints(names, options).refusing(REFUSED)
}

fn push(parsed: &ParsedArguments<'_>) -> CommandFinding {
    judge(
        parsed,
        CommandFinding::mutating("it sends commits to a remote"),
    )
}

fn pull(parsed: &ParsedArguments<'_>) -> CommandFinding {
    judge(
        parsed,
        CommandFinding::mutating("it fetches from a remote and merges"),
    )
}

fn fetch(parsed: &ParsedArguments<'_>) -> CommandFinding {
    judge(parsed, CommandFinding::mutating("it fetches from a remote"))
}

fn ls_remote(parsed: &ParsedArguments<'_>) -> CommandFinding {
    judge(parsed, CommandFinding::unknown("it contacts a remote"))
}

fn mail(parsed: &ParsedArguments<'_>) -> CommandFinding {
    judge(parsed, CommandFinding::mutating("it sends mail"))
}

/// Returns the finding of a refused option, otherwise the usual finding of the subcommand.
fn judge(parsed: &ParsedArguments<'_>, usual: CommandFinding) -> CommandFinding {
    let finding = match parsed.verdict() {
        Some(refused) if refused.coverage == RuleCoverage::Exact => CommandFinding {
            verdict: usual.verdict,
            ..refused
        },
        _ => usual,
    };
    let source = parsed.operands.first().copied();
    contacting(finding, source)
}

fn contacting(finding: CommandFinding, source: Option<&Arg>) -> CommandFinding {
    let Some(source) = source else {
        return finding.with(Effect::Net(None));
    };
    if source.text().is_some_and(|text| text.starts_with("ext::")) {
        let why = "an ext:: address runs a command";
        return CommandFinding::unknown(why)
            .with_span(source.span)
            .requiring_exact_rule();
    }
    let local = source
        .text()
        .is_some_and(|text| text.starts_with(['/', '.']) || text.starts_with("file://"));
    if local {
        return finding.with(options::tree(source));
    }
    let mut finding = finding;
    finding
        .effects
        .extend(hosts::contacts(source, hosts::remote_path_host));
    finding
}

fn clone(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = judge(parsed, CommandFinding::mutating("it copies a repository"));
    finding = parsed.with_effects(finding, OperandKind::Text);
    let target = match (parsed.operands.get(1), parsed.operands.first()) {
        (Some(target), _) => Some((*target).clone()),
        (None, Some(source)) => source.text().map(|text| {
            let name = text.trim_end_matches('/').trim_end_matches(".git");
            let name = name.rsplit(['/', ':']).next().unwrap_or(name);
            Arg::literal(name, source.span)
        }),
        (None, None) => None,
    };
    finding
        .effects
        .extend(target.map(|target| paths::filled(&target)));
    finding
}
