//! The session's own `/tmp`, from a call to the end of the session: vectors F9 and F10.

use std::{fs, path::Path};

use haft_testkit::skip;
use serde_json::{Value, json};

use crate::binary::{exec, haft, run};

/// Returns the result of each call.
fn results(project: &Path, mode: &str, calls: &[(&str, Value)]) -> Vec<(bool, String)> {
    let lines: String = calls
        .iter()
        .map(|(name, input)| format!("{}\n", json!({"name": name, "input": input})))
        .collect();
    let answers = exec(project, &["--permission-mode", mode], &lines);
    answers
        .iter()
        .map(|answer| {
            let failed = answer["is_error"] == true;
            (
                failed,
                answer["content"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

fn bash(line: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": line }))
}

/// Returns whether commands have their own `/tmp` on this machine.
fn has_private_tmp(project: &Path) -> bool {
    let found = &results(project, "default", &[bash("echo $(mktemp -u)")])[0].1;
    let has = found.starts_with("/tmp/tmp.");
    if !has {
        skip("the session's own /tmp: the sandbox is reduced here");
    }
    has
}

#[test]
fn commands_and_file_tools_use_the_sessions_own_tmp() {
    let project = tempfile::tempdir().unwrap();
    fs::write(project.path().join("a"), "2\n1\n").unwrap();
    if !has_private_tmp(project.path()) {
        return;
    }
    let id = std::process::id();
    let (own, machines) = (format!("/tmp/own-{id}"), format!("/tmp/machine-{id}"));
    fs::write(&machines, "of the machine\n").unwrap();
    let calls = [
        bash(&format!("echo x > {own} && cat {own}")),
        bash(&format!("cat {own}; stat -c %a /tmp")),
        bash("T=$(mktemp); sort a > \"$T\"; cat \"$T\""),
        bash(&format!("cat {machines}")),
        bash(&format!("cat \"$(echo {machines})\"")),
        bash(&format!("bash {own}")),
        ("Read", json!({ "file_path": own })),
        (
            "Edit",
            json!({"file_path": own, "old_string": "x", "new_string": "edited"}),
        ),
        bash(&format!("cat {own}")),
        ("LS", json!({"path": "/tmp"})),
        (
            "Write",
            json!({"file_path": format!("{own}-new"), "content": "new\n"}),
        ),
        (
            "Grep",
            json!({"pattern": "new|edited", "path": "/tmp", "output_mode": "content"}),
        ),
        ("Read", json!({ "file_path": machines })),
        bash(&format!(
            "cat {own}-new; pwd; echo y > inside && cat inside"
        )),
    ];
    let results = results(project.path(), "acceptEdits", &calls);
    fs::remove_file(&machines).unwrap();
    let texts: Vec<&str> = results.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(results[0], (false, "x".to_owned()));
    assert_eq!(results[1], (false, "x\n1777".to_owned()));
    assert_eq!(results[2], (false, "1\n2".to_owned()));
    assert!(
        results[3].0 && texts[3].contains("outside the working"),
        "{}",
        texts[3]
    );
    assert!(!texts[4].contains("of the machine"), "{}", texts[4]);
    assert!(
        results[5].0 && texts[5].contains("not granted"),
        "{}",
        texts[5]
    );
    assert_eq!(results[6], (false, "     1\tx".to_owned()));
    assert!(!results[7].0 && texts[7].contains(&own), "{}", texts[7]);
    assert_eq!(results[8], (false, "edited".to_owned()));
    assert!(
        !results[9].0 && texts[9].contains(&format!("own-{id}")),
        "{}",
        texts[9]
    );
    assert!(!results[10].0 && texts[10].contains(&own), "{}", texts[10]);
    assert!(
        texts[11].contains(&format!("{own}:1:edited")),
        "{}",
        texts[11]
    );
    assert!(
        texts[11].contains(&format!("{own}-new:1:new")),
        "{}",
        texts[11]
    );
    assert!(
        results[12].0 && texts[12].contains("outside the working"),
        "{}",
        texts[12]
    );
    assert!(
        texts[13].starts_with("new\n") && texts[13].ends_with("y"),
        "{}",
        texts[13]
    );
    assert!(project.path().join("inside").exists());
    for text in texts {
        assert!(!text.contains("haft-tmp-"), "{text}");
    }
    assert!(!Path::new(&own).exists());
    // Only the change in the project can be undone.
    let listed = run(haft(project.path()).args(["undo", "--list"]), b"").stdout;
    assert_eq!(listed.matches("can be undone").count(), 1, "{listed}");
    assert!(
        !listed.contains("Edit") && !listed.contains("Write"),
        "{listed}"
    );
}

#[test]
fn in_plan_mode_a_write_to_tmp_is_not_made() {
    let project = tempfile::tempdir().unwrap();
    if !has_private_tmp(project.path()) {
        return;
    }
    let calls = [bash("echo x > /tmp/a-plan"), bash("cat /tmp/a-plan")];
    let results = results(project.path(), "plan", &calls);
    assert!(results[0].0, "{results:?}");
    assert!(results[1].1.contains("No such file"), "{results:?}");
}
