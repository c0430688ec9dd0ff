use super::*;
use crate::commands::spec::{runs, writes};

static SORT: CommandSpec = CommandSpec::reads(
    "sort",
    "-bdfgiMhnRrVcCmsuz -k: -t: -S: --key= --field-separator= --reverse --unique --check=? --parallel= -#",
)
.refusing(&[
    writes("-o> --output>", "writes its result into a file"),
    runs("--compress-program=", "starts a program"),
])
.strict();

fn argv(words: &[&str]) -> Vec<Arg> {
    let mut start = 0;
    words
        .iter()
        .map(|word| {
            let span = Span {
                start,
                end: start + word.len(),
            };
            start = span.end + 1;
            match word.strip_prefix('$') {
                Some(_) => Arg {
                    span,
                    value: ArgValue::Unknown {
                        prefix: String::new(),
                        one: false,
                    },
                },
                None => Arg::literal(*word, span),
            }
        })
        .collect()
}

#[test]
fn options_are_read_as_the_program_reads_them() {
    let cases: [(&[&str], &str); 16] = [
        (&["sort"], "readonly: it only reads"),
        (&["sort", "-rn", "f"], "readonly: it only reads"),
        (&["sort", "-k2,3", "-t", ":"], "readonly: it only reads"),
        (&["sort", "-t", "-o", "f"], "readonly: it only reads"),
        (&["sort", "--rev"], "readonly: it only reads"),
        (&["sort", "--", "--output=x"], "readonly: it only reads"),
        (
            &["sort", "-o", "x"],
            "mutating: -o writes its result into a file",
        ),
        (
            &["sort", "-uox"],
            "mutating: -o writes its result into a file",
        ),
        (
            &["sort", "--outp=x"],
            "mutating: --output writes its result into a file",
        ),
        (
            &["sort", "f", "-o", "x"],
            "mutating: -o writes its result into a file",
        ),
        (
            &["sort", "--comp", "sh"],
            "unknown: --compress-program starts a program",
        ),
        (
            &["sort", "-Z"],
            "unknown: its option -Z is not known to be safe",
        ),
        (
            &["sort", "--re=x"],
            "unknown: its option --re takes no value",
        ),
        (&["sort", "-k"], "unknown: -k lacks its value"),
        (
            &["sort", "$x"],
            "unknown: the result of an expansion may be an unsafe option",
        ),
        (&["sort", "-5"], "readonly: it only reads"),
    ];
    for (words, expected) in cases {
        let finding = evaluate(&SORT, &argv(words));
        let got = format!("{}: {}", finding.verdict.name(), finding.reason);
        assert_eq!(got, expected, "{words:?}");
    }
}

#[test]
fn an_expansion_may_be_the_value_of_an_option() {
    static HEAD: CommandSpec = CommandSpec::reads("head", "-q -n: --lines=");
    static TAIL: CommandSpec = CommandSpec::reads("tail", "-n: -#");
    let unknown = |prefix: &str, one| Arg {
        span: Span { start: 0, end: 1 },
        value: ArgValue::Unknown {
            prefix: prefix.to_owned(),
            one,
        },
    };
    let cases = [
        // (the table, how the word begins, it stays one word, is it read-only)
        (&HEAD, "-n", false, true),
        (&HEAD, "-qn", false, true),
        (&HEAD, "--lines=", false, true),
        (&HEAD, "-q", true, false),
        (&HEAD, "-", true, false),
        (&TAIL, "-", true, true),
        (&HEAD, "-Z", true, false),
        (&SORT, "-k", true, false),
        (&SORT, "-k1", true, true),
        (&SORT, "-k1", false, false),
        (&SORT, "--key=", true, true),
        (&SORT, "--key=", false, false),
        (&SORT, "--output=", true, false),
        (&SORT, "-o", true, false),
    ];
    for (spec, prefix, one, read_only) in cases {
        let name = argv(&["name"]);
        let finding = evaluate(spec, &[name[0].clone(), unknown(prefix, one)]);
        let got = finding.verdict == EffectVerdict::ReadOnly;
        assert_eq!(got, read_only, "{prefix} {one}: {}", finding.reason);
    }
}

#[test]
fn writing_to_no_file_is_no_write() {
    for (target, verdict) in [
        ("/dev/null", EffectVerdict::ReadOnly),
        ("/dev/stdout", EffectVerdict::ReadOnly),
        ("/dev/null/../x", EffectVerdict::Mutating),
        ("/dev/sda", EffectVerdict::Mutating),
    ] {
        let finding = evaluate(&SORT, &argv(&["sort", "-o", target]));
        assert_eq!(finding.verdict, verdict, "{target}");
        assert_eq!(
            finding.effects.is_empty(),
            verdict == EffectVerdict::ReadOnly
        );
    }
}

#[test]
fn effects_name_the_paths_also_behind_an_unknown_option() {
    let finding = evaluate(&SORT, &argv(&["sort", "--odd", "-o", "out", "in"]));
    let paths: Vec<String> = finding
        .effects
        .iter()
        .map(|effect| match effect {
            Effect::Read(read) => format!("read {}", read.path.text().unwrap()),
            Effect::Write(write) => {
                format!("write {} {:?}", write.path.text().unwrap(), write.kind)
            }
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(paths, ["write out OptionWrite", "read in"]);
}
