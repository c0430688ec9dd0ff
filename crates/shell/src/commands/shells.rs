//! Shells and other programs that run a text, a file or their operand.

use super::{
    options::{ParsedArguments, content, evaluate},
    spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, doubts, runs},
};
use crate::{
    arg::Arg,
    effect::{CommandFinding, Effect, EffectVerdict, StartedProgram},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Own("bash rbash", |argv| evaluate(&BASH, argv)),
    KnownCommand::Own("sh dash ash", |argv| evaluate(&POSIX, argv)),
    KnownCommand::Own(
        "zsh ksh mksh ksh93 pdksh fish csh tcsh elvish nu xonsh yash",
        |argv| evaluate(&OTHER, argv),
    ),
    KnownCommand::Own("eval", eval),
    KnownCommand::Own("source .", source),
    KnownCommand::Own("busybox toybox", multi_call),
];

/// Options that choose neither what runs nor which files are read first.
const QUIET: &str =
    "-c -e -u -x -v -f -n -B -C -E -T -h -o: --norc --noprofile  --verbose --help --version";

static BASH: CommandSpec = CommandSpec::reads("bash rbash", QUIET)
    .refusing(REFUSED)
    .style(OptionStyle::Posix)
    .with_evaluator(|parsed| shell(parsed, ShellDialect::Ours));

static POSIX: CommandSpec = CommandSpec::reads("sh dash ash", QUIET)
    .refusing(REFUSED)
    .style(OptionStyle::Posix)
    .with_evaluator(|parsed| shell(parsed, ShellDialect::Posix));

static OTHER: CommandSpec = CommandSpec::reads(
    "zsh ksh mksh ksh93 pdksh fish csh tcsh elvish nu xonsh yash",
    QUIET,
)
.refusing(REFUSED)
.style(OptionStyle::Posix)
.with_evaluator(|parsed| shell(parsed, ShellDialect::Other));

const REFUSED: &[super::spec::UnsafeOption] = &[
    doubts("-l --login", "runs the profile files first"),
    doubts("-i --interactive", "runs the start-up files first"),
    doubts("-s", "runs what it reads"),
    runs("--rcfile< --init-file<", "runs a file first"),
    runs("-O:", "changes how the text is read"),
];

/// The shell language of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShellDialect {
    Ours,
    /// POSIX shell, a subset of bash. It reads some bash syntax differently.
    Posix,
    Other,
}

fn shell(parsed: &ParsedArguments<'_>, dialect: ShellDialect) -> CommandFinding {
    let finding = parsed.finding(OperandKind::None);
    if parsed.has("--version") || parsed.has("--help") {
        return finding;
    }
    let odd_mode = parsed.value("-o").filter(|mode| !is_quiet_mode(mode));
    let finding = match odd_mode {
        Some(mode) => worse(finding, "-o changes how the text is read").with_span(mode.span),
        None => finding,
    };
    let certain = parsed
        .operands
        .first()
        .is_none_or(|first| first.text().is_some_and(|text| !text.starts_with('+')));
    let checks_only =
        parsed.has("-n") && certain && parsed.verdict().is_none() && dialect != ShellDialect::Other;
    let Some(first) = parsed.operands.first() else {
        if parsed.has("-c") {
            return worse(finding, "-c lacks its text");
        }
        return opaque(
            finding,
            "a shell runs what it reads from its standard input",
        );
    };
    if !parsed.has("-c") {
        let finding = finding.with(content(first));
        if checks_only {
            return finding;
        }
        return opaque(finding, "a shell runs a file");
    }
    if checks_only {
        return finding;
    }
    let finding = runs_text(finding, first);
    match (dialect, first.text()) {
        (ShellDialect::Ours, _) | (_, None) => finding,
        (ShellDialect::Posix, Some(text)) if !reads_otherwise(text) => finding,
        (ShellDialect::Posix, _) => opaque(finding, "bash and sh read its text in different ways"),
        (ShellDialect::Other, _) => opaque(finding, "its text is in the language of another shell"),
    }
}

fn is_quiet_mode(mode: &Arg) -> bool {
    matches!(
        mode.text(),
        Some(
            "errexit"
                | "nounset"
                | "pipefail"
                | "xtrace"
                | "verbose"
                | "noglob"
                | "noclobber"
                | "errtrace"
                | "functrace"
        )
    )
}

/// Returns whether a POSIX shell may read this text differently than bash. A name or a string in
/// POSIX syntax may then hide commands.
fn reads_otherwise(text: &str) -> bool {
    const OURS: &[&str] = &[
        "$'", "$\"", "$[", "[[", "<(", ">(", "<<<", "&>", "|&", ";&", "=(", "+=", "!(", "@(", "+(",
        "*(", "?(", "function",
    ];
    let counted = text.matches("((").count() > text.matches("$((").count();
    counted || OURS.iter().any(|ours| text.contains(ours))
}

/// Adds a text that a shell runs.
pub(super) fn runs_text(finding: CommandFinding, text: &Arg) -> CommandFinding {
    match text.text() {
        Some(_) => finding.starting(StartedProgram::Script(text.clone())),
        None => opaque(finding, "the text it runs is an expansion").with_span(text.span),
    }
}

/// Adds arguments that a shell joins to a text and runs.
pub(super) fn runs_words(finding: CommandFinding, words: &[&Arg]) -> CommandFinding {
    let texts: Option<Vec<&str>> = words.iter().map(|word| word.text()).collect();
    match (texts, words) {
        (Some(_), []) => finding,
        (Some(texts), [first, ..]) => {
            let span = words.last().map_or(first.span, |last| crate::ast::Span {
                start: first.span.start,
                end: last.span.end,
            });
            finding.starting(StartedProgram::Script(Arg::literal(texts.join(" "), span)))
        }
        (None, _) => opaque(finding, "the text it runs holds an expansion"),
    }
}

/// Makes the finding at least unknown and adds a program that cannot be read from the line.
pub(super) fn opaque(finding: CommandFinding, why: &'static str) -> CommandFinding {
    worse(finding, why).with(Effect::Opaque(why.into()))
}

/// Makes a read-only finding unknown, with this reason.
pub(super) fn worse(finding: CommandFinding, why: &'static str) -> CommandFinding {
    match finding.verdict {
        EffectVerdict::ReadOnly | EffectVerdict::ReadsNetwork => CommandFinding {
            verdict: EffectVerdict::Unknown,
            reason: why.into(),
            ..finding
        },
        EffectVerdict::Unknown | EffectVerdict::Mutating => finding,
    }
}

fn eval(argv: &[Arg]) -> CommandFinding {
    let mut words: Vec<&Arg> = argv.iter().skip(1).collect();
    if words.first().is_some_and(|first| first.is("--")) {
        words.remove(0);
    }
    runs_words(
        CommandFinding::read_only("its text is analyzed separately"),
        &words,
    )
}

fn source(argv: &[Arg]) -> CommandFinding {
    let file = argv.iter().skip(1).find(|arg| !arg.is("--"));
    let finding = opaque(
        CommandFinding::read_only(""),
        "it runs a file in this shell",
    );
    match file {
        Some(file) => finding.with(content(file)),
        None => finding,
    }
}

fn multi_call(argv: &[Arg]) -> CommandFinding {
    runs_operand(argv, "a program with many names runs its operand")
}

/// Returns whether a name is that of a dynamic loader, for any machine and version: `ld.so`,
/// `ld-linux.so.2`, `ld64.so.1`, `ld-2.31.so`, `ld-musl-x86_64.so.1`.
pub(super) fn is_loader(name: &str) -> bool {
    name == "rtld" || (name.starts_with("ld") && name.contains(".so"))
}

pub(super) fn loader(argv: &[Arg]) -> CommandFinding {
    runs_operand(argv, "a loader runs its operand")
}

fn runs_operand(argv: &[Arg], why: &'static str) -> CommandFinding {
    let finding = opaque(CommandFinding::read_only(""), why);
    let is_option = |arg: &Arg| arg.text().is_some_and(|text| text.starts_with('-'));
    match argv.iter().skip(1).position(|arg| !is_option(arg)) {
        Some(at) => finding.starting(StartedProgram::Command {
            argv: argv[at + 1..].to_vec(),
            more: false,
        }),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{
        assert_not_read_only, assert_read_only, each, effects, starts, verdict,
    };

    #[test]
    fn a_literal_text_is_looked_at() {
        assert_read_only(&each(
            "bash -c 'ls -l'; sh -c ls; bash -ec 'ls'; bash -xc ls; bash -euo pipefail -c ls; \
             bash --norc -c ls; bash -c ls name $x; bash --version; bash -n script.sh; sh -n f; \
             sh -c 'echo $((1+2))'; eval ls -l; eval 'ls && pwd'; eval; dash -c 'ls | wc -l'",
        ));
        assert_not_read_only(&each(
            "bash; sh; bash script.sh; bash -x script.sh; bash -s; bash -c; bash -c $x; bash -c \
             \"$x\"; bash -lc ls; bash -ic ls; bash --rcfile x -c ls; bash -O extglob -c ls; bash \
             -o posix -c ls; zsh -c ls; fish -c ls; eval $x; eval \"$x\" ls; source f; . f; . $x; \
             busybox ls; ld.so /bin/ls; bash -$x ls; bash --odd -c ls; bash -n -i f; bash -n $x; \
             bash -n \"$x\"; bash -n +n; sh",
        ));
        assert_eq!(starts("bash -c 'ls -l' x"), ["script ls -l"]);
        assert_eq!(starts("eval ls '>' out"), ["script ls > out"]);
        assert_eq!(starts("busybox rm -f x"), ["rm -f x"]);
        assert_eq!(starts("zsh -c ls"), ["script ls"]);
        assert_eq!(starts("ld.so --preload x"), ["x"]);
        assert_eq!(starts("bash -lc ls"), ["script ls"]);
    }

    #[test]
    fn what_cannot_be_read_is_opaque() {
        for line in [
            "bash",
            "bash f",
            "bash -c $x",
            "eval $x",
            ". f",
            "busybox ls",
            "ld.so x",
            "zsh -c ls",
            "sh -c 'function f {'",
        ] {
            let opaque = effects(line)
                .iter()
                .any(|effect| effect.starts_with("opaque"));
            assert!(opaque, "{line}");
        }
        assert_eq!(verdict("bash f"), "unknown: a shell runs a file");
        assert_eq!(
            effects("source env.sh"),
            ["opaque it runs a file in this shell", "read env.sh"]
        );
    }

    #[test]
    fn sh_may_read_a_text_in_another_way() {
        assert_not_read_only(&each(
            "sh -c 'echo $\"a\"'; sh -c 'function ls { x'; sh -c '[[ -f a ]]'; sh -c '((ls))'; sh \
             -c 'cat <(ls)'; sh -c 'ls &> x'; dash -c 'x=(a)'",
        ));
        assert_read_only(&each("bash -c '[[ -f a ]]'; bash -c '((1))'"));
    }
}
