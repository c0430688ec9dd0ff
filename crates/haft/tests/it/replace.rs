//! `ReplaceInFiles` and `Undo` together: one change in many files, made everywhere or nowhere.

use std::fs;

use haft::{CallResult, Haft, PermissionMode};
use haft_testkit::TempProject;
use serde_json::{Value, json};

const FILES: [(&str, &str); 5] = [
    ("a.rs", "let colour = 1;\nuse(colour);\n"),
    ("sub/b.rs", "// colour\r\nfn colour() {}\r\n"),
    ("c.md", "colour\n"),
    (".gitignore", "ignored.rs\n"),
    ("ignored.rs", "colour\n"),
];

async fn session() -> (TempProject, Haft) {
    let project = TempProject::new([]);
    for (name, content) in FILES {
        project.write(&format!("work/{name}"), content);
    }
    fs::create_dir(project.path("work/.git")).unwrap();
    project.write("work/d.bin", b"colour\0colour");
    let haft = Haft::builder(project.path("work"))
        .permission_mode(PermissionMode::AcceptEdits)
        .session_folder(project.path("session"))
        .build()
        .await
        .unwrap();
    (project, haft)
}

/// What the model reads, without what differs from run to run.
fn plain(finished: &CallResult) -> String {
    let mut text = finished.text();
    for key in ["planId", "undoId"] {
        if let Some(id) = finished
            .structured
            .as_ref()
            .and_then(|value| value[key].as_str())
        {
            text = text.replace(id, "[id]");
        }
    }
    format!("{}{text}", if finished.is_error { "ERROR " } else { "" })
}

fn plan_id(finished: &CallResult) -> Value {
    finished.structured.as_ref().unwrap()["planId"].clone()
}

#[tokio::test]
async fn a_preview_changes_nothing_and_its_plan_is_carried_out_and_undone_as_one() {
    let (project, mut haft) = session().await;
    let before = project.snapshot();
    let input = json!({"pattern": "colour", "replacement": "color", "exclude": "*.md"});
    let preview = haft.call("ReplaceInFiles", input).await;
    assert_eq!(project.snapshot(), before);
    let applied = haft
        .call("FileSearch", json!({"plan_id": plan_id(&preview)}))
        .await;
    assert_eq!(project.read("work/a.rs"), "let color = 1;\nuse(color);\n");
    assert_eq!(
        project.read("work/sub/b.rs"),
        "// color\r\nfn color() {}\r\n"
    );
    for untouched in ["c.md", "ignored.rs"] {
        assert!(
            project
                .read(&format!("work/{untouched}"))
                .contains("colour"),
            "{untouched}"
        );
    }
    let undone = haft.call("Undo", json!({})).await;
    assert!(!undone.is_error, "{}", undone.text());
    let work = |files: &std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>| {
        let work = files.iter().filter(|(path, _)| path.starts_with("work"));
        work.map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(work(&project.snapshot()), work(&before));
    // A plan is carried out once.
    let again = haft
        .call("ReplaceInFiles", json!({"plan_id": plan_id(&preview)}))
        .await;
    let told = [&preview, &applied, &again].map(plain).join("\n\n---\n\n");
    let told = told.replace(plan_id(&preview).as_str().unwrap(), "[id]");
    insta::assert_snapshot!(told);
}

#[tokio::test]
async fn one_changed_file_stops_the_whole_plan() {
    let (project, mut haft) = session().await;
    let input = json!({"pattern": "colour", "replacement": "color"});
    let preview = haft.call("ReplaceInFiles", input).await;
    project.write("work/c.md", "colour, changed meanwhile\n");
    let before = project.snapshot();
    let refused = haft
        .call("ReplaceInFiles", json!({"plan_id": plan_id(&preview)}))
        .await;
    assert!(refused.is_error);
    assert!(refused.text().contains("c.md"), "{}", refused.text());
    assert_eq!(project.snapshot(), before);
}

#[tokio::test]
async fn a_regular_expression_is_checked_first_with_a_pointer_to_the_fault() {
    let (_project, mut haft) = session().await;
    let input = json!({"pattern": "col(our", "replacement": "x", "regex": true});
    let refused = haft.call("ReplaceInFiles", input).await;
    insta::assert_snapshot!(plain(&refused));
}

#[tokio::test]
async fn without_a_preview_it_is_done_at_once_with_groups() {
    let (project, mut haft) = session().await;
    let input = json!({
        "pattern": r"colour(\(?)", "replacement": "hue$1", "regex": true, "glob": "*.rs", "preview": false,
    });
    let done = haft.call("ReplaceInFiles", input).await;
    assert!(!done.is_error, "{}", done.text());
    assert_eq!(project.read("work/sub/b.rs"), "// hue\r\nfn hue() {}\r\n");
    assert_eq!(project.read("work/c.md"), "colour\n");
}

#[tokio::test]
async fn it_needs_permission_for_what_it_writes() {
    let (project, _) = session().await;
    let mut haft = Haft::builder(project.path("work"))
        .session_folder(project.path("session2"))
        .build()
        .await
        .unwrap();
    let before = project.snapshot();
    let input = json!({"pattern": "colour", "replacement": "color"});
    let preview = haft.call("ReplaceInFiles", input.clone()).await;
    assert!(!preview.is_error, "{}", preview.text());
    let refused = haft
        .call("ReplaceInFiles", json!({"plan_id": plan_id(&preview)}))
        .await;
    assert!(
        refused.text().contains("was not granted"),
        "{}",
        refused.text()
    );
    let at_once = json!({"pattern": "colour", "replacement": "color", "preview": false});
    assert!(haft.call("ReplaceInFiles", at_once).await.is_error);
    assert_eq!(project.snapshot(), before);
}
