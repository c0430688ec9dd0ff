//! The spec's test vectors: tools.md §27 (1–17), and those of file-tools.md §8 that are visible in
//! a tool's answer. What happens to bytes is tested where it happens, in the journal.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use serde_json::{Value, json};

use crate::session::Session;

async fn read(session: &Session, name: &str) -> String {
    session.say("Read", json!({"file_path": name})).await.ok()
}

fn edit(name: &str, old: &str, new: &str) -> Value {
    json!({"file_path": name, "old_string": old, "new_string": new})
}

#[tokio::test]
async fn reading() {
    let session = Session::new([("a.txt", "x\ny\n"), ("empty", ""), ("sub/b", "")]);
    assert_eq!(read(&session, "a.txt").await, "     1\tx\n     2\ty", "1");
    assert!(read(&session, "empty").await.contains("empty"), "2");
    let error = session
        .say("Read", json!({"file_path": "a.txt", "offset": 10}))
        .await
        .error();
    assert!(error.contains("2 lines"), "3: {error}");
    let error = session
        .say("Read", json!({"file_path": "sub"}))
        .await
        .refused();
    assert!(
        error.contains("is a directory") && error.contains("LS"),
        "4: {error}"
    );
}

#[tokio::test]
async fn edits_need_a_read_and_one_place() {
    let session = Session::new([("a.txt", "foo foo")]);
    let error = session
        .say("Edit", edit("a.txt", "foo", "bar"))
        .await
        .refused();
    assert!(
        error.contains("has not been read yet") && error.contains("Read it first"),
        "5"
    );
    read(&session, "a.txt").await;
    let error = session
        .say("Edit", edit("a.txt", "foo", "bar"))
        .await
        .refused();
    assert!(error.contains("Found 2 matches"), "6: {error}");
    let mut all = edit("a.txt", "foo", "bar");
    all["replace_all"] = json!(true);
    session.say("Edit", all).await.ok();
    assert_eq!(session.project.read("a.txt"), "bar bar", "7");
    let error = session
        .say("Edit", edit("a.txt", "bar", "bar"))
        .await
        .refused();
    assert!(error.contains("identical"), "12: {error}");
}

#[tokio::test]
async fn edits_follow_the_file() {
    let session = Session::new([("crlf", "a\r\nb\r\n")]);
    read(&session, "crlf").await;
    session.say("Edit", edit("crlf", "a\nb", "c\nd")).await.ok();
    assert_eq!(session.project.read("crlf"), "c\r\nd\r\n", "8");
    session.say("Edit", edit("new", "", "v\n")).await.ok();
    assert_eq!(session.project.read("new"), "v\n", "11");
}

#[tokio::test]
async fn outside_changes_are_merged_or_refused() {
    let lines: String = (1..=40).map(|line| format!("line {line}\n")).collect();
    let session = Session::new([("far", lines.as_str()), ("gone", "old\n")]);
    read(&session, "far").await;
    read(&session, "gone").await;
    session
        .project
        .write("far", lines.replace("line 40\n", "LINE 40\n"));
    session.project.write("gone", "other\n");
    let text = session
        .say("Edit", edit("far", "line 2\n", "LINE 2\n"))
        .await
        .ok();
    assert!(
        text.contains("+LINE 40") && text.contains("someone else"),
        "9: {text}"
    );
    let error = session
        .say("Edit", edit("gone", "old", "new"))
        .await
        .refused();
    assert!(error.contains("modified since"), "10: {error}");
    assert_eq!(session.project.read("gone"), "other\n");
}

#[tokio::test]
async fn globs_are_bounded_and_leave_out_ignored_files() {
    let names: Vec<String> = (0..150).map(|number| format!("f{number}")).collect();
    let session = Session::new(names.iter().map(|name| (name.as_str(), "")));
    let found = session.structured("Glob", json!({"pattern": "**/*"})).await;
    assert_eq!(found["filenames"].as_array().unwrap().len(), 100, "13");
    assert_eq!(
        (
            &found["truncated"],
            &found["totalMatches"],
            &found["countIsComplete"]
        ),
        (&json!(true), &json!(150), &json!(true)),
        "13"
    );

    let session = Session::new([
        (".git/HEAD", ""),
        (".gitignore", "x.log\n"),
        ("x.log", "hay\n"),
    ]);
    assert_eq!(
        session.say("Glob", json!({"pattern": "*.log"})).await.ok(),
        "No files found",
        "14"
    );
    assert_eq!(
        session.say("Grep", json!({"pattern": "hay"})).await.ok(),
        "No files found",
        "14"
    );
    let named = session
        .say("Grep", json!({"pattern": "hay", "path": "x.log"}))
        .await
        .ok();
    assert_eq!(named, "Found 1 file\nx.log", "14");
}

#[tokio::test]
async fn greps_are_paged() {
    let many = "match\n".repeat(300);
    let session = Session::new([("many", many.as_str()), ("b", "match\n"), ("c", "match\n")]);
    let error = session
        .say("Grep", json!({"pattern": "foo("}))
        .await
        .refused();
    assert!(error.contains("unclosed group"), "15: {error}");

    let page = |offset: u64| json!({"pattern": "match", "path": "many", "output_mode": "content", "offset": offset});
    let first = session.say("Grep", page(0)).await.ok();
    assert_eq!(first.lines().count(), 251, "16");
    assert_eq!(first.lines().next(), Some("many:1:match"), "16");
    assert_eq!(
        first.lines().last(),
        Some("(rows 1-250 shown; continue with offset=250)"),
        "16"
    );
    let second = session.say("Grep", page(250)).await.ok();
    assert_eq!(second.lines().count(), 50, "16");
    let third = session.say("Grep", page(300)).await.ok();
    assert_eq!(third, "No entries at this offset\n(300 rows in all)", "16");

    let count = json!({"pattern": "match", "output_mode": "count", "head_limit": 1});
    assert_eq!(
        session.say("Grep", count).await.ok(),
        "b:1\nTotal: 302 matching lines in 3 files\n(rows 1-1 shown; continue with offset=1)",
        "17"
    );
}

/// file-tools.md §8: one Read, one Edit, and the file after it or a word of the error.
#[tokio::test]
async fn edit_vectors() {
    let cases: &[(&str, &[u8], &str, &str, bool, Result<&[u8], &str>)] = &[
        (
            "1",
            b"red\nblue\n",
            "blue",
            "green",
            false,
            Ok(b"red\ngreen\n"),
        ),
        ("2", b"a=b\n", "b", "$&$1$$", false, Ok(b"a=$&$1$$\n")),
        ("3", b"p\n", "p", "\\0\\n", false, Ok(b"\\0\\n\n")),
        ("4", b"(x)+(x)?\ny\n", "(x)+(x)?", "z", false, Ok(b"z\ny\n")),
        ("5", b"m\nn\nm\n", "m", "k", false, Err("lines 1 and 3")),
        ("6", b"m\nn\nm\n", "m", "k", true, Ok(b"k\nn\nk\n")),
        ("7", b"ooo\n", "oo", "u", false, Err("Found 2 matches")),
        ("8", b"ooo\n", "oo", "u", true, Ok(b"uo\n")),
        ("9", b"t\n", "t", "tt", true, Ok(b"tt\n")),
        ("10", b"w\n", "w", "w", false, Err("identical")),
        ("11", b"w\n", "", "v", false, Err("Use Write")),
        ("13", b"", "", "v", false, Ok(b"v")),
        (
            "15",
            b"Key\n",
            "key",
            "x",
            false,
            Err("String to replace not found"),
        ),
        ("16", b"one\ntwo", "two", "2", false, Ok(b"one\n2")),
        ("18", b"one\ntwo\n", "two\n", "two", false, Ok(b"one\ntwo")),
        ("19", b"i\nj\nk\n", "j", "", false, Ok(b"i\nk\n")),
        ("20", b"i\nj;\nk\n", ";", "", false, Ok(b"i\nj\nk\n")),
        ("23", b"x\nyx\n", "x", "", true, Ok(b"y\n")),
        (
            "25",
            b"u\r\nv\r\n",
            "v",
            "v\nz",
            false,
            Ok(b"u\r\nv\r\nz\r\n"),
        ),
        ("29", b"u\r\nv\r\n", "u\r\n", "u\n", false, Ok(b"u\nv\r\n")),
        (
            "33",
            b"\xef\xbb\xbfn\n",
            "n",
            "o",
            false,
            Ok(b"\xef\xbb\xbfo\n"),
        ),
        ("36", b"x=1 \xe9\n", "x=1", "x=2", false, Ok(b"x=2 \xe9\n")),
        (
            "37",
            b"x=1 \xe9\n",
            "x=1",
            "x=\u{e9}",
            false,
            Err("windows-1252"),
        ),
        (
            "49",
            "wait\u{2026}\n".as_bytes(),
            "wait...",
            "go",
            false,
            Err("not found"),
        ),
        ("59", b"g(a , b)\n", "g(a, b)", "h", false, Err("not found")),
        ("61", b"a\nb\n", "a\\nb", "z", false, Err("two characters")),
        ("62", b"new\n", "old", "new", false, Err("already")),
    ];
    for (vector, before, old, new, replace_all, expected) in cases {
        let session = Session::new([]);
        session.project.write("f", before);
        read(&session, "f").await;
        let mut input = edit("f", old, new);
        input["replace_all"] = json!(replace_all);
        let said = session.say("Edit", input).await;
        let after = fs::read(session.project.path("f")).unwrap();
        match expected {
            Ok(expected) => {
                said.ok();
                assert_eq!(after, *expected, "{vector}");
            }
            Err(words) => {
                let error = said.refused();
                assert!(error.contains(words), "{vector}: {error}");
                assert_eq!(after, *before, "{vector}: changed");
            }
        }
    }
}

/// file-tools.md §2.4: an answer says how the place was found, unless it was found exactly.
#[tokio::test]
async fn tolerant_matches_and_encodings_are_told() {
    let cases: [(&str, &[u8], &str, &str, &[u8], &str); 4] = [
        (
            "40",
            "“yes” it is\n".as_bytes(),
            "\"yes\" it is",
            "\"yes\" it was",
            "“yes” it was\n".as_bytes(),
            "ignoring typography",
        ),
        (
            "50",
            b"a  \nb\n",
            "a\nb",
            "a\nc",
            b"a  \nc\n",
            "blanks at line ends",
        ),
        ("54", b"m\nn", "n\n", "o\n", b"m\no", "ends without one"),
        (
            "63",
            b"a\nb\n",
            "     2\tb",
            "     2\tB",
            b"a\nB\n",
            "line numbers",
        ),
    ];
    for (vector, before, old, new, after, words) in cases {
        let session = Session::new([]);
        session.project.write("f", before);
        read(&session, "f").await;
        let said = session.say("Edit", edit("f", old, new)).await.ok();
        assert!(said.contains(words), "{vector}: {said}");
        assert_eq!(
            fs::read(session.project.path("f")).unwrap(),
            after,
            "{vector}"
        );
    }
    let session = Session::new([]);
    session.project.write("wide", b"\xff\xfen\0\n\0");
    assert!(
        read(&session, "wide")
            .await
            .contains("the file is UTF-16LE")
    );
    let said = session.say("Edit", edit("wide", "n", "ñ")).await.ok();
    assert!(said.contains("-n\n+ñ"), "35: {said}");
    let content = json!({"file_path": "wide", "content": "é\n"});
    let said = session.say("Write", content).await.ok();
    assert!(said.contains("encoding was kept: UTF-16LE"), "{said}");
    assert_eq!(
        fs::read(session.project.path("wide")).unwrap(),
        b"\xff\xfe\xe9\0\n\0"
    );
}

#[tokio::test]
async fn files_that_are_not_there_or_not_allowed() {
    let session = Session::new([
        ("conf.toml", "a\n"),
        ("book.ipynb", "{}"),
        ("locked", "a\n"),
    ]);
    let error = session
        .say("Edit", edit("missing", "a", "b"))
        .await
        .refused();
    assert!(
        error.contains("does not exist") && !session.project.path("missing").exists(),
        "14"
    );

    read(&session, "conf.toml").await;
    fs::remove_file(session.project.path("conf.toml")).unwrap();
    session
        .say("Edit", edit("conf.toml", "a", "b"))
        .await
        .refused();
    assert!(!session.project.path("conf.toml").exists(), "70");

    let error = session
        .say("Edit", edit("book.ipynb", "{}", "[]"))
        .await
        .refused();
    assert!(error.contains("NotebookEdit"), "95: {error}");

    read(&session, "locked").await;
    let mode = fs::Permissions::from_mode(0o444);
    fs::set_permissions(session.project.path("locked"), mode).unwrap();
    let error = session
        .say("Edit", edit("locked", "a", "b"))
        .await
        .refused();
    assert!(error.contains("read-only"), "76: {error}");
    let write = json!({"file_path": "locked", "content": "b\n"});
    assert!(
        session
            .say("Write", write)
            .await
            .refused()
            .contains("read-only"),
        "76"
    );
}

#[tokio::test]
async fn writes_need_a_read_of_the_same_content() {
    let session = Session::new([("a", "a\n"), ("crlf", "a\r\nb\r\n")]);
    let write = |name: &str, content: &str| json!({"file_path": name, "content": content});
    let error = session.say("Write", write("a", "b\n")).await.refused();
    assert!(error.contains("has not been read yet"), "82: {error}");
    read(&session, "a").await;
    session.project.write("a", "c\n");
    let error = session.say("Write", write("a", "b\n")).await.refused();
    assert!(
        error.contains("modified since") && error.contains("+c"),
        "69: {error}"
    );

    session.say("Write", write("d/e/f", "x\r\n")).await.ok();
    assert_eq!(session.project.read("d/e/f"), "x\r\n", "80");
    session.say("Edit", edit("d/e/f", "x", "y")).await.ok();
    assert_eq!(session.project.read("d/e/f"), "y\r\n", "71");

    read(&session, "crlf").await;
    let text = session.say("Write", write("crlf", "a\nc\n")).await.ok();
    assert!(text.contains("CRLF"), "81: {text}");
    assert_eq!(session.project.read("crlf"), "a\r\nc\r\n", "81");
}

#[tokio::test]
async fn links_and_special_files() {
    let session = Session::new([("target", "a\n"), ("dir/x", "")]);
    symlink("target", session.project.path("link")).unwrap();
    read(&session, "link").await;
    session.say("Edit", edit("link", "a", "b")).await.ok();
    assert_eq!(session.project.read("target"), "b\n", "73");
    assert!(session.project.path("link").is_symlink(), "73");

    for path in ["/dev/zero", "/dev/tty"] {
        let error = session
            .say("Read", json!({"file_path": path}))
            .await
            .error();
        assert!(error.contains("not a regular file"), "79: {error}");
        let write = json!({"file_path": path, "content": "x"});
        session.say("Write", write).await.refused();
        session.say("Edit", edit(path, "a", "b")).await.refused();
    }
}

#[tokio::test]
async fn what_a_read_shows() {
    let session = Session::new([
        ("three", "1\n2\n3\n"),
        ("crlf", "\tx\r\n"),
        ("conf.toml", ""),
    ]);
    let error = session
        .say("Read", json!({"file_path": "three", "offset": 9}))
        .await
        .failed();
    assert!(error.contains("3 lines"), "84: {error}");
    let text = read(&session, "crlf").await;
    assert!(
        text.starts_with("     1\t\tx\n[note: line breaks are CRLF"),
        "85: {text:?}"
    );
    session.project.write("long", "x".repeat(5_000_000));
    let text = read(&session, "long").await;
    assert!(
        text.len() < 3_000 && text.contains("5000000 characters"),
        "86: {text}"
    );
    let error = session
        .say("Read", json!({"file_path": "config.toml"}))
        .await
        .refused();
    assert!(
        error.contains("does not exist") && error.contains("conf.toml"),
        "90: {error}"
    );
}
