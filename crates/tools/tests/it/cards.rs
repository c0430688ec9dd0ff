//! What a person sees: the call before it runs, and how it ended.

use std::fmt::Write;

use haft_contract::{Card, CardSection};
use serde_json::json;

use crate::{
    session::{Session, tool},
    shell::Terminal,
};

/// A card as plain text.
fn drawn(card: &Card) -> String {
    let mut text = format!("{} | {} | {}", card.title, card.subject, card.summary);
    for piece in &card.body {
        let (sign, body) = match piece {
            CardSection::Text(body) => (' ', body.clone()),
            CardSection::Muted(body) => ('.', body.clone()),
            CardSection::Alarm(body) => ('!', body.clone()),
            CardSection::Diff(hunks) => {
                let hunks: Vec<String> = hunks
                    .iter()
                    .map(|hunk| {
                        let (old, new) = (hunk.old_start, hunk.new_start);
                        format!("@{old} @{new}\n{}", hunk.lines.join("\n"))
                    })
                    .collect();
                ('±', hunks.join("\n"))
            }
        };
        for line in body.lines() {
            write!(text, "\n  {sign} {line}").unwrap();
        }
    }
    text
}

#[tokio::test]
async fn commands_and_their_results() {
    let terminal = Terminal::new();
    let calls = [
        ("Bash", json!({"command": "cat file.txt"})),
        (
            "Bash",
            json!({"command": "true", "description": "Does nothing"}),
        ),
        ("Bash", json!({"command": "echo one\necho two >&2\nexit 3"})),
        (
            "Bash",
            json!({"command": "command sleep 100", "run_in_background": true}),
        ),
        ("TaskStop", json!({"task_id": "bash_1"})),
        ("TaskOutput", json!({"task_id": "bash_1"})),
        (
            "Bash",
            json!({"command": "echo free", "dangerouslyDisableSandbox": true}),
        ),
    ];
    let mut text = String::new();
    for (name, input) in calls {
        let bound = tool(name).bind(input).unwrap();
        writeln!(text, "{}", drawn(&bound.render_use())).unwrap();
        let card = match bound.call(&terminal.context().0).await {
            Ok(output) => bound.render_result(&output),
            Err(error) => bound.render_error(&error),
        };
        writeln!(text, "{}\n", drawn(&card)).unwrap();
    }
    insta::assert_snapshot!(terminal.masked(&text));
}

#[tokio::test]
async fn calls_and_their_results() {
    let session = Session::new([("a.txt", "one\ntwo\nthree\n"), ("b.txt", "one\n")]);
    let long: String = (1..=25).map(|line| format!("line {line}\n")).collect();
    let calls = [
        ("Read", json!({"file_path": "a.txt"})),
        (
            "Read",
            json!({"file_path": "a.txt", "offset": 2, "limit": 1}),
        ),
        (
            "Edit",
            json!({"file_path": "a.txt", "old_string": "two", "new_string": "2\n2.5"}),
        ),
        (
            "Edit",
            json!({"file_path": "new.txt", "old_string": "", "new_string": "x\n"}),
        ),
        ("Write", json!({"file_path": "a.txt", "content": "1\n"})),
        ("Write", json!({"file_path": "long.txt", "content": long})),
        ("Glob", json!({"pattern": "b.*"})),
        (
            "Grep",
            json!({"pattern": "one", "glob": "*.txt", "output_mode": "content"}),
        ),
        ("LS", json!({"path": "missing"})),
    ];
    let mut text = String::new();
    for (name, input) in calls {
        let bound = session.bind(name, input);
        writeln!(text, "{}", drawn(&bound.render_use())).unwrap();
        let cx = session.context();
        let card = match bound.call(&cx).await {
            Ok(output) => bound.render_result(&output),
            Err(error) => bound.render_error(&error),
        };
        writeln!(text, "{}\n", drawn(&card)).unwrap();
    }
    insta::assert_snapshot!(session.masked(&text));
}

#[tokio::test]
async fn a_question_about_a_cell_shows_its_real_lines() {
    let session = Session::new([]);
    let notebook = json!({
        "cells": [{
            "cell_type": "code", "id": "a1", "metadata": {}, "execution_count": null, "outputs": [],
            "source": ["one\n", "two\n", "three"],
        }],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    });
    let path = session.project.path("n.ipynb");
    session.project.write("n.ipynb", format!("{notebook:#}\n"));
    let read = json!({"file_path": "n.ipynb"});
    session.say("Read", read).await.ok();
    let asked = async |mut input: serde_json::Value| {
        input["notebook_path"] = json!(path);
        let bound = session.bind("NotebookEdit", input);
        let card = bound.preview(&session.context()).await;
        card.map(|card| drawn(&card))
    };
    let replaced = json!({"cell_id": "a1", "new_source": "one\n2\nthree"});
    let replaced = asked(replaced).await.unwrap();
    assert!(replaced.contains("| cell a1 "), "{replaced}");
    let lines = "  ± @1 @1\n  ±  one\n  ± -two\n  ± +2\n  ±  three";
    assert!(replaced.ends_with(lines), "{replaced}");
    let deleted = json!({"cell_id": "a1", "new_source": "", "edit_mode": "delete"});
    let deleted = asked(deleted).await.unwrap();
    assert!(
        deleted.ends_with("  ± -one\n  ± -two\n  ± -three"),
        "{deleted}"
    );
    // What would be refused shows nothing but what was asked for.
    let unknown = json!({"cell_id": "a2", "new_source": "x"});
    assert_eq!(asked(unknown).await, None);
}
