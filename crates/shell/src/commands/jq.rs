//! jq and yq. A jq program can only read and print, but it may import other files.

use std::borrow::Cow;

use super::{
    options::{ParsedArguments, content},
    spec::{CommandSpec, KnownCommand, OperandKind, UnsafeOption, runs, writes},
};
use crate::{
    arg::{Arg, ArgValue},
    ast::Span,
    effect::{CommandFinding, Effect, EffectVerdict, FileWrite, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[KnownCommand::Own("jq", jq), KnownCommand::Spec(&YQ)];

/// The letters that may be bundled after a dash.
const LETTERS: &str = "nrRjascCMSehVb";

const FLAGS: &str = "--null-input --raw-output --raw-output0 --raw-input --join-output --ascii-output \
     --slurp --compact-output --color-output --monochrome-output --sort-keys --exit-status --tab \
     --unbuffered --stream --stream-errors --seq --binary --help --version --build-configuration";

struct Jq<'a> {
    argv: &'a [Arg],
    at: usize,
    doubt: Option<(Cow<'static, str>, Span)>,
    effects: Vec<Effect>,
    program: Option<&'a Arg>,
    program_is_file: bool,
    /// After `--args`, operands are texts.
    texts: bool,
}

/// Analyzes jq. Its options take at most two values, which a table cannot express.
fn jq(argv: &[Arg]) -> CommandFinding {
    let mut jq = Jq {
        argv,
        at: 1,
        doubt: None,
        effects: Vec::new(),
        program: None,
        program_is_file: false,
        texts: false,
    };
    let mut options = true;
    while let Some(arg) = argv.get(jq.at) {
        jq.at += 1;
        match arg.text() {
            None => {
                jq.doubt("the result of an expansion may be an option", arg.span);
                jq.operand(arg);
            }
            Some("--") if options => options = false,
            Some(text) if options && text.starts_with("--") => jq.long(text, arg),
            Some(text) if options && text.starts_with('-') && text != "-" => jq.short(text, arg),
            Some(_) => jq.operand(arg),
        }
    }
    jq.finding()
}

impl<'a> Jq<'a> {
    fn doubt(&mut self, why: impl Into<Cow<'static, str>>, span: Span) {
        self.doubt.get_or_insert_with(|| (why.into(), span));
    }

    fn long(&mut self, text: &str, arg: &Arg) {
        match text {
            "--arg" | "--argjson" => {
                self.value(arg);
                self.value(arg);
            }
            "--slurpfile" | "--rawfile" | "--argfile" => {
                self.value(arg);
                if let Some(file) = self.value(arg) {
                    self.effects.push(content(file));
                }
            }
            "--indent" => {
                self.value(arg);
            }
            "--args" | "--jsonargs" => self.texts = true,
            "--from-file" => self.program_is_file = true,
            _ if FLAGS.split_ascii_whitespace().any(|flag| flag == text) => {}
            _ => self.doubt(
                format!("its option {text} is not known to be safe"),
                arg.span,
            ),
        }
    }

    fn short(&mut self, text: &str, arg: &Arg) {
        for letter in text.chars().skip(1) {
            if letter == 'f' {
                self.program_is_file = true;
            } else if !LETTERS.contains(letter) {
                self.doubt(
                    format!("its option -{letter} is not known to be safe"),
                    arg.span,
                );
            }
        }
    }

    fn value(&mut self, name: &Arg) -> Option<&'a Arg> {
        let Some(value) = self.argv.get(self.at) else {
            self.doubt("an option lacks its value", name.span);
            return None;
        };
        self.at += 1;
        // If an expansion becomes several arguments, the extra ones change the meaning of the line.
        let one = matches!(value.value, ArgValue::Unknown { one: true, .. });
        if value.text().is_none() && !one {
            self.doubt("the value of an option is not certain", value.span);
        }
        Some(value)
    }

    fn operand(&mut self, arg: &'a Arg) {
        if self.program.is_none() {
            self.program = Some(arg);
        } else if !self.texts && !arg.is("-") {
            self.effects.push(content(arg));
        }
    }

    fn finding(mut self) -> CommandFinding {
        if let Some(program) = self.program {
            if self.program_is_file {
                self.doubt("its program comes from a file", program.span);
                self.effects.push(content(program));
            } else if program.text().is_some_and(imports) {
                self.doubt("its program takes definitions from a file", program.span);
            }
        }
        let mut finding = match self.doubt {
            Some((why, span)) => CommandFinding::unknown(why).with_span(span),
            None => CommandFinding::read_only("it only reads"),
        };
        finding.effects = self.effects;
        finding
    }
}

/// Returns whether a program imports definitions from files. Imports are only possible at its
/// beginning.
fn imports(program: &str) -> bool {
    let mut rest = program.trim_start();
    while let Some(comment) = rest.strip_prefix('#') {
        let line = comment.split('\n').next().unwrap_or_default();
        // In newer versions, a backslash continues the comment.
        if line.contains(['\\', '\r']) {
            return true;
        }
        rest = comment[line.len()..].trim_start();
    }
    ["import", "include", "module"]
        .iter()
        .any(|word| rest.starts_with(word))
}

/// Two programs are named yq: one written in Go, and one that wraps jq. Only options that are safe
/// in both are listed.
static YQ: CommandSpec = CommandSpec::reads(
    "yq",
    "-rRnePCMNjyYSchVv -o: -p: -I: -w: --null-input --raw-output --raw-input --exit-status --prettyPrint \
     --colors --no-colors --no-doc --tojson --yaml-output --yml-output --yaml-roundtrip --yml-roundtrip \
     --compact-output --sort-keys --width= --indent= --output-format= --input-format= --front-matter= \
     --unwrapScalar=? --unwrapScalar --indentless-lists --verbose --version --help",
)
.refusing(&[
    writes("-i --in-place --inplace", "changes the files in place"),
    writes("-s --split-exp=", "may split its output into files"),
    runs("--from-file<", "takes its program from a file"),
    ENABLES,
])
.strict()
.with_evaluator(yq);

const ENABLES: UnsafeOption = UnsafeOption {
    options: "--security-enable-system-operator",
    verdict: EffectVerdict::Unknown,
    why: "lets its program start commands",
    exact: true,
};

fn yq(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut operands = parsed.operands.as_slice();
    let verbs = ["e", "eval", "ea", "eval-all"];
    if let Some((first, rest)) = operands.split_first()
        && verbs.iter().any(|verb| first.is(verb))
    {
        operands = rest;
    }
    let program = operands.first().and_then(|program| program.text());
    let doubt = if program.is_some_and(|program| imports(program) || loads(program)) {
        Some("its program may read other files or start commands")
    } else if parsed.options.iter().any(swallowed) {
        // The other yq may not give this option a value.
        Some("the value of an option looks like an option")
    } else {
        None
    };
    let mut finding = match (parsed.verdict(), doubt) {
        (None, Some(doubt)) => {
            parsed.with_effects(CommandFinding::unknown(doubt), OperandKind::None)
        }
        _ => parsed.finding(OperandKind::None),
    };
    // A single operand may be a file to print.
    let files = match operands {
        [only] => std::slice::from_ref(only),
        [_, files @ ..] => files,
        [] => &[],
    };
    let in_place = ["-i", "--in-place", "--inplace"]
        .iter()
        .any(|name| parsed.has(name));
    for file in files.iter().filter(|file| !file.is("-")) {
        finding.effects.push(content(file));
        if in_place {
            finding.effects.push(Effect::Write(FileWrite {
                path: (*file).clone(),
                kind: WriteKind::OptionWrite,
            }));
        }
    }
    finding
}

fn swallowed(given: &super::options::GivenOption) -> bool {
    let value = given.value.as_ref().and_then(Arg::text);
    value.is_some_and(|value| value.starts_with('-'))
}

/// Returns whether a program for the Go version may use an operator that reads files or starts
/// commands. After a dot, the name is a key and not an operator.
fn loads(program: &str) -> bool {
    let mut before = ' ';
    program
        .split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .any(|piece| {
            let word = piece
                .trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let key = before == '.' && !word.is_empty();
            before = piece.chars().last().unwrap_or(' ');
            !key && (word.contains("load") || word.contains("eval") || word == "system")
        })
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, effects, verdict};

    #[test]
    fn reading_json_and_yaml_is_harmless() {
        assert_read_only(&[
            "jq",
            "jq . f",
            "jq -r .name package.json",
            "jq '.a[] | select(.b > 1)' f",
            "jq -cS . f g",
            "jq -n --arg a 1 --argjson b 2 '$a'",
            "jq --slurpfile a f --rawfile b g '$a' h",
            "jq -rn --args '$ARGS' a b",
            "jq --indent 2 --tab . f",
            "jq -e '.include' tsconfig.json",
            "jq '# a comment\n.a' f",
            "jq env.HOME -n",
            "jq -- .a f",
            "jq .a -",
            "yq .a f.yml",
            "yq -r .metadata.name f",
            "yq eval '.a.b' f",
            "yq e -o json . f",
            "yq -o=json -I2 . f",
            "yq -P f",
            "yq -y .a f",
            "yq '.payload.load' f",
            "yq --version",
        ]);
    }

    #[test]
    fn programs_from_elsewhere_and_changes_are_not() {
        assert_not_read_only(&[
            "jq -f prog f",
            "jq -rf prog f",
            "jq --from-file prog f",
            "jq 'import \"a\" as a; .' f",
            "jq ' include \"a\"; .' f",
            "jq '# x\ninclude \"a\"; .' f",
            "jq '# x\\\ny\ninclude \"a\"; .' f",
            "jq -L lib . f",
            "jq --odd . f",
            "jq -k . f",
            "jq $program f",
            "jq . $file",
            "jq . *.json",
            "jq --arg a $x . f",
            "jq --arg a",
            "yq -i .a f",
            "yq -yi .a f",
            "yq --in-place .a f",
            "yq --inplace .a f",
            "yq -o -i .a f",
            "yq -s .a f",
            "yq 'load(\"x\")' f",
            "yq '.a = load_str(\"x\")' f",
            "yq 'eval(.a)' f",
            "yq --security-enable-system-operator . f",
            "yq 'system(\"id\")' f",
            "yq $x f",
        ]);
    }

    #[test]
    fn reasons_and_effects_say_what_happens() {
        assert_eq!(
            verdict("yq -i .a f"),
            "mutating: -i changes the files in place"
        );
        assert_eq!(
            verdict("jq -f p f"),
            "unknown: its program comes from a file"
        );
        let cases: [(&str, &[&str]); 7] = [
            ("jq . a - b", &["read a", "read b"]),
            ("jq --rawfile x a . b", &["read a", "read b"]),
            ("jq . --args a b", &[]),
            ("jq -f p a", &["read a", "read p"]),
            ("yq .a f", &["read f"]),
            ("yq e f", &["read f"]),
            ("yq -i .a f", &["read f", "OptionWrite f"]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
    }
}
