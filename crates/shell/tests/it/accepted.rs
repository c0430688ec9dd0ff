//! Bash accepts what we accept, and prints it back as the same tree.

use crate::lines::{BAD, GOOD, REFUSED};
use crate::random::{accepted, cases, mutated};
use crate::{bash, executed, normal};
use haft_shell::syntax::{outline, parse};

#[test]
fn the_table_is_read_as_it_says() {
    assert!(GOOD.len() + REFUSED.len() + BAD.len() >= 250);
    let wrong = |lines: &[&str], good: bool| {
        for line in lines {
            match parse(line) {
                Ok(script) if !good => println!("read {line:?} as {}", outline(&script)),
                Err(error) if good => println!("refused {line:?}: {error}"),
                _ => continue,
            }
        }
        lines
            .iter()
            .filter(|line| parse(line).is_ok() != good)
            .count()
    };
    assert_eq!(
        wrong(GOOD, true) + wrong(REFUSED, false) + wrong(BAD, false),
        0
    );
}

#[test]
fn bash_agrees_with_the_table() {
    let Some(bash) = bash::path() else { return };
    let lines: Vec<&str> = [GOOD, REFUSED, BAD].concat();
    let accepted = bash::accepts(bash, &lines);
    let good = GOOD.len() + REFUSED.len();
    let wrong: Vec<_> = (0..lines.len())
        .filter(|&index| accepted[index] != (index < good))
        .map(|index| lines[index])
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Bash prints these in a way that reads differently.
const PRINTED_OTHERWISE: [&str; 7] = [
    // Printed after the translation.
    "echo $\"a b\"",
    // Printed with `time` directly behind `$(`, where bash no longer accepts it.
    "echo $(\ntime (a))",
    "echo $(! time (a))",
    // `coproc cat` becomes `coproc COPROC cat`, which is another command.
    "coproc cat",
    "coproc a b",
    // `|&` becomes `2>&1 |`.
    "cmd 2>/dev/null | cmd2 |& cmd3",
    "a |& b",
];

/// Lines whose function bash prints in a way that is another tree to us.
fn printed_otherwise(lines: &[&str]) -> Vec<String> {
    let Some(bash) = bash::path() else {
        return Vec::new();
    };
    let printed = bash::prints(bash, lines);
    let mut wrong = Vec::new();
    for (line, printed) in lines.iter().zip(&printed) {
        let normal = |text: &str| {
            parse(text).map(|mut script| {
                normal::script(&mut script);
                outline(&script)
            })
        };
        let ours = normal(&format!("f() {{ {line}\n}}"));
        let theirs = normal(printed);
        if ours != theirs || ours.is_err() {
            wrong.push(format!("{line:?}\n  {ours:?}\n  {theirs:?}\n{printed}"));
        }
    }
    wrong
}

/// Bash prints a function back in its own layout: the tree must be the same.
#[test]
fn bash_prints_back_the_same_tree() {
    let something = |line: &&str| parse(line).is_ok_and(|script| !script.items.is_empty());
    let lines: Vec<&str> = GOOD
        .iter()
        .copied()
        .filter(something)
        .filter(|line| !PRINTED_OTHERWISE.contains(line))
        .collect();
    let wrong = printed_otherwise(&lines);
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// Bash prints some constructs in a way that reads differently. Here-documents it prints in the wrong
/// place where they are not alone.
fn is_printed_alike(line: &str) -> bool {
    let odd = ["|&", "|\\\n&", "time", "$\"", "coproc", "!  !", "! !"];
    let document = line.contains("<<") && line.contains(['&', ';', '{']);
    parse(line).is_ok_and(|script| !script.items.is_empty())
        && !odd.iter().any(|odd| line.contains(odd))
        && !document
}

#[test]
fn bash_prints_back_the_same_random_tree() {
    let generated = (1..)
        .map(executed::line)
        .filter(|line| is_printed_alike(line));
    let mut lines: Vec<String> = generated.take(cases(400)).collect();
    let changed = accepted(&mutated(), cases(400));
    lines.extend(changed.into_iter().filter(|line| is_printed_alike(line)));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let wrong = printed_otherwise(&lines);
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
