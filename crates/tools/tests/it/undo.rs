//! `Undo`, and where calls may write.

use std::{fmt::Write, fs, os::unix::fs::symlink};

use haft_contract::{CallContext, CheckOutcome, PermissionMode};
use haft_journal::{Journal, SnapshotScope, WriteGrant};
use haft_testkit::TempProject;
use serde_json::{Value, json};

use crate::session::{Said, Session, text_of};

/// The id under which an answer says it can be undone.
fn undo_id(answer: &str) -> String {
    let (_, rest) = answer.rsplit_once("[undo_id ").expect("an undo_id");
    rest.trim_end().trim_end_matches(']').to_owned()
}

fn edit(old: &str, new: &str) -> Value {
    json!({"file_path": "a.txt", "old_string": old, "new_string": new})
}

fn in_mode(session: &Session, mode: PermissionMode) -> CallContext {
    let mut cx = session.context();
    cx.permissions.mode = mode;
    cx
}

#[tokio::test]
async fn what_the_model_reads_of_an_undo() {
    let session = Session::new([("a.txt", "one\ntwo\nthree\n")]);
    let mut text = String::new();
    let mut say = async |name: &str, input: Value| {
        let said = match session.say(name, input.clone()).await {
            Said::Ok(text) => text,
            Said::Refused(text) => format!("REFUSED {text}"),
            Said::Failed(text) => format!("FAILED {text}"),
        };
        writeln!(text, "> {name} {input}\n{said}\n").unwrap();
        said
    };
    say("Undo", json!({})).await;
    say("Read", json!({"file_path": "a.txt"})).await;
    let first = undo_id(&say("Edit", edit("two", "2")).await);
    say("Write", json!({"file_path": "new/b.txt", "content": "x\n"})).await;
    say("Undo", json!({"preview": true})).await;
    let created = undo_id(&say("Undo", json!({})).await);
    say("Undo", json!({"undo_id": created})).await;
    say("Undo", json!({"undo_id": first})).await;
    say("Undo", json!({"undo_id": first})).await;
    say("Undo", json!({"undo_id": "no-such-call"})).await;
    say("Edit", edit("one", "1")).await;
    session.project.write("a.txt", "1\ntwo\nthree\nfour\n");
    say("Undo", json!({"preview": true})).await;
    say("Undo", json!({})).await;
    assert_eq!(session.project.read("a.txt"), "1\ntwo\nthree\nfour\n");
    insta::assert_snapshot!(session.masked(&text));
}

#[tokio::test]
async fn what_the_model_reads_of_an_undone_command() {
    let session = Session::new([("a.txt", "one\ntwo\n"), ("old/b.txt", "b\n")]);
    let large = vec![b'x'; 17 << 20];
    fs::write(session.project.path("large"), &large).unwrap();
    let journal = session.services.get::<Journal>().unwrap();
    let sweep = SnapshotScope {
        roots: vec![session.project.root().to_path_buf()],
        ..SnapshotScope::default()
    };
    let before = journal.before_command(&sweep);
    session.project.write("a.txt", "one\n2\n");
    session.project.write("new/c.txt", "c\n");
    fs::remove_dir_all(session.project.path("old")).unwrap();
    fs::write(session.project.path("large"), "small").unwrap();
    let ticket = WriteGrant::unconfined("01900000-0000-7000-8000-000000000001", "Bash");
    let changed = journal.after_command(before, &ticket, "some command", &|_| false);
    assert!(changed.unit.is_some(), "{changed:?}");
    let preview = session.say("Undo", json!({"preview": true})).await.ok();
    let undone = session.say("Undo", json!({})).await.ok();
    assert_eq!(session.project.read("a.txt"), "one\ntwo\n");
    assert_eq!(session.project.read("old/b.txt"), "b\n");
    assert!(!session.project.path("new").exists());
    insta::assert_snapshot!(session.masked(&format!("{preview}\n---\n{undone}")));
}

#[tokio::test]
async fn a_person_is_told_which_files_and_asked_only_where_edits_are() {
    let session = Session::new([("a.txt", "one\n")]);
    session
        .say("Read", json!({"file_path": "a.txt"}))
        .await
        .ok();
    session.say("Edit", edit("one", "1")).await.ok();
    let bound = session.bind("Undo", json!({}));
    let asked = bound
        .check(&in_mode(&session, PermissionMode::Default))
        .await
        .unwrap();
    let CheckOutcome::Ask(reason) = asked else {
        panic!("{asked:?}")
    };
    assert!(
        reason.starts_with("it undoes Edit ") && reason.ends_with(" in a.txt"),
        "{reason}"
    );
    let bypass = in_mode(&session, PermissionMode::BypassPermissions);
    assert_eq!(bound.check(&bypass).await.unwrap(), CheckOutcome::Pass);
    let preview = session.bind("Undo", json!({"preview": true}));
    assert!(preview.effects().is_read_only() && !bound.effects().is_read_only());
    let default = in_mode(&session, PermissionMode::Default);
    assert_eq!(preview.check(&default).await.unwrap(), CheckOutcome::Pass);
}

#[tokio::test]
async fn a_call_writes_only_where_it_was_permitted() {
    let session = Session::new([("a.txt", "one\n")]);
    let elsewhere = TempProject::new([("secret.txt", "secret\n")]);
    symlink(
        elsewhere.path("secret.txt"),
        session.project.path("link.txt"),
    )
    .unwrap();
    session
        .say("Read", json!({"file_path": "link.txt"}))
        .await
        .ok();
    let calls = [
        ("Write", json!({"file_path": "link.txt", "content": "x\n"})),
        (
            "Edit",
            json!({"file_path": "link.txt", "old_string": "secret", "new_string": "x"}),
        ),
        (
            "Write",
            json!({"file_path": elsewhere.path("new.txt"), "content": "x\n"}),
        ),
    ];
    let mut cx = in_mode(&session, PermissionMode::AcceptEdits);
    for (name, input) in calls.clone() {
        let error = session
            .bind(name, input)
            .call(&cx)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("outside the directories"), "{error}");
    }
    assert_eq!(elsewhere.snapshot().len(), 1);
    // What this call was permitted by itself it may write.
    let real = elsewhere.path("secret.txt").canonicalize().unwrap();
    cx.permissions.granted = [real].into();
    let output = session
        .bind("Edit", calls[1].1.clone())
        .call(&cx)
        .await
        .unwrap();
    assert_eq!(elsewhere.read("secret.txt"), "x\n");
    // Undone by name, after a person saw the file's name; "the last" stays inside.
    let ask_last = session.bind("Undo", json!({}));
    let plain = in_mode(&session, PermissionMode::Default);
    assert!(
        ask_last
            .call(&plain)
            .await
            .unwrap_err()
            .to_string()
            .contains("outside")
    );
    let by_id = session.bind("Undo", json!({"undo_id": undo_id(&text_of(&output))}));
    by_id.call(&plain).await.unwrap();
    assert_eq!(elsewhere.read("secret.txt"), "secret\n");
}

#[tokio::test]
async fn the_undo_journal_lives_in_the_session_folder_and_nothing_in_the_workspace() {
    let session = Session::new([("a.txt", "one\n")]);
    session
        .say("Read", json!({"file_path": "a.txt"}))
        .await
        .ok();
    assert!(session.folder.snapshot().is_empty());
    session.say("Edit", edit("one", "1")).await.ok();
    assert!(session.folder.path("undo/log.jsonl").exists());
    assert_eq!(session.project.snapshot().len(), 1);
}
