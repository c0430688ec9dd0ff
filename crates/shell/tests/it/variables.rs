//! Variables that a line sets: when they are read-only, and where their values are known.

use haft_shell::{EffectVerdict, LineLocation};
use proptest::prelude::*;

use crate::corpus::judge;

/// The paths that the line reads or writes, as far as they are certain.
fn paths(line: &str) -> Vec<String> {
    let place = LineLocation {
        cwd: "/work/demo".into(),
        home: Some("/home/ada".into()),
    };
    let analysis = haft_shell::analyze(line, &place);
    let effects = analysis.parts.iter().flat_map(|part| &part.finding.effects);
    let args = effects.filter_map(|effect| match effect {
        haft_shell::Effect::Read(read) => Some(&read.path),
        haft_shell::Effect::Write(write) => Some(&write.path),
        _ => None,
    });
    let texts = args.filter_map(|arg| arg.text());
    texts.map(str::to_owned).collect()
}

#[test]
fn a_variable_that_only_the_line_uses_is_read_only() {
    for line in [
        "F=a.txt; cat \"$F\"",
        "F=a.txt",
        "A=1 B=2",
        "OUT=\"a b\"; echo \"$OUT\"",
        "dir=~/src; ls \"$dir\"",
    ] {
        assert_eq!(judge(line), EffectVerdict::ReadOnly, "{line}");
    }
    assert_eq!(judge("T=$(mktemp)"), EffectVerdict::Mutating);
    for line in [
        "PATH=.; ls",
        "GIT_DIR=x; git log",
        "HOME=/x; ls ~",
        "export F=1",
        "X=touch; $X p",
        "X=ls; env $X",
        "F=1 make",
        "set -a; F=1",
        "declare -x F=1",
        "F+=1",
        "F=(a b)",
        "F[0]=1",
        "F=$(./x)",
        "F=$G",
        "LC_ALL=C F=1",
        "RANDOM=1; cat $RANDOM",
    ] {
        assert!(judge(line) >= EffectVerdict::Unknown, "{line}");
    }
}

#[test]
fn a_literal_value_is_known_in_operands_and_targets() {
    for (line, expected) in [
        ("F=a.txt; cat \"$F\"", "a.txt"),
        ("F=a.txt && cat $F", "a.txt"),
        ("F=a; cat \"${F}/b\"", "a/b"),
        ("F=out; echo x > \"$F\"", "out"),
        ("D=/x; F=\"$D/y\"; cat $F", "/x/y"),
        ("F='a b'; cat \"$F\"", "a b"),
        ("F=a.txt; while true; do cat $F; done", "a.txt"),
        ("F=a.txt; (cat $F)", "a.txt"),
        ("F=a.txt; echo $(cat $F)", "a.txt"),
    ] {
        assert_eq!(paths(line), [expected], "{line}");
    }
}

#[test]
fn a_value_that_may_be_another_one_is_not_known() {
    for line in [
        "cat \"$F\"; F=a.txt",
        "F=a.txt; F=b.txt; cat \"$F\"",
        "true && F=a.txt; cat \"$F\"",
        "false || F=a.txt && cat \"$F\"",
        "if true; then F=a.txt; fi; cat \"$F\"",
        "while true; do F=a.txt; done; cat \"$F\"",
        "case x in x) F=a.txt;; esac; cat \"$F\"",
        "(F=a.txt); cat \"$F\"",
        "F=a.txt | true; cat \"$F\"",
        "F=a.txt & cat \"$F\"",
        "f() { F=a.txt; }; f; cat \"$F\"",
        "F=a.txt; read F; cat \"$F\"",
        "F=a.txt; read F\"\"; cat \"$F\"",
        "FOO=a.txt; read F''OO; cat \"$FOO\"",
        "FOO=a.txt; FO\\\nO=b; cat \"$FOO\"",
        "F=a.txt; read $x; cat \"$F\"",
        "F=a.txt; unset F; cat \"$F\"",
        "F=a.txt; eval \"$x\"; cat \"$F\"",
        "F=a.txt; . ./x; cat \"$F\"",
        "F=a.txt; unknown-function; cat \"$F\"",
        "F=a.txt; printf -v F x; cat \"$F\"",
        "F=a.txt; printf \"$x\" y; cat \"$F\"",
        "F=a.txt; : ${G:=x}; cat \"$F\"",
        "F=a.txt; ((F=2)); cat \"$F\"",
        "F=a.txt; ((x)); cat \"$F\"",
        "F=a.txt; x[F=2]=1; cat \"$F\"",
        "F=a.txt; for F in b; do cat \"$F\"; done",
        "F=a.txt; while true; do cat \"$F\"; read x; done",
        "trap \"$x\" DEBUG; F=a.txt; cat \"$F\"",
        "F=a.txt; sh -c 'cat \"$F\"'",
        "IFS=x; F=axb; cat $F",
        "F=; cat $F",
        "F='a b'; cat $F",
        "F='*'; cat $F",
        "F+=a.txt; cat \"$F\"",
        "F=a.txt ls; cat \"$F\"",
        "SECONDS=5; cat $SECONDS",
    ] {
        let known = paths(line);
        let value = |path: &String| ["a.txt", "axb", "*", "a b", "", "5"].contains(&path.as_str());
        assert!(!known.iter().any(value), "{line}: {known:?}");
    }
}

proptest! {
    /// The value of a variable never makes a line more lenient than the line with the value
    /// written out.
    #[test]
    fn a_variable_is_as_strict_as_its_value(
        template in prop::sample::select(vec![
            "cat {}", "rm {}", "sort a.txt {}", "echo x > {}", "cat < {}", "find {}", "find . {}",
            "git log {}", "git {} log", "sed {} a.txt", "awk {} a.txt", "sh -c {}", "env {} p",
            "xargs {}", "timeout {} ls", "tar {} x.tar", "dd if=a.txt of={}", "{} a.txt",
            "cd {} && git log", "test -f {}", "[[ -f {} ]]", "[[ {} -eq 1 ]]", "printf {} x",
            "curl {}", "less {}", "eval {}", "command {} x", "jq {} data.json", "cat {}/fd/1",
        ]),
        value in prop::sample::select(vec![
            "a.txt", "ls", "touch", "-delete", "-o", "--output=p", "-i", "-n", "1", "5", "p",
            "/proc/1/environ", "/proc", "-vF", "/dev/tcp/h/80", "-xf", "-tf", ".", "sub", "-c",
            "https://h/x", "/dev/null", "1p", "-p",
        ]),
        quoted in any::<bool>(),
    ) {
        let used = if quoted { "\"$F\"" } else { "$F" };
        let line = format!("F={value}; {}", template.replace("{}", used));
        let literal = judge(&template.replace("{}", value));
        // Both ask: whether a change is certain does not matter here.
        let found = judge(&line);
        prop_assert!(found >= literal.min(EffectVerdict::Unknown), "{line}: {found:?}, {literal:?}");
    }
}
