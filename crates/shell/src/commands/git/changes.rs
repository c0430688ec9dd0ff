//! Subcommands that change the repository or the working tree.

use super::paths;
use crate::{
    commands::{
        options::{ParsedArguments, content},
        shells::opaque,
        spec::{CommandSpec, OperandKind, runs},
    },
    effect::{CommandFinding, EffectVerdict, StartedProgram},
};

pub(super) const SUBCOMMANDS: &[CommandSpec] = &[
    // With --intent-to-add, even a dry run writes the empty object.
    CommandSpec::prints(
        "add stage",
        "-nvfuA --dry-run --verbose --force --update --all --no-all \
         --ignore-removal --ignore-errors --ignore-missing --sparse",
    )
    .strict()
    .with_evaluator(add),
    // A dry run of this subcommand also writes objects.
    CommandSpec::changes(
        "commit",
        "-apzqvseinou -m: -C: -c: -F< -t< -S? --message= --reuse-message= --reedit-message= --fixup= \
         --squash= --author= --date= --cleanup= --trailer= --file< --template< --gpg-sign=? \
         --no-gpg-sign --pathspec-from-file< --pathspec-file-nul --amend --all --patch --allow-empty \
         --allow-empty-message --no-edit --edit --no-verify --quiet --verbose --signoff --no-signoff \
         --dry-run --short --long --branch --porcelain --only --include --reset-author \
         --untracked-files=? --no-post-rewrite --status --no-status",
        "it records a commit",
    )
    .with_evaluator(commit),
    CommandSpec::prints(
        "rm",
        "-nqfr --dry-run --quiet --cached --force --ignore-unmatch --sparse",
    )
    .strict()
    .with_evaluator(rm),
    CommandSpec::prints("mv", "-vnfk --dry-run --verbose --force --sparse")
        .strict()
        .with_evaluator(mv),
    CommandSpec::prints(
        "clean",
        "-qnfdxX -e: --quiet --dry-run --force --exclude=",
    )
    .strict()
    .with_evaluator(clean),
    CommandSpec::prints(
        "checkout",
        "-b: -B: -lqmdtf -23 --guess --no-guess --overlay --no-overlay --quiet --recurse-submodules=? \
         --progress --no-progress --merge --conflict= --detach --track=? --no-track --force --orphan= \
         --ours --theirs --ignore-skip-worktree-bits --overwrite-ignore --ignore-other-worktrees -p \
         --patch",
    )
    .with_evaluator(checkout),
    CommandSpec::prints(
        "restore",
        "-s: -SWqmp -23 --source= --staged --worktree --ignore-unmerged --overlay --no-overlay --quiet \
         --recurse-submodules=? --progress --merge --conflict= --ours --theirs --patch",
    )
    .with_evaluator(restore),
    CommandSpec::prints(
        "apply",
        "-p: -C: -zRvqN3 --exclude= --include= --no-add --stat --numstat --summary --check --index \
         --cached --3way --whitespace= --ignore-space-change --ignore-whitespace --reverse \
         --unidiff-zero --allow-overlap --verbose --quiet --inaccurate-eof --recount --directory= \
         --allow-empty",
    )
    .strict()
    .with_evaluator(apply),
    CommandSpec::changes(
        "am mailinfo mailsplit",
        "",
        "it applies patches",
    ),
    CommandSpec::changes("init", "-q -b: --quiet --bare --template= --separate-git-dir> --object-format= \
         --ref-format= --initial-branch= --shared=?", "it makes a repository")
        .operands(OperandKind::Written),
    CommandSpec::changes(
        "worktree/add",
        "-fdq -b: -B: --force --detach --checkout --no-checkout --lock --reason= --orphan --quiet \
         --track --guess-remote --relative-paths",
        "it makes a worktree",
    )
    .with_evaluator(worktree_add),
    CommandSpec::changes("worktree/remove", "-f --force", "it removes a worktree")
        .operands(OperandKind::Removed),
    CommandSpec::changes("worktree", "", "it changes worktrees"),
    CommandSpec::changes("bundle/create", "-q --quiet --progress --version=", "it writes a bundle")
        .with_evaluator(bundle),
    CommandSpec::changes("bundle", "", "it writes into the repository"),
    CommandSpec::changes("switch", "", "it switches branches"),
    CommandSpec::changes("reset", "", "it moves the branch and may discard changes"),
    CommandSpec::changes("merge", "", "it merges into the branch"),
    CommandSpec::changes("rebase", "", "it rewrites commits").refusing(&[
        runs("-x: --exec=", "runs a command after each commit"),
    ]).with_evaluator(rebase),
    CommandSpec::changes("cherry-pick revert", "", "it makes commits"),
    CommandSpec::changes("stash", "", "it changes the stash or the working tree"),
    CommandSpec::changes("reflog/expire reflog/delete reflog/drop", "", "it deletes entries of the log"),
    CommandSpec::changes("reflog/write", "", "it adds an entry to the log").operands(OperandKind::Text),
    CommandSpec::changes("bisect/run", "", "it runs a command for each step").with_evaluator(bisect_run),
    CommandSpec::unsure("bisect/view bisect/visualize", "it may open a viewer"),
    CommandSpec::changes("bisect", "", "it checks out commits to search"),
    CommandSpec::changes(
        "gc repack prune prune-packed pack-objects pack-refs maintenance multi-pack-index commit-graph \
         unpack-objects index-pack",
        "",
        "it rewrites the object store",
    ),
    CommandSpec::changes("rerere", "", "it records or forgets resolutions"),
    CommandSpec::changes("sparse-checkout", "", "it changes what is checked out"),
    CommandSpec::changes(
        "update-index update-ref read-tree checkout-index write-tree commit-tree mktree mktag replace \
         update-server-info refs unpack-file pack-redundant",
        "",
        "it writes into the repository",
    ),
    CommandSpec::changes("fast-import", "", "it rewrites history"),
    CommandSpec::changes("filter-branch", "", "it rewrites history").with_evaluator(|_| {
        opaque(
            CommandFinding::mutating("it rewrites history"),
            "its filters are commands",
        )
    }),
    CommandSpec::unsure(
        "filter-repo difftool mergetool gui citool gitk instaweb web--browse daemon http-backend shell \
         for-each-repo svn p4 cvsimport quiltimport",
        STARTS,
    )
    .with_evaluator(starts),
    CommandSpec::unsure("bugreport diagnose fast-export request-pull", STARTS),
];

const STARTS: &str = "it starts programs or writes files";

fn starts(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed
        .verdict()
        .unwrap_or_else(|| CommandFinding::unknown(STARTS));
    opaque(
        parsed.with_effects(finding, OperandKind::Files),
        "what it starts is not written in the line",
    )
}

/// Returns a changing finding, unless the line requests a dry run.
fn unless_dry(parsed: &ParsedArguments<'_>, what: &'static str) -> CommandFinding {
    let dry = parsed.has("-n") || parsed.has("--dry-run");
    match parsed.verdict() {
        None if dry => CommandFinding::read_only("it only says what it would do"),
        Some(finding) if finding.verdict == EffectVerdict::Mutating => finding,
        _ => CommandFinding::mutating(what),
    }
}

fn add(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = unless_dry(parsed, "it changes the index");
    recorded(parsed, finding)
}

fn commit(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = CommandFinding::mutating("it records a commit");
    recorded(parsed, parsed.with_effects(finding, OperandKind::Text))
}

/// Adds the reads of the files whose content is written to the object store.
fn recorded(parsed: &ParsedArguments<'_>, finding: CommandFinding) -> CommandFinding {
    let files = parsed.operands.iter();
    finding.with_all(files.map(|arg| content(&paths::pattern(arg))))
}

fn rm(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = unless_dry(parsed, "it removes files");
    if !parsed.has("--cached") {
        let removals = parsed.operands.iter();
        let removals = removals.map(|arg| paths::removed(&paths::pattern(arg)));
        finding.effects.extend(removals);
    }
    finding
}

fn mv(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = unless_dry(parsed, "it moves files");
    if let Some((target, sources)) = parsed.operands.split_last() {
        let removals = sources.iter().map(|arg| paths::removed(arg));
        finding.effects.extend(removals);
        finding.effects.push(paths::filled(target));
    }
    finding
}

fn clean(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = unless_dry(parsed, "it deletes untracked files");
    if parsed.operands.is_empty() {
        finding.effects.push(paths::removed(&paths::here(parsed)));
    }
    let removals = parsed.operands.iter();
    let removals = removals.map(|arg| paths::removed(&paths::pattern(arg)));
    finding.effects.extend(removals);
    finding
}

fn checkout(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = CommandFinding::mutating("it changes what is checked out");
    finding.effects = paths::written(parsed);
    finding
}

fn restore(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = CommandFinding::mutating("it discards changes");
    let index_only = (parsed.has("-S") || parsed.has("--staged"))
        && !parsed.has("-W")
        && !parsed.has("--worktree");
    if !index_only {
        let writes = parsed.operands.iter();
        let writes = writes.map(|arg| paths::checked_out(arg));
        finding.effects.extend(writes);
    }
    finding
}

fn apply(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let only_looks = ["--stat", "--numstat", "--summary", "--check"]
        .iter()
        .any(|name| parsed.has(name));
    let finding = if only_looks && parsed.verdict().is_none() {
        CommandFinding::read_only("it only reads the patch")
    } else {
        CommandFinding::mutating("it applies a patch")
    };
    parsed.with_effects(finding, OperandKind::Files)
}

fn worktree_add(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = CommandFinding::mutating("it makes a worktree");
    let directory = parsed.operands.first();
    finding
        .effects
        .extend(directory.map(|arg| paths::filled(arg)));
    finding
}

fn bundle(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = CommandFinding::mutating("it writes a bundle");
    let file = parsed.operands.first();
    finding.effects.extend(file.map(|arg| paths::worked(arg)));
    finding
}

fn rebase(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = CommandFinding::mutating("it rewrites commits");
    let scripts = parsed.options.iter();
    let scripts = scripts.filter(|given| matches!(given.name, "-x" | "--exec"));
    for given in scripts {
        let script = given.value.clone();
        finding = finding.with_span(given.span).requiring_exact_rule();
        finding.starts.extend(script.map(StartedProgram::Script));
        finding.reason = "--exec runs a command after each commit".into();
    }
    finding
}

fn bisect_run(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = CommandFinding::mutating("it runs a command for each step");
    match parsed.argv.get(1..) {
        Some(argv) if !argv.is_empty() => finding.starting(StartedProgram::Command {
            argv: argv.to_vec(),
            more: false,
        }),
        _ => finding,
    }
}
