//! Subcommands that walk history or compare: they share the options of `git log` and `git diff`.

use super::paths::{self, ShownPaths};
use crate::{
    arg::Arg,
    commands::{
        options::{self, ParsedArguments},
        spec::{CommandSpec, OperandKind, UnsafeOption, runs, writes},
    },
    effect::{CommandFinding, Effect, EffectVerdict},
    git_config::checks_signatures,
};

/// Options that select commits. Options that take a value only after `=` are marked as such: a
/// separate argument after them is an operand, which may be `--output`.
macro_rules! commits {
    () => {
        " -n: --max-count= --skip= --since= --after= --until= --before= --since-as-filter= --max-age= \
         --min-age= --author= --committer= --grep= --grep-reflog= --all-match --invert-grep -iEFP \
         --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --basic-regexp \
         --remove-empty --merges --no-merges --min-parents=? --max-parents=? --no-min-parents \
         --no-max-parents --first-parent --exclude-first-parent-only --not --all --branches=? --tags=? \
         --remotes=? --glob= --exclude= --exclude-hidden= --reflog --single-worktree --ignore-missing \
         --bisect --stdin --cherry-mark --cherry-pick --cherry --left-only --right-only --left-right -g \
         --walk-reflogs --merge --boundary --simplify-by-decoration --show-pulls --full-history --dense \
         --sparse --simplify-merges --ancestry-path=? --date-order --author-date-order --topo-order \
         --reverse --no-walk=? --do-walk --pretty=? --format=? --abbrev-commit --no-abbrev-commit \
         --oneline --encoding= --expand-tabs=? --no-expand-tabs --notes=? --no-notes --show-notes=? \
         --show-notes-by-default --standard-notes --no-standard-notes --relative-date --date= --parents \
         --children --graph --no-graph --show-linear-break=? --full-diff --log-size -# "
    };
}

/// Options that format differences.
macro_rules! differences {
    () => {
        " -pusWzDwbaR -U? -X? -B? -M? -C? -l: -I: -S: -G: -O< --patch --no-patch --unified=? \
         --function-context --no-function-context --raw --patch-with-raw --patch-with-stat --numstat \
         --shortstat --dirstat=? --cumulative --dirstat-by-file=? --check --summary --name-only \
         --name-status --stat=? --stat-width= --stat-name-width= --stat-graph-width= --stat-count= \
         --compact-summary --no-compact-summary --binary --full-index --no-full-index --color=? \
         --no-color --ws-error-highlight= --abbrev=? --no-abbrev --src-prefix= --dst-prefix= \
         --line-prefix= --no-prefix --default-prefix --inter-hunk-context= --output-indicator-new= \
         --output-indicator-old= --output-indicator-context= --break-rewrites=? --find-renames=? \
         --irreversible-delete --find-copies=? --find-copies-harder --no-find-copies-harder \
         --no-renames --rename-empty --no-rename-empty --follow --no-follow --minimal \
         --ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-cr-at-eol \
         --ignore-blank-lines --ignore-matching-lines= --indent-heuristic --no-indent-heuristic \
         --patience --histogram --diff-algorithm= --anchored= --word-diff=? --word-diff-regex= \
         --color-words=? --color-moved=? --no-color-moved --color-moved-ws= --no-color-moved-ws \
         --relative=? --no-relative --text --no-text --exit-code --no-exit-code --quiet --no-quiet \
         --no-ext-diff --no-textconv --ignore-submodules=? --submodule=? --ita-invisible-in-index \
         --ita-visible-in-index --pickaxe-all --pickaxe-regex --rotate-to= --skip-to= --find-object= \
         --diff-filter= "
    };
}

/// Options that format merges.
macro_rules! merges {
    () => {
        " -cmtr --cc --dd --combined-all-paths --diff-merges= --no-diff-merges "
    };
}

macro_rules! log {
    () => {
        " -q -L: --source --no-source --use-mailmap --mailmap --no-use-mailmap --no-mailmap \
         --clear-decorations --decorate-refs= --decorate-refs-exclude= --decorate=? --no-decorate "
    };
}

const LOG: &str = concat!(log!(), commits!(), differences!(), merges!());

/// The unsafe options of the same subcommands.
const REFUSED: &[UnsafeOption] = &[
    writes("--output>", "writes what it would print into a file"),
    runs(
        "--ext-diff",
        "starts the diff program that the configuration names",
    ),
    runs(
        "--textconv",
        "starts the converter that the configuration names",
    ),
    runs("--show-signature", "starts gpg"),
    runs("--remerge-diff", "merges again, into temporary objects"),
];

pub(super) const SUBCOMMANDS: &[CommandSpec] = &[
    // `git reflog` without a verb takes what log takes; its verbs that change are in `changes`.
    walk("log whatchanged reflog", LOG).with_evaluator(listing),
    walk("reflog/show stash/list", LOG).with_evaluator(listing),
    walk("show", LOG).with_evaluator(showing),
    walk(
        "diff",
        concat!(
            " --cached --staged --merge-base --no-index --base --ours --theirs -c --cc -m -t -r ",
            "--diff-merges= --no-diff-merges --combined-all-paths -0 -q -# ",
            differences!()
        ),
    )
    .with_evaluator(comparing),
    walk(
        "stash/show",
        concat!(
            " -u --include-untracked --no-include-untracked --only-untracked ",
            differences!()
        ),
    )
    .with_evaluator(showing),
    walk(
        "diff-tree",
        concat!(
            " -v -cmtr --cc --combined-all-paths --stdin --root --no-commit-id --always --merge-base ",
            "--pretty=? --format=? --oneline --no-notes --notes=? --encoding= --date= ",
            differences!()
        ),
    )
    .with_evaluator(listing),
    walk(
        "diff-index",
        concat!(" -cmr --cc --cached --merge-base ", differences!()),
    )
    .with_evaluator(listing),
    walk(
        "diff-files",
        concat!(
            " -cmqr -0123 --cc --base --ours --theirs ",
            differences!()
        ),
    )
    .with_evaluator(listing),
    walk(
        "range-diff",
        concat!(
            " --creation-factor= --no-dual-color --dual-color --notes=? --no-notes --left-only \
             --right-only --diff-merges= ",
            differences!()
        ),
    )
    .with_evaluator(showing),
    walk(
        "shortlog",
        concat!(
            " -cnse -w? --committer --numbered --summary --email --group= --no-committer --no-numbered \
             --no-summary --no-email --no-group ",
            commits!()
        ),
    )
    .with_evaluator(listing),
    walk(
        "rev-list",
        concat!(
            " --objects --objects-edge --objects-edge-aggressive --indexed-objects --in-commit-order \
             --unpacked --object-names --no-object-names --header --timestamp --count --quiet \
             --disk-usage=? --use-bitmap-index --bisect-vars --bisect-all --missing=? --filter=? \
             --no-filter --filter-provided-objects --filter-print-omitted --commit-header \
             --no-commit-header --progress=? --abbrev=? --no-abbrev --exclude-promisor-objects ",
            commits!()
        ),
    )
    .with_evaluator(listing),
    walk(
        "blame annotate",
        "-bfnpctlsew -C? -M? -L: -S< --incremental --root --show-stats --progress --no-progress \
             --score-debug --show-name --show-number --porcelain --line-porcelain --show-email \
             --no-show-email --ignore-rev= --ignore-revs-file< --no-ignore-revs-file --color-lines \
             --color-by-age --minimal --contents< --abbrev=? --no-abbrev --since= --after= --until= \
             --before= --reverse --first-parent --date= --encoding= --diff-algorithm= \
             --no-textconv --no-ext-diff",
    )
    .with_evaluator(blaming),
    walk(
        "format-patch",
        concat!(
            " -nNskpq -v: --stdout --numbered --no-numbered --signoff --cover-letter --no-cover-letter \
             --suffix= --start-number= --reroll-count= --filename-max-length= --rfc=? \
             --cover-from-description= --subject-prefix= --keep-subject --no-binary --zero-commit \
             --ignore-if-in-upstream --no-stat --add-header= --to= --cc= --from=? --in-reply-to= \
             --attach=? --inline=? --thread=? --no-thread --no-attach --signature= --no-signature \
             --base= --quiet --progress --interdiff= --range-diff= --creation-factor= --root \
             --force-in-body-from --no-to --no-cc -o> --output-directory> ",
            commits!(),
            differences!()
        ),
    )
    .with_evaluator(patches),
];

const fn walk(names: &'static str, options: &'static str) -> CommandSpec {
    CommandSpec::prints(names, options)
        .refusing(REFUSED)
        .strict()
}

/// Options that put the content of files into a list of commits.
const PRINTS_CONTENT: &[&str] = &[
    "-p",
    "-u",
    "-U",
    "-W",
    "-c",
    "--cc",
    "--dd",
    "--patch",
    "--unified",
    "--function-context",
    "--patch-with-raw",
    "--patch-with-stat",
    "--binary",
    "--check",
    "--word-diff",
    "--word-diff-regex",
    "--color-words",
    "--diff-merges",
];

/// Options that leave only names and numbers of a comparison.
const PRINTS_NAMES: &[&str] = &[
    "--stat",
    "--shortstat",
    "--numstat",
    "--dirstat",
    "-X",
    "--dirstat-by-file",
    "--cumulative",
    "--summary",
    "--compact-summary",
    "--name-only",
    "--name-status",
    "--raw",
    "-s",
    "--no-patch",
    "--quiet",
];

fn any(parsed: &ParsedArguments<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| parsed.has(name))
}

/// Analyzes subcommands that list commits or names of files, and print content only if an option
/// requests it.
fn listing(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let shows = if any(parsed, PRINTS_CONTENT) {
        ShownPaths::Content
    } else {
        ShownPaths::Names
    };
    let mut finding = judge(parsed, shows);
    finding.effects.extend(traced(parsed));
    finding
}

/// Analyzes subcommands that print content regardless of the options: an operand may be a blob,
/// also if it looks like a path.
fn showing(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = judge(parsed, ShownPaths::Content);
    let everything = paths::everything(parsed);
    let by_hash = parsed.operands.iter().any(|arg| {
        let text = arg.text().unwrap_or_default();
        text.len() > 3 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    if by_hash && !finding.effects.contains(&everything) {
        finding.effects.push(everything);
    }
    finding
}

fn comparing(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let names_only = any(parsed, PRINTS_NAMES) && !any(parsed, PRINTS_CONTENT);
    judge(
        parsed,
        if names_only {
            ShownPaths::Names
        } else {
            ShownPaths::Content
        },
    )
}

fn patches(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = judge(parsed, ShownPaths::Content);
    if finding.verdict == EffectVerdict::ReadOnly && !parsed.has("--stdout") {
        return CommandFinding {
            effects: finding.effects,
            ..CommandFinding::mutating("it writes each patch into a file")
        };
    }
    finding
}

/// Analyzes `git blame`, which reads one file. The operands before it are revisions.
fn blaming(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = judge(parsed, ShownPaths::Content);
    finding
        .effects
        .retain(|effect| *effect != paths::everything(parsed));
    finding
}

fn judge(parsed: &ParsedArguments<'_>, shows: ShownPaths) -> CommandFinding {
    let finding = parsed
        .verdict()
        .or_else(|| signature(parsed))
        .or_else(|| remerge(parsed))
        .unwrap_or_else(|| CommandFinding::read_only("it only reads"));
    let mut finding = parsed.with_effects(finding, OperandKind::Text);
    finding.effects.extend(paths::reads(parsed, shows, 0));
    finding
}

/// Returns the finding for a format that checks signatures.
fn signature(parsed: &ParsedArguments<'_>) -> Option<CommandFinding> {
    let given = parsed.options.iter().find(|given| {
        let format = matches!(given.name, "--format" | "--pretty");
        let value = given.value.as_ref();
        format && value.is_some_and(|value| value.text().is_none_or(checks_signatures))
    })?;
    Some(
        CommandFinding::unknown("a signature in the format starts gpg")
            .with_span(given.span)
            .requiring_exact_rule(),
    )
}

/// Returns the finding for `--diff-merges=remerge`, by any of its names.
fn remerge(parsed: &ParsedArguments<'_>) -> Option<CommandFinding> {
    let given = parsed.options.iter().find(|given| {
        let text = given.value.as_ref().and_then(|value| value.text());
        given.name == "--diff-merges" && text.is_none_or(|text| text.starts_with('r'))
    })?;
    Some(CommandFinding::unknown("it merges again, into temporary objects").with_span(given.span))
}

/// Returns the reads of the files in `-L 10,20:file`.
fn traced(parsed: &ParsedArguments<'_>) -> Vec<Effect> {
    let lines = parsed.options.iter().filter(|given| given.name == "-L");
    lines
        .filter_map(|given| {
            let value = given.value.as_ref()?;
            let (_, file) = value.text()?.rsplit_once(':')?;
            let path = Arg::literal(file, value.span);
            Some(options::content(&path))
        })
        .collect()
}
