//! awk and its variants: the program decides what the command does.

mod code;
mod lexer;

use super::{
    options::{GivenOption, ParsedArguments, content},
    program::ScriptProgram,
    spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, runs, writes},
};
use crate::{
    arg::Arg,
    ast::Span,
    effect::{CommandFinding, Effect, FileWrite, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[KnownCommand::Spec(&AWK)];

static AWK: CommandSpec = CommandSpec::reads(
    "awk gawk mawk nawk original-awk",
    "-bcChkMnNOPrsStV -F: -v: -e: -L? --field-separator= --assign= --source= --lint=? \
     --characters-as-bytes --traditional --copyright --csv --help --version --bignum \
     --use-lc-numeric --non-decimal-data --optimize --no-optimize --posix --re-interval --sandbox \
     --lint-old",
)
.refusing(&[
    runs("-f< --file< -E< --exec<", "takes its program from a file"),
    runs("-i: --include= -l: --load=", "loads a library"),
    runs("-D? --debug=?", "starts a debugger"),
    runs("-W:", "passes other options"),
    writes("-o? --pretty-print=?", "writes its program into a file"),
    writes("-p? --profile=?", "writes a profile into a file"),
    writes("-d? --dump-variables=?", "writes its variables into a file"),
])
.style(OptionStyle::Posix)
.strict()
.with_evaluator(awk);

fn awk(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut programs: Vec<&Arg> = values(parsed, &["-e", "--source"]).collect();
    let mut files = parsed.operands.as_slice();
    let from_file = ["-f", "--file", "-E", "--exec"]
        .iter()
        .any(|name| parsed.has(name));
    if programs.is_empty()
        && !from_file
        && let Some((first, rest)) = files.split_first()
    {
        programs.push(first);
        files = rest;
    }
    let span = programs
        .first()
        .or(parsed.argv.first().as_ref())
        .map_or(Span { start: 0, end: 0 }, |arg| arg.span);
    let texts: Option<Vec<&str>> = programs.iter().map(|program| program.text()).collect();
    let mut program = match texts {
        Some(texts) => code::read(&texts.join("\n")),
        None => ScriptProgram::default(),
    };
    let sockets = files
        .iter()
        .filter_map(|file| file.text())
        .filter(|path| code::is_socket(path));
    program.acts.extend(sockets.map(code::contact));
    let options = parsed.verdict().or_else(|| {
        // A file operand may be a network connection, and so may the result of an expansion.
        let mut words = programs.iter().chain(files);
        let uncertain = words.find(|word| word.text().is_none())?;
        Some(
            CommandFinding::unknown("its program or a file is not certain")
                .with_span(uncertain.span),
        )
    });
    let in_place = values(parsed, &["-i", "--include"])
        .find(|library| library.text().is_none_or(|name| name.contains("inplace")));
    let options = match in_place {
        Some(library) => {
            let finding = CommandFinding::mutating("-i inplace changes the files in place");
            Some(finding.with_span(library.span).requiring_exact_rule())
        }
        None => options,
    };
    let mut finding = parsed.with_effects(program.judge(options, span), OperandKind::None);
    for given in &parsed.options {
        if let Some(path) = dumped(given) {
            finding.effects.push(written(path));
        }
    }
    for file in files.iter().filter(|file| is_file(file)) {
        finding.effects.push(content(file));
        if in_place.is_some() {
            finding.effects.push(written((*file).clone()));
        }
    }
    finding
}

fn values<'a>(parsed: &'a ParsedArguments<'_>, names: &'a [&str]) -> impl Iterator<Item = &'a Arg> {
    let given = parsed.options.iter();
    given
        .filter(|given| names.contains(&given.name))
        .filter_map(|given| given.value.as_ref())
}

/// Returns the file that `-o`, `-p` and `-d` write.
fn dumped(given: &GivenOption) -> Option<Arg> {
    let usual = match given.name {
        "-o" | "--pretty-print" | "-p" | "--profile" => "awkprof.out",
        "-d" | "--dump-variables" => "awkvars.out",
        _ => return None,
    };
    let named = given.value.clone();
    Some(named.unwrap_or_else(|| Arg::literal(usual, given.span)))
}

fn written(path: Arg) -> Effect {
    Effect::Write(FileWrite {
        path,
        kind: WriteKind::OptionWrite,
    })
}

/// Returns whether an operand is a file: `name=value` sets a variable, `-` is standard input.
fn is_file(arg: &Arg) -> bool {
    let Some(text) = arg.text() else { return true };
    let is_assignment = text.split_once('=').is_some_and(|(name, _)| {
        let mut letters = name.bytes();
        letters
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && letters.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    text != "-" && !is_assignment && !code::is_socket(text)
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{
        assert_not_read_only, assert_read_only, effects, find, verdict,
    };
    use crate::effect::{RuleCoverage, StartedProgram};

    #[test]
    fn programs_that_print_are_harmless() {
        assert_read_only(&[
            "awk '{print $1}' f",
            "awk -F: '{print $1, $3}' /etc/passwd",
            "awk -F '|' '$2 > 5 {print $1}' f",
            "awk 'NR > 1' f",
            "awk 'NR>=10 && NR<=20' f",
            "awk 'NR==1{print;exit}' f",
            "awk '/start/,/end/' f",
            "awk '/a/ && !/b/ {n++} END {print n}' f",
            "awk '$1 ~ /^[0-9]+$/' f",
            "awk '/[[:space:]]/' f",
            "awk '/=/{print}' f",
            "awk '/\\/usr\\/bin/' f",
            "awk '{s += $1} END {print s/NR}' f",
            "awk '{print $1/1024/1024}' f",
            "awk '{x /= 2; $2 /= 1024; $NF /= 3\na[$1] /= 4; print}' f",
            "awk '{printf \"%s %d\\n\", $1, $2/2}' f",
            "awk '{print ($1 > $2) ? $1 : $2}' f",
            "awk '{print (a > b)}' f",
            "awk '{if ($1 > max) max = $1} END {print max}' f",
            "awk '{x = $1 > 3; print x}' f",
            "awk '!seen[$0]++' f",
            "awk '{a[$1]++} END {for (k in a) print k, a[k]}' f",
            "awk 'BEGIN {for (i = 0; i < 3; i++) print i}'",
            "awk 'BEGIN {while (i++ < 3) print i}'",
            "awk -v n=3 'NR==n' f",
            "awk -v 'n=3' -F, 'NR==n' f",
            "awk '{print}' FS=: f OFS=- g",
            "awk 'FNR==NR{a[$1];next} $1 in a' f g",
            "awk 'FILENAME==ARGV[1]{a[$1];next} $1 in a' f g",
            "awk '{gsub(/a\"b/, \"x\"); print}' f",
            "awk '{print \"a > b | c; system\"}' f",
            "awk '{print # > out\n}' f",
            "awk '{print $1 > \"/dev/stderr\"}' f",
            "awk 'BEGIN{printf \"x\" > \"/dev/stdout\"}'",
            "awk '{getline; print}' f",
            "awk '{getline line; print line}' f",
            "awk 'BEGIN{while ((getline line < \"f\") > 0) print line}'",
            "awk 'BEGIN{print ENVIRON[\"HOME\"]}'",
            "awk '{print substr($0, 3), length($0)/2, toupper($1)}' f",
            "awk '{print $1\n  n++ }\n$2 > 5 { m++ }' f",
            "awk 'function f(a) { return a * 2 } { print f($1) }' f",
            "awk '{ print $1,\n  $2 }' f",
            "awk 'BEGIN { PROCINFO[\"sorted_in\"] = \"@ind_str_asc\" } {a[$1]}' f",
            "awk 'length > 80' f",
            "awk 'length($0) > 80 || NF < 3' f",
            "awk '{$1=\"\"; print $0}' f",
            "awk '{print NF}' -",
            "awk 1 RS= ORS=x f",
            "gawk -e '{print}' f",
            "gawk --source '{print}' f",
            "gawk --version",
            "mawk '{print}' f",
            "awk '{ print } # it\u{2019}s' f",
            "awk '{ print \"é\" }' f",
        ]);
    }

    #[test]
    fn programs_that_write_or_run_are_not() {
        assert_not_read_only(&[
            "awk 'BEGIN{system(\"id\")}'",
            "awk 'BEGIN { system (\"id\") }'",
            "awk 'BEGIN{1system(\"id\")}'",
            "awk 'BEGIN{\"date\" | getline d}'",
            "awk '{print | \"sort\"}' f",
            "awk '{print |& \"sort\"}' f",
            "awk '{print $1 > \"out\"}' f",
            "awk '{print $1 >> \"out\"}' f",
            "awk '{print>$1}' f",
            "awk '{print > $1\".txt\"}' f",
            "awk '{print > \"/dev/stderr\" \".x\"}' f",
            "awk '{printf(\"%s\", $1) > \"out\"}' f",
            "awk '{print($1)($2) > \"out\"}' f",
            "awk '{print $1, $2 > \"out\"}' f",
            "awk '{print $1,\n$2 > \"out\"}' f",
            "awk '{print $1 \\\n > \"out\"}' f",
            "awk '{if (1) print > \"out\"}' f",
            "awk '{if (0) ; else print > \"out\"}' f",
            "awk 'BEGIN{for (print \"x\" > \"out\"; 0; ) ;}'",
            "awk '{print /x/ > \"out\"}' f",
            "awk '{print a[1 > 0] > \"out\"}' f",
            "awk '{print (1\n) > \"out\"}' f",
            "awk '{print a[1\n] > \"out\"}' f",
            "awk '{if (1) /\"/; system(\"id\"); /\"/}' f",
            "awk '/[/]\"/; {system(\"id\")} /\"/' f",
            "awk '{x = /[/\"]/; system(\"id\"); y = /\"/}' f",
            "awk '{x = y++ /\"/; system(\"id\"); z = /\"/}' f",
            "awk '{1 /=\"/; system(\"id\"); x = /\"/}' f",
            "awk '{x = y /=\"/; system(\"id\"); x = /\"/}' f",
            "awk 'BEGIN{ARGV[1]=\"/etc/shadow\";ARGC=2}{print}'",
            "awk 'BEGIN{x==ARGV[1]=\"f\"}'",
            "awk 'BEGIN{while ((getline l < ENVIRON[\"F\"]) > 0) print l}'",
            "awk '{getline < $1}' f",
            "awk '@include \"x\"'",
            "awk '@load \"filefuncs\"; {print}' f",
            "awk 'BEGIN{f=\"system\"; @f(\"id\")}'",
            "awk 'BEGIN{SYMTAB[\"x\"]=1}'",
            "awk -f prog.awk f",
            "awk -fprog.awk f",
            "gawk --file=prog.awk f",
            "gawk --fil prog.awk f",
            "gawk -i inplace '{print}' f",
            "gawk -l filefuncs 'BEGIN{print}'",
            "gawk -o 'BEGIN{print}'",
            "gawk -d 'BEGIN{print}'",
            "gawk -pout 'BEGIN{print}'",
            "gawk -E prog f",
            "gawk --exec prog f",
            "gawk --pretty-print=x 'BEGIN{}'",
            "gawk -W dump 'BEGIN{}'",
            "gawk '{print}' /inet/tcp/0/example.com/80",
            "gawk 'BEGIN{getline x < \"/inet/tcp/0/example.com/80\"}'",
            "gawk 'BEGIN{print 1 |& \"/inet/tcp/0/example.com/80\"}'",
            "awk $prog f",
            "awk '{print}' $file",
            "awk '{print}' *.txt",
            "awk -v $x '{print}' f",
            "awk '{print \"x}' f",
            "awk '{print (}' f",
        ]);
    }

    #[test]
    fn reasons_and_effects_say_what_happens() {
        let cases = [
            (
                "awk '{print > \"o\"}' f",
                "mutating: its program writes files",
            ),
            (
                "awk '{system(\"x\")}' f",
                "unknown: its program starts commands",
            ),
            ("awk -f p f", "unknown: -f takes its program from a file"),
            (
                "gawk -i inplace '{print}' f",
                "mutating: -i inplace changes the files in place",
            ),
            ("gawk '1' /inet/tcp/0/h/80", "unknown: it contacts a host"),
        ];
        for (line, expected) in cases {
            assert_eq!(verdict(line), expected, "{line}");
        }
        let cases: [(&str, &[&str]); 8] = [
            ("awk '{print}' a x=1 b -", &["read a", "read b"]),
            ("awk '{print > \"o\"}' f", &["OptionWrite o", "read f"]),
            ("awk '{print > $1}' f", &["OptionWrite $", "read f"]),
            (
                "awk 'BEGIN{while ((getline l < \"g\") > 0) n++}'",
                &["read g"],
            ),
            (
                "gawk -i inplace '{print}' f",
                &[
                    "read f",
                    "OptionWrite f",
                    "opaque -i starts or chooses a program that cannot be read from the line",
                ],
            ),
            ("gawk -d 'BEGIN{}'", &["OptionWrite awkvars.out"]),
            ("gawk --profile=p 'BEGIN{}'", &["OptionWrite p"]),
            ("gawk '1' /inet/tcp/0/h/80", &["net h"]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
    }

    #[test]
    fn a_command_of_the_program_is_looked_at_on_its_own() {
        for line in [
            "awk 'BEGIN{system(\"rm x\")}'",
            "awk 'BEGIN{while ((\"rm x\" | getline l) > 0) n++}'",
            "awk '{print | \"rm x\"}' f",
        ] {
            let finding = find(line);
            assert_eq!(finding.coverage, RuleCoverage::Exact);
            let [StartedProgram::Script(script)] = finding.starts.as_slice() else {
                panic!("{line}: {:?}", finding.starts);
            };
            assert!(script.is("rm x"), "{line}");
        }
    }
}
