//! The editor's files: unsaved changes are seen and saved, whatever the editor does when it is asked.

use std::{cell::RefCell, fs, rc::Rc, time::Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::editor::{Editor, call, edit, project, read, text};

const ON_DISK: &str = "one\ntwo\nthree\n";
const TYPED: &str = "one\ntwo\nthree\nfour, typed and not saved\n5\n6\n7\n8\n9\n";

fn both() -> Value {
    json!({"readTextFile": true, "writeTextFile": true})
}

fn disk(dir: &TempDir) -> String {
    fs::read_to_string(dir.path().join("a")).unwrap()
}

/// An editor with a buffer for the file `a`, which is what it says and what it writes.
fn with_buffer(dir: &TempDir, turns: &[Value], buffer: &str) -> (Editor, Rc<RefCell<String>>) {
    let buffer = Rc::new(RefCell::new(buffer.to_owned()));
    let shared = Rc::clone(&buffer);
    let editor = Editor::with_files(dir, turns, both(), move |method, params| {
        let path = params["path"].as_str().unwrap();
        if !path.ends_with("/a") {
            return Some(Err(json!({"code": -32002, "message": "no such buffer"})));
        }
        Some(Ok(match method {
            "fs/read_text_file" => json!({"content": *shared.borrow()}),
            _ => {
                let content = params["content"].as_str().unwrap();
                fs::write(path, content).unwrap();
                content.clone_into(&mut shared.borrow_mut());
                json!({})
            }
        }))
    });
    (editor, buffer)
}

#[test]
fn vectors_23_and_24_unsaved_text_is_read_saved_edited_and_what_undo_goes_back_to() {
    let dir = project();
    let turns = [
        read(),
        text("seen"),
        edit("a", "two", "2"),
        text("edited"),
        call("ToolSearch", json!({"query": "select:Undo"})),
        call("Undo", json!({})),
        text("undone"),
    ];
    let (mut editor, buffer) = with_buffer(&dir, &turns, TYPED);
    editor.prompt("read");
    let result = editor.results().pop().unwrap();
    assert!(result.contains("typed and not saved"), "{result}");
    assert!(result.contains("unsaved"), "{result}");
    assert_eq!(disk(&dir), ON_DISK);

    editor.prompt("edit");
    let writes: Vec<_> = editor
        .seen
        .iter()
        .filter(|message| message["method"] == "fs/write_text_file")
        .collect();
    let [write] = writes.as_slice() else {
        panic!("{:#?}", editor.seen);
    };
    assert_eq!(write["params"]["content"], TYPED);
    let real = dir.path().canonicalize().unwrap().join("a");
    assert_eq!(write["params"]["path"], json!(real));
    assert_eq!(disk(&dir), TYPED.replace("two", "2"));
    let question = &editor.questions()[0]["params"]["toolCall"];
    assert!(
        question["content"].to_string().contains("+2") || question["content"][0]["type"] == "diff"
    );
    let result = editor.results().pop().unwrap();
    assert!(result.contains("saved your changes first"), "{result}");
    // The buffer is what was saved: stale now, and the disk is gone on with.
    assert_eq!(*buffer.borrow(), TYPED);

    editor.prompt("undo");
    assert_eq!(disk(&dir), TYPED);
}

#[test]
fn a_stale_buffer_is_not_taken_for_unsaved_changes() {
    let dir = project();
    let turns = [
        read(),
        edit("a", "two", "2"),
        edit("a", "one", "1"),
        call("Bash", json!({"command": "sed -i s/three/3/ a"})),
        read(),
        edit("a", "3", "III"),
        text("ok"),
    ];
    // This editor never notices that a file was changed.
    let (mut editor, _) = with_buffer(&dir, &turns, ON_DISK);
    editor.prompt("go");
    assert_eq!(disk(&dir), "1\n2\nIII\n", "{:#?}", editor.results());
    let writes = editor.asked_files();
    assert!(
        !writes
            .iter()
            .any(|(method, _)| *method == "write_text_file")
    );
}

#[test]
fn an_editor_that_cannot_write_has_its_person_asked_to_save() {
    let dir = project();
    let turns = [
        read(),
        edit("a", "two", "2"),
        call("Write", json!({"file_path": "a", "content": "gone\n"})),
        text("ok"),
    ];
    let can = json!({"readTextFile": true});
    let mut editor = Editor::with_files(&dir, &turns, can, |_, _| {
        Some(Ok(json!({"content": TYPED})))
    });
    editor.prompt("go");
    for result in &editor.results()[1..] {
        assert!(result.contains("Ask the user to save"), "{result}");
    }
    assert!(editor.questions().is_empty());
    assert_eq!(disk(&dir), ON_DISK);
}

#[test]
fn an_editor_that_lies_fails_or_formats_loses_nothing() {
    type Written = fn(&str, &str) -> Option<Result<Value, Value>>;
    let cases: [(&str, Written, &str, Option<&str>); 4] = [
        (
            "says yes and saves nothing",
            |_, _| Some(Ok(Value::Null)),
            "did not save",
            None,
        ),
        (
            "refuses",
            |_, _| {
                Some(Err(
                    json!({"code": -32603, "message": "the workspace is locked"}),
                ))
            },
            "the workspace is locked",
            None,
        ),
        (
            "formats what it saves",
            |path, content| {
                fs::write(path, format!("{content}// formatted\n")).unwrap();
                Some(Ok(json!({})))
            },
            "saved your changes first",
            Some("one\n2\nthree\nfour, typed and not saved\n5\n6\n7\n8\n9\n// formatted\n"),
        ),
        (
            "changes the very place",
            |path, content| {
                fs::write(path, content.replace("two", "two, formatted")).unwrap();
                Some(Ok(json!({})))
            },
            "modified since",
            Some("one\ntwo, formatted\nthree\nfour, typed and not saved\n5\n6\n7\n8\n9\n"),
        ),
    ];
    for (what, written, words, left) in cases {
        let dir = project();
        let turns = [read(), edit("a", "two\nthree", "2\nthree"), text("ok")];
        let mut editor =
            Editor::with_files(&dir, &turns, both(), move |method, params| match method {
                "fs/read_text_file" => Some(Ok(json!({"content": TYPED}))),
                _ => written(
                    params["path"].as_str().unwrap(),
                    params["content"].as_str().unwrap(),
                ),
            });
        let answer = editor.prompt("go");
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{what}");
        let result = editor.results().pop().unwrap();
        assert!(result.contains(words), "{what}: {result}");
        assert_eq!(disk(&dir), left.unwrap_or(ON_DISK), "{what}");
    }
}

#[test]
fn an_editor_that_says_nothing_or_nonsense_of_its_files_has_none() {
    for answer in [
        None,
        Some(Ok(json!({"content": 7}))),
        Some(Ok(json!(null))),
        Some(Err(json!("no"))),
        Some(Ok(json!({"content": "x\0y"}))),
        Some(Ok(json!({"content": "x".repeat(2 << 20)}))),
    ] {
        let dir = project();
        let turns = [read(), edit("a", "two", "2"), text("ok")];
        let mut editor = Editor::with_files(&dir, &turns, both(), move |_, _| answer.clone());
        let answer = editor.prompt("go");
        assert_eq!(answer["result"]["stopReason"], "end_turn");
        assert_eq!(disk(&dir), "one\n2\nthree\n");
    }
}

#[test]
fn an_editor_that_vanishes_while_it_is_asked_leaves_nothing() {
    for asked in ["fs/read_text_file", "fs/write_text_file"] {
        let dir = project();
        let turns = [read(), edit("a", "two", "2"), text("ok")];
        let mut editor = Editor::with_files(&dir, &turns, both(), move |method, _| {
            (method != asked).then(|| Ok(json!({"content": TYPED})))
        });
        let params = editor.prompt_of(json!([{"type": "text", "text": "go"}]));
        editor.send("session/prompt", params);
        editor.until(asked, |message| message["method"] == asked);
        assert_eq!(editor.talk.end(), 0, "{asked}");
        assert_eq!(disk(&dir), ON_DISK, "{asked}");
    }
}

#[test]
fn a_call_that_waits_for_the_editor_can_be_cancelled() {
    let dir = project();
    let turns = [read(), edit("a", "two", "2"), text("ok")];
    let mut editor = Editor::with_files(&dir, &turns, both(), |method, _| {
        (method == "fs/read_text_file").then(|| Ok(json!({"content": TYPED})))
    });
    let params = editor.prompt_of(json!([{"type": "text", "text": "go"}]));
    let id = editor.send("session/prompt", params);
    editor.until("the save", |message| {
        message["method"] == "fs/write_text_file"
    });
    let session = editor.session.clone();
    let since = Instant::now();
    editor.note("session/cancel", json!({"sessionId": session}));
    assert_eq!(
        editor.answer(id)["result"],
        json!({"stopReason": "cancelled"})
    );
    // Not only because the time for saving was over.
    assert!(since.elapsed().as_secs() < 9);
    assert_eq!(disk(&dir), ON_DISK);
}

#[test]
fn undo_and_replacements_leave_files_with_unsaved_changes_alone() {
    let dir = project();
    let turns = [
        read(),
        edit("a", "two", "2"),
        text("edited"),
        call("ToolSearch", json!({"query": "select:Undo,ReplaceInFiles"})),
        call("Undo", json!({})),
        call(
            "ReplaceInFiles",
            json!({"pattern": "three", "replacement": "3", "preview": false}),
        ),
        text("ok"),
    ];
    let (mut editor, buffer) = with_buffer(&dir, &turns, ON_DISK);
    editor.prompt("edit");
    "one\n2\nthree\ntyped\n".clone_into(&mut buffer.borrow_mut());
    editor.prompt("undo");
    let results = editor.results();
    for result in &results[1..] {
        assert!(result.contains("unsaved changes in a"), "{results:#?}");
    }
    assert_eq!(disk(&dir), "one\n2\nthree\n");
}

#[test]
fn a_file_that_is_only_in_the_editor_is_not_written_over() {
    let dir = project();
    let turns = [
        call("Write", json!({"file_path": "new", "content": "mine\n"})),
        text("ok"),
    ];
    let mut editor = Editor::with_files(&dir, &turns, both(), |_, _| {
        Some(Ok(json!({"content": "a draft\n"})))
    });
    editor.prompt("go");
    let result = editor.results().pop().unwrap();
    assert!(result.contains("unsaved text of that name"), "{result}");
    assert!(!dir.path().join("new").exists());
}

#[test]
fn in_review_the_editor_writes_and_haft_looks() {
    let dir = project();
    let turns = [
        read(),
        edit("a", "two", "2"),
        call("Write", json!({"file_path": "new", "content": "x\n"})),
        call("Bash", json!({"command": "cat a"})),
        text("ok"),
    ];
    let (mut editor, buffer) = with_buffer(&dir, &turns, ON_DISK);
    let session = editor.session.clone();
    let option =
        |value: &str| json!({"sessionId": session, "configId": "editor_writes", "value": value});
    let refused = editor.ask("session/set_config_option", option("sometimes"));
    assert_eq!(super::editor::code(&refused), -32602);
    let chosen = editor.ask("session/set_config_option", option("review"));
    let options = chosen["result"]["configOptions"].as_array().unwrap();
    assert_eq!(options.last().unwrap()["currentValue"], "review");
    editor.prompt("go");
    let writes: Vec<_> = editor
        .asked_files()
        .into_iter()
        .filter(|(method, _)| *method == "write_text_file")
        .collect();
    assert_eq!(
        writes,
        [("write_text_file", "a"), ("write_text_file", "new")]
    );
    assert_eq!(disk(&dir), "one\n2\nthree\n");
    assert_eq!(*buffer.borrow(), "one\n2\nthree\n");
    // The editor refused that one.
    assert!(!dir.path().join("new").exists());
    let results = editor.results();
    assert!(results[2].contains("no such buffer"), "{results:#?}");
}

#[test]
fn an_editor_without_both_abilities_has_no_choice_who_writes() {
    let dir = project();
    let can = json!({"readTextFile": true});
    let mut editor = Editor::with_files(&dir, &[text("ok")], can, |_, _| None);
    let session = editor.session.clone();
    let option = json!({"sessionId": session, "configId": "editor_writes", "value": "review"});
    let refused = editor.ask("session/set_config_option", option);
    assert_eq!(refused["error"]["data"], json!({"field": "configId"}));
}
