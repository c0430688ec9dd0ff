//! The vectors of tools.md §27 that these tools decide: 1–17, by number.

use serde_json::json;

use super::{edit, read};
use crate::session::Session;

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
        text.contains("+LINE 40") && text.contains("These changes are preserved"),
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
