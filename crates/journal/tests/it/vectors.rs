//! The vectors of file-tools.md §8, by number.

use std::fs::{self, File, FileTimes};
use std::time::{Duration, SystemTime};

use haft_journal::edit::Change;
use haft_journal::{Outcome, PageRequest};

use crate::{Desk, assert_says};

#[test]
fn edits_change_exactly_what_was_asked() {
    let cases: [(u32, &[u8], &str, &str, &[u8]); 16] = [
        (1, b"red\nblue\n", "blue", "green", b"red\ngreen\n"),
        (2, b"a=b\n", "b", "$&$1$$", b"a=$&$1$$\n"),
        (4, b"(x)+(x)?\ny\n", "(x)+(x)?", "z", b"z\ny\n"),
        (13, b"", "", "v", b"v"),
        (16, b"one\ntwo", "two", "2", b"one\n2"),
        (17, b"one\ntwo", "two", "two\n", b"one\ntwo\n"),
        (18, b"one\ntwo\n", "two\n", "two", b"one\ntwo"),
        (19, b"i\nj\nk\n", "j", "", b"i\nk\n"),
        (20, b"i\nj;\nk\n", ";", "", b"i\nj\nk\n"),
        (24, b"u\r\nv\r\n", "u\nv", "u\nw\nv", b"u\r\nw\r\nv\r\n"),
        (28, b"u\r\nv\nw\r\n", "u\nv\nw", "u\nv\nW", b"u\r\nv\nW\r\n"),
        (29, b"u\r\nv\r\n", "u\r\n", "u\n", b"u\nv\r\n"),
        (31, b"c\rd\r", "d", "D", b"c\rD\r"),
        (33, b"\xef\xbb\xbfn\n", "n", "o", b"\xef\xbb\xbfo\n"),
        (36, b"x=1 \xe9\n", "x=1", "x=2", b"x=2 \xe9\n"),
        (
            43,
            "'k' ‘k’\n".as_bytes(),
            "'k'",
            "'j'",
            "'j' ‘k’\n".as_bytes(),
        ),
    ];
    for (number, file, old, new, expected) in cases {
        let desk = Desk::with_read(file);
        let path = desk.path("file");
        let change = Change {
            old,
            new,
            replace_all: false,
        };
        let preview = desk.journal.check_edit(&path, &change).unwrap();
        assert_eq!(
            desk.get("file"),
            file,
            "vector {number}: a check changes nothing"
        );
        let edited = desk.journal.edit(&path, &change).unwrap();
        assert_eq!(desk.get("file"), expected, "vector {number}");
        assert_eq!(
            (edited.patch, edited.old),
            (preview, file.to_vec()),
            "vector {number}"
        );
        assert_eq!(desk.names(), ["file"], "vector {number}");
    }
}

#[test]
fn refused_edits_change_nothing_and_say_why() {
    let cases: [(u32, &[u8], &str, &str, &[&str]); 17] = [
        (
            5,
            b"m\nn\nm\n",
            "m",
            "k",
            &["Found 2 matches", "lines 1 and 3"],
        ),
        (7, b"ooo\n", "oo", "u", &["Found 2 matches"]),
        (10, b"w\n", "w", "w", &["identical"]),
        (11, b"w\n", "", "v", &["Use Write"]),
        (15, b"Key\n", "key", "x", &["String to replace not found"]),
        (
            37,
            b"x=1 \xe9\n",
            "x=1",
            "x=\u{e9}",
            &["not UTF-8", "windows-1252"],
        ),
        (38, b"\x83\x5c\n", "\\", "/", &["not found", "double-byte"]),
        (39, b"a\0b\n", "b", "c", &["binary file"]),
        (
            49,
            "wait…\n".as_bytes(),
            "wait...",
            "go",
            &["not found", "line 1"],
        ),
        (51, b"v  \nw\n", "v\nw", "V\nw", &["not found"]),
        (52, b"car\n", "ca  ", "x", &["not found"]),
        (56, b"  k=1\n", "\tk=1", "\tk=2", &["not found", "+··k=1"]),
        (
            57,
            b"a:\n x\n y\nb:\n  x\n  y\n",
            "   x\n   y",
            "z",
            &["2 times", "lines 2 and 5"],
        ),
        (59, b"g(a , b)\n", "g(a, b)", "h", &["not found"]),
        (60, b"a\nb\nc\n", "a\n...\nc", "z", &["not found"]),
        (61, b"a\nb\n", "a\\nb", "z", &["two characters"]),
        (62, b"new\n", "old", "new", &["already present at line 1"]),
    ];
    for (number, file, old, new, parts) in cases {
        let desk = Desk::new();
        desk.put("file", file);
        let _ = desk.read("file"); // refused for the binary one
        let path = desk.path("file");
        let change = Change {
            old,
            new,
            replace_all: false,
        };
        let checked = desk
            .journal
            .check_edit(&path, &change)
            .unwrap_err()
            .to_string();
        let error = desk.journal.edit(&path, &change).unwrap_err().to_string();
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

#[test]
fn an_empty_old_string_creates_a_missing_file_and_nothing_else_does() {
    let desk = Desk::new();
    assert_says(desk.edit("missing", "a", "b"), &["does not exist"]); // 14
    assert!(desk.names().is_empty());
    assert!(desk.edit("missing", "", "v\n").unwrap().created); // 12
    assert_eq!(desk.get("missing"), b"v\n");
}

#[test]
fn an_unread_file_is_neither_edited_nor_overwritten() {
    let desk = Desk::new();
    desk.put("file", "a\nb\n");
    let anchors = ["has not been read yet", "Read it first"];
    assert_says(desk.edit("file", "a", "c"), &anchors); // 65
    assert_says(desk.write("file", "c\n"), &anchors); // 82
    assert_says(desk.journal.check_write(&desk.path("file")), &anchors);
    assert_eq!(desk.get("file"), b"a\nb\n");
}

#[test]
fn a_touch_is_no_change() {
    let desk = Desk::with_read("a\nb\n"); // 66
    let file = File::options().write(true).open(desk.path("file")).unwrap();
    let later = SystemTime::now() + Duration::from_secs(60);
    file.set_times(FileTimes::new().set_modified(later))
        .unwrap();
    desk.edit("file", "a", "c").unwrap();
    assert_eq!(desk.get("file"), b"c\nb\n");
}

#[test]
fn a_distant_outside_change_is_kept_and_told() {
    let numbered = |changed: u32, text: &str| -> String {
        (1..=50)
            .map(|line| {
                if line == changed {
                    format!("{text}\n")
                } else {
                    format!("line {line}\n")
                }
            })
            .collect()
    };
    let desk = Desk::with_read(numbered(0, "")); // 67
    desk.put("file", numbered(40, "outside"));
    let edited = desk.edit("file", "line 2\n", "two\n").unwrap();
    let outside = edited.outside.unwrap().render(4_000);
    assert!(outside.contains("-line 40\n+outside"), "{outside}");
    let text = String::from_utf8(desk.get("file")).unwrap();
    assert!(text.contains("\ntwo\n") && text.contains("\noutside\n"));
    // What was told is now known.
    assert!(
        desk.edit("file", "line 38\n", "38\n")
            .unwrap()
            .outside
            .is_none()
    );
}

#[test]
fn an_outside_change_of_the_very_line_is_refused_and_shown() {
    let desk = Desk::with_read("a\nb\nc\n"); // 68
    desk.put("file", "a\nB\nc\n");
    assert_says(desk.edit("file", "b", "x"), &["modified since", "-b\n+B"]);
    assert_eq!(desk.get("file"), b"a\nB\nc\n");
    // A second look makes it known.
    desk.read("file").unwrap();
    desk.edit("file", "B", "x").unwrap();
}

#[test]
fn a_change_behind_the_same_size_and_time_is_noticed() {
    let desk = Desk::new(); // 69
    desk.put("file", "one\n");
    let old = SystemTime::now() - Duration::from_secs(3_600);
    let set_time = || {
        let file = File::options().write(true).open(desk.path("file")).unwrap();
        file.set_times(FileTimes::new().set_modified(old)).unwrap();
    };
    set_time();
    desk.read("file").unwrap();
    desk.put("file", "two\n");
    set_time();
    assert_says(
        desk.write("file", "three\n"),
        &["modified since", "-one\n+two"],
    );
    assert_says(
        desk.journal.check_write(&desk.path("file")),
        &["modified since"],
    );
    assert_eq!(desk.get("file"), b"two\n");
    // 91: reading again shows the new text.
    let page = desk.read("file").unwrap();
    assert_eq!(page.lines[0].text, "two");
}

#[test]
fn a_file_deleted_since_is_not_recreated_by_an_edit() {
    let desk = Desk::with_read("a\n"); // 70
    fs::remove_file(desk.path("file")).unwrap();
    assert_says(desk.edit("file", "a", "b"), &["does not exist"]);
    assert!(desk.names().is_empty());
}

#[test]
fn own_writes_count_as_seen() {
    let desk = Desk::new(); // 71
    let written = desk.write("file", "a\nb\n").unwrap();
    assert_eq!(
        (written.outcome, written.bytes, written.lines),
        (Outcome::Created, 4, 2)
    );
    desk.edit("file", "a", "c").unwrap();
    desk.edit("file", "c", "d").unwrap();
    let written = desk.write("file", "e\n").unwrap();
    assert_eq!(written.old.as_deref(), Some(&b"d\nb\n"[..]));
    assert_eq!((written.patch.added, written.patch.removed), (1, 2));
    assert_eq!(desk.get("file"), b"e\n");
}

#[test]
fn a_new_file_gets_exactly_the_given_bytes_and_its_parents() {
    let desk = Desk::new(); // 80
    desk.write("d/e/f", "x\r\n").unwrap();
    assert_eq!(desk.get("d/e/f"), b"x\r\n");
    assert_eq!(crate::names_in(&desk.path("d/e")), ["f"]);
}

#[test]
fn overwriting_keeps_the_form_of_the_file() {
    let cases: [(&str, &[u8], &str, &[u8], bool); 7] = [
        ("81 CRLF kept", b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n", true),
        (
            "content with CR is literal",
            b"a\r\nb\r\n",
            "a\r\nc\n",
            b"a\r\nc\n",
            false,
        ),
        ("mixed is literal", b"a\r\nb\n", "a\nc\n", b"a\nc\n", false),
        ("LF stays literal", b"a\n", "a\r\n", b"a\r\n", false),
        (
            "BOM kept",
            b"\xef\xbb\xbfa\n",
            "b\n",
            b"\xef\xbb\xbfb\n",
            false,
        ),
        (
            "BOM not doubled",
            b"\xef\xbb\xbfa\n",
            "\u{feff}b\n",
            b"\xef\xbb\xbfb\n",
            false,
        ),
        ("ASCII into a code page", b"\xe9\n", "e\n", b"e\n", false),
    ];
    for (what, before, content, after, crlf_kept) in cases {
        let desk = Desk::with_read(before);
        let written = desk.write("file", content).unwrap();
        assert_eq!(desk.get("file"), after, "{what}");
        assert_eq!(written.crlf_kept, crlf_kept, "{what}");
    }
}

#[test]
fn an_encoding_is_never_changed_silently() {
    for before in [&b"caf\xe9\n"[..], b"\xff\xfea\0\n\0"] {
        let desk = Desk::with_read(before);
        assert_says(desk.write("file", "caf\u{e9}\n"), &["encoding"]);
        assert_eq!(desk.get("file"), before);
    }
}

#[test]
fn a_partial_view_allows_edit_but_not_write() {
    let content = "line\n".repeat(2_500) + "last\n";
    let desk = Desk::with_read(&content);
    assert_says(
        desk.write("file", "short\n"),
        &["has not been read yet", "PARTIAL"],
    );
    desk.edit("file", "last", "final").unwrap();
    assert_says(desk.write("file", "short\n"), &["PARTIAL"]);
    let range = PageRequest {
        offset: Some(2_001),
        limit: Some(600),
        ..PageRequest::default()
    };
    desk.journal.read(&desk.path("file"), &range).unwrap();
    desk.write("file", "short\n").unwrap();
}

#[test]
fn leaving_out_most_of_a_file_with_an_elision_is_warned_about() {
    let desk = Desk::with_read("fn f() {}\n".repeat(50));
    let written = desk
        .write("file", "fn g() {}\n// ... rest unchanged\n")
        .unwrap();
    assert_eq!(written.elision.as_deref(), Some("// ... rest unchanged"));
}

#[test]
fn a_missing_file_names_its_neighbours() {
    let desk = Desk::new(); // 90
    desk.put("conf.toml", "");
    assert_says(desk.read("config.toml"), &["does not exist", "conf.toml"]);
}

#[test]
fn a_miss_names_other_files_that_hold_the_text() {
    let desk = Desk::with_read("nothing here\n");
    desk.put("other", "the wanted text\n");
    desk.read("other").unwrap();
    assert_says(
        desk.edit("file", "wanted text", "x"),
        &["not found", "other files", "other"],
    );
}

#[test]
fn a_read_that_cut_a_line_does_not_allow_an_overwrite() {
    let desk = Desk::new();
    desk.put("file", format!("{}\n", "x".repeat(5_000)));
    desk.read("file").unwrap();
    assert!(desk.write("file", "new\n").is_err());
    assert!(desk.edit("file", "x\n", "y\n").is_ok());
}
