//! The vectors of file-tools.md §8 that must be refused, with what is said.

use haft_journal::edit::EditRequest;

use crate::Desk;

#[test]
fn refused_edits_change_nothing_and_say_why() {
    let cases: [(&str, &[u8], &str, &str, &[&str]); 42] = [
        (
            "5",
            b"m\nn\nm\n",
            "m",
            "k",
            &["Found 2 matches", "lines 1 and 3"],
        ),
        ("7", b"ooo\n", "oo", "u", &["Found 2 matches"]),
        ("10", b"w\n", "w", "w", &["identical"]),
        ("11", b"w\n", "", "v", &["not", "Use Write"]),
        ("15", b"Key\n", "key", "x", &["String to replace not found"]),
        (
            "37",
            b"x=1 \xe9\n",
            "x=1",
            "x=\u{e9}",
            &["not UTF-8", "windows-1252"],
        ),
        (
            "37 old",
            b"x=1 \xe9\n",
            "x=1 \u{e9}",
            "x=2",
            &["not UTF-8", "windows-1252"],
        ),
        (
            "38",
            b"\x83\x5c\n",
            "\\",
            "/",
            &["not found", "double-byte"],
        ),
        (
            "38 four bytes",
            b"\x81\x30\x81\x30\n",
            "0",
            "1",
            &["not found", "double-byte"],
        ),
        ("39", b"a\0b\n", "b", "c", &["binary file"]),
        (
            "44",
            "‘k’ ‚k‛\n".as_bytes(),
            "'k'",
            "j",
            &["Found 2 matches", "quotes", "line 1"],
        ),
        (
            "49",
            "wait…\n".as_bytes(),
            "wait...",
            "go",
            &["not found", "Closest place: line 1"],
        ),
        (
            "51b",
            b"v  \nw\n",
            "v\nw",
            "V\nw",
            &["line 1", "2 whitespace characters (··)", "stay"],
        ),
        (
            "51b NBSP",
            "v\u{a0}\nw\n".as_bytes(),
            "v \nw",
            "V \nw",
            &["line 1", "1 whitespace character (⍽)"],
        ),
        (
            "40 both sides",
            "“a” is “b”\n".as_bytes(),
            "\"a\" is \"b\"",
            "the \"a\" was \"b\"!",
            &["line 1", "“ (U+201C)", "\" (U+0022)"],
        ),
        ("52", b"car\n", "ca  ", "x", &["not found"]),
        (
            "53",
            b"q  \nr\nq\t\nr\n",
            "q\nr",
            "s",
            &["Found 2 matches", "whitespace", "lines 1 and 3"],
        ),
        ("54 no text", b"m", "\n", "x", &["not found"]),
        (
            "54 no effect",
            b"m",
            "m\n",
            "m",
            &["would not change the file"],
        ),
        (
            "56",
            b"  k=1\n",
            "\tk=1",
            "\tk=2",
            &[
                "not found",
                "-→k=1",
                "+··k=1",
                "once if indentation is ignored: line 1",
            ],
        ),
        (
            "57",
            b"a:\n x\n y\nb:\n  x\n  y\n",
            "   x\n   y",
            "z",
            &["2 times if indentation is ignored: lines 2 and 5"],
        ),
        (
            "E3 a line with another shift",
            b"\t\tif x {\n\t\t\ty\n\t\t}\n",
            "\tif x {\n\ty\n\t}",
            "\tif x {\n\t\tif y {\n\t\t\tz\n\t\t}\n\t}",
            &["not found", "more than one change of indentation"],
        ),
        (
            "E3 a line that cannot be shifted",
            b"f() {\n\ta\n}\n",
            "\tf() {\n\t\ta\n\t}",
            "\tf() {\nb\n\t\ta\n\t}",
            &["not found", "line 2 of new_string", "indentation to remove"],
        ),
        (
            "E3 two places",
            b"\t\tif x {\n\t\t\ty\n\t\t}\n\t\tif x {\n\t\t\ty\n\t\t}\n",
            "\tif x {\n\t\ty\n\t}",
            "\tif x {\n\t\tif y {\n\t\t\tz\n\t\t}\n\t}",
            &[
                "not found",
                "2 times if indentation is ignored: lines 1 and 4",
            ],
        ),
        (
            "E3 no shared line",
            b"\t\tif x {\n\t\t\ty\n\t\t}\n",
            "\tif x {\n\t\ty\n\t}",
            "\tz",
            &["not found", "keeps no line of old_string"],
        ),
        (
            "55 not one to one",
            b"a\n  b\n",
            "  a\n  b",
            "  a\n  c",
            &["not found"],
        ),
        (
            "55 unmapped",
            b"\ta\n\tb\n",
            "  a\n  b",
            "  a\n    c\n  b",
            &["not found"],
        ),
        (
            "55 both written",
            b"\ta\n\tb\n",
            "  a\n  b",
            "  a\n\tb\n  c",
            &["not found"],
        ),
        (
            "55 blanks differ",
            b"\ta \n\tb\n",
            "  a\n  b",
            "  a\n  c",
            &["not found"],
        ),
        (
            "55 break missing",
            b"\ta\n\tb",
            "  a\n  b\n",
            "  a\n  c\n",
            &["not found"],
        ),
        (
            "58",
            b"A{\np=1\nq=2\n}B\n",
            "A{\np=1\nq=3\n}B",
            "",
            &["Closest place: lines 1–4; first difference at line 3"],
        ),
        ("59", b"g(a , b)\n", "g(a, b)", "h", &["not found"]),
        ("60", b"a\nb\nc\n", "a\n...\nc", "z", &["not found"]),
        ("61", b"a\nb\n", "a\\nb", "z", &["two characters"]),
        ("62", b"new\n", "old", "new", &["already present at line 1"]),
        ("64", b"a\nb\n", "     7\tb", "B", &["not found"]),
        (
            "63 numbers elsewhere",
            b"a\nb\n",
            "2\tb",
            "B\n3\tc",
            &["not found"],
        ),
        (
            "63 other numbers in new",
            b"a\nb\n",
            "2\tb",
            "3\tB",
            &["not found"],
        ),
        ("63 no text", b"a\n\n", "2\t", "2\tx", &["not found"]),
        ("folded: case", "É\n".as_bytes(), "é", "x", &["not found"]),
        (
            "not folded: guillemets",
            "«a»\n".as_bytes(),
            "\"a\"",
            "x",
            &["not found"],
        ),
        (
            "not folded: NFD",
            "e\u{301}t\n".as_bytes(),
            "ét",
            "x",
            &["not found"],
        ),
    ];
    for (number, file, old, new, parts) in cases {
        let desk = Desk::new();
        desk.put("file", file);
        let _ = desk.read("file"); // refused for the binary one
        let path = desk.path("file");
        let change = EditRequest {
            old,
            new,
            replace_all: false,
        };
        let checked = desk
            .journal
            .check_edit(&path, &change)
            .unwrap_err()
            .to_string();
        let error = desk
            .journal
            .edit(&crate::ticket(), &path, &change)
            .unwrap_err()
            .to_string();
        assert_eq!(checked, error, "vector {number}: the check says the same");
        for part in parts {
            assert!(
                error.contains(part),
                "vector {number}: {part:?} missing in: {error}"
            );
        }
        assert_eq!(desk.get("file"), file, "vector {number}");
    }
}
