//! What the model reads. Each snapshot shows one call after the other, as `> Tool input`.

use std::{fmt::Write, fs, os::unix::fs::symlink};

use haft_contract::PermissionMode;
use haft_testkit::TempProject;
use serde_json::{Value, json};

use crate::session::{Said, Session};

/// Makes the calls and writes down what was said.
async fn transcript(session: &Session, calls: &[(&str, Value)]) -> String {
    let mut text = String::new();
    for (tool, input) in calls {
        let mut shown = input.clone();
        for value in shown.as_object_mut().unwrap().values_mut() {
            if value.as_str().is_some_and(|text| text.len() > 200) {
                *value = json!("…long…");
            }
        }
        let said = match session.say(tool, input.clone()).await {
            Said::Ok(text) => text,
            Said::Refused(text) => format!("REFUSED {text}"),
            Said::Failed(text) => format!("FAILED {text}"),
        };
        writeln!(text, "> {tool} {shown}\n{said}\n").unwrap();
    }
    session.masked(&text)
}

fn numbered(count: usize) -> String {
    (1..=count).map(|line| format!("line {line}\n")).collect()
}

#[tokio::test]
async fn read() {
    let session = Session::new([
        ("src/main.rs", "fn main() {\n    run();\n}\n"),
        ("empty.txt", ""),
        ("crlf.txt", "a\r\nb\r\n"),
        ("mixed.txt", "a\r\nb\nc"),
        ("bom.txt", "\u{feff}a\n"),
        ("indent.py", "if a:\n\tb\nif c:\n    d\n"),
        ("deep/down/parse.rs", "x\n"),
    ]);
    session.project.write("many.txt", numbered(2100));
    session
        .project
        .write("wide.txt", format!("{}\nshort\n", "é".repeat(4500)));
    session.project.write("latin1.txt", b"caf\xe9\n");
    session.project.write("utf16.txt", b"\xff\xfea\0\n\0");
    session.project.write("data.bin", b"\0\x01\x02");
    session.project.write("paper.pdf", b"%PDF-1.7\n");
    session.project.write("logo.png", b"\x89PNG\r\n\x1a\n\0\0");
    let mut text = String::new();
    for input in [
        json!({"file_path": "src/main.rs"}),
        json!({"file_path": "src/main.rs", "offset": 2}),
        json!({"file_path": "src/main.rs", "offset": 0, "limit": 1}),
        json!({"file_path": "many.txt", "offset": 2099}),
        json!({"file_path": "many.txt", "offset": 100, "limit": 2}),
        json!({"file_path": "empty.txt"}),
        json!({"file_path": "crlf.txt"}),
        json!({"file_path": "mixed.txt"}),
        json!({"file_path": "bom.txt"}),
        json!({"file_path": "indent.py"}),
        json!({"file_path": "latin1.txt"}),
        json!({"file_path": "utf16.txt"}),
        json!({"file_path": "src/main.rs", "offset": 9}),
        json!({"file_path": "src/main.rs", "char_offset": 99}),
        json!({"file_path": "src"}),
        json!({"file_path": "src/mian.rs"}),
        json!({"file_path": "src/parse.rs"}),
        json!({"file_path": "nothing/like/it"}),
        json!({"file_path": "src/main.rs/x"}),
        json!({"file_path": "data.bin"}),
        json!({"file_path": "paper.pdf"}),
        json!({"file_path": "logo.png"}),
        json!({"file_path": "/dev/zero"}),
    ] {
        text += &transcript(&session, &[("Read", input)]).await;
    }
    insta::assert_snapshot!(text);
}

/// Only the ends of long answers matter.
#[tokio::test]
async fn read_long_files_and_lines() {
    let session = Session::new([]);
    session.project.write("many.txt", numbered(2100));
    session.project.write(
        "heavy.txt",
        format!("{}\n", "0123456789 ".repeat(100)).repeat(300),
    );
    session
        .project
        .write("wide.txt", format!("{}\nshort\n", "é".repeat(4500)));
    let mut text = String::new();
    for input in [
        json!({"file_path": "many.txt"}),
        json!({"file_path": "many.txt", "allow_large": true}),
        json!({"file_path": "heavy.txt"}),
        json!({"file_path": "heavy.txt", "offset": 2, "limit": 200}),
        json!({"file_path": "wide.txt"}),
        json!({"file_path": "wide.txt", "offset": 1, "limit": 1, "char_offset": 2000}),
        json!({"file_path": "wide.txt", "offset": 1, "limit": 1, "char_offset": 4000}),
    ] {
        let said = session.say("Read", input.clone()).await.ok();
        let tail: String = {
            let from = said.chars().count().saturating_sub(150);
            said.chars().skip(from).collect()
        };
        writeln!(text, "> Read {input}\n…{tail}\n").unwrap();
    }
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn write() {
    let session = Session::new([
        ("old.txt", "one\ntwo\nthree\n"),
        ("crlf.txt", "a\r\nb\r\n"),
        ("unread.txt", "x\n"),
        ("file", "x\n"),
    ]);
    session.project.write("long.rs", numbered(100));
    session.project.write("partial.txt", numbered(2100));
    let read = |name: &str| ("Read", json!({"file_path": name}));
    let write =
        |name: &str, content: &str| ("Write", json!({"file_path": name, "content": content}));
    for name in ["old.txt", "crlf.txt", "long.rs", "partial.txt"] {
        transcript(&session, &[read(name)]).await;
    }
    let text = transcript(
        &session,
        &[
            write("new/dir/a.txt", "one\ntwo\n"),
            write("old.txt", "one\n2\nthree\n"),
            write("old.txt", "one\n2\nthree\n"),
            write("crlf.txt", "a\nc\n"),
            write("long.rs", "line 1\n// ... rest unchanged ...\n"),
            write("unread.txt", "y\n"),
            write("partial.txt", "y\n"),
            write("new", "y\n"),
            write("file/below", "y\n"),
        ],
    )
    .await;
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn edit() {
    let session = Session::new([
        ("src/main.rs", "fn main() {\n    run(1);\n    run(2);\n}\n"),
        ("unread.txt", "x\n"),
        ("drift.txt", "a\n"),
        ("book.ipynb", "{}\n"),
    ]);
    session.project.write("long.txt", numbered(40));
    let read = |name: &str| ("Read", json!({"file_path": name}));
    let edit = |name: &str, old: &str, new: &str| {
        (
            "Edit",
            json!({"file_path": name, "old_string": old, "new_string": new}),
        )
    };
    let all = |name: &str, old: &str, new: &str| {
        let (tool, mut input) = edit(name, old, new);
        input["replace_all"] = json!(true);
        (tool, input)
    };
    for name in ["src/main.rs", "drift.txt", "long.txt"] {
        transcript(&session, &[read(name)]).await;
    }
    session.project.write("drift.txt", "b\n");
    session
        .project
        .write("long.txt", numbered(40).replace("line 40", "LINE 40"));
    let text = transcript(
        &session,
        &[
            edit("src/main.rs", "run(1);", "let one = 1;\n    run(one);"),
            all("src/main.rs", "run(", "go("),
            edit("long.txt", "line 2\n", "line two\n"),
            edit("created.txt", "", "a\nb\n"),
            edit("src/main.rs", "go(", "run("),
            edit("src/main.rs", "    go(3);", "    go(4);"),
            edit("src/main.rs", "let one", "let one"),
            edit("src/main.rs", "", "x"),
            edit("unread.txt", "x", "y"),
            edit("drift.txt", "a", "c"),
            edit("missing.txt", "a", "b"),
            edit("src", "a", "b"),
            edit("book.ipynb", "{}", "[]"),
        ],
    )
    .await;
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn ls() {
    let session = Session::new([
        (".git/HEAD", ""),
        (".gitignore", "target/\n*.log\n"),
        ("Zebra.txt", "123\n"),
        ("apple.txt", "12345\n"),
        ("src/main.rs", ""),
        ("target/out", ""),
        ("debug.log", ""),
        ("odd\nname", ""),
    ]);
    let project = &session.project;
    fs::create_dir(project.path("empty")).unwrap();
    for number in 0..501 {
        project.write(&format!("crowd/f{number:03}"), "");
    }
    for entry in fs::read_dir(project.root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        session.set_modified(&name, 1_788_269_071);
    }
    let ls = |input: Value| ("LS", input);
    let text = transcript(
        &session,
        &[
            ls(json!({})),
            ls(json!({"path": "empty"})),
            ls(json!({"path": ".", "ignore": ["*.txt", "target/", "crowd", "odd*"]})),
            ls(json!({"path": "apple.txt"})),
            ls(json!({"path": "scr"})),
            ls(json!({"path": ".", "ignore": ["[a"]})),
        ],
    )
    .await;
    insta::assert_snapshot!(text);
    let crowd = session.say("LS", json!({"path": "crowd"})).await.ok();
    assert_eq!(crowd.lines().count(), 502);
    assert_eq!(crowd.lines().next(), Some("crowd: 501 entries"));
    let last = crowd.lines().last().unwrap();
    assert!(last.starts_with("(500 of 501 entries shown"), "{last}");
}

#[tokio::test]
async fn ls_shows_links_and_special_files() {
    let session = Session::new([("a", "")]);
    symlink("a", session.project.path("link")).unwrap();
    symlink("/no/where", session.project.path("lost")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(session.project.path("sock")).unwrap();
    let found = session.structured("LS", json!({})).await;
    drop(socket);
    let rows: Vec<(&str, &str, Option<&str>)> = found["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let text = |key: &str| entry[key].as_str();
            (text("name").unwrap(), text("type").unwrap(), text("target"))
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("a", "file", None),
            ("link", "symlink", Some("a")),
            ("lost", "symlink", Some("/no/where")),
            ("sock", "socket", None),
        ]
    );
    let text = session.say("LS", json!({})).await.ok();
    assert!(
        text.contains("\nlink@ -> a  ") && text.contains("\nsock  (socket)  "),
        "{text}"
    );
}

#[tokio::test]
async fn glob() {
    let session = Session::new([("old.rs", ""), ("src/new.rs", ""), ("src/mid.toml", "")]);
    for (name, time) in [("old.rs", 1), ("src/mid.toml", 2), ("src/new.rs", 3)] {
        session.set_modified(name, time);
    }
    for number in 0..101 {
        session.project.write(&format!("many/{number:03}.txt"), "");
        session.set_modified(&format!("many/{number:03}.txt"), 10);
    }
    let glob = |input: Value| ("Glob", input);
    let text = transcript(
        &session,
        &[
            glob(json!({"pattern": "*.{rs,toml}"})),
            glob(json!({"pattern": "./*.rs"})),
            glob(json!({"pattern": "*.rs", "path": "src"})),
            glob(json!({"pattern": session.project.path("src/*.toml")})),
            glob(json!({"pattern": "../*.rs", "path": "src"})),
            glob(json!({"pattern": "*.py", "path": "undefined"})),
            glob(json!({"pattern": "*.rs", "path": "scr"})),
            glob(json!({"pattern": "*.rs", "path": "old.rs"})),
            glob(json!({"pattern": "{a"})),
            glob(json!({"pattern": "a\0b"})),
        ],
    )
    .await;
    insta::assert_snapshot!(text);
    let many = session.say("Glob", json!({"pattern": "many/*"})).await.ok();
    let tail: Vec<&str> = many.lines().skip(99).collect();
    assert_eq!(
        tail,
        [
            "many/099.txt",
            "(truncated: the newest 100 of 101 files; use a narrower pattern or path for the rest)",
        ]
    );
}

#[tokio::test]
async fn grep() {
    let session = Session::new([
        ("src/a.rs", "use x;\nfn one() {}\n\n\n\nfn two() {}\n"),
        ("src/b.rs", "fn three() {}\n"),
        ("notes.txt", "fn in prose\n"),
        ("one.md", "only here\n"),
    ]);
    session
        .project
        .write("min.js", format!("fn{}\n", "x".repeat(600)));
    session.project.write("data.bin", b"fn\0\x01");
    for (time, name) in ["notes.txt", "src/b.rs", "src/a.rs", "min.js", "one.md"]
        .iter()
        .enumerate()
    {
        session.set_modified(name, time as u64);
    }
    let grep = |input: Value| ("Grep", input);
    let text = transcript(
        &session,
        &[
            grep(json!({"pattern": "fn"})),
            grep(json!({"pattern": "only here"})),
            grep(json!({"pattern": "fn", "head_limit": 2})),
            grep(json!({"pattern": "fn", "head_limit": 2, "offset": 2})),
            grep(json!({"pattern": "fn \\w+\\(", "output_mode": "content", "glob": "*.rs"})),
            grep(
                json!({"pattern": "fn \\w+\\(", "output_mode": "content", "-C": 1, "path": "src"}),
            ),
            grep(
                json!({"pattern": "fn \\w+\\(", "output_mode": "content", "-o": true, "-n": false}),
            ),
            grep(json!({"pattern": "fnx", "output_mode": "content"})),
            grep(json!({"pattern": "fn", "output_mode": "count", "type": "rust"})),
            grep(json!({"pattern": "fn", "output_mode": "count", "head_limit": 1})),
            grep(json!({"pattern": "\\{\\}\\s+fn", "output_mode": "content", "multiline": true})),
            grep(json!({"pattern": "nowhere", "output_mode": "content"})),
            grep(json!({"pattern": "nowhere", "output_mode": "count"})),
            grep(json!({"pattern": "nowhere"})),
            grep(json!({"pattern": "fn", "output_mode": "content", "offset": 99})),
            grep(json!({"pattern": "fn("})),
            grep(json!({"pattern": "a\\nb"})),
            grep(json!({"pattern": "fn", "glob": "[a"})),
            grep(json!({"pattern": "fn", "type": "rost"})),
            grep(json!({"pattern": "fn", "path": "scr"})),
        ],
    )
    .await;
    insta::assert_snapshot!(text);
}

/// Names that look the same and are not: Read opens the only one, and nothing else does.
#[tokio::test]
async fn names_that_look_the_same() {
    let session = Session::new([
        ("cafe\u{301}.txt", "a\n"),
        ("Shot at 10.30\u{202f}AM.txt", "b\n"),
        ("two\u{a0}words", "c\n"),
        ("two\u{202f}words", "d\n"),
        ("e\u{301}te\u{301}/x", "e\n"),
    ]);
    let outside = TempProject::new([("secret", "s\n")]);
    symlink(outside.path("secret"), session.project.path("lin\u{202f}k")).unwrap();
    let mut text = transcript(
        &session,
        &[
            ("Read", json!({"file_path": "caf\u{e9}.txt"})),
            ("Read", json!({"file_path": "caf\u{e9}.txt"})),
            ("Read", json!({"file_path": "Shot at 10.30 AM.txt"})),
            ("Read", json!({"file_path": "two words"})),
            ("Read", json!({"file_path": "\u{e9}t\u{e9}"})),
            (
                "Edit",
                json!({"file_path": "caf\u{e9}.txt", "old_string": "a", "new_string": "b"}),
            ),
            (
                "Edit",
                json!({"file_path": "cafe\u{301}.txt", "old_string": "a", "new_string": "b"}),
            ),
            (
                "Write",
                json!({"file_path": "caf\u{e9}.txt", "content": "new\n"}),
            ),
        ],
    )
    .await;
    // What was permitted is the name inside, not where a link of a similar name leads.
    let mut cx = session.context();
    cx.permissions.mode = PermissionMode::Default;
    let read = session.bind("Read", json!({"file_path": "lin k"}));
    read.check(&cx).await.unwrap();
    let error = read.call(&cx).await.unwrap_err().to_string();
    writeln!(text, "> Read lin k, a link to the outside\n{error}").unwrap();
    assert_eq!(session.project.read("caf\u{e9}.txt"), "new\n");
    insta::assert_snapshot!(session.masked(&text));
}
