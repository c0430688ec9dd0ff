//! Commands that create, copy, move, remove or change files.

use super::{
    operand_paths::{joined, parents, placed},
    options::{ParsedArguments, content, evaluate, is_no_file, names, tree, written},
    spec::{CommandSpec, KnownCommand, OperandKind, runs},
};
use crate::{
    arg::Arg,
    effect::{CommandFinding, Effect, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(&COPY),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "mv",
            "-bfinuvZ -S: -t: -T --backup=? --force --interactive --no-clobber \
             --strip-trailing-slashes --suffix= --target-directory= --no-target-directory \
             --update=? --verbose --context --exchange --no-copy --debug --help --version",
        )
        .with_evaluator(moves),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "ln link",
            "-bdFfiLnPrsv -S: -t: -T --backup=? --directory --force --interactive --logical \
             --no-dereference --physical --relative --symbolic --suffix= --target-directory= \
             --no-target-directory --verbose --help --version",
        )
        .with_evaluator(links),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "install",
            "-bcCDdpsvZ -g: -m: -o: -S: -t: -T --backup=? --compare --directory --group= --mode= \
             --owner= --preserve-timestamps --strip --suffix= --target-directory= \
             --no-target-directory --verbose --preserve-context --context=? --debug --help \
             --version",
        )
        .refusing(&[runs("--strip-program=", "starts a program")])
        .with_evaluator(
            |parsed| match parsed.has("-d") || parsed.has("--directory") {
                true => done(parsed, "it makes directories")
                    .with_all(parsed.operands.iter().map(|dir| work(dir))),
                false => copies(parsed),
            },
        ),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "rm",
            "-fiIrRdvx --force --interactive=? --one-file-system --no-preserve-root \
             --preserve-root=? --recursive --dir --verbose --help --version",
        )
        .with_evaluator(|parsed| {
            done(parsed, "it removes files")
                .with_all(parsed.operands.iter().map(|file| removed(file)))
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::changes("unlink", "--help --version", "it removes a file")
            .operands(OperandKind::Removed),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "rmdir",
            "-pv --ignore-fail-on-non-empty --parents --verbose --help --version",
        )
        .with_evaluator(|parsed| {
            let deep = parsed.has("-p") || parsed.has("--parents");
            let above = parsed
                .operands
                .iter()
                .filter(|_| deep)
                .flat_map(|dir| parents(dir));
            let all: Vec<Arg> = parsed
                .operands
                .iter()
                .map(|dir| (*dir).clone())
                .chain(above)
                .collect();
            done(parsed, "it removes directories").with_all(all.iter().map(removed))
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::changes(
            "shred",
            "-fuvxz -n: -s: --force --iterations= --random-source< --size= --remove=? --verbose \
             --exact --zero --help --version",
            "it destroys files",
        )
        .operands(OperandKind::Removed),
    ),
    KnownCommand::Spec(
        &CommandSpec::changes(
            "mkdir",
            "-pvZ -m: --mode= --parents --verbose --context=? --help --version",
            "it makes directories",
        )
        .operands(OperandKind::Written),
    ),
    KnownCommand::Spec(
        &CommandSpec::changes(
            "mkfifo",
            "-Z -m: --mode= --context=? --help --version",
            "it makes a pipe",
        )
        .operands(OperandKind::Written),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads("mknod", "-Z -m: --mode= --context=? --help --version").with_evaluator(
            |parsed| {
                done(parsed, "it makes a special file")
                    .with_all(parsed.operands.iter().take(1).map(|file| work(file)))
            },
        ),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "touch",
            "-acfhm -d: -r: -t: --no-create --date= --no-dereference --reference= --time= --help \
             --version",
        )
        .with_evaluator(|parsed| {
            let like = parsed.value("-r").or_else(|| parsed.value("--reference"));
            let finding = done(parsed, "it creates files or sets their dates");
            finding
                .with_all(like.map(names))
                .with_all(parsed.operands.iter().map(|file| work(file)))
        }),
    ),
    KnownCommand::Own("chmod", chmod),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "chown chgrp",
            "-cfvhRHLP --changes --silent --quiet --verbose --dereference --no-dereference \
             --from= --no-preserve-root --preserve-root --reference= --recursive --help --version",
        )
        .with_evaluator(|parsed| {
            let own = usize::from(!parsed.has("--reference"));
            done(parsed, "it changes who owns files")
                .with_all(parsed.operands.iter().skip(own).map(|file| work(file)))
        }),
    ),
    KnownCommand::Own("chattr setfacl setfattr setcap chcon restorecon", |argv| {
        let files = argv
            .iter()
            .skip(1)
            .filter(|word| word.text().is_none_or(|text| !text.starts_with(['-', '+'])));
        CommandFinding::mutating("it changes the attributes of files").with_all(files.map(work))
    }),
    KnownCommand::Spec(
        &CommandSpec::changes(
            "dos2unix unix2dos mac2unix unix2mac",
            "-7bcfklmoqrsuvFRShLVnieE --keep-bom --force --keepdate --newline --add-bom --newfile \
             --oldfile --quiet --remove-bom --safe --verbose --follow-symlink --replace-symlink \
             --skip-symlink --info=? --stdout -O --help --version",
            "it changes files in place",
        )
        .operands(OperandKind::Written),
    ),
    KnownCommand::Own("rename prename file-rename mmv", |argv| {
        let files = argv
            .iter()
            .skip(2)
            .filter(|word| word.text().is_none_or(|text| !text.starts_with('-')));
        CommandFinding::mutating("it renames files").with_all(files.map(work))
    }),
];

static COPY: CommandSpec = CommandSpec::reads(
    "cp",
    "-abdfiHlLnPpRrsuvxZ -S: -t: -T --archive --attributes-only --backup=? --copy-contents \
     --force --interactive --link --dereference --no-clobber --no-dereference --preserve=? \
     --no-preserve= --parents --recursive --reflink=? --remove-destination --sparse= \
     --strip-trailing-slashes --symbolic-link --suffix= --target-directory= --no-target-directory \
     --update=? --verbose --one-file-system --context=? --keep-directory-symlink --debug --help \
     --version",
)
.with_evaluator(copies);

pub(super) fn work(file: &Arg) -> Effect {
    written(file, WriteKind::OperandWrite)
}

/// Returns a write of any file below a directory, or of the path itself, which may be replaced.
pub(super) fn fills(folder: &Arg) -> Effect {
    written(folder, WriteKind::Tree)
}

fn removed(file: &Arg) -> Effect {
    written(file, WriteKind::Removal)
}

/// Returns the finding without effects; the caller adds them.
pub(super) fn done(parsed: &ParsedArguments<'_>, what: &'static str) -> CommandFinding {
    let certain = parsed.argv.iter().all(|word| word.text().is_some());
    if certain && (parsed.has("--help") || parsed.has("--version")) {
        return CommandFinding::read_only("it only prints");
    }
    parsed
        .verdict()
        .unwrap_or_else(|| CommandFinding::mutating(what))
}

/// The kind of the target, as far as the arguments show it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TargetKind {
    File,
    Directory,
    /// File or directory: with one source, the arguments do not show which.
    Either,
}

/// The sources and the target of a command such as `cp`.
struct TransferPaths<'a> {
    sources: Vec<&'a Arg>,
    target: &'a Arg,
    kind: TargetKind,
    /// All paths that may be written: the target itself, or names in it.
    written: Vec<Arg>,
}

/// Parses `SOURCE… TARGET`, `-t TARGET SOURCE…`, `-T SOURCE TARGET`.
fn places<'a>(parsed: &'a ParsedArguments<'_>) -> Option<TransferPaths<'a>> {
    let given = parsed
        .value("-t")
        .or_else(|| parsed.value("--target-directory"));
    let plain = parsed.has("-T") || parsed.has("--no-target-directory");
    let mut sources: Vec<&Arg> = parsed.operands.clone();
    let target = match given {
        Some(target) => target,
        None if sources.len() < 2 => return None,
        None => sources.pop()?,
    };
    let whole = parsed.has("--parents");
    let kind = match (
        plain,
        given.is_some() || sources.len() > 1 || is_directory(target),
    ) {
        (true, _) => TargetKind::File,
        (false, true) => TargetKind::Directory,
        (false, false) => TargetKind::Either,
    };
    let mut written = Vec::new();
    if kind != TargetKind::Directory {
        written.push(target.clone());
    }
    if kind != TargetKind::File {
        let into = |source: &&Arg| {
            if whole {
                joined(target, source)
            } else {
                placed(target, source)
            }
        };
        written.extend(sources.iter().map(into));
    }
    Some(TransferPaths {
        sources,
        target,
        kind,
        written,
    })
}

/// Returns whether the text shows that the target is a directory.
fn is_directory(target: &Arg) -> bool {
    target.text().is_some_and(|text| {
        text.ends_with('/') || text.ends_with("/.") || matches!(text, "." | "..")
    })
}

fn copies(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = done(parsed, "it copies files");
    let Some(places) = places(parsed) else {
        return finding.with_all(parsed.operands.iter().map(|file| content(file)));
    };
    let deep = ["-r", "-R", "-a", "--recursive", "--archive"]
        .iter()
        .any(|option| parsed.has(option));
    let read = |source: &&Arg| if deep { tree(source) } else { content(source) };
    let reads: Vec<Effect> = places.sources.iter().map(read).collect();
    if is_no_file(places.target) && parsed.options.is_empty() && parsed.spec.is_called("cp") {
        return CommandFinding::read_only("it writes no file").with_all(reads);
    }
    let put = if deep { fills } else { work };
    finding
        .with_all(reads)
        .with_all(places.written.iter().map(put))
}

fn moves(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = done(parsed, "it moves files");
    let Some(places) = places(parsed) else {
        return finding.with_all(parsed.operands.iter().map(|file| removed(file)));
    };
    let taken = places
        .sources
        .iter()
        .flat_map(|source| [tree(source), removed(source)]);
    finding
        .with_all(taken)
        .with_all(places.written.iter().map(fills))
}

/// Analyzes links: the target of a link can be read and changed under another name afterwards.
fn links(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = done(parsed, "it makes links");
    let symbolic = (parsed.has("-s") || parsed.has("--symbolic"))
        && !parsed.has("-r")
        && !parsed.has("--relative");
    let Some(places) = places(parsed) else {
        let here = |source: &&Arg| work(&placed(&Arg::literal(".", source.span), source));
        let shared = parsed
            .operands
            .iter()
            .flat_map(|source| [tree(source), work(source)]);
        return finding
            .with_all(shared)
            .with_all(parsed.operands.iter().map(here));
    };
    // The target of a symbolic link is relative to the link's directory: the target, or its parent.
    let mut folders = Vec::new();
    if symbolic && places.kind != TargetKind::File {
        folders.push(Some(places.target.clone()));
    }
    if !symbolic || places.kind != TargetKind::Directory {
        folders.push(parents(places.target).next().filter(|_| symbolic));
    }
    let pointed = places.sources.iter().flat_map(|source| {
        folders.iter().map(move |folder| match folder {
            Some(folder) => joined(folder, source),
            None => (*source).clone(),
        })
    });
    let pointed: Vec<Arg> = pointed.collect();
    // Only a symbolic link can point to a directory.
    let put = if parsed.has("-s") || parsed.has("--symbolic") {
        fills
    } else {
        work
    };
    let shared = pointed
        .iter()
        .flat_map(|source| [tree(source), put(source)]);
    finding
        .with_all(shared)
        .with_all(places.written.iter().map(put))
}

/// Analyzes `chmod`, whose mode may begin with a dash.
fn chmod(argv: &[Arg]) -> CommandFinding {
    static CHMOD: CommandSpec = CommandSpec::reads(
        "chmod",
        "-cfvRhHLP --changes --silent --quiet --verbose --no-preserve-root --preserve-root \
         --reference= --recursive --dereference --no-dereference --help --version",
    )
    .with_evaluator(|parsed| done(parsed, "it changes the modes of files"));
    let is_mode = |arg: &Arg| {
        let rest = arg.text().and_then(|text| text.strip_prefix('-'));
        rest.is_some_and(|rest| rest.starts_with(|first| "rwxXstugoa,+=01234567".contains(first)))
    };
    let words: Vec<Arg> = argv.iter().filter(|arg| !is_mode(arg)).cloned().collect();
    let parsed = super::options::parse(&CHMOD, &words);
    let own = usize::from(words.len() == argv.len() && !parsed.has("--reference"));
    evaluate(&CHMOD, &words).with_all(parsed.operands.iter().skip(own).map(|file| work(file)))
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{
        assert_not_read_only, assert_read_only, each, effects, verdict,
    };

    #[test]
    fn work_on_files_is_not_harmless() {
        assert_not_read_only(&each(
            "cp a b; mv a b; ln -s a b; install a b; rm a; rm -rf $x; rmdir d; mkdir -p d; touch \
             a; truncate -s 0 a; chmod +x a; chmod -x a; chown root a; tee a; tee -a $x; dd if=a \
             of=b; dd of=b; mktemp; shred a; sponge a; unlink a; mkfifo p; dos2unix a; rename a b \
             c; cp --odd a b; tee /dev/null a; dd $x; dd of=/dev/null of=b; dd of=\"$x\"; dd \
             odd=1; cp -f a /dev/null; mv a /dev/null; install a /dev/null; setfacl -m u:x:r a; \
             chattr +i a; mktemp -d; dd if=$x; rm $x --help",
        ));
        assert_read_only(&each(
            "tee; tee /dev/null; tee /dev/stderr; dd if=a; dd if=a of=/dev/null bs=1M count=1; dd \
             if=\"$x\"; cp a /dev/null; mktemp -u; rm --help; cp --version; dd status=none",
        ));
        assert_eq!(verdict("rm -r d"), "mutating: it removes files");
    }

    #[test]
    fn effects_name_every_path() {
        let cases: [(&str, &[&str]); 28] = [
            ("cp a b", &["read a", "OperandWrite b", "OperandWrite b/a"]),
            ("cp a b/", &["read a", "OperandWrite b/a"]),
            ("cp x/a .", &["read x/a", "OperandWrite ./a"]),
            ("cp -T a b", &["read a", "OperandWrite b"]),
            (
                "cp a b d",
                &["read a", "read b", "OperandWrite d/a", "OperandWrite d/b"],
            ),
            (
                "cp -t d x/a b",
                &["read x/a", "read b", "OperandWrite d/a", "OperandWrite d/b"],
            ),
            ("cp --target-directory=d a", &["read a", "OperandWrite d/a"]),
            (
                "cp -r x/* d",
                &["tree glob(x/*)", "Tree d", "Tree glob(d/*)"],
            ),
            ("cp -a a $x", &["tree a", "Tree $", "Tree $"]),
            (
                "cp --parents x/a d",
                &["read x/a", "OperandWrite d", "OperandWrite d/x/a"],
            ),
            ("mv a b", &["tree a", "Removal a", "Tree b", "Tree b/a"]),
            (
                "ln -s a b",
                &[
                    "tree b/a", "Tree b/a", "tree a", "Tree a", "Tree b", "Tree b/a",
                ],
            ),
            (
                "ln a b",
                &[
                    "tree a",
                    "OperandWrite a",
                    "OperandWrite b",
                    "OperandWrite b/a",
                ],
            ),
            (
                "ln -sT ../a d/b",
                &["tree d/../a", "Tree d/../a", "Tree d/b"],
            ),
            (
                "ln -s x/a",
                &["tree x/a", "OperandWrite x/a", "OperandWrite ./a"],
            ),
            (
                "ln -sf /etc/a b/",
                &["tree /etc/a", "Tree /etc/a", "Tree b/a"],
            ),
            (
                "install -m 755 a b",
                &["read a", "OperandWrite b", "OperandWrite b/a"],
            ),
            ("install -d a b", &["OperandWrite a", "OperandWrite b"]),
            ("rm -rf a $x", &["Removal a", "Removal $"]),
            ("rm -- -f", &["Removal -f"]),
            ("rmdir -p a/b", &["Removal a/b", "Removal a"]),
            ("touch -r a b", &["names a", "OperandWrite b"]),
            ("chmod -R 755 d", &["OperandWrite d"]),
            ("chmod u+x a b", &["OperandWrite a", "OperandWrite b"]),
            ("chmod -x a", &["OperandWrite a"]),
            ("chown -R me:me d", &["OperandWrite d"]),
            ("tee -a x /dev/null", &["OperandWrite x"]),
            ("dd if=a of=b bs=1", &["read a", "OperandWrite b"]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
        assert_eq!(effects("mktemp x.XXX"), ["OperandWrite x.XXX"]);
        assert_eq!(effects("mktemp"), ["OperandWrite /tmp"]);
        assert_eq!(effects("mktemp -p d x.XXX"), ["OperandWrite d/x.XXX"]);
        assert_eq!(effects("chmod --reference=a b"), ["OperandWrite b"]);
    }
}
