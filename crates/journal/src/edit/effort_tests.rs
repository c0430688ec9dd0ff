//! Work stays in proportion to the texts, also for those made to be slow. Counted in steps, so that
//! no machine is too slow or too busy for it.

use super::*;
use crate::step_counter::steps_of;

/// A question whose texts grow with `size`.
struct Case {
    file: String,
    old: String,
    new: String,
}

fn case(file: String, old: String, new: impl Into<String>) -> Case {
    let new = new.into();
    Case { file, old, new }
}

type Make = fn(usize) -> Case;

const CASES: [(&str, Make); 17] = [
    ("one sign, no match", |size| {
        case("a".repeat(size), "a".repeat(size / 2) + "b", "x")
    }),
    ("one sign, matches everywhere", |size| {
        case("a".repeat(size), "a".repeat(size / 2), "x")
    }),
    ("two signs, matches everywhere", |size| {
        case("ab".repeat(size / 2), "ab".repeat(size / 4), "x")
    }),
    ("quotes, no match", |size| {
        case("’".repeat(size / 3), "'".repeat(size / 6) + "b", "x")
    }),
    ("quotes, matches everywhere", |size| {
        case("’".repeat(size / 3), "'".repeat(size / 6), "x")
    }),
    ("a line of quotes that becomes another long line", |size| {
        let old = "'".repeat(size / 6);
        case("’".repeat(size / 6), old, "x".repeat(size / 6))
    }),
    ("equal lines, no match", |size| {
        case("x\n".repeat(size / 2), "x\n".repeat(size / 4) + "y", "x")
    }),
    ("equal lines, matches everywhere", |size| {
        case("x\n".repeat(size / 2), "x\n".repeat(size / 4), "x")
    }),
    ("lines that end in blanks, no match", |size| {
        let old = "x\n".repeat(size / 8) + "y\n";
        case("x  \n".repeat(size / 4), old, "z")
    }),
    ("lines that end in blanks, matches everywhere", |size| {
        case("x  \n".repeat(size / 4), "x\n".repeat(size / 8), "z")
    }),
    ("only blanks", |size| {
        case(" ".repeat(size), " ".repeat(size / 2) + "\n", "z")
    }),
    ("indented lines, no match", |size| {
        let old = "x\ny\n".repeat(size / 16) + "z\n";
        case("  x\n  y\n".repeat(size / 8), old, "q")
    }),
    ("indented lines, matches everywhere", |size| {
        case(
            "  x\n  y\n".repeat(size / 8),
            "x\ny\n".repeat(size / 16),
            "q",
        )
    }),
    ("many places on one line", |size| {
        case("a'b".repeat(size / 3), "’b".to_owned(), "c\nd")
    }),
    ("many places of many lines", |size| {
        let file = "’\n".repeat(size / 4);
        case(file, "'\n".repeat(500), "y\n".repeat(500))
    }),
    ("many places of many lines with mixed breaks", |size| {
        let file = "a\r\nb\n".repeat(size / 5);
        case(file, "a\nb\n".repeat(250), "c\nd\n".repeat(250))
    }),
    ("a change of every line", |size| {
        let lines = |end: &str| -> String {
            let line = |number| format!("say \"{number}\"{end}\n");
            (0..size / 16).map(line).collect()
        };
        let file = lines(" ").replace('"', "”");
        case(file, lines(""), lines(" loud "))
    }),
];

/// The work for one question, and the bytes it was about.
fn effort(case: &Case, replace_all: bool) -> (usize, usize) {
    let change = EditRequest {
        old: &case.old,
        new: &case.new,
        replace_all,
    };
    let (plan, steps) = steps_of(|| plan(case.file.as_bytes(), &change));
    let written = plan.map_or(0, |plan| {
        plan.splices.iter().map(|splice| splice.text.len()).sum()
    });
    (
        steps,
        case.file.len() + case.old.len() + case.new.len() + written,
    )
}

#[test]
fn work_grows_with_the_texts_and_not_with_their_square() {
    const SIZE: usize = 1 << 16;
    for (what, make) in CASES {
        for replace_all in [false, true] {
            let (steps, bytes) = effort(&make(SIZE), replace_all);
            let (twice, _) = effort(&make(2 * SIZE), replace_all);
            assert!(
                (bytes / 2..50 * bytes).contains(&steps),
                "{what}: {steps} steps for {bytes} bytes"
            );
            assert!(
                twice * 10 < steps * 22,
                "{what}: {steps} steps, and {twice} for twice as much"
            );
        }
    }
}
