//! `tar`: the options select what it does, and the first argument may hold them without a dash.

use super::{
    files::{fills, work},
    hosts,
    operand_paths::joined,
    options::{ParsedArguments, content, evaluate, is_no_file, tree},
    reading::unseen,
    shells::worse,
    spec::{CommandSpec, KnownCommand, OperandKind, UnsafeOption, doubts, runs, writes},
};
use crate::{
    arg::Arg,
    effect::{CommandFinding, Effect},
};

pub(super) const ENTRIES: &[KnownCommand] = &[KnownCommand::Own("tar gtar", tar)];

static TAR: CommandSpec = CommandSpec::reads(
    "tar",
    "-AcdrtuxnSkWOmpsBiajJzZhPlRvo -C: -X< -f: -b: -H: -V: -K: -N: --catenate --concatenate \
     --create --delete --diff --compare --append --test-label --list --update --extract --get \
     --check-device --hole-detection= --ignore-failed-read --level= --no-check-device --no-seek \
     --seek --occurrence=? --sparse-version= --sparse --add-file= --directory= --exclude= \
     --exclude-backups --exclude-caches --exclude-caches-all --exclude-caches-under \
     --exclude-ignore= --exclude-ignore-recursive= --exclude-tag= --exclude-tag-all= \
     --exclude-tag-under= --exclude-vcs --exclude-vcs-ignores --no-null --no-recursion \
     --no-unquote --no-verbatim-files-from --null --recursion --unquote --verbatim-files-from \
     --exclude-from< --anchored --ignore-case --no-anchored --no-ignore-case --no-wildcards \
     --no-wildcards-match-slash --wildcards --wildcards-match-slash --keep-directory-symlink \
     --keep-newer-files --keep-old-files --no-overwrite-dir --one-top-level=? --overwrite \
     --overwrite-dir --skip-old-files --verify --ignore-command-error --no-ignore-command-error \
     --to-stdout --clamp-mtime --delay-directory-restore --group= --group-map< --mode= --mtime= \
     --touch --no-delay-directory-restore --no-same-owner --no-same-permissions --numeric-owner \
     --owner= --owner-map< --preserve-permissions --same-permissions --same-owner --sort= \
     --preserve-order --same-order --acls --no-acls --no-selinux --no-xattrs --selinux --xattrs \
     --xattrs-exclude= --xattrs-include= --force-local --file= --blocking-factor= \
     --read-full-records --ignore-zeros --record-size= --format= --old-archive --portability \
     --pax-option= --posix --label= --auto-compress --bzip2 --xz --lzip --lzma --lzop \
     --no-auto-compress --zstd --gzip --gunzip --ungzip --compress --uncompress \
     --hard-dereference --dereference --starting-file= --newer-mtime= --newer= --after-date= \
     --one-file-system --absolute-names --strip-components= --transform= --xform= --checkpoint=? \
     --full-time --check-links --no-quote-chars= --quote-chars= --quoting-style= --block-number \
     --show-defaults --show-omitted-dirs --show-snapshot-field-ranges --show-transformed-names \
     --show-stored-names --totals=? --utc --verbose --warning= --help --restrict --usage \
     --version",
)
.refusing(REFUSED)
.strict()
.with_evaluator(by_mode);

const REFUSED: &[UnsafeOption] = &[
    runs("-I: --use-compress-program=", "starts a program"),
    runs("--to-command=", "starts a program"),
    runs("--checkpoint-action=", "may start a program"),
    runs(
        "-F: --info-script= --new-volume-script=",
        "starts a program",
    ),
    runs("--rmt-command= --rsh-command=", "starts a program"),
    runs("-T< --files-from<", "may read options from a file"),
    doubts("-M -L: --multi-volume --tape-length=", "asks at a terminal"),
    doubts("-G --incremental", "removes what is not in the archive"),
    doubts(
        "-U --unlink-first --recursive-unlink --backup=? --suffix=",
        "moves or removes existing files",
    ),
    doubts("--atime-preserve=?", "sets dates"),
    doubts("-w --interactive --confirmation", "asks at a terminal"),
    writes("-g> --listed-incremental>", "writes a list of files"),
    writes("--index-file>", "writes its messages into a file"),
    writes("--volno-file>", "writes the number of a volume"),
    writes("--remove-files", "removes what it has packed"),
];

/// The modes, each with all its names.
const MODES: &[(TarMode, &[&str])] = &[
    (TarMode::List, &["-t", "--list", "--test-label"]),
    (TarMode::Compare, &["-d", "--diff", "--compare"]),
    (TarMode::Unpack, &["-x", "--extract", "--get"]),
    (TarMode::Pack, &["-c", "--create"]),
    (
        TarMode::Change,
        &[
            "-r",
            "-u",
            "-A",
            "--append",
            "--update",
            "--catenate",
            "--concatenate",
            "--delete",
        ],
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum TarMode {
    List,
    Compare,
    Unpack,
    Pack,
    Change,
}

/// In `tar xvfC a.tar d`, the letters of the first argument take their values from the following
/// arguments, in order.
fn tar(argv: &[Arg]) -> CommandFinding {
    let Some([name, first, rest @ ..]) = argv.get(..) else {
        return CommandFinding::read_only("it only prints");
    };
    let Some(letters) = first.text().filter(|text| !text.starts_with('-')) else {
        return evaluate(&TAR, argv);
    };
    let mut words = vec![name.clone()];
    let mut rest = rest.iter();
    for letter in letters.chars() {
        words.push(Arg::literal(format!("-{letter}"), first.span));
        if "bCfFgHIKLNTVX".contains(letter) {
            words.extend(rest.next().cloned());
        }
    }
    words.extend(rest.cloned());
    evaluate(&TAR, &words)
}

fn by_mode(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let given = |names: &[&str]| names.iter().any(|name| parsed.has(name));
    let mut modes = MODES
        .iter()
        .filter(|(_, names)| given(names))
        .map(|(mode, _)| *mode);
    let (mode, second) = (modes.next(), modes.next());
    let prints = ["--help", "--usage", "--version", "--show-defaults"]
        .iter()
        .any(|option| parsed.has(option));
    let refused = parsed.verdict();
    let finding = match (mode, second) {
        _ if refused.is_some() => refused.unwrap_or_else(|| CommandFinding::unknown("")),
        (None, None) if prints => return CommandFinding::read_only("it only prints"),
        (Some(mode), None) => verdict(parsed, mode),
        _ => CommandFinding::unknown("it is not clear what it does"),
    };
    let finding = parsed.with_effects(finding, OperandKind::None);
    effects(parsed, mode.unwrap_or(TarMode::Change), finding)
}

fn archives<'a>(parsed: &'a ParsedArguments<'_>) -> impl Iterator<Item = &'a Arg> {
    let given = parsed
        .options
        .iter()
        .filter(|given| matches!(given.name, "-f" | "--file"));
    given.filter_map(|given| given.value.as_ref())
}

fn to_output(parsed: &ParsedArguments<'_>) -> bool {
    (parsed.has("-O") || parsed.has("--to-stdout")) && !parsed.has("--one-top-level")
}

fn verdict(parsed: &ParsedArguments<'_>, mode: TarMode) -> CommandFinding {
    let streams = |file: &Arg| file.is("-") || is_no_file(file);
    match mode {
        TarMode::List => CommandFinding::read_only("it only lists an archive"),
        TarMode::Compare => CommandFinding::read_only("it only compares"),
        TarMode::Unpack if to_output(parsed) => {
            CommandFinding::read_only("it unpacks to its output")
        }
        TarMode::Unpack => CommandFinding::mutating("it unpacks files"),
        TarMode::Pack if archives(parsed).next().is_some() && archives(parsed).all(streams) => {
            CommandFinding::read_only("it packs to its output")
        }
        TarMode::Pack => CommandFinding::mutating("it writes an archive"),
        TarMode::Change => CommandFinding::mutating("it changes an archive"),
    }
}

fn effects(
    parsed: &ParsedArguments<'_>,
    mode: TarMode,
    mut finding: CommandFinding,
) -> CommandFinding {
    for file in archives(parsed) {
        let remote = file.text().is_none_or(|text| {
            text.split_once(':')
                .is_some_and(|(host, _)| !host.contains('/'))
        });
        if file.text().is_some() && remote && !parsed.has("--force-local") {
            let worse = worse(finding, "it contacts a host").with_span(file.span);
            finding = hosts::with_remote(worse, file);
        } else if !file.is("-") && !is_no_file(file) {
            let writes = matches!(mode, TarMode::Pack | TarMode::Change);
            finding
                .effects
                .push(if writes { work(file) } else { content(file) });
        }
    }
    let Some(name) = parsed.argv.first() else {
        return finding;
    };
    let here = Arg::literal(".", name.span);
    match mode {
        TarMode::List => finding,
        TarMode::Unpack if to_output(parsed) => finding,
        TarMode::Compare => finding.with(tree(&folder(parsed, usize::MAX).unwrap_or(here))),
        TarMode::Unpack => {
            let mut folder = folder(parsed, usize::MAX).unwrap_or(here);
            if let Some(top) = parsed.value("--one-top-level") {
                folder = joined(&folder, top);
            }
            let anywhere = parsed.has("-P") || parsed.has("--absolute-names");
            finding
                .with(fills(&folder))
                .with_all(anywhere.then(|| work(&unseen(name))))
        }
        TarMode::Pack | TarMode::Change => finding.with_all(packed(parsed)),
    }
}

/// Returns the reads of the packed files. Each name is relative to the last `-C` directory before
/// it.
fn packed(parsed: &ParsedArguments<'_>) -> Vec<Effect> {
    let added = parsed
        .options
        .iter()
        .filter(|given| given.name == "--add-file");
    let added = added.filter_map(|given| given.value.as_ref());
    let members = parsed.operands.iter().copied().chain(added);
    members
        .map(|member| match folder(parsed, member.span.start) {
            Some(folder) => tree(&joined(&folder, member)),
            None => tree(member),
        })
        .collect()
}

/// Returns the directory that the `-C` options before this position lead to.
fn folder(parsed: &ParsedArguments<'_>, before: usize) -> Option<Arg> {
    let entered = parsed
        .options
        .iter()
        .filter(|given| matches!(given.name, "-C" | "--directory"));
    let entered = entered
        .filter(|given| given.span.start < before)
        .filter_map(|given| given.value.clone());
    entered.reduce(|folder, next| joined(&folder, &next))
}

#[cfg(test)]
mod tests {
    use crate::{
        commands::testing::{assert_not_read_only, assert_read_only, each, effects, find, verdict},
        effect::RuleCoverage,
    };

    #[test]
    fn listing_and_streaming_are_harmless() {
        assert_read_only(&each(
            "tar -tf a.tar; tar tf a.tar; tar -tzf a.tgz; tar tvf a.tar; tar -tvf a.tar \
             --wildcards '*.md'; tar -xOf a.tar f; tar xzOf a.tgz f; tar --list --file=a.tar; tar \
             -df a.tar; tar -cf - src; tar czf - src; tar -cf /dev/null src; tar --version; tar \
             -tf a.tar -C d; tar tf -; tar --zstd -tf a; tar -t --file a.tar; tar -tf ./x:y",
        ));
        assert_not_read_only(&each(
            "tar -xf a.tar; tar xf a.tar; tar xzvf a.tgz; tar -cf a.tar src; tar czf a.tgz src; \
             tar --extr --file=a.tar; tar -rf a.tar b; tar --delete -f a.tar b; tar -uf a.tar b; \
             tar -tf a.tar --index-file=out -v; tar -tf a -I x; tar -tI'./x' -f a; tar \
             --use-comp=x -tf a; tar -xf a --to-command=x; tar -xOf a --to-command=x; tar -tf a \
             --checkpoint=1 --checkpoint-action=exec=x; tar -tf a -F x -M; tar -tf host:a; tar \
             -tf host:a --rsh-command=x; tar tf *; tar tf $x; tar -cf - -T list; tar -cf - \
             --remove-files a; tar -cg snap -f - a; tar c src; tar -tcf a; tar -f a; tar tIf x a; \
             tar -xOf a --backup f; tar -xGOf a; tar -xOUf a; tar -tf a -L 5; tar -xO \
             --one-top-level -f a",
        ));
        assert_eq!(
            verdict(
                "tar tIf x a; tar -xOf a --backup f; tar -xGOf a; tar -xOUf a; tar -tf a -L 5; \
                 tar -xO --one-top-level -f a"
            ),
            "unknown: -I starts a program"
        );
        assert_eq!(find("tar -tf a -I x").coverage, RuleCoverage::Exact);
    }

    #[test]
    fn effects_follow_the_mode() {
        let cases: [(&str, &[&str]); 13] = [
            ("tar tf a.tar b", &["read a.tar"]),
            ("tar xf a.tar", &["read a.tar", "Tree ."]),
            ("tar xfC a.tar d", &["read a.tar", "Tree d"]),
            ("tar -C d -xf a.tar", &["read a.tar", "Tree d"]),
            (
                "tar -xPf a.tar",
                &["read a.tar", "Tree .", "OperandWrite $"],
            ),
            ("tar -xf a --one-top-level=d", &["read a", "Tree ./d"]),
            ("tar -xOf a.tar b", &["read a.tar"]),
            (
                "tar -cf a.tar b c",
                &["OperandWrite a.tar", "tree b", "tree c"],
            ),
            (
                "tar -cf a.tar b -C d c",
                &["OperandWrite a.tar", "tree b", "tree d/c"],
            ),
            ("tar -cf - -C d .", &["tree d/."]),
            ("tar -rf a.tar b", &["OperandWrite a.tar", "tree b"]),
            ("tar -tf me@host:a", &["net host"]),
            ("tar -df a", &["read a", "tree ."]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
    }
}
