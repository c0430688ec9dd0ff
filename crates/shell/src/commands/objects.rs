//! Commands for object files and libraries.

use super::{
    files::{done, work},
    options::{ParsedArguments, content},
    shells::worse,
    spec::{CommandSpec, KnownCommand, OperandKind, runs},
};
use crate::effect::CommandFinding;

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(
        &CommandSpec::reads(
            "nm gcc-nm",
            "-aABCDegjlnopPrSsuUWhV -f: -t: -X: --debug-syms --print-file-name --demangle=? \
             --no-demangle --recurse-limit --no-recurse-limit --dynamic --format= --extern-only \
             --ifunc-chars= --just-symbols --line-numbers --numeric-sort --no-sort --portability \
             --reverse-sort --print-size --print-armap --quiet --size-sort --special-syms \
             --synthetic --radix= --target= --undefined-only --defined-only --unicode= --no-weak \
             --with-symbol-versions --help --version",
        )
        .refusing(&[runs("--plugin<", "loads a library")])
        .strict()
        .with_evaluator(objects),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "objdump",
            "-afphxdDSsgeGLtTrRviHlFCwz -P: -W? -b: -m: -j: -M: -E: -I: -U? --archive-headers \
             --file-headers --private-headers --private= --section-headers --headers \
             --all-headers --disassemble=? --disassemble-all --source --source-comment=? \
             --full-contents --debugging --debugging-tags --stabs --dwarf=? --process-links \
             --ctf=? --sframe=? --syms --dynamic-syms --reloc --dynamic-reloc --version --info \
             --help --target= --architecture= --section= --disassembler-options= --endian= \
             --file-start-context --include= --line-numbers --file-offsets --demangle=? \
             --recurse-limit --no-recurse-limit --wide --unicode= --disassemble-zeroes \
             --start-address= --stop-address= --no-addresses --prefix-addresses --show-raw-insn \
             --no-show-raw-insn --insn-width= --adjust-vma= --show-all-symbols --special-syms \
             --inlines --prefix= --prefix-strip= --dwarf-depth= --dwarf-start= --dwarf-check \
             --ctf-parent= --visualize-jumps=? --disassembler-color=",
        )
        .strict()
        .with_evaluator(objects),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "readelf",
            "-ahlSgtesCnrudVAcDLzPIWTHv -U: -x: -p: -R: -w? --all --file-header --program-headers \
             --segments --section-headers --sections --section-groups --section-details --headers \
             --syms --symbols --dyn-syms --lto-syms --sym-base= --demangle=? --no-demangle \
             --recurse-limit --no-recurse-limit --unicode= --notes --relocs --unwind --dynamic \
             --version-info --arch-specific --archive-index --use-dynamic --lint --enable-checks \
             --hex-dump= --string-dump= --relocated-dump= --decompress --debug-dump=? \
             --process-links --dwarf-depth= --dwarf-start= --ctf= --ctf-parent= --ctf-symbols= \
             --ctf-strings= --sframe=? --histogram --wide --silent-truncation --help --version",
        )
        .strict()
        .with_evaluator(objects),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "size",
            "-ABGodxtfhHvV --format= --radix= --totals --common --target= --help --version",
        )
        .strict()
        .with_evaluator(objects),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "strings",
            "-adfwovVh -n: -t: -T: -e: -U: -s: -# --all --data --print-file-name --bytes= \
             --radix= --include-all-whitespace --target= --encoding= --unicode= \
             --output-separator= --help --version",
        )
        .with_evaluator(objects),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "addr2line",
            "-aipsfCRvhH -e< -j: -b: --addresses --inlines --pretty-print --basenames --functions \
             --demangle=? --exe< --section= --target= --help --version",
        )
        .operands(OperandKind::Text),
    ),
    KnownCommand::Spec(&CommandSpec::prints(
        "c++filt",
        "-_ntpirvh -s: --strip-underscore --no-strip-underscore --no-verbose --types --format= \
         --help --version",
    )),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "strip ranlib",
            "-sgdxXwpvSMDUtT -o> -K: -N: -R: -I: -O: -F: --strip-all --strip-debug \
             --strip-unneeded --only-keep-debug --preserve-dates --verbose --output-target= \
             --keep-symbol= --strip-symbol= --remove-section= --help --version",
        )
        .with_evaluator(|parsed| {
            let finding =
                parsed.with_effects(done(parsed, "it changes files in place"), OperandKind::None);
            match parsed.value("-o") {
                Some(_) => finding.with_all(parsed.operands.iter().map(|file| content(file))),
                None => finding.with_all(parsed.operands.iter().map(|file| work(file))),
            }
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::changes(
            "objcopy",
            "-O: -I: -B: -j: -R: -S -g -x -X -p --only-section= --remove-section= --strip-all \
             --strip-debug --only-keep-debug --add-gnu-debuglink= --help --version",
            "it writes an object file",
        )
        .operands(OperandKind::ReadThenWritten),
    ),
];

/// `@file` reads options from a file.
fn objects(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed.finding(OperandKind::Files);
    match parsed
        .operands
        .iter()
        .find(|file| file.text().is_some_and(|text| text.starts_with('@')))
    {
        Some(list) => worse(finding, "it reads options from a file").with_span(list.span),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, each, effects};

    #[test]
    fn object_files_may_be_looked_at() {
        assert_read_only(&each(
            "nm a.o; nm -D --defined-only a.so; readelf -h a; readelf -d a; readelf -Ws a; \
             readelf -p .comment a; objdump -d a.o; objdump -d -M intel a.o; objdump -h a; \
             objdump -t --demangle a; size a; size -A a; strings a; strings -n 8 a; strings -8 a; \
             strings *; addr2line -e a 0x10; c++filt _Z1f",
        ));
        assert_not_read_only(&each(
            "nm --plugin x.so a; nm --plug=x.so a; nm @f; nm *; objdump --plugin=x.so -d a; \
             objdump @f; strip a; objcopy a b; strings @f; ranlib a.a; nm $x",
        ));
        assert_eq!(effects("strip -o out a"), ["OptionWrite out", "read a"]);
        assert_eq!(effects("strip a"), ["OperandWrite a"]);
        assert_eq!(effects("objcopy a b"), ["read a", "OperandWrite b"]);
    }
}
