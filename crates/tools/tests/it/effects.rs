//! What a call touches, what it is filled up to before anyone judges it, and how it ends when it is
//! cancelled.

use haft_contract::{Effects, ToolAccess, ToolError};
use serde_json::{Value, json};

use crate::session::{Session, tool};

#[test]
fn effects_name_what_is_touched() {
    let session = Session::new([("a.txt", "x\n")]);
    let (file, missing) = (session.project.path("a.txt"), session.project.path("b.txt"));
    let root = session.project.root();
    let cases = [
        (
            "Read",
            json!({"file_path": file}),
            Effects {
                in_order: true,
                ..Effects::reading([file.clone()])
            },
        ),
        (
            "Read",
            json!({"file_path": missing}),
            Effects {
                in_order: true,
                ..Effects::READS
            },
        ),
        (
            "Write",
            json!({"file_path": missing, "content": ""}),
            Effects::writing([missing.clone()]),
        ),
        (
            "Edit",
            json!({"file_path": file, "old_string": "x", "new_string": "y"}),
            Effects::writing([file.clone()]),
        ),
        ("LS", json!({"path": root}), Effects::READS),
        (
            "Glob",
            json!({"pattern": "*", "path": root}),
            Effects::READS,
        ),
        (
            "Grep",
            json!({"pattern": "x", "path": root}),
            Effects::READS,
        ),
    ];
    for (name, input, effects) in cases {
        assert_eq!(session.bind(name, input).effects(), effects, "{name}");
    }
}

/// The permission check judges `path`: it must be there and say where the search begins.
#[test]
fn the_place_of_a_search_is_always_in_its_path() {
    let cases = [
        // (tool, input, path and pattern after)
        ("Glob", json!({"pattern": "*.rs"}), (".", "*.rs")),
        ("Glob", json!({"pattern": "/etc/*"}), ("/etc/", "./*")),
        (
            "Glob",
            json!({"pattern": "../*", "path": "a"}),
            ("a/..", "./*"),
        ),
        ("Grep", json!({"pattern": "x", "path": "null"}), (".", "x")),
        ("Grep", json!({"pattern": "/etc/x"}), (".", "/etc/x")),
    ];
    for (name, mut input, (path, pattern)) in cases {
        tool(name).backfill(&mut input);
        assert_eq!(
            (&input["path"], &input["pattern"]),
            (&json!(path), &json!(pattern)),
            "{name}"
        );
    }
    let mut no_object = Value::Null;
    for name in ["LS", "Glob", "Grep"] {
        tool(name).backfill(&mut no_object);
        assert_eq!(no_object, Value::Null, "{name}");
    }
}

#[test]
fn a_tool_says_what_it_can_do_at_most() {
    for tool in haft_tools::all() {
        let spec = tool.spec();
        let expected = match spec.name.as_str() {
            "Write" | "Edit" | "NotebookEdit" | "ReplaceInFiles" => ToolAccess::Paths,
            "Bash" | "Browser" | "Config" | "CronCreate" | "CronDelete" | "EnterWorktree"
            | "ExitWorktree" | "MemoryWrite" | "Monitor" | "REPL" | "ScheduleWakeup" | "Skill"
            | "TaskStop" | "Undo" => ToolAccess::Anything,
            _ => ToolAccess::Reads,
        };
        assert_eq!(spec.profile.access, expected, "{}", spec.name);
    }
}

#[tokio::test]
async fn a_cancelled_call_does_nothing() {
    let session = Session::new([("a.txt", "x\n")]);
    session
        .say("Read", json!({"file_path": "a.txt"}))
        .await
        .ok();
    let before = session.project.snapshot();
    for (name, input) in [
        ("Read", json!({"file_path": "a.txt"})),
        ("Write", json!({"file_path": "a.txt", "content": "y\n"})),
        (
            "Edit",
            json!({"file_path": "a.txt", "old_string": "x", "new_string": "y"}),
        ),
        ("LS", json!({})),
        ("Glob", json!({"pattern": "*"})),
        ("Grep", json!({"pattern": "x"})),
    ] {
        let cx = session.context();
        cx.cancel.cancel();
        let result = session.bind(name, input).call(&cx).await;
        assert!(
            matches!(result, Err(ToolError::Cancelled)),
            "{name}: {result:?}"
        );
    }
    assert_eq!(session.project.snapshot(), before);
}
