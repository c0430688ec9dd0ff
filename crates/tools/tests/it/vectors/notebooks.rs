//! Vectors 93–95 of file-tools.md §8; 92 is in `media`, with its notebook.

use serde_json::{Value, json};

use super::{edit, read};
use crate::session::Session;

fn notebook(minor: u8) -> String {
    let cell = |id: &str| json!({"cell_type": "code", "execution_count": 1, "id": id, "metadata": {}, "outputs": [], "source": ["x"]});
    let mut cells = vec![cell("one"), cell("two")];
    if minor < 5 {
        for cell in &mut cells {
            cell.as_object_mut().unwrap().shift_remove("id");
        }
    }
    json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}).to_string()
}

#[tokio::test]
async fn v093_an_old_notebook_gets_cells_without_ids() {
    let session = Session::new([("n.ipynb", notebook(4).as_str())]);
    read(&session, "n.ipynb").await;
    let insert = json!({"notebook_path": "n.ipynb", "cell_id": "cell-0", "new_source": "# T", "cell_type": "markdown", "edit_mode": "insert"});
    session.say("NotebookEdit", insert).await.ok();
    let after: Value = serde_json::from_str(&session.project.read("n.ipynb")).unwrap();
    let made = after["cells"][1].as_object().unwrap();
    assert_eq!(made["cell_type"], "markdown");
    assert!(
        !made.contains_key("id") && !made.contains_key("outputs"),
        "{made:?}"
    );
    assert_eq!(after["cells"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn v094_an_unknown_cell_is_answered_with_the_known_ones() {
    let before = notebook(5);
    let session = Session::new([("n.ipynb", before.as_str())]);
    read(&session, "n.ipynb").await;
    let replace = json!({"notebook_path": "n.ipynb", "cell_id": "three", "new_source": "y"});
    let error = session.say("NotebookEdit", replace).await.refused();
    assert!(error.contains("one") && error.contains("two"), "{error}");
    assert_eq!(session.project.read("n.ipynb"), before);
}

#[tokio::test]
async fn v095_edit_points_to_notebook_edit() {
    let before = notebook(5);
    let session = Session::new([("n.ipynb", before.as_str())]);
    read(&session, "n.ipynb").await;
    let error = session.say("Edit", edit("n.ipynb", "x", "y")).await;
    assert!(error.refused().contains("use NotebookEdit"));
    assert_eq!(session.project.read("n.ipynb"), before);
}
