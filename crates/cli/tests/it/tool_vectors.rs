//! Every vector of tools.md §27, and the test that shows it; those that had none, through the binary.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::binary::exec;

const CALLS: &str = "tools/tests/it/vectors/calls.rs";
const SHELL: &str = "tools/tests/it/shell/calls.rs";
const READ: &str = "reading";
const EDIT: &str = "edits_need_a_read_and_one_place";
const FOLLOW: &str = "edits_follow_the_file";
const MERGE: &str = "outside_changes_are_merged_or_refused";
const GLOB: &str = "globs_are_bounded_and_leave_out_ignored_files";
const GREP: &str = "greps_are_paged";
const HERE: &str = "cli/tests/it/tool_vectors.rs";

/// File and test of each, in the order of the table.
const VECTORS: [(&str, &str); 32] = [
    (CALLS, READ),
    (CALLS, READ),
    (CALLS, READ),
    (CALLS, READ),
    (CALLS, EDIT),
    (CALLS, EDIT),
    (CALLS, EDIT),
    (CALLS, FOLLOW),
    (CALLS, MERGE),
    (CALLS, MERGE),
    (CALLS, FOLLOW),
    (CALLS, EDIT),
    (CALLS, GLOB),
    (CALLS, GLOB),
    (CALLS, GREP),
    (CALLS, GREP),
    (CALLS, GREP),
    (SHELL, "vector_18_a_failure_begins_with_its_exit_code"),
    (
        SHELL,
        "vector_19_some_codes_are_answers_and_others_are_explained",
    ),
    (SHELL, "vector_20_a_directory_outside_is_taken_back"),
    (SHELL, "vector_21_variables_do_not_carry_over"),
    (SHELL, "vector_22_a_sleep_is_killed_when_its_time_is_over"),
    (SHELL, "vector_23_a_long_command_goes_on_in_the_background"),
    (
        SHELL,
        "vector_24_long_output_goes_to_a_file_and_of_a_failure_both_ends_are_shown",
    ),
    (
        SHELL,
        "vector_25_what_runs_is_listed_for_a_task_that_is_not_there",
    ),
    (
        "host/tests/it/web/readers.rs",
        "searches_give_sources_up_to_a_cap",
    ),
    (
        "host/tests/it/web/places.rs",
        "a_redirect_to_another_host_is_named_and_not_followed",
    ),
    (HERE, "vectors_28_30_and_32_through_the_binary"),
    (
        "cli/tests/it/headless/schedule_times.rs",
        "vector_29_what_is_no_time_is_refused_before_any_hook",
    ),
    (HERE, "vectors_28_30_and_32_through_the_binary"),
    (
        "cli/tests/it/headless/subagents.rs",
        "what_subagents_do_is_told_under_the_call_that_launched_them",
    ),
    (HERE, "vectors_28_30_and_32_through_the_binary"),
];

#[test]
fn every_vector_has_a_test() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (at, (file, test)) in VECTORS.iter().enumerate() {
        let text = fs::read_to_string(crates.join(file)).unwrap();
        let number = at + 1;
        assert!(
            text.contains(&format!("fn {test}(")),
            "{number}: {file} {test}"
        );
    }
}

#[test]
fn vectors_28_30_and_32_through_the_binary() {
    let dir = tempdir().unwrap();
    let notebook = json!({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    fs::write(dir.path().join("n.ipynb"), notebook.to_string()).unwrap();
    let lines = |calls: &[Value]| -> String {
        let lines = calls.iter().map(|call| format!("{call}\n"));
        lines.collect()
    };
    let insert = json!({"name": "NotebookEdit", "input": {
        "notebook_path": "n.ipynb", "new_source": "x", "edit_mode": "insert",
    }});
    let read = json!({"name": "Read", "input": {"file_path": "n.ipynb"}});
    let write = json!({"name": "Write", "input": {"file_path": ".env", "content": "A=1"}});
    let flags = [
        "--permission-mode",
        "acceptEdits",
        "--disallowed-tools",
        "Read(./.env)",
    ];
    let answers = exec(dir.path(), &flags, &lines(&[read, insert, write]));
    assert_eq!(answers[0]["is_error"], false, "{}", answers[0]);
    let refused = answers[1]["content"].to_string();
    assert!(
        answers[1]["is_error"] == true && refused.contains("cell_type"),
        "{refused}"
    );
    let denied = answers[2]["content"].to_string();
    assert!(
        answers[2]["is_error"] == true && denied.contains("denied by rule Read(./.env)"),
        "{denied}"
    );
    assert!(!dir.path().join(".env").exists());

    let option = |label: &str| json!({"label": label, "description": label});
    let question = json!({"name": "AskUserQuestion", "input": {"questions": [{
        "question": "Which?", "header": "Which", "multiSelect": false,
        "options": [option("this"), option("that")],
    }]}});
    let answers = exec(
        dir.path(),
        &["--permission-mode", "dontAsk"],
        &lines(&[question]),
    );
    let denied = answers[0]["content"].to_string();
    assert!(
        answers[0]["is_error"] == true && denied.contains("ermission"),
        "{denied}"
    );
}
