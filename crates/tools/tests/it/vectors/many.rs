//! Vectors 96–98 of file-tools.md §8: many files as one, and taking changes back.

use std::sync::Arc;

use haft_contract::{DynTool, ToolError, ToolOutput};
use serde_json::{Value, json};

use super::{edit, read};
use crate::session::{Session, tool};

fn three_files() -> Session {
    Session::new([("a.txt", "x\n"), ("b.txt", "y x\r\n"), ("c.txt", "xx")])
}

/// Calls one and the same tool, which remembers its plans.
async fn replace(
    tool: &Arc<dyn DynTool>,
    session: &Session,
    input: Value,
) -> Result<ToolOutput, ToolError> {
    let bound = Arc::clone(tool).bind(input).unwrap();
    let cx = session.context();
    bound.check(&cx).await?;
    bound.call(&cx).await
}

async fn plan(tool: &Arc<dyn DynTool>, session: &Session) -> Value {
    let input = json!({"pattern": "x", "replacement": "z", "path": session.project.root()});
    let preview = replace(tool, session, input).await.unwrap();
    json!({"plan_id": preview.structured.unwrap()["planId"]})
}

#[tokio::test]
async fn v096_one_changed_file_stops_the_whole_plan() {
    let (session, tool) = (three_files(), tool("ReplaceInFiles"));
    let before = session.project.snapshot();
    let plan = plan(&tool, &session).await;
    assert_eq!(
        session.project.snapshot(),
        before,
        "a preview changes nothing"
    );
    session.project.write("b.txt", "y x, changed\r\n");
    let drifted = session.project.snapshot();
    let error = replace(&tool, &session, plan)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("b.txt") && !error.contains("a.txt"),
        "{error}"
    );
    assert_eq!(session.project.snapshot(), drifted);
}

#[tokio::test]
async fn v097_a_plan_is_carried_out_and_undone_as_one() {
    let (session, tool) = (three_files(), tool("ReplaceInFiles"));
    let before = session.project.snapshot();
    let plan = plan(&tool, &session).await;
    replace(&tool, &session, plan).await.unwrap();
    for (name, content) in [("a.txt", "z\n"), ("b.txt", "y z\r\n"), ("c.txt", "zz")] {
        assert_eq!(session.project.read(name), content);
    }
    session.say("Undo", json!({})).await.ok();
    assert_eq!(session.project.snapshot(), before);
}

#[tokio::test]
async fn v098_an_undo_does_not_touch_a_file_changed_since() {
    let session = Session::new([("a.txt", "one\ntwo\nthree\n")]);
    read(&session, "a.txt").await;
    session.say("Edit", edit("a.txt", "one", "1")).await.ok();
    let outside = "1\ntwo\nthree\nfour\n";
    session.project.write("a.txt", outside);
    let error = session.say("Undo", json!({})).await.error();
    assert!(error.contains("Nothing was undone"), "{error}");
    assert!(
        error.contains("+four") && error.contains("-1\n+one"),
        "{error}"
    );
    assert_eq!(session.project.read("a.txt"), outside);
}
