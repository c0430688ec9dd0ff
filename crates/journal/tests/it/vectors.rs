//! The vectors of file-tools.md §8 from 65 on (and 12, 14), by number: what a
//! session knows of a file, and what Write does.

use std::fs::{self, File, FileTimes};
use std::time::{Duration, SystemTime};

use haft_journal::{PageRequest, WriteOutcome};

use crate::{Desk, assert_says};

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
        (WriteOutcome::Created, 4, 2)
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
fn an_encoding_is_kept_or_the_write_refused() {
    let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_be_bytes).collect() };
    let russian = "Это простой файл с русским текстом.\nВторая строка тоже здесь.\n";
    let page = |text: &str| encoding_rs::WINDOWS_1251.encode(text).0.into_owned();
    let kept: [(&str, Vec<u8>, &str, Vec<u8>, &str); 3] = [
        (
            "UTF-16",
            wide("\u{feff}a\r\n"),
            "é\n",
            wide("\u{feff}é\r\n"),
            "UTF-16BE",
        ),
        (
            "mark not doubled",
            wide("\u{feff}a\n"),
            "\u{feff}b\n",
            wide("\u{feff}b\n"),
            "UTF-16BE",
        ),
        (
            "certain page",
            page(russian),
            "Новый текст\n",
            page("Новый текст\n"),
            "windows-1251",
        ),
    ];
    for (what, before, content, after, name) in kept {
        let desk = Desk::with_read(&before);
        let written = desk.write("file", content).unwrap();
        assert_eq!(desk.get("file"), after, "{what}");
        assert_eq!(written.encoding_kept.unwrap().to_string(), name, "{what}");
        assert_eq!(written.lines, 1, "{what}");
    }
    let refused: [(&str, Vec<u8>, &str, &[&str]); 2] = [
        (
            "unsure",
            b"caf\xe9\n".to_vec(),
            "caf\u{e9}\n",
            &["windows-1252", "silently change its encoding", "Convert"],
        ),
        (
            "not in the page",
            page(russian),
            "日本\n",
            &["windows-1251", "日", "convert"],
        ),
    ];
    for (what, before, content, parts) in refused {
        let desk = Desk::with_read(&before);
        assert_says(desk.write("file", content), parts);
        assert_eq!(desk.get("file"), before, "{what}");
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
