//! Builtins that set, read or unset variables.

use super::{
    options::ParsedArguments,
    shells::worse,
    spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, doubts, runs},
    variables::{is_harmless, is_harmless_value, is_locale, is_name, is_own},
};
use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, Effect},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Own("export declare typeset local readonly", declares),
    KnownCommand::Spec(
        &CommandSpec::prints("unset", "-v")
            .refusing(&[
                doubts("-f", "removes a function"),
                doubts("-n", "removes a reference"),
            ])
            .strict()
            .with_evaluator(|parsed| sets(parsed, parsed.operands.iter().copied())),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("read", "-rs -d: -n: -N: -p: -t: -u: -a: -i:")
            .refusing(&[doubts("-e", "reads from a terminal")])
            .style(OptionStyle::Posix)
            .strict()
            .with_evaluator(|parsed| {
                sets(
                    parsed,
                    parsed.operands.iter().copied().chain(parsed.value("-a")),
                )
            }),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("mapfile readarray", "-t -d: -n: -O: -s: -u: -c:")
            .refusing(&[runs("-C:", "runs a command")])
            .style(OptionStyle::Posix)
            .strict()
            .with_evaluator(|parsed| sets(parsed, parsed.operands.iter().copied())),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("getopts", "")
            .style(OptionStyle::Posix)
            .strict()
            .with_evaluator(|parsed| sets(parsed, parsed.operands.iter().copied().skip(1).take(1))),
    ),
];

/// Returns a read-only finding if each name is a plain user variable.
fn sets<'a>(parsed: &ParsedArguments<'_>, names: impl Iterator<Item = &'a Arg>) -> CommandFinding {
    let mut finding = parsed.finding(OperandKind::Text);
    for name in names {
        let text = name.text().unwrap_or_default();
        // The value that is read is unknown; after `unset`, the value from the environment applies.
        let known = is_harmless(text) && (!is_locale(text) || parsed.spec.is_called("unset"));
        if !is_own(text) && !known {
            finding = worse(
                finding,
                "it may set a variable that changes what a command does",
            )
            .with_span(name.span);
            finding.effects.push(Effect::Env(text.to_owned()));
        }
    }
    finding
}

/// Analyzes `export`, `declare` and similar builtins, which either print or set variables.
fn declares(argv: &[Arg]) -> CommandFinding {
    let command = argv.first().and_then(Arg::text).unwrap_or_default();
    let fine = CommandFinding::read_only("it only prints or sets what shows");
    let mut flags = String::new();
    let mut words = argv.get(1..).unwrap_or_default().iter();
    while let Some(text) = words.as_slice().first().and_then(Arg::text) {
        let Some(letters) = text
            .strip_prefix(['-', '+'])
            .filter(|rest| !rest.is_empty())
        else {
            break;
        };
        words.next();
        if text == "--" {
            break;
        }
        flags.push_str(letters);
    }
    let words = words.as_slice();
    let has = |letters: &str| flags.contains(|flag| letters.contains(flag));
    let functions = has("f") && matches!(command, "export" | "readonly");
    let prints = (has("pfF") && !functions) || words.is_empty();
    if prints && words.iter().all(|word| word.text().is_some_and(is_name)) {
        return fine;
    }
    let mut finding = fine;
    for word in words {
        let (name, value) = match &word.value {
            ArgValue::Literal(text) | ArgValue::Braced(text) => match text.split_once('=') {
                Some((name, value)) => (name, Some(Some(value))),
                None => (text.as_str(), None),
            },
            ArgValue::Unknown { prefix, .. } => {
                let name = prefix.split_once('=').map_or("", |(name, _)| name);
                (name, Some(None))
            }
            ArgValue::Glob(_) => ("", Some(None)),
        };
        let (name, value) = match name.strip_suffix('+') {
            Some(name) => (name, value.map(|_| None)),
            None => (name, value),
        };
        // Without a value, a user variable only becomes an array or local.
        let announced = value.is_none()
            && !functions
            && !matches!(command, "export" | "readonly")
            && flags.chars().all(|flag| "aAg".contains(flag))
            && is_own(name);
        let shows = match value {
            Some(value) => is_harmless_value(name, value),
            None => is_harmless(name),
        };
        let shows = shows && !functions && flags.chars().all(|flag| "xg".contains(flag));
        if !announced && !shows {
            finding = worse(
                finding,
                "it sets a variable that may change what a command does",
            )
            .with_span(word.span);
            finding.effects.push(Effect::Env(name.to_owned()));
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, each, effects};

    #[test]
    fn what_shows_may_be_set() {
        assert_read_only(&each(
            "export; export -p; export LC_ALL=C; export TZ=UTC LANG=C; export LC_ALL=en_US.UTF-8; \
             export TZ=$x; export LC_ALL; export TERM; declare; declare -p; declare -p PATH; declare -f; declare -f ls; declare -F; \
             declare -x TZ=UTC; declare -A map; local x; typeset -p x; readonly -p; readonly",
        ));
        assert_not_read_only(&each(
            "export PATH=.; export FOO=1; export $x; export \"$x=1\"; export -n PATH; export -f \
             ls; export LC_ALL=C PATH=.; export LC_ALL=$x; export LANG=ja_JP.SJIS; export LC_CTYPE+=x; read \
             LC_ALL; export PAGER; declare x=1; declare -x PATH=.; declare -i \
             x=5; declare -i TZ=5; declare -n r=PATH; declare -p x=1; declare -f x=1; typeset \
             PATH=.; readonly PATH; readonly x=1; local x=1; declare a[0]=1; declare -A $x; \
             declare -p $x; declare x+=1; declare -i x",
        ));
        assert_eq!(
            effects("export PATH=. LC_ALL=C FOO=1"),
            ["env PATH", "env FOO"]
        );
        assert_eq!(effects("declare x+=1"), ["env x"]);
    }

    #[test]
    fn plain_names_may_be_read_into() {
        assert_read_only(&each(
            "read; read line; read -r a b; read -r -a list; read -p 'name? ' name; read -d '' x; \
             read -n 1 -t 5 key; read -u 3 line; mapfile -t lines; readarray lines; mapfile; \
             getopts ab: opt; unset x; unset -v a b; unset LC_ALL",
        ));
        assert_not_read_only(&each(
            "read PATH; read -r IFS; read a[0]; read $x; read -r \"$x\"; read -a 'a[$x]'; read -a \
             PATH; mapfile -C x -c 1; mapfile a[0]; mapfile $x; mapfile PATH; getopts a x[0]; \
             getopts a $x; unset PATH; unset -f ls; unset a[0]; unset $x; unset -n r; read --odd \
             x; read -e x",
        ));
        assert_eq!(effects("read line PATH"), ["env PATH"]);
    }
}
