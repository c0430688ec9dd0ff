//! Lines made from the corpus: a harmless line with something added, and every line in wrappers.
//!
//! The same bars hold. Wrappers put the line on lines of its own where it may end in a comment or a
//! here-document; what is glued to its end is only glued to lines without those.

use std::fmt::Write as _;

use haft_shell::EffectVerdict;

use crate::{
    bars::is_enough,
    corpus::{Line, Truth, judge, lines, shown},
};

/// A way to make a new line, where it makes sense for this one.
type Make = fn(&str) -> Option<String>;

/// Adding one of these makes any line change something.
const SPOILERS: &[(&str, Make)] = &[
    ("newline, touch", |line| Some(format!("{line}\ntouch p"))),
    ("touch, newline", |line| Some(format!("touch p\n{line}"))),
    ("; touch", |line| glued(line, "; touch p")),
    ("&& touch", |line| glued(line, " && touch p")),
    ("|| touch", |line| glued(line, " || touch p")),
    ("& touch", |line| glued(line, " & touch p")),
    ("| tee", |line| glued(line, " | tee p")),
    ("|& tee", |line| glued(line, " |& tee p")),
    ("| xargs rm", |line| glued(line, " | xargs rm")),
    ("| sh", |line| glued(line, " | sh")),
    ("> file", |line| glued(line, " > p")),
    (">> file", |line| glued(line, " >> p")),
    (">| file", |line| glued(line, " >| p")),
    ("2> file", |line| glued(line, " 2> p")),
    ("&> file", |line| glued(line, " &> p")),
    ("> >(tee)", |line| glued(line, " > >(tee p)")),
    ("$(touch)", |line| glued(line, "; echo \"$(touch p)\"")),
    ("touch ;", |line| glued_before("touch p; ", line)),
    ("touch |", |line| glued_before("touch p | ", line)),
    ("function", |line| {
        Some(format!("f() {{ touch p; }}\nf\n{line}"))
    }),
    ("LD_PRELOAD", |line| {
        is_simple(line).then(|| format!("LD_PRELOAD=./x.so {line}"))
    }),
    ("sudo", |line| {
        is_simple(line).then(|| format!("sudo {line}"))
    }),
];

/// None of these changes what a line does.
const WRAPPERS: &[(&str, Make)] = &[
    ("( )", |line| Some(format!("(\n{line}\n)"))),
    ("( ) in one line", |line| {
        glued(line, " )").map(|rest| format!("( {rest}"))
    }),
    ("{ }", |line| Some(format!("{{\n{line}\n}}"))),
    ("{ } in one line", |line| {
        glued(line, "; }").map(|rest| format!("{{ {rest}"))
    }),
    ("if", |line| Some(format!("if true; then\n{line}\nfi"))),
    ("else", |line| {
        Some(format!("if false; then :; else\n{line}\nfi"))
    }),
    ("for", |line| {
        Some(format!("for i in 1 2; do\n{line}\ndone"))
    }),
    ("while", |line| {
        Some(format!("while true; do\n{line}\nbreak; done"))
    }),
    ("case", |line| {
        Some(format!("case x in x)\n{line}\n;; esac"))
    }),
    ("$( )", |line| Some(format!("echo \"$(\n{line}\n)\""))),
    ("<( )", |line| Some(format!("cat <(\n{line}\n)"))),
    ("timeout", |line| {
        is_simple(line).then(|| format!("timeout 5 {line}"))
    }),
    ("nice", |line| {
        is_simple(line).then(|| format!("nice -n 5 {line}"))
    }),
    ("LC_ALL", |line| {
        is_simple(line).then(|| format!("LC_ALL=C {line}"))
    }),
    ("2>/dev/null", |line| glued(line, " 2>/dev/null")),
    ("2>&1", |line| glued(line, " 2>&1")),
    ("| head", |line| glued(line, " | head -n 1")),
    ("|| true", |line| glued(line, " || true")),
    ("; echo", |line| glued(line, "; echo $?")),
    ("echo, newline", |line| Some(format!("echo start\n{line}"))),
    ("newline, echo", |line| Some(format!("{line}\necho end"))),
    ("blanks", |line| Some(format!(" \t{line}"))),
];

/// Shells inside the shell. Whether a harmless text stays harmless there is an open question.
const SHELLS: &[(&str, Make)] = &[
    ("bash -c", |line| Some(format!("bash -c {}", quoted(line)))),
    ("sh -c", |line| Some(format!("sh -c {}", quoted(line)))),
    ("eval", |line| Some(format!("eval {}", quoted(line)))),
    ("bash -c bash -c", |line| {
        Some(format!(
            "bash -c {}",
            quoted(&format!("bash -c {}", quoted(line)))
        ))
    }),
    ("timeout bash -c", |line| {
        Some(format!("timeout 5 bash -c {}", quoted(line)))
    }),
    ("trap", |line| Some(format!("trap {} EXIT", quoted(line)))),
    ("here-document", |line| {
        let free = !line.contains("THE_END");
        free.then(|| format!("bash <<'THE_END'\n{line}\nTHE_END"))
    }),
    ("xargs sh -c", |line| {
        Some(format!("ls | xargs sh -c {}", quoted(line)))
    }),
    ("find sh -c", |line| {
        Some(format!("find . -exec sh -c {} \\;", quoted(line)))
    }),
];

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// May something follow it on the same line? Not behind a comment, the last line of a here-document,
/// or a separator. Careful rather than exact.
fn is_gluable(line: &str) -> bool {
    let comment = line.split_once('#').is_some_and(|(before, _)| {
        before.is_empty() || before.ends_with([' ', '\t', '\n', ';', '\'', '\\'])
    });
    let here_document = line.replace("<<<", "").contains("<<");
    let end = line.trim_end();
    !comment
        && !here_document
        && !line.contains('\n')
        && !end.is_empty()
        && !end.ends_with([';', '&', '|', '\\'])
}

fn glued(line: &str, end: &str) -> Option<String> {
    is_gluable(line).then(|| format!("{}{end}", line.trim_end()))
}

fn glued_before(start: &str, line: &str) -> Option<String> {
    (is_gluable(line) && !line.starts_with(['&', '|', ';', ')'])).then(|| format!("{start}{line}"))
}

/// Is it one program with plain words behind it, so that another program can start it?
fn is_simple(line: &str) -> bool {
    // Words that the shell itself acts on: no program of that name would do the same.
    const BUILT_IN: &str = "\
        . : alias bg bind break builtin caller case cd command compgen complete compopt coproc \
        declare dirs disown enable eval exec exit export fc fg getopts hash help history jobs \
        let local logout mapfile popd printf pushd read readarray readonly return select set \
        shift shopt source suspend test time times trap type typeset ulimit umask unalias unset \
        wait";
    let first = line.split(' ').next().unwrap_or_default();
    line.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && !first.contains('=')
        && !BUILT_IN.split(' ').any(|word| word == first)
        && !line.contains(['|', '&', ';', '<', '>', '(', ')', '`', '#', '!', '\n', '\r'])
}

fn complete(truths: &[Truth]) -> Vec<Line> {
    lines()
        .into_iter()
        .filter(|line| truths.contains(&line.truth) && line.is_complete())
        .collect()
}

fn assert_none_read_only(lines: &[Line], makes: &[(&str, Make)]) {
    let mut all = 0;
    let mut wrong = Vec::new();
    for line in lines {
        // Its own verdict is wrong already, and the bars say so.
        if !matches!(line.truth, Truth::ReadOnly | Truth::Network | Truth::Open)
            && judge(&line.text) < EffectVerdict::Unknown
        {
            continue;
        }
        for (name, make) in makes {
            let Some(text) = make(&line.text) else {
                continue;
            };
            all += 1;
            if judge(&text) < EffectVerdict::Unknown {
                wrong.push(format!("{name}: {}", shown(&text)));
            }
        }
    }
    assert!(all > 3 * lines.len(), "only {all} variants were made");
    assert!(
        wrong.is_empty(),
        "{} of {all} variants were judged read-only and are not:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_read_only_line_with_a_write_added_is_not_read_only() {
    assert_none_read_only(
        &complete(&[Truth::ReadOnly, Truth::Network, Truth::Open]),
        SPOILERS,
    );
}

#[test]
fn a_line_that_is_not_read_only_is_not_so_in_a_wrapper() {
    assert_none_read_only(&complete(&[Truth::Mutating, Truth::Unknown]), WRAPPERS);
}

#[test]
fn a_line_that_is_not_read_only_is_not_so_in_another_shell() {
    // A text that starts with a dash would be an option there.
    let lines: Vec<_> = lines()
        .into_iter()
        .filter(|line| matches!(line.truth, Truth::Mutating | Truth::Unknown))
        .filter(|line| !line.text.starts_with('-'))
        .collect();
    assert_none_read_only(&lines, SHELLS);
}

#[test]
fn a_read_only_line_stays_so_in_a_wrapper() {
    let lines: Vec<_> = complete(&[Truth::ReadOnly])
        .into_iter()
        .map(|line| (judge(&line.text) == EffectVerdict::ReadOnly, line))
        .collect();
    let mut short = String::new();
    for (name, make) in WRAPPERS {
        let mut all = 0;
        let mut missed = 0;
        let mut lost = Vec::new();
        for (recognised, line) in &lines {
            let Some(text) = make(&line.text) else {
                continue;
            };
            all += 1;
            if judge(&text) != EffectVerdict::ReadOnly {
                missed += 1;
                if *recognised {
                    lost.push(format!("    {}", shown(&text)));
                }
            }
        }
        assert!(all > 100, "`{name}` fits only {all} lines");
        if !is_enough(all - missed, all) {
            let lost = lost.join("\n");
            let _ = writeln!(
                short,
                "{name}: {missed} of {all} missed; lost by it:\n{lost}"
            );
        }
    }
    assert!(short.is_empty(), "{short}");
}
