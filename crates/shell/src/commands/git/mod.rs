//! git: the options before the subcommand, and the table that describes the subcommand.
//!
//! A read-only verdict holds only if the configuration that git reads starts no program. The caller
//! must audit that with [`crate::git_config`].

mod changes;
#[cfg(test)]
mod differential_tests;
mod history;
mod objects;
mod paths;
mod queries;
mod remotes;
#[cfg(test)]
mod subcommand_tests;
mod working_tree;

use super::{
    options::{self, ParsedArguments},
    spec::{CommandEffect, CommandSpec, KnownCommand},
};
use crate::{
    arg::{Arg, ArgValue},
    ast::Span,
    effect::{CommandFinding, Effect, EffectVerdict, RuleCoverage},
};

pub(super) const ENTRIES: &[KnownCommand] = &[KnownCommand::Own("git", git)];

/// The tables of subcommands whose reads are listed one by one. A subcommand with a verb is written
/// `stash/list`.
const LISTED: &[&[CommandSpec]] = &[
    history::SUBCOMMANDS,
    objects::SUBCOMMANDS,
    queries::SUBCOMMANDS,
];

/// The tables of the other subcommands.
const TABLES: &[&[CommandSpec]] = &[changes::SUBCOMMANDS, remotes::SUBCOMMANDS];

/// Subcommands of the other tables that neither print the content of objects nor copy it outside of
/// the repository and its working tree. All other subcommands may show any file.
const KEEPS_CONTENT: &str = "add stage commit rm mv clean checkout switch restore reset merge rebase \
                             cherry-pick revert stash init apply am mailinfo mailsplit worktree \
                             worktree/remove gc repack prune prune-packed pack-refs maintenance \
                             multi-pack-index commit-graph reflog/expire reflog/delete reflog/drop \
                             reflog/write rerere sparse-checkout update-index update-ref write-tree commit-tree \
                             mktree mktag replace update-server-info refs bisect bisect/run push \
                             pull fetch clone ls-remote send-pack http-push fetch-pack http-fetch \
                             remote-http remote-https fast-import index-pack unpack-objects";

/// Settings that may be injected because they do not choose what runs. An entry that ends in `.` is
/// a whole section, other entries are single settings.
const PLAIN_SETTINGS: &str = "user. author. committer. color. column. advice. core.quotepath \
                              core.abbrev core.autocrlf core.safecrlf core.filemode core.longpaths \
                              core.whitespace diff.algorithm diff.context diff.mnemonicprefix \
                              diff.noprefix diff.renames diff.renamelimit fetch.prune gc.auto \
                              init.defaultbranch log.abbrevcommit log.date log.decorate merge.ff \
                              merge.conflictstyle protocol.version pull.ff pull.rebase push.default \
                              rerere.enabled commit.verbose";

/// Options before the subcommand that change neither what runs nor where git reads.
const HARMLESS: &str = "--no-pager -P --literal-pathspecs --glob-pathspecs --noglob-pathspecs \
                        --icase-pathspecs --no-optional-locks --no-replace-objects --no-lazy-fetch \
                        --no-advice";

/// Options that print information and exit.
const PRINTING: &str = "--version -v -h --html-path --man-path --info-path";

/// Options before the subcommand that take the next argument as their value.
const WITH_VALUE: &str = "-c --config-env --git-dir --work-tree --namespace --super-prefix \
                          --shallow-file --attr-source";

fn git(argv: &[Arg]) -> CommandFinding {
    let mut at = 1;
    let mut directory: Option<Arg> = None;
    let mut refusal: Option<(String, Span)> = None;
    let mut hidden = false;
    while let Some(arg) = argv.get(at) {
        let Some(text) = arg.text() else {
            let finding =
                CommandFinding::unknown("its subcommand is an expansion").with_span(arg.span);
            return finding.with(Effect::Opaque(ALIAS.into()));
        };
        at += 1;
        if text == "-C" {
            let Some(value) = argv.get(at) else {
                return CommandFinding::unknown("-C lacks its value").with_span(arg.span);
            };
            directory = Some(match directory {
                Some(before) => paths::below(&before, value),
                None => value.clone(),
            });
            at += 1;
        } else if listed(PRINTING, text) {
            return CommandFinding::read_only("it only prints");
        } else if !text.starts_with('-') {
            at -= 1;
            break;
        } else if !listed(HARMLESS, text) {
            let name = text.split('=').next().unwrap_or(text);
            let why = format!("{name} changes what git runs or where it looks");
            hidden |= !(text == "-c" && argv.get(at).is_some_and(is_plain_setting));
            refusal.get_or_insert((why, arg.span));
            if listed(WITH_VALUE, text) {
                at += 1;
            }
        }
    }
    let mut finding = match argv.get(at) {
        Some(_) => subcommand(&argv[at..]),
        None => CommandFinding::read_only("it only prints how it is used"),
    };
    if let Some(directory) = directory {
        let uncertain = directory.text().is_none().then_some(directory.span);
        finding = inside(finding, &directory);
        if let Some(span) = uncertain {
            refusal.get_or_insert(("the directory after -C is an expansion".into(), span));
        }
    }
    if hidden {
        let why = "an option before the subcommand chooses what git runs or where it looks";
        finding = finding.with(Effect::Opaque(why.into()));
    }
    match refusal {
        Some((why, span)) => refused(finding, why, span),
        None => finding,
    }
}

const ALIAS: &str = "a subcommand that is not known may be an alias for any command";

/// Returns whether an argument such as `user.name=x` sets a plain setting.
fn is_plain_setting(arg: &Arg) -> bool {
    let text = match &arg.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) => text,
        ArgValue::Unknown { prefix, one: true } => prefix,
        ArgValue::Glob(_) | ArgValue::Unknown { .. } => return false,
    };
    let Some((name, _)) = text.split_once('=') else {
        return false;
    };
    let name = name.to_ascii_lowercase();
    PLAIN_SETTINGS
        .split_ascii_whitespace()
        .any(|plain| name == plain || (plain.ends_with('.') && name.starts_with(plain)))
}

fn listed(options: &str, text: &str) -> bool {
    options
        .split_ascii_whitespace()
        .any(|option| option == text)
}

/// Keeps the subcommand's effects, but makes the finding at least unknown; only an exact rule may
/// then allow it.
fn refused(mut finding: CommandFinding, why: String, span: Span) -> CommandFinding {
    finding.verdict = finding.verdict.max(EffectVerdict::Unknown);
    finding.reason = why.into();
    finding.span = Some(span);
    finding.coverage = RuleCoverage::Exact;
    finding
}

/// Applies `-C`: every path is relative to that directory.
fn inside(mut finding: CommandFinding, directory: &Arg) -> CommandFinding {
    for effect in &mut finding.effects {
        match effect {
            Effect::Read(read) => read.path = paths::below(directory, &read.path),
            Effect::Write(write) => write.path = paths::below(directory, &write.path),
            Effect::Net(_)
            | Effect::Service(_)
            | Effect::Env(_)
            | Effect::Irreversible(_)
            | Effect::Opaque(_) => {}
        }
    }
    finding.effects.insert(0, options::names(directory));
    finding
}

fn subcommand(argv: &[Arg]) -> CommandFinding {
    let Some(name) = argv.first().and_then(Arg::text) else {
        return CommandFinding::unknown("its subcommand is an expansion");
    };
    let second = argv.get(1).and_then(Arg::text).unwrap_or_default();
    let find = |wanted: &str| {
        let in_tables = |tables: &[&'static [CommandSpec]]| {
            let mut all = tables.iter().copied().flatten();
            all.find(|spec| spec.is_called(wanted))
        };
        let known = in_tables(LISTED).map(|spec| (spec, false));
        known.or_else(|| in_tables(TABLES).map(|spec| (spec, !listed(KEEPS_CONTENT, wanted))))
    };
    let both = format!("{name}/{second}");
    let ((spec, shows), words) = match (find(&both), find(name)) {
        (Some(found), _) => (found, &argv[1..]),
        (None, Some(found)) => (found, argv),
        (None, None) => {
            let why = format!("git {name} is not known, or an alias");
            return CommandFinding::unknown(why)
                .with_span(argv[0].span)
                .with(Effect::Opaque(ALIAS.into()));
        }
    };
    if words.len() == 2 && words[1].is("-h") && name != "grep" {
        return CommandFinding::read_only("it only prints how it is used");
    }
    let mut finding = options::evaluate(spec, words);
    if finding.verdict != EffectVerdict::ReadOnly
        && working_tree::is_changed(name, &options::parse(spec, words))
    {
        let here = Arg::literal(".", argv[0].span);
        finding = finding.with(paths::filled(&here));
    }
    if shows {
        let here = Arg::literal(".", argv[0].span);
        finding = finding.with(options::tree(&here));
    }
    match spec.does {
        // Even with an unknown option, the subcommand certainly makes a change.
        CommandEffect::Change(what) if finding.verdict == EffectVerdict::Unknown => {
            CommandFinding {
                verdict: EffectVerdict::Mutating,
                reason: what.into(),
                span: None,
                ..finding
            }
        }
        _ if finding.verdict == EffectVerdict::ReadOnly && name != "grep" => {
            match doubts(&options::parse(spec, words)) {
                Some(doubt) => CommandFinding {
                    effects: finding.effects,
                    ..doubt
                },
                None => finding,
            }
        }
        _ => finding,
    }
}

/// Subcommands that treat every argument after `--` as a path. Others parse their arguments twice
/// and lose the `--`: `git stash list -- --output=f` writes.
const KEEPS_DASHES: &str = "log show diff whatchanged reflog shortlog rev-list blame annotate diff-tree \
                            diff-index diff-files grep status ls-files ls-tree";

/// Returns a finding for options that are safe separately but unsafe in combination or with their
/// value.
fn doubts(parsed: &ParsedArguments<'_>) -> Option<CommandFinding> {
    let inside = parsed.options.iter().find(|given| {
        let kind = given.value.as_ref().map(Arg::text);
        given.name == "--submodule" && !matches!(kind, None | Some(Some("short" | "log")))
    });
    if let Some(given) = inside {
        let why = "--submodule starts git in each submodule, with its own settings";
        return Some(CommandFinding::unknown(why).with_span(given.span));
    }
    read_twice(parsed)
}

/// Finds a value that looks like an option.
///
/// git parses many lines twice, with a different table each time. The first pass may consume the
/// value, and the text after it becomes an option in the second pass.
fn read_twice(parsed: &ParsedArguments<'_>) -> Option<CommandFinding> {
    let dashed = |arg: &Arg| arg.text().is_none_or(|text| text.starts_with('-'));
    let given = parsed.options.iter().find(|given| {
        let value = given.value.as_ref();
        value.is_some_and(|value| value.span != given.span && dashed(value))
    });
    if let Some(given) = given {
        let why = format!("git may read the value of {} as an option", given.name);
        return Some(CommandFinding::unknown(why).with_span(given.span));
    }
    let keeps = parsed
        .spec
        .names
        .split(' ')
        .all(|name| listed(KEEPS_DASHES, name));
    let behind = parsed.operands.get(parsed.before_dashes?..)?;
    let arg = behind.iter().find(|arg| !keeps && dashed(arg))?;
    Some(
        CommandFinding::unknown("git may parse an argument after -- as an option")
            .with_span(arg.span),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn harmless_options_before_the_subcommand_change_nothing() {
        assert_read_only(&[
            "git",
            "git --version",
            "git -h",
            "git --no-pager log -1",
            "git -P diff",
            "git -C sub status",
            "git -C sub -C deeper log --oneline",
            "git --no-optional-locks status",
            "git --literal-pathspecs ls-files",
            "git --man-path",
            "git commit -h",
        ]);
    }

    #[test]
    fn other_options_before_the_subcommand_need_an_exact_rule() {
        let lines = [
            "git -c core.pager=x log",
            "git --config-env=core.pager=X log",
            "git --exec-path=/tmp log",
            "git --git-dir=x.git log",
            "git --git-dir x.git log",
            "git --work-tree=/ status",
            "git -p log",
            "git --paginate log",
            "git --namespace=x log",
            "git --bare log",
            "git --new-option log",
            "git -Csub log",
            "git -C $x log",
        ];
        for line in lines {
            let finding = find(line);
            assert_eq!(finding.verdict, EffectVerdict::Unknown, "{line}");
            assert_eq!(finding.coverage, RuleCoverage::Exact, "{line}");
        }
        assert_eq!(
            find("git -c user.name=x commit -m x").verdict,
            EffectVerdict::Mutating
        );
    }

    #[test]
    fn what_is_no_subcommand_may_be_an_alias() {
        assert_eq!(
            verdict("git st"),
            "unknown: git st is not known, or an alias"
        );
        assert_not_read_only(&["git $x", "git -C", "git lg --all", "git lfs ls-files"]);
    }

    #[test]
    fn paths_count_from_the_directory() {
        assert_eq!(
            effects("git -C sub diff -- a /b"),
            ["names sub", "tree sub/a", "tree /b"]
        );
        assert_eq!(
            effects("git -C a -C b show HEAD:c"),
            ["names a/b", "read a/b/c"]
        );
        assert_eq!(effects("git -C $x rm f"), ["names $", "Removal $"]);
    }
}
