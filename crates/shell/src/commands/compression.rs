//! Commands that compress and decompress single files. When they write to standard output, they
//! only read.

use super::{
    files::{done, work},
    options::{ParsedArguments, content, tree, written},
    spec::{CommandSpec, KnownCommand, OperandKind, UnsafeOption, doubts, writes},
};
use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(&CommandSpec::reads(
        "zcat gzcat",
        "-cdfhlLnNqrtvVk -S: --stdout --force --list --quiet --recursive --suffix= --synchronous \
         --test --verbose --help --version --license -#",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "bzcat",
        "-dckfqvsLVh --quiet --verbose --small --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::reads(
        "xzcat lzcat",
        "-dckfqvtlhHVQ -T: -M: -F: --stdout --decompress --keep --force --quiet --verbose \
         --threads= --memlimit= --format= --no-warn --help --version",
    )),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "zstdcat lz4cat",
            "-dckfqvlthV -T? -M? --stdout --decompress --quiet --verbose --no-progress --help \
             --version",
        )
        .strict(),
    ),
    KnownCommand::Spec(&gzip("gzip pigz").with_evaluator(|parsed| packs(parsed, ".gz", false))),
    KnownCommand::Spec(&gzip("gunzip unpigz").with_evaluator(|parsed| packs(parsed, ".gz", true))),
    KnownCommand::Spec(
        &bzip2("bzip2 pbzip2 lbzip2").with_evaluator(|parsed| packs(parsed, ".bz2", false)),
    ),
    KnownCommand::Spec(&bzip2("bunzip2").with_evaluator(|parsed| packs(parsed, ".bz2", true))),
    KnownCommand::Spec(&xz("xz").with_evaluator(|parsed| packs(parsed, ".xz", false))),
    KnownCommand::Spec(&xz("lzma").with_evaluator(|parsed| packs(parsed, ".lzma", false))),
    KnownCommand::Spec(&xz("unxz").with_evaluator(|parsed| packs(parsed, ".xz", true))),
    KnownCommand::Spec(&xz("unlzma").with_evaluator(|parsed| packs(parsed, ".lzma", true))),
    KnownCommand::Spec(&zstd("zstd zstdmt").with_evaluator(|parsed| packs(parsed, ".zst", false))),
    KnownCommand::Spec(&zstd("unzstd").with_evaluator(|parsed| packs(parsed, ".zst", true))),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "lz4 unlz4",
            "-dctzkfqvhHV -# --stdout --decompress --test --list --keep --force --quiet --verbose \
             --fast=? --best --help --version",
        )
        .strict()
        .with_evaluator(lz4),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "brotli",
            "-dctkfvhV0123456789 -q: -w: -S: --stdout --decompress --test --keep --force \
             --verbose --quality= --lgwin= --suffix= --best --help --version",
        )
        .refusing(&[
            writes("-o> --output>", "writes into a file"),
            writes("-j --rm", "removes its source"),
        ])
        .strict()
        .with_evaluator(|parsed| packs(parsed, ".br", false)),
    ),
];

const fn gzip(names: &'static str) -> CommandSpec {
    CommandSpec::reads(
        names,
        "-cdfhklLnNqrtvV -S: -p: -b: -# --stdout --to-stdout --decompress --uncompress --force \
         --help --keep --list --license --no-name --name --quiet --silent --recursive --rsyncable \
         --suffix= --synchronous --test --verbose --version --fast --best --processes= \
         --blocksize=",
    )
    .strict()
}

const fn bzip2(names: &'static str) -> CommandSpec {
    CommandSpec::reads(
        names,
        "-dzkftcqvLVsh -# --help --decompress --compress --keep --force --test --stdout --quiet \
         --verbose --license --version --small --fast --best",
    )
    .strict()
}

const fn xz(names: &'static str) -> CommandSpec {
    CommandSpec::reads(
        names,
        "-zdtlkfcehHVqvQ -# -S: -F: -C: -T: -M: --compress --decompress --uncompress --test \
         --list --keep --force --stdout --to-stdout --single-stream --no-sparse --suffix= \
         --format= --check= --ignore-check --extreme --fast --best --threads= --block-size= \
         --block-list= --flush-timeout= --memlimit-compress= --memlimit-decompress= \
         --memlimit-mt-decompress= --memlimit= --memory= --no-adjust --quiet --verbose --no-warn \
         --robot --info-memory --help --long-help --version",
    )
    .refusing(XZ_REFUSED)
    .strict()
}

const XZ_REFUSED: &[UnsafeOption] = &[doubts(
    "--files=? --files0=?",
    "reads the names of files from a file",
)];

const ZSTD_REFUSED: &[UnsafeOption] = &[
    writes("-o>", "writes into a file"),
    writes("--rm", "removes its source"),
    writes(
        "--trace> --output-dir-flat> --output-dir-mirror>",
        "writes into files",
    ),
    doubts("--filelist<", "reads the names of files from a file"),
];

const fn zstd(names: &'static str) -> CommandSpec {
    CommandSpec::reads(
        names,
        "-kdcfhHVvqlrt -# -T? -M? -D< --keep --decompress --uncompress --force --help --version \
         --stdout --verbose --quiet --list --test --progress --no-progress --asyncio --no-asyncio \
         --check --no-check --ultra --fast=? --adapt=? --long=? --single-thread --auto-threads= \
         --rsyncable --exclude-compressed --stream-size= --size-hint= --no-dictID \
         --compress-literals --no-compress-literals --format= --sparse --no-sparse --pass-through \
         --no-pass-through --memory= --memlimit= --threads=",
    )
    .refusing(ZSTD_REFUSED)
    .strict()
}

/// Returns whether the command only reads: it writes to standard output, lists, tests, or reads
/// standard input.
fn streams(parsed: &ParsedArguments<'_>) -> bool {
    let options = [
        "-c",
        "-l",
        "-t",
        "--stdout",
        "--to-stdout",
        "--list",
        "--test",
        "-V",
        "-h",
        "-H",
        "-L",
        "--license",
        "--long-help",
        "--info-memory",
    ];
    options.iter().any(|option| parsed.has(option))
        || parsed.operands.iter().all(|file| file.is("-"))
}

fn packs(parsed: &ParsedArguments<'_>, ending: &'static str, unpacks: bool) -> CommandFinding {
    let finding = done(parsed, "it packs or unpacks files in place");
    let finding = match parsed.verdict() {
        None if streams(parsed) => return parsed.finding(OperandKind::Files),
        None => finding,
        Some(_) => parsed.with_effects(finding, OperandKind::None),
    };
    let unpacks = unpacks
        || ["-d", "--decompress", "--uncompress"]
            .iter()
            .any(|option| parsed.has(option));
    let deep = parsed.has("-r") || parsed.has("--recursive");
    // Only these programs keep their source file by default.
    let keeps = parsed.has("-k")
        || parsed.has("--keep")
        || ["zstd", "unzstd", "brotli"]
            .iter()
            .any(|name| parsed.spec.is_called(name));
    parsed
        .operands
        .iter()
        .fold(finding, |finding, file| match deep {
            true => finding.with(tree(file)).with(work(file)),
            false => {
                let gone = (!keeps).then(|| written(file, WriteKind::Removal));
                finding
                    .with(content(file))
                    .with_all(gone)
                    .with(work(&result(file, ending, unpacks)))
            }
        })
}

/// Returns the name of the resulting file.
fn result(file: &Arg, ending: &str, unpacks: bool) -> Arg {
    let value = match &file.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) if unpacks => {
            ArgValue::Literal(text.strip_suffix(ending).unwrap_or(text).to_owned())
        }
        ArgValue::Literal(text) | ArgValue::Braced(text) => {
            ArgValue::Literal(format!("{text}{ending}"))
        }
        ArgValue::Glob(text) => ArgValue::Glob(match unpacks {
            true => text.strip_suffix(ending).unwrap_or(text).to_owned(),
            false => format!("{text}{ending}"),
        }),
        unknown @ ArgValue::Unknown { .. } => unknown.clone(),
    };
    Arg {
        span: file.span,
        value,
    }
}

/// Analyzes lz4, which writes its second operand.
fn lz4(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let writes = |file: &&&Arg| !file.is("-");
    match parsed.operands.get(1).filter(writes) {
        Some(output) => done(parsed, "its second operand is written")
            .with_all(parsed.operands.first().map(|file| content(file)))
            .with(work(output)),
        None => packs(parsed, ".lz4", parsed.spec.is_called("unlz4")),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, each, effects};

    #[test]
    fn to_their_output_they_only_read() {
        assert_read_only(&each(
            "gzip -l a.gz; gzip -dc a.gz; gzip -t a.gz; gzip -cd a.gz; gunzip -c a.gz; zcat a.gz; \
             zcat *; gzip -c a; gzip; gzip -9; gzip -d; gunzip -; bzcat a; bzip2 -dc a.bz2; xz -l \
             a.xz; xzcat a; xz -dc a.xz; xz -T0 -c a; zstdcat a; zstd -dc a.zst; zstd -l a.zst; \
             zstd -19 -c a; lz4 -dc a.lz4; lz4cat a; gzip --version; brotli -dc a.br; xz -d",
        ));
        assert_not_read_only(&each(
            "gzip a; gzip -k a; gzip -9 a; gzip -d a.gz; gunzip a.gz; gzip -r src; bzip2 a; \
             bunzip2 a.bz2; xz a; xz -d a.xz; unxz -k a.xz; zstd a; zstd -d a.zst; unzstd a.zst; \
             zstd -c --rm a; zstd -dc a -o out; zstd --trace log -c a; gzip -l $x; gzip *; xz \
             --files=l -c; lz4 a; lz4 a b; lz4 -d a.lz4 out; zstdcat -o out a; brotli a; brotli \
             -c -o x a; gzip -c --odd a",
        ));
    }

    #[test]
    fn effects_name_what_comes_out() {
        let cases: [(&str, &[&str]); 9] = [
            ("gzip a", &["read a", "Removal a", "OperandWrite a.gz"]),
            ("gzip -k a", &["read a", "OperandWrite a.gz"]),
            (
                "gunzip x/a.gz",
                &["read x/a.gz", "Removal x/a.gz", "OperandWrite x/a"],
            ),
            ("gzip -r src", &["tree src", "OperandWrite src"]),
            (
                "gzip *.log",
                &[
                    "read glob(*.log)",
                    "Removal glob(*.log)",
                    "OperandWrite glob(*.log.gz)",
                ],
            ),
            ("zstd -d a.zst", &["read a.zst", "OperandWrite a"]),
            (
                "zstd a -o out",
                &["OptionWrite out", "read a", "OperandWrite a.zst"],
            ),
            ("gzip -c a", &["read a"]),
            ("lz4 a b", &["read a", "OperandWrite b"]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
    }
}
