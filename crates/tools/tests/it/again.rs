//! A second Read of the same file: when the text comes again, and when a pointer is enough.

use std::{
    fs::{self, File, FileTimes},
    io::Cursor,
    os::unix::fs::symlink,
    time::{Duration, SystemTime},
};

use haft_contract::Content;
use image::{DynamicImage, ImageFormat};
use serde_json::{Value, json};

use crate::session::Session;

fn read(name: &str) -> Value {
    json!({"file_path": name})
}

/// `text`, or `pointer` with the part it points to.
async fn answer(session: &Session, input: Value) -> String {
    let output = session.output("Read", input).await.expect("an answer");
    let Some(Content::Text { text }) = output.content.first() else {
        panic!("no text: {output:?}")
    };
    let Some((_, rest)) = text.split_once(": unchanged since your Read of ") else {
        return "text".to_owned();
    };
    assert_eq!(output.content.len(), 1, "nothing but the pointer");
    let (part, _) = rest.split_once(';').expect("more words");
    format!("pointer to {part}")
}

#[tokio::test]
async fn the_text_comes_once_then_a_pointer_and_never_two_of_them_in_a_row() {
    let session = Session::new([("a.txt", "1\n2\n3\n"), ("b.txt", "1\n2\n3\n")]);
    let range =
        |offset: u64, limit: u64| json!({"file_path": "a.txt", "offset": offset, "limit": limit});
    let calls = [
        (read("a.txt"), "text"),
        (read("b.txt"), "text"),
        (read("a.txt"), "pointer to lines 1–3"),
        (read("a.txt"), "text"),
        (read("a.txt"), "pointer to lines 1–3"),
        (range(2, 2), "text"),
        (range(1, 3), "text"), // the same lines as asked for twice already
        (range(2, 2), "pointer to lines 2–3"),
        (range(2, 1), "text"),
        (range(2, 1), "pointer to line 2"),
        (json!({"file_path": "a.txt", "offset": 9}), ""),
    ];
    for (input, expected) in calls {
        if expected.is_empty() {
            let error = session.say("Read", input).await.failed();
            assert!(error.contains("past the end"), "{error}");
            continue;
        }
        assert_eq!(answer(&session, input.clone()).await, expected, "{input}");
    }
    insta::assert_snapshot!(session.say("Read", read("b.txt")).await.ok());
}

#[tokio::test]
async fn any_change_brings_the_text_back_also_one_that_was_undone() {
    let session = Session::new([("a.txt", "one\n")]);
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    assert_eq!(answer(&session, read("a.txt")).await, "text");
    session.say("Edit", edit).await.ok();
    assert_eq!(answer(&session, read("a.txt")).await, "text", "edited");
    session.say("Undo", json!({})).await.ok();
    assert_eq!(answer(&session, read("a.txt")).await, "text", "undone");
    assert_eq!(
        answer(&session, read("a.txt")).await,
        "pointer to line 1",
        "and then it is the same again"
    );
    let write = json!({"file_path": "a.txt", "content": "one\n"});
    session.say("Write", write).await.ok();
    assert_eq!(answer(&session, read("a.txt")).await, "text", "written");
    // A touch is no change.
    session.set_modified("a.txt", 1_000_000_000);
    assert_eq!(answer(&session, read("a.txt")).await, "pointer to line 1");
}

#[tokio::test]
async fn v091_a_change_behind_the_same_size_and_time_is_shown() {
    let session = Session::new([]);
    let path = session.project.path("a.txt");
    // A time of this very moment, and one that is long past.
    for time in [
        SystemTime::now(),
        SystemTime::now() - Duration::from_secs(3_600),
    ] {
        let put = |content: &str| {
            fs::write(&path, content).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_times(FileTimes::new().set_modified(time)).unwrap();
        };
        put("before\n");
        session.say("Read", read("a.txt")).await.ok();
        let before = fs::metadata(&path).unwrap();
        put("behind\n");
        let after = fs::metadata(&path).unwrap();
        assert_eq!(
            (before.len(), before.modified().unwrap()),
            (after.len(), after.modified().unwrap())
        );
        let text = session.say("Read", read("a.txt")).await.ok();
        assert_eq!(text, "     1\tbehind");
    }
}

#[tokio::test]
async fn another_name_another_answer() {
    let session = Session::new([("a.txt", "1\n")]);
    symlink("a.txt", session.project.path("link.txt")).unwrap();
    assert_eq!(answer(&session, read("a.txt")).await, "text");
    assert_eq!(answer(&session, read("link.txt")).await, "text");
    assert_eq!(
        answer(&session, read("link.txt")).await,
        "pointer to line 1"
    );
}

#[tokio::test]
async fn what_is_no_text_is_pointed_to_as_well() {
    let cell = |source: &str| json!({"cell_type": "markdown", "metadata": {}, "source": [source]});
    let notebook = |cells: Vec<Value>| {
        json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}).to_string()
    };
    let session = Session::new([
        ("n.ipynb", notebook(vec![cell("a"), cell("b")]).as_str()),
        (
            "cut.ipynb",
            notebook(vec![cell(&"x".repeat(100_000))]).as_str(),
        ),
        ("none.ipynb", notebook(Vec::new()).as_str()),
        ("empty.txt", ""),
    ]);
    let mut png = Cursor::new(Vec::new());
    let image = DynamicImage::new_rgb8(3, 2);
    image.write_to(&mut png, ImageFormat::Png).unwrap();
    session.project.write("p.png", png.into_inner());
    for (name, second) in [
        ("n.ipynb", "pointer to cells 1–2"),
        ("p.png", "pointer to the image"),
        // Not shown whole, or nothing to point to.
        ("cut.ipynb", "text"),
        ("none.ipynb", "text"),
        ("empty.txt", "text"),
    ] {
        assert_eq!(answer(&session, read(name)).await, "text", "{name}");
        assert_eq!(answer(&session, read(name)).await, second, "{name}");
    }
    let one = json!({"file_path": "n.ipynb", "offset": 2});
    assert_eq!(answer(&session, one).await, "text");
}

/// Programs and people get the same as ever.
#[tokio::test]
async fn the_value_for_programs_stays_whole() {
    let session = Session::new([("a.txt", "1\n2\n")]);
    let first = session.structured("Read", read("a.txt")).await;
    let second = session.structured("Read", read("a.txt")).await;
    assert_eq!(first, second);
    assert_eq!(second["file"]["content"], "1\n2");
}
