//! sed: the script decides what the command does.

mod script;

use super::{
    options::{ParsedArguments, content},
    program::ScriptProgram,
    spec::{CommandSpec, KnownCommand, OperandKind, runs, writes},
};
use crate::{
    arg::Arg,
    ast::Span,
    effect::{CommandFinding, Effect, FileWrite, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[KnownCommand::Spec(&SED)];

static SED: CommandSpec = CommandSpec::reads(
    "sed",
    "-nErsuzb -e: -l: --quiet --silent --regexp-extended --separate --unbuffered --null-data \
     --zero-terminated --binary --debug --sandbox --posix --follow-symlinks --line-length= \
     --expression= --help --version",
)
.refusing(&[
    writes("-i? --in-place=?", "changes the files in place"),
    runs("-f< --file<", "takes its script from a file"),
])
.strict()
.with_evaluator(sed);

fn sed(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut scripts: Vec<&Arg> = parsed
        .options
        .iter()
        .filter(|given| matches!(given.name, "-e" | "--expression"))
        .filter_map(|given| given.value.as_ref())
        .collect();
    let mut files = parsed.operands.as_slice();
    let from_file = parsed.has("-f") || parsed.has("--file");
    if scripts.is_empty()
        && !from_file
        && let Some((first, rest)) = files.split_first()
    {
        scripts.push(first);
        files = rest;
    }
    let span = scripts
        .first()
        .or(parsed.argv.first().as_ref())
        .map_or(Span { start: 0, end: 0 }, |arg| arg.span);
    let texts: Option<Vec<&str>> = scripts.iter().map(|script| script.text()).collect();
    let program = match texts {
        Some(texts) => script::read(&texts.join("\n")),
        None => ScriptProgram::default(),
    };
    let options = parsed.verdict().or_else(|| {
        let uncertain = scripts.iter().find(|script| script.text().is_none())?;
        Some(CommandFinding::unknown("its script is not certain").with_span(uncertain.span))
    });
    let mut finding = parsed.with_effects(program.judge(options, span), OperandKind::None);
    let in_place = parsed
        .options
        .iter()
        .find(|given| matches!(given.name, "-i" | "--in-place"));
    for file in files.iter().filter(|file| !file.is("-")) {
        finding.effects.push(content(file));
        if let Some(given) = in_place {
            let backup = given.value.as_ref().and_then(Arg::text);
            let kept = backup.and_then(|suffix| backup_of(file, suffix));
            for path in [Some((*file).clone()), kept].into_iter().flatten() {
                finding.effects.push(Effect::Write(FileWrite {
                    path,
                    kind: WriteKind::OptionWrite,
                }));
            }
        }
    }
    finding
}

/// Returns the backup file of `-iSUFFIX`. A `*` in the suffix is replaced by the file's name, and a
/// suffix with a slash leads to another directory.
fn backup_of(file: &Arg, suffix: &str) -> Option<Arg> {
    let path = file.text()?;
    let (directory, name) = match path.rfind('/') {
        Some(slash) => path.split_at(slash + 1),
        None => ("", path),
    };
    let kept = match suffix.contains('*') {
        true => suffix.replace('*', name),
        false => format!("{name}{suffix}"),
    };
    let kept = match kept.contains('/') {
        true => kept,
        false => format!("{directory}{kept}"),
    };
    Some(Arg::literal(kept, file.span))
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{
        assert_not_read_only, assert_read_only, effects, find, verdict,
    };
    use crate::effect::{RuleCoverage, StartedProgram};

    #[test]
    fn scripts_that_print_are_harmless() {
        assert_read_only(&[
            "sed -n 10,20p f",
            "sed -n '10,20p;20q' f",
            "sed -n '/^fn /p' src/lib.rs",
            "sed -n '/start/,/end/p' f",
            "sed -n '/a/,+3p' f",
            "sed -n '5,~4p' f",
            "sed -n '0~3p' f",
            "sed -n '1~2!p' f",
            "sed -n '$=' f",
            "sed = f",
            "sed 5q f",
            "sed '5 q 3' f",
            "sed 1d f",
            "sed '/^#/d;/^$/d' f",
            "sed -e 1d -e '$d' f",
            "sed s/a/b/g f",
            "sed -E 's/(a|b)+/x/2gI' f",
            "sed -r 's|/usr|/opt|' f",
            "sed 's#[^/]*$##' f",
            "sed 's/[^/]*$//' f",
            "sed 's/[[:space:]/]*$//; s/x/y/' f",
            "sed 's/w e/e w/g' f",
            "sed 's/a/b/ ; s/c/d/p' f",
            "sed 's/a/b\\/c/' f",
            "sed 's/\\[/(/' f",
            "sed ':a;N;$!ba;s/\\n/ /g' f",
            "sed ':a;$!{N;ba};s/\\n/ /g' f",
            "sed -e ':a' -e '$!{N;ba' -e '}' f",
            "sed '/x/{s/a/b/;p}' f",
            "sed '/x/{n;d}' f",
            "sed '/a/!b; s/x/y/' f",
            "sed y/abc/xyz/ f",
            "sed '1i\\  header' f",
            "sed '1i header' f",
            "sed '$a footer w x' f",
            "sed '/x/c\\changed' f",
            "sed -n 'l 20' f",
            "sed -n '\\,^/usr,p' f",
            "sed '# w out' f",
            "sed 's/a/b/ # w out' f",
            "sed G f",
            "sed -n '1!G;h;$p' f",
            "sed 'N;P;D' f",
            "sed -s -n F f",
            "sed -zu 's/\\n/,/g' f",
            "sed --quiet --regexp-extended --expression='/a+/p' f",
            "sed -l 5 -n l f",
            "sed 'r header' f",
            "sed -n p -- f",
            "sed s/x/y/",
            "sed --version",
            "sed --help",
        ]);
    }

    #[test]
    fn scripts_that_write_or_run_are_not() {
        assert_not_read_only(&[
            "sed -i s/a/b/ f",
            "sed -i.bak s/a/b/ f",
            "sed s/a/b/ f -i",
            "sed -ni p f",
            "sed -Ei s/a/b/ f",
            "sed --in-place=.b s/a/b/ f",
            "sed --in-pl s/a/b/ f",
            "sed -f script f",
            "sed -nf script f",
            "sed --file=script f",
            "sed 'w out' f",
            "sed '1wout' f",
            "sed -n '/x/w out' f",
            "sed W\u{20}out f",
            "sed 's/a/b/w out' f",
            "sed 's/a/b/gpw out' f",
            "sed 's/a/b/e' f",
            "sed 's/a/b/ e' f",
            "sed 's/a/b/pe' f",
            "sed e f",
            "sed '1e touch x' f",
            "sed 'e' f",
            "sed -e p -e 'w out' f",
            "sed '{p;w out\n}' f",
            "sed '/x/{w out\n}' f",
            "sed 's/[/]/x/;w out' f",
            "sed 's,a,b,w out' f",
            "sed 'y/a/b/;w out' f",
            "sed 'a foo\nw out' f",
            "sed 'a\\\nfoo\nw out' f",
            "sed '1!w out' f",
            "sed '1 ! w out' f",
            "sed '$!{$!w out\n}' f",
            "sed 'ba}w out' f",
            "sed ':a w out' f",
            "sed 'p\nw out' f",
            "sed '#n\nw out' f",
            "sed 's1a1b1w out' f",
            "sed 's/\\c[/]x/w out' f",
            "sed v f",
            "sed $script f",
            "sed -n $script f",
            "sed -n p $file",
            "sed -n p *.rs",
            "sed -e $script f",
            "sed --expr=w\u{20}x f",
            "sed --odd p f",
        ]);
    }

    #[test]
    fn reasons_and_effects_say_what_happens() {
        let cases = [
            ("sed -i s/a/b/ f", "mutating: -i changes the files in place"),
            ("sed 'w out' f", "mutating: its program writes files"),
            ("sed '1e id' f", "unknown: its program starts commands"),
            ("sed -f s f", "unknown: -f takes its script from a file"),
            (
                "sed v f",
                "unknown: its script has a command that is not known",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(verdict(line), expected, "{line}");
        }
        let cases: [(&str, &[&str]); 8] = [
            ("sed -n p a b", &["read a", "read b"]),
            ("sed -n p -", &[]),
            ("sed '1r head' f", &["read head", "read f"]),
            ("sed 's/a/b/w out' f", &["OptionWrite out", "read f"]),
            ("sed -i p f", &["read f", "OptionWrite f"]),
            (
                "sed -i.b p d/f",
                &["read d/f", "OptionWrite d/f", "OptionWrite d/f.b"],
            ),
            (
                "sed '-ibak/*_' p d/f",
                &["read d/f", "OptionWrite d/f", "OptionWrite bak/f_"],
            ),
            (
                "sed -f s f",
                &[
                    "read s",
                    "read f",
                    "opaque -f starts or chooses a program that cannot be read from the line",
                ],
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
    }

    #[test]
    fn a_command_of_the_script_is_looked_at_on_its_own() {
        let finding = find("sed '1e touch x' f");
        assert_eq!(finding.coverage, RuleCoverage::Exact);
        for line in [
            "sed -f s f",
            "sed -f s -e 'w out' f",
            "sed -i s/a/b/e f",
            "sed v f",
        ] {
            assert_eq!(find(line).coverage, RuleCoverage::Exact, "{line}");
        }
        for line in ["sed -i p f", "sed 'w out' f", "sed $script f"] {
            assert_eq!(find(line).coverage, RuleCoverage::Prefix, "{line}");
        }
        let [StartedProgram::Script(script)] = finding.starts.as_slice() else {
            panic!("{:?}", finding.starts);
        };
        assert!(script.is("touch x"));
        assert_eq!(
            effects("sed 's/a/b/e' f"),
            [
                "opaque its program computes the commands that it starts",
                "read f"
            ]
        );
    }
}
