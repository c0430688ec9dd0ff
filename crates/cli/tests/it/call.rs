use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::binary::{haft, run};

#[test]
fn in_a_pipe_a_call_prints_what_the_model_reads() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    let pairs = run(
        haft(dir.path()).args(["call", "Read", "file_path=a.txt", "offset=2", "limit=1"]),
        b"",
    );
    assert_eq!((pairs.code, pairs.stderr.as_str()), (0, ""));
    assert!(
        pairs.stdout.starts_with("     2\ttwo\n"),
        "{}",
        pairs.stdout
    );
    let json = run(
        haft(dir.path()).args(["call", "Read", r#"{"file_path": "a.txt"}"#]),
        b"",
    );
    assert_eq!(json.stdout, "     1\tone\n     2\ttwo\n     3\tthree\n");
}

#[test]
fn as_json_everything_is_there() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "one\n").unwrap();
    let ran = run(
        haft(dir.path()).args(["call", "--json", "Read", "file_path=a.txt"]),
        b"",
    );
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["structured"]["file"]["content"], "one");
    assert_eq!(answer["name"], "Read");
}

#[test]
fn the_exit_code_tells_a_failed_call_from_wrong_usage() {
    let dir = tempdir().unwrap();
    let cases: [(&[&str], i32); 9] = [
        (&["call", "LS"], 0),
        (&["call", "Read", "file_path=missing"], 2),
        (&["call", "Write", "file_path=n.txt", "content=x"], 2),
        (&["call", "Nope"], 2),
        (&["call", "Read", "file_path"], 1),
        (&["call"], 1),
        (&["exce"], 1),
        (&["--no-such-flag", "tools"], 1),
        (&["--cwd", "/no/such/place", "tools"], 1),
    ];
    for (args, code) in cases {
        let ran = run(haft(dir.path()).args(args), b"");
        assert_eq!(ran.code, code, "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
    assert!(!dir.path().join("n.txt").exists());
}

#[test]
fn a_misspelt_command_is_answered_with_the_right_one() {
    let dir = tempdir().unwrap();
    let ran = run(haft(dir.path()).arg("exce"), b"");
    assert!(ran.stderr.contains("exec"), "{}", ran.stderr);
    // So near to a command that it may have been meant: what to type for a prompt is said.
    let ran = run(haft(dir.path()).arg("hello"), b"");
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.stderr,
        "haft: unknown command \"hello\". Did you mean `haft help`? To send it as a prompt: haft -p hello\n"
    );
}

#[test]
fn a_file_that_is_named_counts_as_read() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "one\n").unwrap();
    let notebook = r#"{"cells": [{"cell_type": "markdown", "id": "x", "metadata": {}, "source": "a"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;
    fs::write(dir.path().join("n.ipynb"), notebook).unwrap();
    let calls: [&[&str]; 2] = [
        &["Edit", "file_path=a.txt", "old_string=one", "new_string=1"],
        &[
            "NotebookEdit",
            "notebook_path=n.ipynb",
            "cell_id=x",
            "new_source=b",
        ],
    ];
    for call in calls {
        let accept = ["call", "--permission-mode", "acceptEdits"];
        let ran = run(haft(dir.path()).args(accept).args(call), b"");
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(fs::read_to_string(dir.path().join("a.txt")).unwrap(), "1\n");
    let changed = notebook.replace("\"a\"", "\"b\"");
    assert_eq!(
        fs::read_to_string(dir.path().join("n.ipynb")).unwrap(),
        changed
    );
}
