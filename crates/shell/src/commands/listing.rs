//! Commands that read names, dates and kinds of files, or compare files.

use super::{
    options::{ParsedArguments, content, evaluate, names_below, tree},
    reading::unseen,
    spec::{CommandSpec, KnownCommand, OperandKind, runs, writes},
};
use crate::{
    arg::{Arg, ArgValue},
    ast::Span,
    effect::CommandFinding,
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(
        &CommandSpec::reads(
            "ls dir vdir",
            "-aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I: -T: -w: --all --almost-all --author \
             --escape --block-size= --ignore-backups --color=? --directory --dired --classify=? \
             --file-type --format= --full-time --group-directories-first --no-group \
             --human-readable --si --dereference-command-line \
             --dereference-command-line-symlink-to-dir --hide= --hyperlink=? --indicator-style= \
             --inode --ignore= --kibibytes --dereference --numeric-uid-gid --literal \
             --hide-control-chars --show-control-chars --quote-name --quoting-style= --reverse \
             --recursive --size --sort= --time= --time-style= --tabsize= --width= --context \
             --zero --help --version",
        )
        .with_evaluator(|parsed| looks(parsed, parsed.has("-R") || parsed.has("--recursive"))),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "eza exa",
            "-1lGxRTFaAdrDfbBghHimMnStuUXowZO@ -L: -s: -I: -t: --oneline --long --grid --across \
             --recurse --tree --dereference --classify=? --all --almost-all --list-dirs --level= \
             --reverse --sort= --ignore-glob= --git-ignore --group-directories-first \
             --group-directories-last --only-dirs --only-files --binary --bytes --group \
             --smart-group --header --links --inode --modified --mounts --numeric --blocksize \
             --time= --accessed --created --changed --time-style= --total-size --no-permissions \
             --octal-permissions --no-filesize --no-user --no-time --no-git --git --git-repos \
             --git-repos-no-status --extended --context --icons=? --no-icons --color= --colour= \
             --color-scale=? --colour-scale=? --no-quotes --hyperlink --absolute=? --width= \
             --help --version",
        )
        .with_evaluator(|parsed| {
            let deep = ["-R", "-T", "--recurse", "--tree"];
            looks(parsed, deep.iter().any(|option| parsed.has(option)))
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "lsd",
            "-aAFlhRdigNrStvX1ULVZ -I: --all --almost-all --color= --icon= --icon-theme= \
             --classify --long --oneline --recursive --human-readable --tree --depth= \
             --directory-only --permission= --size= --total-size --date= --timesort --sizesort \
             --extensionsort --gitsort --versionsort --sort= --no-sort --reverse --group-dirs= \
             --group-directories-first --blocks= --classic --no-symlink --ignore-glob= --inode \
             --dereference --context --hyperlink= --header --literal --git \
             --truncate-owner-after= --truncate-owner-marker= --help --version",
        )
        .with_evaluator(|parsed| {
            let deep = ["-R", "--recursive", "--tree"];
            looks(parsed, deep.iter().any(|option| parsed.has(option)))
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "stat",
            "-Lft -c: --dereference --file-system --cached= --format= --printf= --terse --help \
             --version",
        )
        .operands(OperandKind::Names),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "du",
            "-0abcDHhkLlmPSsxA -B: -d: -t: -X< --null --all --apparent-size --block-size= --bytes \
             --total --dereference-args --max-depth= --files0-from< --human-readable --inodes \
             --dereference --count-links --no-dereference --separate-dirs --si --summarize \
             --threshold= --time=? --time-style= --exclude-from< --exclude= --one-file-system \
             --help --version",
        )
        .with_evaluator(|parsed| match parsed.value("--files0-from") {
            Some(list) => looks(parsed, true).with(names_below(&unseen(list))),
            None => looks(parsed, true),
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "df",
            "-ahHiklPTv -B: -t: -x: --all --block-size= --human-readable --si --inodes --local \
             --no-sync --output=? --portability --total --type= --print-type --exclude-type= \
             --help --version",
        )
        .with_evaluator(|parsed| match parsed.operands.is_empty() {
            true => parsed.finding(OperandKind::Text),
            false => parsed.finding(OperandKind::Names),
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "readlink realpath",
            "-femLPnqsvzE --canonicalize --canonicalize-existing --canonicalize-missing \
             --no-newline --logical --physical --quiet --silent --verbose --relative-to= \
             --relative-base= --strip --no-symlinks --zero --help --version",
        )
        .operands(OperandKind::Names),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "namei",
            "-xmolnvZhV --mountpoints --modes --owners --long --nosymlinks --vertical --context \
             --help --version",
        )
        .operands(OperandKind::Names),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "mountpoint",
            "-qdxhV --quiet --nofollow --fs-devno --devno --help --version",
        )
        .operands(OperandKind::Names),
    ),
    KnownCommand::Spec(&CommandSpec::reads("lsattr", "-RVadlpv").operands(OperandKind::Names)),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "getfacl",
            "-acdeEsRLPtnpvh --access --omit-header --default --all-effective --no-effective \
             --skip-base --recursive --logical --physical --tabular --numeric --absolute-names \
             --version --help",
        )
        .operands(OperandKind::Names),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "getfattr",
            "-n: -d -e: -h -m: -RLPV --name= --dump --encoding= --no-dereference --match= \
             --absolute-names --only-values --recursive --logical --physical --version --help",
        )
        .operands(OperandKind::Names),
    ),
    KnownCommand::Spec(&CommandSpec::reads("getcap", "-vhrn").operands(OperandKind::Names)),
    KnownCommand::Own("tree", list_tree),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "file",
            "-bchiklLnNrsvzZ0dE -e: -F: -P: --help --version --uncompress --uncompress-noreport \
             --brief --checking-printout --exclude= --exclude-quiet= --separator= --mime --apple \
             --extension --mime-type --mime-encoding --keep-going --list --dereference \
             --no-dereference --no-buffer --no-pad --print0 --parameter= --raw --special-files \
             --debug",
        )
        .refusing(&[
            writes("-C --compile", "compiles a magic file"),
            runs(
                "-m< --magic-file<",
                "reads its rules from a file of the line",
            ),
            runs("-f< --files-from<", "reads the names of files from a file"),
        ])
        .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "bat batcat",
            "-pnASuLPdfhV -l: -r: -H: -m: --plain --number --show-all --nonprintable-notation= \
             --language= --line-range= --highlight-line= --style= --color= --theme= --theme-dark= \
             --theme-light= --decorations= --wrap= --chop-long-lines --tabs= --file-name= \
             --terminal-width= --italic-text= --map-syntax= --ignored-suffix= --squeeze-blank \
             --squeeze-limit= --strip-ansi= --unbuffered --list-languages --list-themes --diff \
             --diff-context= --force-colorization --no-paging --no-config --help --version",
        )
        .strict()
        .with_evaluator(|parsed| {
            let finding = parsed.finding(OperandKind::Files);
            match parsed.operands.first() {
                Some(first) if first.is("cache") && parsed.verdict().is_none() => {
                    CommandFinding::mutating("it rebuilds or clears its cache")
                        .with_span(first.span)
                }
                _ => finding,
            }
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "cmp",
            "-bls -i: -n: --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent \
             --help -v --version",
        )
        .with_evaluator(|parsed| {
            // The operands after the two files are numbers.
            let finding = parsed.finding(OperandKind::None);
            let files = parsed.operands.iter().take(2).filter(|arg| !arg.is("-"));
            files.fold(finding, |finding, file| finding.with(content(file)))
        }),
    ),
    KnownCommand::Spec(&DIFF),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "diff3",
            "-AeE3xXimaTv -L: --show-all --ed --show-overlap --easy-only --overlap-only --merge \
             --text --strip-trailing-cr --initial-tab --label= --help --version",
        )
        .refusing(&[runs("--diff-program=", "starts a program")])
        .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "sdiff",
            "-iEZbWBalstdHv -I: -w: --ignore-case --ignore-tab-expansion --ignore-trailing-space \
             --ignore-space-change --ignore-all-space --ignore-blank-lines \
             --ignore-matching-lines= --strip-trailing-cr --text --width= --left-column \
             --suppress-common-lines --expand-tabs --tabsize= --minimal --speed-large-files \
             --help --version",
        )
        .refusing(&[
            writes("-o> --output>", "writes the merged text into a file"),
            runs("--diff-program=", "starts a program"),
        ])
        .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads("diffstat", "-bcCklmqstuvV -f: -n: -p: -w:")
            .refusing(&[writes("-o>", "writes into a file")])
            .strict(),
    ),
    KnownCommand::Spec(&CommandSpec::prints(
        "which",
        "-as --all --skip-alias --skip-dot --skip-functions --skip-tilde --show-dot --show-tilde \
         --tty-only --help --version -vV",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "whereis",
        "-bmsBMSfulhV --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "basename",
        "-az -s: --multiple --suffix= --zero --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "dirname",
        "-z --zero --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "pathchk",
        "-pP --portability --help --version",
    )),
];

static DIFF: CommandSpec = CommandSpec::reads(
    "diff colordiff zdiff zcmp bzdiff xzdiff",
    "-qscuenyptTlrNiEZbwBad -C: -U: -W: -F: -x: -X< -S: -I: -D: -L: -hPv --normal --brief \
     --report-identical-files --context=? --unified=? --ed --forward-ed --rcs --side-by-side \
     --width= --left-column --suppress-common-lines --show-c-function --show-function-line= \
     --label= --expand-tabs --initial-tab --tabsize= --suppress-blank-empty --paginate \
     --recursive --no-dereference --new-file --unidirectional-new-file --ignore-file-name-case \
     --no-ignore-file-name-case --exclude= --exclude-from< --starting-file= --from-file< \
     --to-file< --ignore-case --ignore-tab-expansion --ignore-trailing-space \
     --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-matching-lines= \
     --text --strip-trailing-cr --ifdef= --old-group-format= --new-group-format= \
     --unchanged-group-format= --changed-group-format= --line-format= --old-line-format= \
     --new-line-format= --unchanged-line-format= --minimal --horizon-lines= --speed-large-files \
     --color=? --palette= --help --version -#",
)
.with_evaluator(|parsed| {
    let deep = parsed.has("-r") || parsed.has("--recursive");
    let finding = parsed.finding(OperandKind::None);
    let files = parsed.operands.iter().filter(|arg| !arg.is("-"));
    files.fold(finding, |finding, file| {
        finding.with(if deep { tree(file) } else { content(file) })
    })
});

/// Adds reads of the operands' names; if `deep`, of everything below them as well.
fn looks(parsed: &ParsedArguments<'_>, deep: bool) -> CommandFinding {
    if !deep {
        return parsed.finding(OperandKind::Names);
    }
    let finding = parsed.finding(OperandKind::None);
    if parsed.operands.is_empty() {
        let span = parsed
            .argv
            .first()
            .map_or(Span { start: 0, end: 0 }, |arg| arg.span);
        return finding.with(names_below(&Arg::literal(".", span)));
    }
    let roots = parsed.operands.iter();
    roots.fold(finding, |finding, root| finding.with(names_below(root)))
}

/// In a bundle, the letters after a letter that takes a value are options and not its value: `-Lo 2
/// out`.
fn list_tree(argv: &[Arg]) -> CommandFinding {
    static TREE: CommandSpec = CommandSpec::reads(
        "tree",
        "-adlfxqNQpugshDFvtcUrnACiSXJ -L: -P: -I: -H: -T: --gitignore --gitfile< --ignore-case \
         --matchdirs --metafirst --prune --info --infofile< --noreport --charset= --filelimit= \
         --si --du --timefmt= --inodes --device --dirsfirst --filesfirst --sort= --nolinks \
         --hintro< --houtro< --fromfile --fromtabfile --fflinks --help --version",
    )
    .refusing(&[
        writes("-o>", "writes the listing into a file"),
        writes("-R", "writes a page into each directory it stops at"),
    ])
    .strict()
    .with_evaluator(
        |parsed| match parsed.has("--fromfile") || parsed.has("--fromtabfile") {
            true => parsed.finding(OperandKind::Files),
            false => looks(parsed, true),
        },
    );
    let glued = argv.iter().take_while(|arg| !arg.is("--")).find(|arg| {
        let text = match &arg.value {
            ArgValue::Literal(text) | ArgValue::Braced(text) => text.as_str(),
            ArgValue::Glob(_) | ArgValue::Unknown { .. } => return false,
        };
        let letters = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let behind = letters.and_then(|letters| letters.split_once(['L', 'P', 'I', 'H', 'T', 'o']));
        behind.is_some_and(|(_, behind)| !behind.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let finding = evaluate(&TREE, argv);
    match glued {
        Some(arg) => CommandFinding {
            effects: finding.effects,
            ..CommandFinding::unknown("its options cannot be distinguished from their values")
                .with_span(arg.span)
        },
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, each, effects};

    #[test]
    fn looking_is_harmless() {
        assert_read_only(&each(
            "ls; ls -la src; ls -lah --color=never; ls *; ls $x; ls -R; ls -- -rf; ls --sort=size \
             -1; stat -c %s a; stat -f .; du -sh *; du -h --max-depth=1; df -h; df -i /tmp; \
             readlink -f a; realpath --relative-to=. a; namei -l a; which -a git; whereis bash; \
             basename a .rs; dirname $x; file a; file -b --mime-type a; file -- a; bat -p a; eza \
             -la --git; getfacl a; mountpoint -q /tmp",
        ));
        assert_not_read_only(&each(
            "ls --odd; ls -$x; file -m m a; file -f list; file -C; file *; file $x; bat cache \
             --build; bat --pager x a; bat --paging=always a; stat --odd a",
        ));
        assert_eq!(effects("ls"), ["names ."]);
        assert_eq!(effects("ls -l a *"), ["names a", "names glob(*)"]);
        assert_eq!(effects("ls -R a"), ["names below a"]);
        assert_eq!(effects("du"), ["names below ."]);
        assert_eq!(effects("df"), [""; 0]);
    }

    #[test]
    fn comparing_is_harmless() {
        assert_read_only(&each(
            "diff a b; diff -u a b; diff -rq a b; diff -U5 a b; diff --color=always $x b; cmp -s \
             a b; cmp a b 10 20; diff3 -m a b c; sdiff -s a b; colordiff -u a b; diffstat -p1 a; \
             diff -x *.o a b",
        ));
        assert_not_read_only(&each(
            "diff --odd a b; diff3 --diff-program=x a b c; sdiff -o out a b; sdiff --diff-pr=x a \
             b; diffstat -o out a; diff3 $x",
        ));
        assert_eq!(effects("diff -r a b"), ["tree a", "tree b"]);
        assert_eq!(effects("diff a -"), ["read a"]);
        assert_eq!(effects("cmp a b 1"), ["read a", "read b"]);
        assert_eq!(
            effects("sdiff -o out a b"),
            ["OptionWrite out", "read a", "read b"]
        );
    }

    #[test]
    fn tree_may_write() {
        assert_read_only(&each(
            "tree; tree -L 2; tree -L2 src; tree -a -I '.git|target' --dirsfirst; tree -J -L 1; \
             tree -fi; tree --sort=size; tree -aL 2",
        ));
        assert_not_read_only(&each(
            "tree -o out; tree -oout; tree -Jo out; tree -R -L 1 -H .; tree *; tree $x; tree -Lo \
             2 out; tree -Po x out; tree -LR 2",
        ));
        assert_eq!(effects("tree -L 2 src"), ["names below src"]);
    }
}
