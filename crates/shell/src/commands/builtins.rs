//! Builtins other than those that set variables or test conditions.

use super::{
    options::{ParsedArguments, names, written},
    shells::{opaque, runs_text, worse},
    spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, doubts, runs, writes},
};
use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Own(
        "echo true false : exit return break continue shift logout times caller",
        |_| CommandFinding::read_only("it only prints or controls the shell"),
    ),
    KnownCommand::Spec(&CommandSpec::prints(
        "pwd",
        "-LP --logical --physical --help --version",
    )),
    KnownCommand::Spec(
        &CommandSpec::prints("cd", "-LPe@")
            .style(OptionStyle::Posix)
            .with_evaluator(enters),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("pushd", "-n -#")
            .style(OptionStyle::Posix)
            .with_evaluator(|parsed| {
                let turns = parsed
                    .operands
                    .first()
                    .is_none_or(|to| to.text().is_some_and(|text| text.starts_with('+')));
                match turns {
                    true => parsed.finding(OperandKind::Text),
                    false => enters(parsed),
                }
            }),
    ),
    KnownCommand::Spec(&CommandSpec::prints("popd", "-n -#")),
    KnownCommand::Spec(&CommandSpec::prints("dirs", "-clpv -#")),
    KnownCommand::Spec(&CommandSpec::prints("type", "-afptP")),
    KnownCommand::Spec(&CommandSpec::prints("help", "-dms")),
    KnownCommand::Spec(
        &CommandSpec::prints("hash", "-lrdt")
            .refusing(&[runs("-p:", "sets the program that a name runs")])
            .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("jobs", "-lnprs")
            .refusing(&[runs("-x", "starts a command")])
            .style(OptionStyle::Posix)
            .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("wait", "-nf")
            .refusing(&[doubts("-p:", "sets a variable")])
            .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("ulimit", "-SHabcdefiklmnpqrstuvxPRT")
            .strict()
            .with_evaluator(|parsed| asks(parsed, "it changes the limits of the shell")),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("umask", "-pS")
            .strict()
            .with_evaluator(|parsed| asks(parsed, "it changes the mode of new files")),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("history", "")
            .refusing(&[
                writes("-c -d:", "forgets commands"),
                writes("-a -w", "writes the list of commands into a file"),
                doubts("-r -n -s -p", "changes the list of commands"),
            ])
            .strict()
            .with_evaluator(|parsed| match parsed.has("-a") || parsed.has("-w") {
                true => {
                    let files = parsed.operands.iter();
                    let finding = parsed.finding(OperandKind::Text);
                    files.fold(finding, |finding, file| {
                        finding.with(written(file, WriteKind::OptionWrite))
                    })
                }
                false => parsed.finding(OperandKind::Text),
            }),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("fc", "-lnr -e:")
            .refusing(&[runs("-s", "runs an earlier command")])
            .strict()
            .with_evaluator(|parsed| match parsed.has("-l") {
                true => parsed.finding(OperandKind::Text),
                false => opaque(
                    parsed.finding(OperandKind::Text),
                    "it runs an earlier command",
                ),
            }),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("compgen", "-abcdefgjksuv -A: -G: -P: -S: -X: -o:")
            .refusing(&[
                runs("-W:", "expands its word list"),
                runs("-C: -F:", "runs a command"),
            ])
            .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("complete", "-p")
            .strict()
            .with_evaluator(|parsed| match parsed.has("-p") || parsed.argv.len() < 2 {
                true => parsed.finding(OperandKind::Text),
                false => opaque(
                    parsed.finding(OperandKind::Text),
                    "it sets the program that completes a command",
                ),
            }),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("bind", "-lpPsSvVX -q: -m:")
            .refusing(&[runs("-x: -f< -r: -u:", "sets key bindings")])
            .strict()
            .with_evaluator(|parsed| asks(parsed, "it sets key bindings")),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("enable", "-aps")
            .refusing(&[
                runs("-f:", "loads a library"),
                doubts("-n -d", "disables a command"),
            ])
            .strict()
            .with_evaluator(|parsed| asks(parsed, "it enables a builtin")),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("alias", "-p")
            .strict()
            .with_evaluator(|parsed| {
                let defines = parsed
                    .operands
                    .iter()
                    .find(|word| word.text().is_none_or(|text| text.contains('=')));
                match defines {
                    Some(word) => {
                        opaque(parsed.finding(OperandKind::Text), "it redefines a command")
                            .with_span(word.span)
                    }
                    None => parsed.finding(OperandKind::Text),
                }
            }),
    ),
    KnownCommand::Spec(
        &CommandSpec::unsure("unalias", "it redefines a command").operands(OperandKind::Text),
    ),
    KnownCommand::Spec(
        &CommandSpec::unsure("bg fg disown suspend", "it changes a job of the shell")
            .operands(OperandKind::Text),
    ),
    KnownCommand::Spec(
        &CommandSpec::unsure("compopt", "it sets the program that completes a command")
            .operands(OperandKind::Text),
    ),
    KnownCommand::Own("set", set),
    KnownCommand::Spec(
        &CommandSpec::prints("shopt", "-pqosu")
            .strict()
            .with_evaluator(shopt),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("trap", "-lpP")
            .style(OptionStyle::Posix)
            .with_evaluator(trap),
    ),
    KnownCommand::Own("printf", printf),
    KnownCommand::Own("let", arithmetic),
];

/// Analyzes a builtin that prints without an operand and changes a setting with one.
fn asks(parsed: &ParsedArguments<'_>, sets: &'static str) -> CommandFinding {
    let finding = parsed.finding(OperandKind::Text);
    match parsed.operands.first() {
        Some(_) => worse(finding, sets),
        None => finding,
    }
}

/// Analyzes a builtin that changes the current directory.
fn enters(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed.finding(OperandKind::Text);
    let plain = parsed
        .operands
        .first()
        .copied()
        .filter(|target| !target.is("-"));
    let target = plain.cloned().or_else(|| {
        // The home directory or the previous directory: the line does not name it.
        let value = ArgValue::Unknown {
            prefix: String::new(),
            one: true,
        };
        parsed.argv.first().map(|name| Arg {
            span: name.span,
            value,
        })
    });
    match target {
        Some(target) => finding.with(names(&target)),
        None => finding,
    }
}

/// Options that change what the shell prints or when it stops, but not how it parses a line.
const MODES: &[&str] = &[
    "errexit",
    "nounset",
    "pipefail",
    "xtrace",
    "verbose",
    "noglob",
    "noexec",
    "noclobber",
    "errtrace",
    "functrace",
];

fn set(argv: &[Arg]) -> CommandFinding {
    let fine = CommandFinding::read_only("it only controls the shell");
    let doubt = |arg: &Arg| {
        CommandFinding::unknown("it changes how the shell reads what follows").with_span(arg.span)
    };
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        let Some(text) = word.text() else {
            return doubt(word);
        };
        let Some(letters) = text
            .strip_prefix(['-', '+'])
            .filter(|rest| !rest.is_empty())
        else {
            return fine;
        };
        if text == "--" {
            return fine;
        }
        for letter in letters.chars() {
            let known = match letter {
                'o' => match words.next() {
                    Some(mode) => mode.text().is_some_and(|mode| MODES.contains(&mode)),
                    None => true,
                },
                letter => "euxvfnETCh".contains(letter),
            };
            if !known {
                return doubt(word);
            }
        }
    }
    fine
}

fn shopt(parsed: &ParsedArguments<'_>) -> CommandFinding {
    const GLOBS: &[&str] = &[
        "nullglob",
        "globstar",
        "dotglob",
        "nocaseglob",
        "failglob",
        "nocasematch",
        "extglob",
        "inherit_errexit",
        "checkwinsize",
        "huponexit",
    ];
    let finding = parsed.finding(OperandKind::Text);
    let sets = parsed.has("-s") || parsed.has("-u");
    let known = |name: &&Arg| name.text().is_some_and(|name| GLOBS.contains(&name));
    match sets && !parsed.operands.iter().all(known) {
        true => worse(finding, "it changes how the shell reads what follows"),
        false => finding,
    }
}

fn trap(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed.finding(OperandKind::Text);
    let prints = ["-l", "-p", "-P"].iter().any(|option| parsed.has(option));
    match parsed.operands.as_slice() {
        [action, _, ..] if !prints && !action.is("-") && !action.is("") => {
            runs_text(finding, action)
        }
        _ => finding,
    }
}

/// `-v` and `%n` set a variable, so the format must be certain unless no argument follows it.
fn printf(argv: &[Arg]) -> CommandFinding {
    let fine = CommandFinding::read_only("it only prints");
    let doubt = |why: &'static str, arg: &Arg| CommandFinding::unknown(why).with_span(arg.span);
    let mut words = argv.get(1..).unwrap_or_default().iter();
    let Some(mut format) = words.next() else {
        return fine;
    };
    if format.is("--") {
        match words.next() {
            Some(next) => format = next,
            None => return fine,
        }
    } else if format.text().is_some_and(|text| text.starts_with("-v")) {
        return doubt("-v sets a variable", format);
    }
    let alone = words.as_slice().is_empty();
    match &format.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) if counts(text) && !alone => {
            doubt("%n sets a variable", format)
        }
        ArgValue::Literal(_) | ArgValue::Braced(_) => fine,
        ArgValue::Unknown { one: true, .. } if alone => fine,
        ArgValue::Unknown { .. } | ArgValue::Glob(_) => doubt("its format is an expansion", format),
    }
}

/// Returns whether a format contains `%n`, with or without flags and width.
fn counts(format: &str) -> bool {
    let format = format.replace("%%", "");
    format.split('%').skip(1).any(|spec| {
        let conversion = spec.trim_start_matches(|letter: char| {
            letter.is_ascii_digit() || "-+ #'.*hlLqjzt".contains(letter)
        });
        conversion.starts_with('n')
    })
}

/// Analyzes `let`. Only plain numbers and operators are safe: bash evaluates the values of names in
/// arithmetic recursively.
fn arithmetic(argv: &[Arg]) -> CommandFinding {
    let certain = |arg: &Arg| {
        arg.text().is_some_and(|text| {
            text.bytes()
                .all(|byte| byte.is_ascii_digit() || b"+-*/%() ".contains(&byte))
        })
    };
    match argv.iter().skip(1).find(|arg| !certain(arg)) {
        Some(arg) => CommandFinding::unknown("arithmetic evaluates what a variable holds")
            .with_span(arg.span),
        None => CommandFinding::read_only("it only calculates"),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, each, effects, starts};

    #[test]
    fn questions_to_the_shell_are_harmless() {
        assert_read_only(&each(
            "echo a; echo $x *; true; false; : x; exit 1; return; break; continue 2; pwd; pwd -P; \
             cd src; cd; cd -; cd $x; pushd src; pushd; pushd +1; popd; dirs -v; type ls; type -a \
             $x; help cd; hash; hash -r; hash -t ls; jobs -l; wait; wait 12; wait -n; ulimit -a; \
             ulimit -n; umask; umask -S; times; history; history 5; fc -l; compgen -c; compgen -A \
             function; complete -p; complete; bind -p; enable; enable -a; alias; alias ls; alias \
             -p; trap; trap -p; trap -l; trap - EXIT; trap '' INT; trap 2; caller; shopt; shopt \
             -p globstar; shopt -q extglob; shopt -s nullglob; set; set -e; set -euo pipefail; \
             set +x; set -o; set -- a $x; set -x; let 1+2; exit $x",
        ));
        assert_not_read_only(&each(
            "hash -p ./x ls; jobs -x ls; wait -p x; ulimit -n 10; ulimit $x; umask 000; umask \
             u=rwx; history -c; history -w out; history -r f; fc -s; fc; fc -e vi 1; compgen -W \
             x; compgen -C x; compgen -F f; complete -C x ls; complete -F f ls; bind -x x; bind \
             -f f; bind x; enable -f x.so x; enable -n echo; enable echo; alias x=y; alias $x; \
             unalias ls; bg; fg; disown -a; suspend; shopt -s expand_aliases; shopt -u extdebug; \
             shopt -s $x; set -k; set -a; set -o posix; set $x; set -m; set -b; set -o allexport; \
             set -eB; let x=1; let i++; let $x; trap $x EXIT; cd -Z; type --odd",
        ));
        assert_eq!(effects("cd src"), ["names src"]);
        assert_eq!(effects("cd"), ["names $"]);
        assert_eq!(effects("history -w out"), ["OptionWrite out"]);
        assert_eq!(starts("trap 'rm x' EXIT"), ["script rm x"]);
        assert_eq!(starts("trap -- 'rm x' 0"), ["script rm x"]);
    }

    #[test]
    fn printf_may_set_a_variable() {
        assert_read_only(&each(
            "printf 'a\\n'; printf '%s\\n' a $x *; printf -- '- %s\\n' one; printf \"total: $x\"; printf \"$x\"; \
             printf '%d%%n\\n' 5; printf '%5.2f|%-10s' 1 a; printf '%(%F)T\\n' -1; printf",
        ));
        assert_not_read_only(&each(
            "printf -v x hi; printf -vx hi; printf '%n' x; printf 'a%-5n' x; printf $x; printf \
             \"$x\" a; printf $x a; printf * a; printf -v $x hi; printf -- $x a",
        ));
    }
}
