//! Commands that write their input, or parts of it, into files.

use super::{
    files::{done, fills, work},
    operand_paths::joined,
    options::{ParsedArguments, content, is_no_file, tree},
    spec::{CommandSpec, KnownCommand, OperandKind, doubts, runs},
};
use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, Effect},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(
        &CommandSpec::changes(
            "truncate",
            "-co -r: -s: --no-create --io-blocks --reference= --size= --help --version",
            "it changes the size of files",
        )
        .operands(OperandKind::Written),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "tee",
            "-aip --append --ignore-interrupts --output-error=? --help --version",
        )
        .with_evaluator(|parsed| {
            let files = parsed
                .operands
                .iter()
                .filter(|file| !is_no_file(file))
                .map(|file| work(file));
            let effects: Vec<Effect> = files.collect();
            match (parsed.verdict(), effects.is_empty()) {
                (None, true) => CommandFinding::read_only("it writes no file"),
                _ => done(parsed, "it writes what it reads into files").with_all(effects),
            }
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::changes("sponge", "-a", "it writes what it reads into a file")
            .operands(OperandKind::Written),
    ),
    KnownCommand::Own("dd", dd),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "mktemp",
            "-duqt -p: --directory --dry-run --quiet --suffix= --tmpdir=? --help --version",
        )
        .with_evaluator(mktemp),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "split",
            "-dexu -a: -b: -C: -l: -n: -t: --suffix-length= --additional-suffix= --bytes= \
             --line-bytes= --numeric-suffixes=? --hex-suffixes=? --elide-empty-files --lines= \
             --number= --separator= --unbuffered --verbose --help --version -#",
        )
        .refusing(&[runs("--filter=", "runs a command")])
        .with_evaluator(|parsed| {
            let prefix = parsed.operands.get(1).copied();
            pieces(parsed, prefix, "x")
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "csplit",
            "-ksz -b: -f: -n: --suffix-format= --prefix= --keep-files --suppress-matched \
             --digits= --quiet --silent --elide-empty-files --help --version",
        )
        .with_evaluator(|parsed| {
            let prefix = parsed.value("-f").or_else(|| parsed.value("--prefix"));
            pieces(parsed, prefix, "xx")
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "patch",
            "-lcenuNREZTbtfsv -p: -F: -i< -o> -r> -D: -V: -B: -Y: -z: -d: --strip= --fuzz= \
             --ignore-whitespace --context --ed --normal --unified --forward --reverse --input< \
             --output> --reject-file> --ifdef= --merge=? --remove-empty-files --set-utc \
             --set-time --quoting-style= --backup --backup-if-mismatch --no-backup-if-mismatch \
             --version-control= --prefix= --basename-prefix= --suffix= --batch --force --quiet \
             --silent --verbose --dry-run --posix --directory= --reject-format= --binary \
             --read-only= --follow-symlinks --help --version",
        )
        .refusing(&[doubts("-g: --get=", "gets files from elsewhere")])
        .with_evaluator(patch),
    ),
];

/// Analyzes a command that splits a file: it reads the first operand and writes files that begin
/// with the prefix.
fn pieces(
    parsed: &ParsedArguments<'_>,
    prefix: Option<&Arg>,
    default: &'static str,
) -> CommandFinding {
    let input = parsed.operands.first().filter(|input| !input.is("-"));
    let finding =
        done(parsed, "it cuts a file into files").with_all(input.map(|input| content(input)));
    let Some(name) = parsed.argv.first() else {
        return finding;
    };
    let (prefix, span) = match prefix {
        None => (default, name.span),
        Some(prefix) => (prefix.text().unwrap_or_default(), prefix.span),
    };
    let value = ArgValue::Unknown {
        prefix: prefix.to_owned(),
        one: true,
    };
    finding.with(work(&Arg { span, value }))
}

/// Analyzes `patch FILE PATCH`. Without the file, the patch names the files to change.
fn patch(parsed: &ParsedArguments<'_>) -> CommandFinding {
    // `-o` writes its file even if nothing else changes, and an ed script is a program.
    let more = ["-o", "--output", "-r", "--reject-file", "-e", "--ed"]
        .iter()
        .any(|option| parsed.has(option) && !parsed.value(option).is_some_and(is_no_file));
    let tries = parsed.has("--dry-run") && parsed.verdict().is_none() && !more;
    let finding = match tries {
        true => CommandFinding::read_only("it changes nothing in a dry run"),
        false => parsed.with_effects(
            done(parsed, "it changes the files that the patch names"),
            OperandKind::None,
        ),
    };
    let read = parsed
        .value("-i")
        .or_else(|| parsed.value("--input"))
        .filter(|_| tries);
    let finding = finding.with_all(read.filter(|file| !file.is("-")).map(content));
    let folder = parsed.value("-d").or_else(|| parsed.value("--directory"));
    let name = parsed.argv.first().map(|name| Arg::literal(".", name.span));
    let Some(folder) = folder.cloned().or(name) else {
        return finding;
    };
    let target = match parsed.operands.first() {
        Some(file) => joined(&folder, file),
        None => folder.clone(),
    };
    let input = parsed
        .operands
        .get(1)
        .map(|input| content(&joined(&folder, input)));
    let changed = match (tries, parsed.operands.is_empty()) {
        (true, _) => tree(&target),
        (false, true) => fills(&target),
        (false, false) => work(&target),
    };
    finding.with_all(input).with(changed)
}

fn dd(argv: &[Arg]) -> CommandFinding {
    const HARMLESS: &[&str] = &[
        "bs", "ibs", "obs", "cbs", "count", "skip", "seek", "iseek", "oseek", "conv", "status",
        "iflag", "oflag",
    ];
    let mut effects = Vec::new();
    let (mut writes, mut doubt) = (false, None);
    for word in argv.iter().skip(1) {
        let text = match &word.value {
            ArgValue::Literal(text) | ArgValue::Braced(text) => text,
            ArgValue::Unknown { prefix, .. } | ArgValue::Glob(prefix) => prefix,
        };
        let value = |value: &str| Arg {
            span: word.span,
            value: match &word.value {
                ArgValue::Unknown { one, .. } => ArgValue::Unknown {
                    prefix: value.to_owned(),
                    one: *one,
                },
                ArgValue::Glob(_) => ArgValue::Glob(value.to_owned()),
                ArgValue::Literal(_) | ArgValue::Braced(_) => ArgValue::Literal(value.to_owned()),
            },
        };
        let sure = matches!(
            word.value,
            ArgValue::Literal(_) | ArgValue::Braced(_) | ArgValue::Unknown { one: true, .. }
        );
        match text.split_once('=') {
            Some(("if", file)) if sure => effects.push(content(&value(file))),
            Some(("of", file)) => {
                let file = value(file);
                if !is_no_file(&file) {
                    writes = true;
                    effects.push(work(&file));
                }
            }
            Some((key, _)) if sure && HARMLESS.contains(&key) => {}
            None if word.is("--help") || word.is("--version") => {}
            _ => doubt = doubt.or(Some(word.span)),
        }
    }
    let finding = match (writes, doubt) {
        (true, _) => CommandFinding::mutating("it writes into a file"),
        (false, Some(span)) => {
            CommandFinding::unknown("the result of an expansion may be a file to write")
                .with_span(span)
        }
        (false, None) => CommandFinding::read_only("it writes no file"),
    };
    finding.with_all(effects)
}

fn mktemp(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = done(parsed, "it creates a file");
    if parsed.has("-u") || parsed.has("--dry-run") {
        return parsed
            .verdict()
            .unwrap_or_else(|| CommandFinding::read_only("it only prints a name"));
    }
    let folder = parsed
        .value("-p")
        .or_else(|| parsed.value("--tmpdir"))
        .cloned();
    let temporary = |span| Arg::literal("/tmp", span);
    let file = match (parsed.operands.first(), folder, parsed.argv.first()) {
        (Some(template), None, _) if !parsed.has("-t") && !parsed.has("--tmpdir") => {
            (*template).clone()
        }
        (Some(template), Some(folder), _) => joined(&folder, template),
        (Some(template), None, _) => joined(&temporary(template.span), template),
        (None, Some(folder), _) => folder,
        (None, None, Some(name)) => temporary(name.span),
        (None, None, None) => return finding,
    };
    finding.with(work(&file))
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, each, effects};

    #[test]
    fn cutting_and_patching_write_files() {
        assert_not_read_only(&each(
            "split -l 10 a; split -b 1k a part-; split --filter=cat a; csplit a 2; patch -p1; \
             patch a fix.diff; patch --dry-run -g 1; patch --dry-run -o out a; patch --dry-run --output=out; \
             patch --dry-run -r rej a; patch --dry-run -e a",
        ));
        assert_read_only(&each(
            "patch --dry-run -p1; patch -p1 --dry-run -i fix.diff; patch --dry-run -o /dev/null; split \
             --help",
        ));
        assert_eq!(effects("split -l 10 a"), ["read a", "OperandWrite x$"]);
        assert_eq!(
            effects("split a d/part-"),
            ["read a", "OperandWrite d/part-$"]
        );
        assert_eq!(effects("csplit -f p a 2"), ["read a", "OperandWrite p$"]);
        assert_eq!(
            effects("patch -p1 -i fix.diff"),
            ["read fix.diff", "Tree ."]
        );
        assert_eq!(
            effects("patch -d sub a fix.diff"),
            ["read sub/fix.diff", "OperandWrite sub/a"]
        );
        assert_eq!(
            effects("patch -o out a"),
            ["OptionWrite out", "OperandWrite ./a"]
        );
    }
}
