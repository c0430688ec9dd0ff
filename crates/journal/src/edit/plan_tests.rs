//! The pure vectors of file-tools.md §8, and the corners around them.

use super::*;

fn edited(file: &[u8], old: &str, new: &str, replace_all: bool) -> Result<Vec<u8>, EditError> {
    let plan = plan(
        file,
        &EditRequest {
            old,
            new,
            replace_all,
        },
    )?;
    Ok(apply(file, &plan))
}

#[track_caller]
fn check(what: &str, file: &[u8], old: &str, new: &str, expected: &[u8]) {
    let result = edited(file, old, new, false).map(|bytes| bytes.escape_ascii().to_string());
    assert_eq!(result, Ok(expected.escape_ascii().to_string()), "{what}");
}

#[test]
fn exact_matches_are_replaced_literally() {
    let cases = [
        ("1", "red\nblue\n", "blue", "green", "red\ngreen\n"),
        ("2 no templates", "a=b\n", "b", "$&$1$$", "a=$&$1$$\n"),
        ("3 no escapes", "p\n", "p", "\\0\\n", "\\0\\n\n"),
        ("4 no patterns", "(x)+(x)?\ny\n", "(x)+(x)?", "z", "z\ny\n"),
        ("16", "one\ntwo", "two", "2", "one\n2"),
        ("17", "one\ntwo", "two", "two\n", "one\ntwo\n"),
        ("18", "one\ntwo\n", "two\n", "two", "one\ntwo"),
        ("43 exact wins", "'k' ‘k’\n", "'k'", "'j'", "'j' ‘k’\n"),
        ("45 typed characters stay", "'k'\n", "'k'", "‘k’", "‘k’\n"),
        (
            "32 form feed is data",
            "f\u{c}g\nh\n",
            "h",
            "H",
            "f\u{c}g\nH\n",
        ),
        (
            "30 lone CR is data",
            "50%\r60%\nok\n",
            "ok",
            "OK",
            "50%\r60%\nOK\n",
        ),
        (
            "30 and can be matched",
            "50%\r60%\nok\n",
            "50%\r60%",
            "done",
            "done\nok\n",
        ),
    ];
    for (what, file, old, new, expected) in cases {
        check(what, file.as_bytes(), old, new, expected.as_bytes());
    }
}

#[test]
fn deleting_whole_lines_takes_their_break_and_nothing_else_does() {
    let cases = [
        ("19 a line", "i\nj\nk\n", "j", "i\nk\n"),
        ("20 not joined", "i\nj;\nk\n", ";", "i\nj\nk\n"),
        ("21 break named", "i\nj\nk\n", "j\n", "i\nk\n"),
        ("22 no break to take", "i\nj", "j", "i\n"),
        ("first line", "i\nj\n", "i", "j\n"),
        ("two lines", "a\nb\nc\n", "a\nb", "c\n"),
        ("crlf", "i\r\nj\r\nk\r\n", "j", "i\r\nk\r\n"),
        ("cr", "i\rj\rk\r", "j", "i\rk\r"),
        ("cr, break named", "i\rj\r\rk\r", "j\r", "i\r\rk\r"),
        ("line end only", "ij\nk\n", "j", "i\nk\n"),
        ("after the mark", "\u{feff}i\nj\n", "i", "\u{feff}j\n"),
    ];
    for (what, file, old, expected) in cases {
        check(what, file.as_bytes(), old, "", expected.as_bytes());
    }
}

#[test]
fn written_breaks_follow_the_file() {
    let cases = [
        ("24", "u\r\nv\r\n", "u\nv", "u\nw\nv", "u\r\nw\r\nv\r\n"),
        (
            "25 of the line it is on",
            "u\r\nv\r\n",
            "v",
            "v\nz",
            "u\r\nv\r\nz\r\n",
        ),
        ("26 old in CRLF", "u\nv\n", "u\r\nv", "U\r\nv", "U\nv\n"),
        (
            "27 mixed, untouched",
            "u\r\nv\nw\r\n",
            "v",
            "V",
            "u\r\nV\nw\r\n",
        ),
        (
            "28 mixed, aligned",
            "u\r\nv\nw\r\n",
            "u\nv\nw",
            "u\nv\nW",
            "u\r\nv\nW\r\n",
        ),
        (
            "mixed, inserted before",
            "u\r\nv\nw\r\n",
            "u\nv\n",
            "x\nu\nv\n",
            "x\nu\r\nv\nw\r\n",
        ),
        (
            "mixed, of its own line",
            "u\r\nv\nw\r\n",
            "v",
            "v\nz",
            "u\r\nv\nz\nw\r\n",
        ),
        ("29 conversion", "u\r\nv\r\n", "u\r\n", "u\n", "u\nv\r\n"),
        (
            "conversion of a lone LF only",
            "u\r\nv\n",
            "\n",
            "\r\n",
            "u\r\nv\r\n",
        ),
        ("31 CR file", "c\rd\r", "d", "D", "c\rD\r"),
        (
            "CR file, more lines",
            "c\rd\r",
            "c\nd",
            "c\nx\nd",
            "c\rx\rd\r",
        ),
        ("last line: majority", "u\r\nv", "v", "v\nz", "u\r\nv\r\nz"),
        ("no break at all: LF", "u", "u", "u\nv\n", "u\nv\n"),
        ("literal CRLF into no style", "u", "u", "u\r\nv", "u\nv"),
    ];
    for (what, file, old, new, expected) in cases {
        check(what, file.as_bytes(), old, new, expected.as_bytes());
    }
}

#[test]
fn the_byte_order_mark_is_not_text() {
    let cases = [
        ("33", "\u{feff}n\n", "n", "o", "\u{feff}o\n"),
        (
            "34",
            "\u{feff}n\r\no\r\n",
            "n\no",
            "n\np",
            "\u{feff}n\r\np\r\n",
        ),
        (
            "tolerated in old",
            "\u{feff}n\n",
            "\u{feff}n",
            "o",
            "\u{feff}o\n",
        ),
        (
            "and in new",
            "\u{feff}n\n",
            "\u{feff}n",
            "\u{feff}o",
            "\u{feff}o\n",
        ),
        (
            "never doubled",
            "\u{feff}n\n",
            "n",
            "\u{feff}o",
            "\u{feff}o\n",
        ),
        (
            "elsewhere it is data",
            "a\u{feff}n\n",
            "\u{feff}n",
            "o",
            "ao\n",
        ),
        ("filled behind it", "\u{feff}", "", "v", "\u{feff}v"),
    ];
    for (what, file, old, new, expected) in cases {
        check(what, file.as_bytes(), old, new, expected.as_bytes());
    }
    assert_eq!(
        edited("\u{feff}n\n".as_bytes(), "\u{feff}", "x", false),
        Err(EditError::OldEmpty)
    );
}

#[test]
fn several_places_are_refused_unless_all_are_meant() {
    let ambiguous = |count, lines: &[u64]| {
        Err(EditError::Ambiguous {
            count,
            lines: lines.to_vec(),
            tier: MatchTier::Exact,
        })
    };
    assert_eq!(edited(b"m\nn\nm\n", "m", "k", false), ambiguous(2, &[1, 3])); // 5
    assert_eq!(edited(b"ooo\n", "oo", "u", false), ambiguous(2, &[1])); // 7
    assert_eq!(
        edited(b"c\r\nx\r\nc\r\nx", "c\nx", "y", false),
        ambiguous(2, &[1, 3])
    );
    let all = [
        ("6", "m\nn\nm\n", "m", "k", "k\nn\nk\n"),
        ("8", "ooo\n", "oo", "u", "uo\n"),
        ("9", "t\n", "t", "tt", "tt\n"),
        ("23", "x\nyx\n", "x", "", "y\n"),
        ("deleted breaks do not overlap", "\nx\nx\n", "\nx", "", "\n"),
        (
            "each with its own break",
            "a\r\na\n",
            "a\n",
            "b\nc\n",
            "b\r\nc\r\nb\nc\n",
        ),
    ];
    for (what, file, old, new, expected) in all {
        let result = edited(file.as_bytes(), old, new, true).unwrap();
        assert_eq!(String::from_utf8(result).unwrap(), expected, "{what}");
    }
}

#[test]
fn the_message_names_places_and_both_remedies() {
    let text = edited(b"m\nn\nm\n", "m", "k", false)
        .unwrap_err()
        .to_string();
    for part in [
        "Found 2 matches",
        "lines 1 and 3",
        "replace_all",
        "old_string",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let many = edited("m\n".repeat(30).as_bytes(), "m", "k", false)
        .unwrap_err()
        .to_string();
    assert!(
        many.contains("Found 30 matches") && many.contains("9, 10 and more"),
        "{many}"
    );
}

#[test]
fn what_is_not_certain_is_refused() {
    let not_found = |help: &str| EditError::NotFound {
        help: help.to_owned(),
    };
    assert_eq!(edited(b"w\n", "w", "w", false), Err(EditError::Identical)); // 10
    assert_eq!(edited(b"w\n", "", "v", false), Err(EditError::OldEmpty)); // 11
    assert_eq!(edited(b"", "", "v", false), Ok(b"v".to_vec())); // 13
    assert!(matches!(
        edited(b"Key\n", "key", "x", false),
        Err(EditError::NotFound { .. })
    )); // 15
    assert!(matches!(
        edited(b"car\n", "ca  ", "x", false),
        Err(EditError::NotFound { .. })
    )); // 52
    assert_eq!(edited(b"a\0b\n", "b", "c", false), Err(EditError::Binary)); // 39
    assert_eq!(edited(b"", "a", "b", false), Err(not_found("")));
    let no_effect = edited("\u{feff}n\n".as_bytes(), "\u{feff}n", "n", false);
    assert_eq!(no_effect, Err(EditError::NoEffect));
    // Neither half of a CRLF can be taken alone.
    assert!(edited(b"a\r\nb", "a\r", "a", false).is_err());
    assert!(edited(b"a\r\nb", "a\r", "a\n", false).is_err());
}

#[test]
fn bytes_of_an_unknown_code_page_are_kept() {
    check("36", b"x=1 \xe9\n", "x=1", "x=2", b"x=2 \xe9\n");
    let refused = edited(b"x=1 \xe9\n", "x=1", "x=é", false).unwrap_err(); // 37
    assert!(refused.to_string().contains("windows-1252"), "{refused}");
    let half = edited(b"\x83\x5c\n", "\\", "/", false); // 38
    assert_eq!(half, Err(EditError::InsideCharacter { line: 1 }));
    check(
        "38 and a whole one",
        b"\x83\x5c\n\\\n",
        "\\",
        "/",
        b"\x83\x5c\n/\n",
    );
}

#[test]
fn a_line_keeps_the_break_of_the_line_it_replaces() {
    let cases: [(&str, &str, &str, &str, &str); 7] = [
        (
            "the last line of the match",
            "a\nb\r\nc\n",
            "a\nb",
            "a\nb\nx",
            "a\nb\r\nx\r\nc\n",
        ),
        (
            "the first",
            "a\r\nb\nc\n",
            "a\nb\nc",
            "A\nb\nc",
            "A\r\nb\nc\n",
        ),
        (
            "two changed",
            "a\r\nb\nc\r\n",
            "a\nb",
            "A\nB",
            "A\r\nB\nc\r\n",
        ),
        ("moved up", "a\r\nb\nc\r\n", "a\nb\n", "b\n", "b\nc\r\n"),
        (
            "one becomes two",
            "a\nb\r\nc\n",
            "b",
            "b1\nb2",
            "a\nb1\r\nb2\r\nc\n",
        ),
        ("at the end", "a\r\nb\nc", "b\nc", "B\nC\nd", "a\r\nB\nC\nd"),
        (
            "with blanks",
            "a \r\nb\nc\r\n",
            "a\nb",
            "a\nB",
            "a \r\nB\nc\r\n",
        ),
    ];
    for (what, file, old, new, expected) in cases {
        check(what, file.as_bytes(), old, new, expected.as_bytes());
    }
}

#[test]
fn a_wrong_guess_cuts_no_character() {
    use crate::encoding::DecodedView;
    let (bytes, _, _) = encoding_rs::BIG5.encode("許功蓋abc\n");
    let page = |label: &[u8]| {
        let page = encoding_rs::Encoding::for_label(label).unwrap();
        let view = DecodedView::with(&bytes, Encoding::code_page(page), 0);
        EditFile::under(view)
    };
    let western = page(b"windows-1252");
    // 許 is B3 5C: its second byte reads as a backslash, which is a match of its own.
    let at = western
        .text()
        .iter()
        .position(|byte| *byte == b'\\')
        .unwrap();
    assert!(western.splits_character(&(at..at + 1)), "the half");
    assert!(western.splits_character(&(0..at)), "up to the half");
    assert!(
        !western.splits_character(&(0..at + 1)),
        "the whole character"
    );
    let big5 = page(b"big5");
    assert!(!big5.splits_character(&(0.."許".len())));
}

#[test]
fn places_are_line_numbers_before_and_after() {
    let change = EditRequest {
        old: "b\n",
        new: "b\nc\nd\n",
        replace_all: true,
    };
    let plan = plan(b"a\nb\nx\nb\n", &change).unwrap();
    let range = |first, last| LineRange { first, last };
    let expected = [
        SplicePlace {
            before: range(2, 2),
            after: range(2, 4),
        },
        SplicePlace {
            before: range(4, 4),
            after: range(6, 8),
        },
    ];
    assert_eq!(plan.places, expected);
}

#[test]
fn a_miss_is_explained() {
    let cases: [(&str, &str, &str, &str, &[&str]); 10] = [
        (
            "49",
            "wait…\n",
            "wait...",
            "go",
            &["Closest place: line 1;"],
        ),
        (
            "56 blanks shown",
            "  k=1\n",
            "\tk=1",
            "\tk=2",
            &["-→k=1", "+··k=1"],
        ),
        (
            "57 indentation",
            "a:\n x\n y\nb:\n  x\n  y\n",
            "   x\n   y",
            "z",
            &["matches 2 times if indentation is ignored: lines 2 and 5"],
        ),
        (
            "58",
            "A{\np=1\nq=2\n}B\n",
            "A{\np=1\nq=3\n}B",
            "",
            &[
                "Closest place: lines 1–4; first difference at line 3",
                "-q=3\n+q=2",
                " p=1",
            ],
        ),
        ("59", "g(a , b)\n", "g(a, b)", "h", &["-g(a,·b)\n+g(a·,·b)"]),
        (
            "60",
            "a\nb\nc\n",
            "a\n...\nc",
            "z",
            &["lines 1–3; first difference at line 2"],
        ),
        (
            "61 typed break",
            "a\nb\n",
            "a\\nb",
            "z",
            &["`\\n` as two characters", "line 1"],
        ),
        (
            "62 already made",
            "new\n",
            "old",
            "new",
            &["new_string is already present at line 1"],
        ),
        ("15 case", "Key\n", "key", "x", &["-key\n+Key"]),
        (
            "deep in the file",
            "x\nx\nx\nfn f() {\n  one();\n}\n",
            "fn f() {\n  two();\n}",
            "",
            &["lines 4–6", "line 5"],
        ),
    ];
    for (what, file, old, new, parts) in cases {
        let error = edited(file.as_bytes(), old, new, false)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("String to replace not found."),
            "{what}: {error}"
        );
        for part in parts {
            assert!(error.contains(part), "{what}: {part:?} missing in\n{error}");
        }
    }
}

#[test]
fn an_explanation_is_short_and_bounded() {
    let file: String = (0..40_000)
        .map(|number| format!("    let value_{number} = {number};\n"))
        .collect();
    let old: String = (100..1_100)
        .map(|number| format!("let value_{number} = {};\n", number * 2))
        .collect();
    let help = explain_missing(file.as_bytes(), &old, "");
    assert!(help.lines().count() <= 60 && !help.is_empty(), "{help}");
    let huge = "x\n".repeat(3 << 20);
    assert_eq!(explain_missing(huge.as_bytes(), "y", "z"), "");
    assert_eq!(
        explain_missing(b"unrelated\n", "something else entirely", ""),
        ""
    );
}
