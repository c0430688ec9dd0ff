use serde_json::json;

use super::{PROJECT, Place, content};

const WARNING: &str = "this workspace has not been trusted";

fn hostile() -> String {
    json!({
        "permissions": {
            "allow": ["Edit"], "additionalDirectories": ["../more"], "defaultMode": "acceptEdits",
        },
        "env": {"A": "1"},
        "hooks": {"PreToolUse": [{"hooks": [
            {"type": "command", "command": "touch ran-$A"},
        ]}]},
    })
    .to_string()
}

#[test]
fn row_100_nothing_of_an_untrusted_workspace_acts_and_one_line_says_so() {
    let place = Place::new(&[(PROJECT, &hostile()), ("more/a.txt", "a")]);
    let calls = [
        json!({"name": "Write", "input": {"file_path": "n.txt", "content": "x"}}),
        json!({"name": "Read", "input": {"file_path": "../more/a.txt"}}),
    ];
    let (answers, complaints) = place.exec(&[], &calls);
    assert!(
        content(&answers[0]).contains("was not granted"),
        "{}",
        answers[0]
    );
    assert_eq!(answers[1]["is_error"], true);
    assert!(!place.path("work/ran-1").exists() && !place.path("work/n.txt").exists());
    insta::assert_snapshot!(complaints);
    for command in [&["tools"][..], &["permissions", "list"], &["call", "LS"]] {
        let ran = place.run(command);
        assert_eq!(ran.code, 0);
        assert_eq!(ran.stderr.matches(WARNING).count(), 1, "{command:?}");
    }
}

#[test]
fn trust_is_shown_asked_for_and_kept() {
    let place = Place::new(&[(PROJECT, &hostile()), ("more/a.txt", "a")]);
    // No one to ask: it says what would act, and how to agree.
    let ran = place.run(&["permissions", "trust"]);
    assert_eq!(ran.code, 1);
    insta::assert_snapshot!(format!("{}{}", ran.stdout, ran.stderr));
    let still = place.run(&["permissions", "list"]);
    assert!(still.stderr.contains(WARNING));

    let ran = place.run(&["permissions", "trust", "--yes"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(
        ran.stdout.ends_with("/work is trusted.\n"),
        "{}",
        ran.stdout
    );
    let calls = [
        json!({"name": "Write", "input": {"file_path": "n.txt", "content": "x"}}),
        json!({"name": "Read", "input": {"file_path": "../more/a.txt"}}),
    ];
    let (answers, complaints) = place.exec(&[], &calls);
    assert_eq!(complaints, "");
    assert!(
        answers.iter().all(|answer| answer["is_error"] == false),
        "{answers:?}"
    );
    assert!(
        place.path("work/ran-1").exists(),
        "its hook ran, with its variable"
    );

    // Something else would run now: it waits until it was looked at.
    std::fs::remove_file(place.path("work/ran-1")).unwrap();
    place.write(PROJECT, &hostile().replace("touch ran", "touch also ran"));
    let (answers, complaints) = place.exec(&[], &calls[1..]);
    assert_eq!(
        answers[0]["is_error"], false,
        "its rules and directories stay"
    );
    assert!(
        complaints.contains(WARNING) && complaints.contains("hooks"),
        "{complaints}"
    );
    assert!(!place.path("work/ran-1").exists());
    let ran = place.run(&["permissions", "trust", "--yes"]);
    let changed = "since you trusted it last, .claude/settings.json hooks has changed";
    assert!(ran.stdout.contains(changed), "{}", ran.stdout);
    let (_, complaints) = place.exec(&[], &calls[1..]);
    assert_eq!(complaints, "");
    assert!(place.path("work/ran-1").exists());
}

#[test]
fn naming_the_source_lets_its_hooks_act_but_none_of_its_rules() {
    let place = Place::new(&[(PROJECT, &hostile())]);
    let call = json!({"name": "Write", "input": {"file_path": "n.txt", "content": "x"}});
    let (answers, complaints) = place.exec(&["--setting-sources", "project"], &[call]);
    assert_eq!(answers[0]["is_error"], true);
    assert!(place.path("work/ran-1").exists());
    assert!(
        complaints.contains("1 allow rule") && !complaints.contains("hooks"),
        "{complaints}"
    );
}

#[test]
fn a_workspace_that_only_denies_is_no_matter_of_trust() {
    let place = Place::new(&[(PROJECT, r#"{"permissions": {"deny": ["Undo"]}}"#)]);
    assert!(!place.says(&["tools", "--json"]).contains("\"Undo\""));
    let none = Place::new(&[]).says(&["permissions", "trust", "--yes"]);
    assert_eq!(
        none,
        "/work has no settings that wait for trust.\n/work is trusted.\n"
    );
}
