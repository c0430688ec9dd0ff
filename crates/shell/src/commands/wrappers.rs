//! Commands that start another command with their arguments. The started command is analyzed
//! separately.

use super::{
    options::ParsedArguments,
    shells::{opaque, worse},
    spec::{
        CommandSpec, KnownCommand, OperandKind, OptionStyle, UnsafeOption, doubts, runs, writes,
    },
    variables::is_harmless_value,
};
use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, Effect, RuleCoverage, StartedProgram},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(
        &wrapper(
            "timeout",
            "-k: -s: -vfp --kill-after= --signal= --foreground --preserve-status --verbose",
        )
        .with_evaluator(|parsed| transparent(parsed, 1)),
    ),
    KnownCommand::Spec(
        &wrapper("nice", "-n: --adjustment= -#").with_evaluator(|parsed| transparent(parsed, 0)),
    ),
    KnownCommand::Spec(&wrapper("nohup", "").with_evaluator(|parsed| transparent(parsed, 0))),
    KnownCommand::Spec(
        &wrapper("stdbuf", "-i: -o: -e: --input= --output= --error=")
            .with_evaluator(|parsed| transparent(parsed, 0)),
    ),
    KnownCommand::Spec(
        &wrapper(
            "time",
            "-apvqV -f: --append --portability --verbose --quiet --format=",
        )
        .refusing(&[writes("-o> --output>", "writes the times into a file")])
        .with_evaluator(|parsed| transparent(parsed, 0)),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads("command", "-pvV")
            .style(OptionStyle::Posix)
            .with_evaluator(|parsed| match parsed.has("-v") || parsed.has("-V") {
                true => parsed.finding(OperandKind::Text),
                false => transparent(parsed, 0),
            }),
    ),
    KnownCommand::Spec(&wrapper("builtin", "").with_evaluator(|parsed| transparent(parsed, 0))),
    KnownCommand::Spec(
        &wrapper("noglob", "").with_evaluator(|parsed| CommandFinding {
            coverage: RuleCoverage::Transparent,
            ..worse(transparent(parsed, 0), "bash has no such command")
        }),
    ),
    KnownCommand::Spec(
        &wrapper("exec", "-l")
            .refusing(&[
                doubts("-c", "clears the environment"),
                runs("-a:", "starts a program under another name"),
            ])
            .with_evaluator(|parsed| starting(parsed.finding(OperandKind::None), &parsed.operands)),
    ),
    KnownCommand::Spec(
        &wrapper(
            "env",
            "-0v --null --debug --list-signal-handling --block-signal=? --default-signal=? \
             --ignore-signal=?",
        )
        .refusing(&[
            doubts("-i --ignore-environment", "clears the environment"),
            doubts("-u: --unset=", "removes a variable"),
            doubts("-C: --chdir=", "runs it in another directory"),
            runs("-S: --split-string=", "splits a text into arguments"),
        ])
        .with_evaluator(env),
    ),
    KnownCommand::Spec(&XARGS),
];

/// Describes a wrapper: its first operand ends its options, and every argument up to there must be
/// certain.
pub(super) const fn wrapper(names: &'static str, options: &'static str) -> CommandSpec {
    CommandSpec::reads(names, options)
        .style(OptionStyle::Posix)
        .strict()
}

/// Returns the operands after the first `own` ones.
pub(super) fn started_words<'a, 'p>(parsed: &'p ParsedArguments<'a>, own: usize) -> &'p [&'a Arg] {
    parsed.operands.get(own..).unwrap_or_default()
}

/// Adds a start of the command in `words`, if any.
pub(super) fn starting(finding: CommandFinding, words: &[&Arg]) -> CommandFinding {
    let Some(first) = words.first() else {
        return finding;
    };
    let finding = match first.text() {
        Some(_) => finding,
        None => opaque(finding, "the command it starts is an expansion").with_span(first.span),
    };
    finding.starting(StartedProgram::Command {
        argv: words.iter().map(|word| (*word).clone()).collect(),
        more: false,
    })
}

/// Analyzes a wrapper that only starts its command; `own` operands precede the command.
fn transparent(parsed: &ParsedArguments<'_>, own: usize) -> CommandFinding {
    let finding = parsed.finding(OperandKind::None);
    let cover = match parsed.verdict() {
        None => RuleCoverage::Transparent,
        Some(finding) => finding.coverage,
    };
    CommandFinding {
        coverage: cover,
        ..starting(finding, started_words(parsed, own))
    }
}

fn env(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = parsed.finding(OperandKind::None);
    let mut own = 0;
    for operand in &parsed.operands {
        let (name, value) = match &operand.value {
            ArgValue::Literal(text) | ArgValue::Braced(text) if text == "-" => {
                finding = worse(finding, "it clears the environment");
                own += 1;
                continue;
            }
            ArgValue::Literal(text) | ArgValue::Braced(text) => match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => break,
            },
            ArgValue::Unknown { prefix, one: true } => match prefix.split_once('=') {
                Some((name, _)) => (name, None),
                None => break,
            },
            ArgValue::Glob(_) | ArgValue::Unknown { .. } => break,
        };
        own += 1;
        if !is_harmless_value(name, value) {
            finding = worse(
                finding,
                "it sets a variable that may change what a command does",
            )
            .with_span(operand.span);
            finding.effects.push(Effect::Env(name.to_owned()));
        }
    }
    if parsed.has("-S") || parsed.has("--split-string") {
        finding = opaque(
            finding,
            "the command is in a text that it splits into arguments",
        );
    }
    let command = started_words(parsed, own);
    if command.is_empty() {
        return finding;
    }
    let moved = parsed.has("-C") || parsed.has("--chdir");
    if moved {
        finding = opaque(finding, "its paths are relative to another directory");
    }
    starting(finding, command)
}

static XARGS: CommandSpec = wrapper(
    "xargs",
    "-0rtx -a< -d: -E: -e? -I: -i? -L: -l? -n: -P: -s: --null --no-run-if-empty --verbose --exit \
     --arg-file< --delimiter= --eof=? --replace=? --max-lines=? --max-args= --max-procs= \
     --max-chars= --show-limits --help --version",
)
.refusing(XARGS_REFUSED)
.with_evaluator(xargs);

const XARGS_REFUSED: &[UnsafeOption] = &[
    doubts("-p --interactive", "asks at a terminal"),
    doubts("-o --open-tty", "passes the terminal on"),
    doubts("--process-slot-var=", "sets a variable"),
];

fn xargs(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed.finding(OperandKind::None);
    let cover = match parsed.options.is_empty() && parsed.verdict().is_none() {
        true => RuleCoverage::Transparent,
        false => finding.coverage,
    };
    if parsed.has("--help") || parsed.has("--version") {
        return finding;
    }
    let from = parsed
        .options
        .iter()
        .rev()
        .find(|given| matches!(given.name, "-I" | "-i" | "--replace"));
    let token = from.map(|given| given.value.as_ref().map_or(Some("{}"), Arg::text));
    let mut argv: Vec<Arg> = parsed.operands.iter().map(|word| (*word).clone()).collect();
    let Some(name) = parsed.argv.first() else {
        return finding;
    };
    if argv.is_empty() {
        argv.push(Arg::literal("echo", name.span));
    }
    let mut more = false;
    match token {
        Some(Some(token)) => argv.iter_mut().for_each(|word| fill(word, token)),
        // Any argument may contain an unknown token.
        Some(None) => argv.iter_mut().for_each(|word| fill(word, "")),
        None => {
            more = true;
            argv.push(Arg {
                span: name.span,
                value: ArgValue::Unknown {
                    prefix: String::new(),
                    one: false,
                },
            });
        }
    }
    let finding = match argv.first().and_then(Arg::text) {
        Some(_) => finding,
        None => opaque(finding, "the command it starts comes from its input"),
    };
    CommandFinding {
        coverage: cover,
        ..finding
    }
    .starting(StartedProgram::Command { argv, more })
}

/// Replaces the token with unknown input.
fn fill(word: &mut Arg, token: &str) {
    let prefix = match &word.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) | ArgValue::Glob(text) => {
            text.find(token).map(|at| text[..at].to_owned())
        }
        ArgValue::Unknown { .. } => None,
    };
    if let Some(prefix) = prefix {
        word.value = ArgValue::Unknown { prefix, one: true };
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        commands::testing::{assert_not_read_only, assert_read_only, each, effects, find, starts},
        effect::RuleCoverage,
    };

    #[test]
    fn wrappers_start_what_stands_behind_their_own_words() {
        let cases = [
            ("timeout 5 ls -la", "ls -la"),
            ("timeout -k 1 -s KILL 5s rm x", "rm x"),
            ("timeout --signal=TERM 5 cat a", "cat a"),
            ("nice ls", "ls"),
            ("nice -n 10 du -sh .", "du -sh ."),
            ("nice -5 rm x", "rm x"),
            ("nohup ls", "ls"),
            ("stdbuf -oL grep foo", "grep foo"),
            ("stdbuf -o L -eL tee x", "tee x"),
            ("time -p ls", "ls"),
            ("command -p rm x", "rm x"),
            ("command -- touch p", "touch p"),
            ("builtin echo hi", "echo hi"),
            ("exec rm x", "rm x"),
            ("env LC_ALL=C sort a", "sort a"),
            ("env -u HOME touch p", "touch p"),
            ("env - touch p", "touch p"),
            ("env -- touch p", "touch p"),
            ("env -C src touch p", "touch p"),
            ("xargs grep pat", "grep pat $ …"),
            ("xargs", "echo $ …"),
            ("xargs -0 -n1 rm", "rm $ …"),
            ("xargs -I{} cp {} out", "cp $ out"),
            ("xargs -I % mv x/% out", "mv x/$ out"),
            ("xargs -i rm {}", "rm $"),
            ("xargs -0I{} touch {}", "touch $"),
            ("noglob ls *", "ls glob(*)"),
        ];
        for (line, expected) in cases {
            assert_eq!(starts(line), [expected], "{line}");
        }
    }

    #[test]
    fn harmless_wrappers_are_harmless() {
        assert_read_only(&each(
            "timeout 5 ls; nice -n 5 ls; nice; nohup ls; stdbuf -oL ls; time -v ls; command ls; \
             command -v $x; command -V ls; builtin echo; exec; exec ls; env; env -0; env ls; env \
             LC_ALL=C TZ=UTC ls; env FOO; xargs; xargs -0 grep x; xargs -n 1 -P 2 head; xargs \
             -I{} echo {}; xargs -a list cat; xargs -r ls; xargs -d ' ' -n1 echo; xargs -L1 echo; \
             xargs -t cat; timeout 5",
        ));
        assert_not_read_only(&each(
            "timeout $x ls; timeout 5 $x; timeout * ls; timeout --odd 5 ls; nice $x ls; nice * \
             ls; time -o out ls; time -ao out ls; command $x; command *; builtin $x; exec -a ls \
             x; exec -c ls; exec $x; env FOO=1 ls; env -i ls; env - ls; env -u PATH ls; env -S \
             'ls'; env --split=ls; env $x; env \"$x\" ls; env *; env LC_ALL=C PATH=. ls; env -C d \
             ls; env LC_ALL=$x ls; env LANG=ja_JP.SJIS ls; env LC_CTYPE=zh_CN.GBK ls; xargs -p cat; xargs -o vi; xargs $x; xargs -I{} {}; xargs \
             --process-slot-var=PATH ls; xargs *; noglob ls; timeout -k $x 5 ls; exec \"$x\"",
        ));
    }

    #[test]
    fn covers_say_which_rule_lets_them_through() {
        for line in [
            "timeout 5 ls",
            "nice ls",
            "nohup ls",
            "time ls",
            "command ls",
            "builtin echo",
            "xargs grep",
            "noglob ls",
        ] {
            assert_eq!(find(line).coverage, RuleCoverage::Transparent, "{line}");
        }
        for line in ["env -S ls", "exec -a x ls"] {
            assert_eq!(find(line).coverage, RuleCoverage::Exact, "{line}");
        }
        for line in [
            "env ls",
            "xargs -n1 foo",
            "exec ls",
            "time -o x ls",
            "command -v ls",
        ] {
            assert_eq!(find(line).coverage, RuleCoverage::Prefix, "{line}");
        }
    }

    #[test]
    fn their_own_effects_count_too() {
        assert_eq!(effects("env FOO=1 LC_ALL=C ls"), ["env FOO"]);
        assert_eq!(effects("time -o out ls"), ["OptionWrite out"]);
        assert_eq!(effects("xargs -a list cat"), ["read list"]);
        assert_eq!(
            effects("env -C d cat a"),
            ["opaque its paths are relative to another directory"]
        );
        assert_eq!(
            effects("xargs -I{} {}"),
            ["opaque the command it starts comes from its input"]
        );
    }
}
