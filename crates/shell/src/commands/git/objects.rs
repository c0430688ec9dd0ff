//! Subcommands that read objects, the index or the working tree.

use super::paths::{self, ShownPaths};
use crate::{
    commands::{
        options::{self, ParsedArguments},
        spec::{CommandSpec, OperandKind, runs, writes},
    },
    effect::CommandFinding,
};

pub(super) const SUBCOMMANDS: &[CommandSpec] = &[
    read_only_spec(
        "status",
        "-vsbz -u? -M? --verbose --short --branch --show-stash --no-show-stash --ahead-behind \
         --no-ahead-behind --porcelain=? --long --null --untracked-files=? --no-untracked-files \
         --ignored=? --no-ignored --ignore-submodules=? --column=? --no-column --no-renames --renames \
         --find-renames=? --no-branch --no-short",
    )
    .with_evaluator(names),
    read_only_spec(
        "ls-files",
        "-ztvfcdmoisku -x: -X< --cached --deleted --modified --others --ignored --stage --killed \
         --directory --no-directory --eol --empty-directory --no-empty-directory --unmerged \
         --resolve-undo --exclude= --exclude-from< --exclude-per-directory= --exclude-standard \
         --full-name --recurse-submodules --error-unmatch --with-tree= --abbrev=? --debug \
         --deduplicate --sparse --format=",
    )
    .with_evaluator(names),
    read_only_spec(
        "ls-tree",
        "-drtzl --long --name-only --name-status --object-only --full-name --no-full-name \
         --full-tree --format= --abbrev=? --no-abbrev",
    )
    .with_evaluator(names),
    read_only_spec(
        "check-ignore",
        "-qvzn --quiet --verbose --stdin --non-matching --no-index",
    )
    .with_evaluator(names),
    read_only_spec("check-attr", "-az --all --cached --stdin --source=").with_evaluator(names),
    read_only_spec(
        "cat-file",
        "-eptsZ --allow-unknown-type --use-mailmap --mailmap --no-use-mailmap --batch=? \
         --batch-check=? --batch-command=? --batch-all-objects --buffer --follow-symlinks --unordered",
    )
    .refusing(&[
        runs("--textconv", "starts the converter that the configuration names"),
        runs("--filters", "starts the filter that the configuration names"),
    ])
    .with_evaluator(cat_file),
    read_only_spec(
        "grep",
        "-viwaIrEGFPnhHlLzocpWq -C: -B: -A: -f< -e: -m: -# --cached --no-index --index --untracked \
         --exclude-standard --no-exclude-standard --recurse-submodules --invert-match --ignore-case \
         --word-regexp --text --no-textconv --recursive --no-recursive --max-depth= \
         --extended-regexp --basic-regexp --fixed-strings --perl-regexp --line-number \
         --no-line-number --column --no-column --full-name --files-with-matches --name-only \
         --files-without-match --null --only-matching --count --color=? --no-color --break \
         --no-break --heading --no-heading --context= --before-context= --after-context= --threads= \
         --show-function --function-context --and --or --not --quiet --all-match --max-count=",
    )
    .refusing(&[
        runs("-O? --open-files-in-pager=?", "opens the files in a program"),
        runs("--textconv", "starts the converter that the configuration names"),
        runs("--ext-grep", "starts another grep"),
    ])
    .with_evaluator(grep),
    read_only_spec(
        "archive",
        "-vl -# --format= --prefix= --add-file< --add-virtual-file= --worktree-attributes --verbose \
         --list --mtime=",
    )
    .refusing(&[
        writes("-o> --output>", "writes the archive into a file"),
        runs("--remote= --exec=", "contacts a host"),
    ])
    .with_evaluator(archive),
    read_only_spec(
        "hash-object",
        "-t: --stdin --stdin-paths --no-filters --literally --path=",
    )
    .refusing(&[writes("-w", "writes the object into the repository")])
    .operands(OperandKind::Files),
    read_only_spec("describe",
        "--contains --debug --all --tags --long --first-parent --abbrev=? --no-abbrev --exact-match \
         --no-exact-match --candidates= --match= --no-match --exclude= --no-exclude --always --dirty=? \
         --broken=?"),
    read_only_spec(
        "name-rev",
        "--name-only --tags --refs= --no-refs --exclude= --all --stdin --annotate-stdin --undefined \
         --no-undefined --always --peel-tag",
    ),
    read_only_spec("merge-base", "-a --all --octopus --independent --is-ancestor --fork-point"),
    read_only_spec("cherry", "-v --abbrev=? --no-abbrev --verbose"),
    read_only_spec("count-objects", "-vH --verbose --human-readable"),
    read_only_spec(
        "fsck",
        "-v --verbose --unreachable --dangling --no-dangling --tags --root --cache --reflogs \
         --no-reflogs --full --no-full --connectivity-only --strict --progress --no-progress \
         --name-objects",
    )
    .refusing(&[writes("--lost-found", "writes lost objects into the repository")]),
    read_only_spec("verify-pack", "-vs --verbose --stat-only --object-format=").with_evaluator(names),
    read_only_spec("show-index", "--object-format="),
    read_only_spec("get-tar-commit-id", ""),
    read_only_spec("patch-id", "--stable --unstable --verbatim"),
    read_only_spec("bundle/verify", "-q --quiet").operands(OperandKind::Files),
    read_only_spec("bundle/list-heads", "").with_evaluator(first_file),
    read_only_spec(
        "merge-file",
        "-pq -L: --stdout --object-id --diff3 --zdiff3 --ours --theirs --union --diff-algorithm= \
         --marker-size= --quiet",
    )
    .with_evaluator(merge_file),
    read_only_spec(
        "merge-tree",
        "-z -X: --write-tree --trivial-merge --messages --no-messages --name-only \
         --allow-unrelated-histories --stdin --merge-base= --strategy-option=",
    )
    .with_evaluator(merge_tree),
];

const fn read_only_spec(names: &'static str, options: &'static str) -> CommandSpec {
    CommandSpec::prints(names, options).strict()
}

fn finding(parsed: &ParsedArguments<'_>) -> CommandFinding {
    parsed.finding(OperandKind::Text)
}

/// Analyzes operands that are file names.
fn names(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = finding(parsed);
    finding
        .effects
        .extend(paths::reads(parsed, ShownPaths::Names, 0));
    finding
}

fn cat_file(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let shows = if ["-e", "-t", "-s", "--batch-check"]
        .iter()
        .any(|name| parsed.has(name))
    {
        ShownPaths::Names
    } else {
        ShownPaths::Content
    };
    // In `git cat-file blob HEAD:f`, the first operand is a type.
    let types = usize::from(parsed.operands.len() > 1);
    let mut finding = finding(parsed);
    finding.effects.extend(paths::reads(parsed, shows, types));
    finding
}

fn grep(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let patterns = usize::from(!parsed.has("-e") && !parsed.has("-f"));
    let mut finding = finding(parsed);
    let reads = paths::reads(parsed, ShownPaths::Content, patterns);
    finding.effects.extend(reads);
    finding
}

fn archive(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = finding(parsed);
    finding
        .effects
        .extend(paths::reads(parsed, ShownPaths::Content, 0));
    finding
}

fn first_file(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = finding(parsed);
    let file = parsed.operands.first().map(|arg| options::content(arg));
    finding.effects.extend(file);
    finding
}

/// Analyzes `merge-file`, which merges three files into the first, or prints the result.
fn merge_file(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = if parsed.has("-p") || parsed.has("--stdout") || parsed.verdict().is_some() {
        finding(parsed)
    } else {
        let written = parsed.operands.first().map(|arg| paths::worked(arg));
        let mut finding = CommandFinding::mutating("it merges into the first file");
        finding.effects.extend(written);
        finding
    };
    let files = parsed.operands.iter().map(|arg| options::content(arg));
    finding.effects.extend(files);
    if parsed.has("--object-id") {
        finding.effects.push(paths::everything(parsed));
    }
    finding
}

fn merge_tree(parsed: &ParsedArguments<'_>) -> CommandFinding {
    // Only the old form, with three trees, writes no objects.
    let trivial = parsed.has("--trivial-merge") || parsed.operands.len() == 3;
    let mut finding = if !trivial || parsed.has("--write-tree") {
        CommandFinding::mutating("it writes the merged tree into the repository")
    } else {
        finding(parsed)
    };
    finding.effects.push(paths::everything(parsed));
    finding
}
