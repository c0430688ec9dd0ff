//! What the model reads where a call meets something unusual: what happened, and how to go on.

use std::{os::unix::fs::symlink, sync::Arc};

use haft_journal::{Journal, UndoLimits};
use serde_json::json;

use crate::session::Session;

#[tokio::test]
async fn a_cut_line_names_where_to_read_on_and_nothing_is_lost() {
    let long: String = ('a'..='z').cycle().take(5_000).collect();
    let session = Session::new([]);
    session
        .project
        .write("long.txt", format!("short\n{long}\nend\n"));
    let read = async |offset: u64, char_offset: u64| {
        let mut input = json!({"file_path": "long.txt"});
        if char_offset > 0 {
            input["offset"] = offset.into();
            input["char_offset"] = char_offset.into();
        }
        session.say("Read", input).await.ok()
    };
    let first = read(1, 0).await;
    let note = first.lines().last().unwrap();
    assert_eq!(
        note,
        "[PARTIAL view: lines 1–3 of 3; the end of the file; line 2 is cut, the rest of it: offset 2, \
         char_offset 2000]"
    );
    let shown = |text: &str| {
        let line = text.lines().find(|line| line.contains("2\t")).unwrap();
        let line = line.split_once('\t').unwrap().1;
        let line = line.split_once(" [").map_or(line, |(shown, _)| shown);
        line.trim_end_matches('…').to_owned()
    };
    let parts = [
        shown(&first),
        shown(&read(2, 2000).await),
        shown(&read(2, 4000).await),
    ];
    assert_eq!(parts.concat(), long);
    // The same where more is left out than the end of that line.
    let many = "some words in a line of their own\n".repeat(4_000);
    session.project.write("many.txt", format!("{long}\n{many}"));
    let read = json!({"file_path": "many.txt"});
    let said = session.say("Read", read).await.ok();
    let note = said.lines().last().unwrap();
    assert!(note.starts_with("[PARTIAL view: lines 1–"), "{note}");
    let rest = "; line 1 is cut, the rest of it: offset 1, char_offset 2000]";
    assert!(note.ends_with(rest), "{note}");
}

#[tokio::test]
async fn a_link_that_leads_nowhere_is_not_taken_for_a_typing_error() {
    let session = Session::new([("other.txt", "x\n")]);
    symlink("gone.txt", session.project.path("link.txt")).unwrap();
    let said = session.say("Read", json!({"file_path": "link.txt"})).await;
    let said = session.masked(&said.error());
    assert_eq!(
        said,
        "[root]/link.txt is a symbolic link to gone.txt, which does not exist or cannot be opened by its \
         name. Read the file that was meant by its own path."
    );
}

#[tokio::test]
async fn what_was_dropped_to_make_room_can_no_longer_be_undone_and_says_so() {
    let mut session = Session::new([("a.txt", "one\n"), ("b.txt", "one\n")]);
    let few = UndoLimits {
        units: 1,
        ..UndoLimits::default()
    };
    let journal = Journal::new(None)
        .with_undo(session.folder.path("few"))
        .with_undo_limits(few);
    session.services = session.services.clone().with(Arc::new(journal));
    let mut ids = Vec::new();
    for name in ["a.txt", "b.txt"] {
        session.say("Read", json!({"file_path": name})).await.ok();
        let edit = json!({"file_path": name, "old_string": "one", "new_string": "two"});
        let said = session.say("Edit", edit).await.ok();
        let (_, id) = said.rsplit_once("[undo_id ").unwrap();
        ids.push(id.trim_end().trim_end_matches(']').to_owned());
    }
    let undo = json!({"undo_id": ids[0]});
    let said = session.say("Undo", undo).await.error();
    assert!(
        said.starts_with(&format!("{} can no longer be undone", ids[0]))
            && said.contains("Use version control"),
        "{said}"
    );
    session.say("Undo", json!({"undo_id": ids[1]})).await.ok();
    let files = ["a.txt", "b.txt"].map(|name| session.project.read(name));
    assert_eq!(files, ["two\n", "one\n"]);
}
