//! Archive formats other than tar: zip, cpio, 7z, ar, rar.

use super::{
    files::{fills, work},
    hosts,
    operand_paths::joined,
    options::{ParsedArguments, content, tree, written},
    shells::{opaque, worse},
    spec::{CommandSpec, KnownCommand, OperandKind, doubts, runs, writes},
};
use crate::{
    arg::{Arg, ArgValue},
    ast::Span,
    effect::{CommandFinding, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Own("unzip", unzip),
    KnownCommand::Own("zipinfo", |argv| {
        let is_option = |arg: &&Arg| arg.text().is_some_and(|text| text.starts_with('-'));
        let archive = argv.iter().skip(1).find(|arg| !is_option(arg));
        CommandFinding::read_only("it only lists an archive").with_all(archive.map(content))
    }),
    KnownCommand::Own("zip", zip),
    KnownCommand::Own("7z 7za 7zr 7zz p7zip", seven_zip),
    KnownCommand::Own("unrar rar", rar),
    KnownCommand::Own("ar gcc-ar", ar),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "cpio",
            "-itovVBcnfbsSdmu -C: -H: -I: -F: -D: -W: -E< -M: --extract --list --create \
             --block-size= --io-size= --directory= --force-local --format= --quiet --verbose \
             --dot --warning= --file= --nonmatching --numeric-uid-gid --swap --swap-bytes \
             --swap-halfwords --to-stdout --pattern-file< --only-verify-crc --make-directories \
             --preserve-modification-time --no-preserve-owner --sparse --unconditional \
             --absolute-filenames --no-absolute-filenames --help --usage --version",
        )
        .refusing(&[
            runs("--rsh-command=", "starts a program"),
            doubts("-p --pass-through", "copies files"),
            doubts("-r --rename", "asks at a terminal"),
            writes("-O> -A --append", "writes an archive"),
        ])
        .strict()
        .with_evaluator(cpio),
    ),
];

fn is_dashed(arg: &Arg) -> bool {
    arg.text()
        .is_some_and(|text| text.len() > 1 && text.starts_with('-'))
}

/// Only `-x` and `-d` may follow the archive; every other option must precede it.
fn unzip(argv: &[Arg]) -> CommandFinding {
    let words = argv.get(1..).unwrap_or_default();
    let own = words.iter().take_while(|word| is_dashed(word)).count();
    let (options, rest) = words.split_at(own);
    let letters: String = options
        .iter()
        .filter_map(Arg::text)
        .map(|text| &text[1..])
        .collect();
    if options
        .first()
        .is_some_and(|first| first.text().is_some_and(|text| text.starts_with("-Z")))
    {
        return CommandFinding::read_only("it only lists an archive")
            .with_all(rest.first().map(content));
    }
    let Some((archive, behind)) = rest.split_first() else {
        return CommandFinding::read_only("it only prints");
    };
    if letters.contains(['d', 'P', 'I', 'O']) {
        // The option's value may be the next argument, which then looks like the archive.
        return CommandFinding::unknown("its options are in an unusual place")
            .with_span(archive.span)
            .with_all(rest.iter().map(fills));
    }
    let streams = letters.contains(['l', 'v', 'p', 'c', 't', 'z']);
    let known = letters
        .chars()
        .all(|letter| "lvpctzabjnoqCLUKXVWDsh".contains(letter));
    let finding = content(archive);
    match (streams && known, archive.text().is_some()) {
        (true, true) => {
            CommandFinding::read_only("it unpacks to its output, or lists").with(finding)
        }
        (true, false) => CommandFinding::unknown("its archive is an expansion")
            .with_span(archive.span)
            .with(finding),
        (false, _) => {
            let at = behind
                .iter()
                .position(|word| word.text().is_some_and(|text| text.starts_with("-d")));
            let folder = at.and_then(|at| match behind[at].text() {
                Some("-d") => behind.get(at + 1).cloned(),
                text => text.map(|text| Arg::literal(&text[2..], behind[at].span)),
            });
            let folder = folder.unwrap_or_else(|| Arg::literal(".", archive.span));
            CommandFinding::mutating("it unpacks files")
                .with(finding)
                .with(fills(&folder))
        }
    }
}

/// The first operand is the archive; the other operands are packed into it.
fn zip(argv: &[Arg]) -> CommandFinding {
    let words = argv.get(1..).unwrap_or_default();
    let is = |start: &str| {
        words
            .iter()
            .any(|word| word.text().is_some_and(|text| text.starts_with(start)))
    };
    if words.is_empty() || (words.len() == 1 && (is("--version") || is("--help"))) {
        return CommandFinding::read_only("it only prints");
    }
    let finding = match is("-TT") || is("--unzip") {
        true => opaque(
            CommandFinding::unknown("-TT starts a program").requiring_exact_rule(),
            "-TT starts a program",
        ),
        false => CommandFinding::mutating("it writes an archive"),
    };
    let mut operands = words.iter().filter(|word| !is_dashed(word));
    let Some(archive) = operands.next() else {
        return finding;
    };
    // zip adds `.zip` to an archive name without an extension.
    let bare = archive
        .text()
        .filter(|text| !text.rsplit('/').next().unwrap_or_default().contains('.'));
    let ended = bare.map(|text| work(&Arg::literal(format!("{text}.zip"), archive.span)));
    let moves = words
        .iter()
        .any(|word| is_dashed(word) && word.text().is_some_and(|text| text.contains('m')));
    let members: Vec<&Arg> = operands.collect();
    let gone = members
        .iter()
        .filter(|_| moves)
        .map(|member| written(member, WriteKind::Removal));
    finding
        .with(work(archive))
        .with_all(ended)
        .with_all(members.iter().map(|member| tree(member)))
        .with_all(gone)
}

fn seven_zip(argv: &[Arg]) -> CommandFinding {
    let words = argv.get(1..).unwrap_or_default();
    let Some((command, rest)) = words.split_first() else {
        return CommandFinding::read_only("it only prints");
    };
    let switch = |start: &str| {
        rest.iter()
            .find(|word| word.text().is_some_and(|text| text.starts_with(start)))
    };
    let operands: Vec<&Arg> = rest.iter().filter(|word| !is_dashed(word)).collect();
    let archive = operands.first().copied();
    let quiet = |word: &Arg| match word.text() {
        None => false,
        Some(text) if !text.starts_with('-') => !text.starts_with('@'),
        Some(text) => [
            "-slt", "-ba", "-bb", "-bd", "-bs", "-bt", "-p", "-y", "-t", "-r", "-scs", "-scc",
            "-ssc", "-scrc", "-so", "-an", "-ai!", "-x!", "-xr!", "-i!", "-ir!", "-sns", "-spd",
            "-mmt",
        ]
        .iter()
        .any(|known| text.starts_with(known)),
    };
    let known = rest.iter().all(quiet);
    let streams = switch("-so").is_some();
    let finding = match command.text() {
        Some("l" | "t" | "i" | "b" | "h") if known => {
            CommandFinding::read_only("it only lists or tests an archive")
        }
        Some("x" | "e") if known && streams => {
            CommandFinding::read_only("it unpacks to its output")
        }
        Some("x" | "e") => {
            let folder =
                switch("-o").and_then(|word| Some(Arg::literal(word.text()?.get(2..)?, word.span)));
            let folder = folder.unwrap_or_else(|| Arg::literal(".", command.span));
            return CommandFinding::mutating("it unpacks files")
                .with_all(archive.map(content))
                .with(fills(&folder));
        }
        Some("a" | "d" | "u" | "rn") => {
            let members = operands.iter().skip(1).map(|member| tree(member));
            return CommandFinding::mutating("it changes an archive")
                .with_all(archive.map(work))
                .with_all(members);
        }
        _ => CommandFinding::unknown("its arguments are not known to be safe")
            .with_span(command.span),
    };
    finding.with_all(operands.iter().map(|file| content(file)))
}

fn rar(argv: &[Arg]) -> CommandFinding {
    let words = argv.get(1..).unwrap_or_default();
    let Some((command, rest)) = words.split_first() else {
        return CommandFinding::read_only("it only prints");
    };
    let archive = rest.iter().find(|word| !is_dashed(word));
    let quiet = |word: &Arg| {
        word.text().is_some_and(|text| {
            !text.starts_with('-') || matches!(text, "-p-" | "-inul" | "-idq" | "-y")
        })
    };
    let finding = match command.text() {
        Some("l" | "lb" | "lt" | "v" | "vb" | "vt" | "t" | "p") if rest.iter().all(quiet) => {
            CommandFinding::read_only("it only lists or streams an archive")
        }
        Some("x" | "e") => {
            // The operands after the archive are members, or the directory to extract to.
            let behind = rest.iter().filter(|word| !is_dashed(word)).skip(1);
            CommandFinding::mutating("it unpacks files")
                .with(fills(&Arg::literal(".", command.span)))
                .with_all(behind.map(fills))
        }
        _ => {
            return CommandFinding::unknown("its arguments are not known to be safe")
                .with_all(archive.map(work));
        }
    };
    finding.with_all(archive.map(content))
}

/// In ar's first argument, one letter selects the operation and the other letters modify it.
fn ar(argv: &[Arg]) -> CommandFinding {
    let Some([_, operation, rest @ ..]) = argv.get(..) else {
        return CommandFinding::read_only("it only prints");
    };
    let Some(text) = operation.text() else {
        return CommandFinding::unknown("its operation is an expansion").with_span(operation.span);
    };
    if matches!(text, "--version" | "--help" | "-V") {
        return CommandFinding::read_only("it only prints");
    }
    let letters = text.trim_start_matches('-');
    let archive = rest.first();
    let odd = |word: &Arg| {
        word.text()
            .is_none_or(|text| text.starts_with("--") || text.starts_with('@'))
    };
    if text.starts_with("--") || rest.iter().any(odd) {
        return CommandFinding::unknown("its options are not known to be safe")
            .with_all(archive.map(work));
    }
    if letters.chars().all(|letter| "tpvOPVDU".contains(letter)) && letters.contains(['t', 'p']) {
        return CommandFinding::read_only("it only lists or prints an archive")
            .with_all(archive.map(content));
    }
    if letters.contains('x') {
        let here = fills(&Arg::literal(".", operation.span));
        return CommandFinding::mutating("it unpacks files")
            .with_all(archive.map(content))
            .with(here);
    }
    let members = rest.iter().skip(1).map(content);
    CommandFinding::mutating("it changes an archive")
        .with_all(archive.map(work))
        .with_all(members)
}

fn cpio(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let lists = ["-t", "--list", "--to-stdout", "--only-verify-crc"]
        .iter()
        .any(|option| parsed.has(option));
    let prints = ["--help", "--usage", "--version"]
        .iter()
        .any(|option| parsed.has(option));
    let packs = parsed.has("-o") || parsed.has("--create");
    let folder = parsed
        .value("-D")
        .or_else(|| parsed.value("--directory"))
        .cloned();
    let span = parsed
        .argv
        .first()
        .map_or(Span { start: 0, end: 0 }, |name| name.span);
    let folder = folder.unwrap_or_else(|| Arg::literal(".", span));
    let archive = parsed
        .value("-I")
        .or_else(|| parsed.value("-F"))
        .or_else(|| parsed.value("--file"));
    let finding = match (parsed.verdict(), lists || prints, packs) {
        (Some(finding), _, _) => finding,
        (None, true, false) => CommandFinding::read_only("it only lists an archive"),
        (None, _, true) => {
            let named = ArgValue::Unknown {
                prefix: String::new(),
                one: false,
            };
            let named = joined(&folder, &Arg { span, value: named });
            CommandFinding::unknown("it packs the files its input names").with(content(&named))
        }
        (None, false, false) => CommandFinding::mutating("it unpacks files").with(fills(&folder)),
    };
    let copied = ["-p", "--pass-through"]
        .iter()
        .any(|option| parsed.has(option));
    let copied = parsed.operands.iter().filter(|_| copied);
    let finding = finding.with_all(copied.map(|folder| fills(folder)));
    let finding = parsed.with_effects(finding, OperandKind::None);
    let remote = archive.filter(|file| {
        file.text().is_some_and(|text| text.contains(':')) && !parsed.has("--force-local")
    });
    match (remote, archive) {
        (Some(file), _) => hosts::with_remote(worse(finding, "it contacts a host"), file),
        (None, Some(file)) => finding.with(content(file)),
        (None, None) => finding,
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, each, effects};

    #[test]
    fn listing_and_streaming_are_harmless() {
        assert_read_only(&each(
            "unzip -l a.zip; unzip -p a.zip f; unzip -t a.zip; unzip -Z1 a.zip; unzip -qql a.zip; \
             unzip -v; unzip -c a.zip f; unzip -l a.zip -d x; zipinfo -1 a.zip; 7z l a.7z; 7z l \
             -slt a.7z; 7z t a; 7z x -so a.7z f; unrar l a.rar; ar t lib.a; ar -t lib.a; ar tv \
             lib.a; ar p lib.a x.o; cpio -t; cpio -itv; cpio -t -I a; cpio -i --to-stdout",
        ));
        assert_not_read_only(&each(
            "unzip a.zip; unzip -o a.zip; unzip -qo a.zip -d out; unzip a.zip f; unzip a.zip -l; \
             unzip -T a.zip; unzip -lu a.zip; unzip -l-l a.zip; unzip -l $x; unzip -d out a.zip; \
             unzip *; zip out.zip a; zip -r out src; zip -T -TT x a.zip f; 7z x a.7z; 7z a a.7z \
             f; 7z l -seml a; 7z l @list; 7z $x; 7z d a f; unrar x a; ar x lib.a; ar rcs lib.a \
             a.o; ar ts lib.a; ar d lib.a a; ar --plugin x t lib.a; ar t --plugin x lib.a; ar $x; \
             ar t @f; cpio -i; cpio -o; cpio -id; cpio -t -I host:a; cpio -O out; cpio -p d; cpio \
             --rsh-command=x -t; cpio -t $x",
        ));
    }

    #[test]
    fn effects_name_archives_and_targets() {
        let cases: [(&str, &[&str]); 13] = [
            ("unzip a.zip", &["read a.zip", "Tree ."]),
            ("unzip -o a.zip f -d out", &["read a.zip", "Tree out"]),
            ("unzip -l a.zip", &["read a.zip"]),
            (
                "zip -r out src",
                &["OperandWrite out", "OperandWrite out.zip", "tree src"],
            ),
            (
                "zip -m out.zip a",
                &["OperandWrite out.zip", "tree a", "Removal a"],
            ),
            ("7z x a.7z -oout", &["read a.7z", "Tree out"]),
            ("7z a a.7z b", &["OperandWrite a.7z", "tree b"]),
            ("7z l a.7z", &["read a.7z"]),
            ("ar rcs lib.a a.o", &["OperandWrite lib.a", "read a.o"]),
            ("ar t lib.a", &["read lib.a"]),
            ("cpio -idI a", &["Tree .", "read a"]),
            ("cpio -t -F host:a", &["net host"]),
            ("unrar x a.rar", &["Tree .", "read a.rar"]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
    }
}
