//! Time stays in proportion to the file, also for texts made to be slow. Nothing is timed here: what
//! is quadratic on these takes hours, and would be noticed. Numbers are in the benchmarks.

use haft_journal::edit::{Change, plan};

/// Unoptimised code is twenty times slower; quadratic would still show.
const SIZE: usize = if cfg!(debug_assertions) {
    1 << 20
} else {
    5 << 20
};

#[test]
fn repetitive_texts_do_not_take_quadratic_time() {
    let half = SIZE / 2;
    let cases: [(&str, String, String, &str); 9] = [
        ("one sign", "a".repeat(SIZE), "a".repeat(half) + "b", "x"),
        (
            "quotes",
            "’".repeat(SIZE / 3),
            "'".repeat(half / 3) + "b",
            "x",
        ),
        (
            "all quotes match",
            "’".repeat(SIZE / 3),
            "'".repeat(half / 3),
            "x",
        ),
        (
            "equal lines",
            "x\n".repeat(half),
            "x\n".repeat(half / 2) + "y",
            "x",
        ),
        (
            "lines that end in blanks",
            "x  \n".repeat(SIZE / 4),
            "x\n".repeat(half / 4) + "y\n",
            "z",
        ),
        (
            "all of them match",
            "x  \n".repeat(SIZE / 4),
            "x\n".repeat(half / 4),
            "z",
        ),
        (
            "only blanks",
            " ".repeat(SIZE),
            " ".repeat(half) + "\n",
            "z",
        ),
        (
            "indented lines",
            "  x\n  y\n".repeat(SIZE / 8),
            "x\ny\n".repeat(half / 8) + "z\n",
            "q",
        ),
        (
            "all of those match",
            "  x\n  y\n".repeat(SIZE / 8),
            "x\ny\n".repeat(half / 8),
            "q",
        ),
    ];
    for (_what, file, old, new) in cases {
        for replace_all in [false, true] {
            let change = Change {
                old: &old,
                new,
                replace_all,
            };
            let _ = plan(file.as_bytes(), &change);
        }
    }
}

/// Projection of a change as large as the file.
#[test]
fn a_change_of_every_line_is_projected_in_time() {
    let file: String = (0..40_000).map(|line| format!("say “{line}” \n")).collect();
    let old: String = (0..40_000)
        .map(|line| format!("say \"{line}\"\n"))
        .collect();
    let new: String = (0..40_000)
        .map(|line| format!("say \"{line}\" loud \n"))
        .collect();
    let change = Change {
        old: &old,
        new: &new,
        replace_all: false,
    };
    let _ = plan(file.as_bytes(), &change);
}
