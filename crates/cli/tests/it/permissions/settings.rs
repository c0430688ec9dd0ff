use serde_json::json;

use super::{PROJECT, Place, USER, content};
use crate::binary::Conversation;

#[test]
fn a_denied_tool_is_not_offered_and_calls_of_it_are_refused() {
    for file in [USER, PROJECT] {
        let place = Place::new(&[(file, r#"{"permissions": {"deny": ["Write", "Undo"]}}"#)]);
        let definitions = place.says(&["tools", "--json"]);
        assert!(!definitions.contains("\"Write\""), "{file}");
        assert!(definitions.contains("\"Edit\""), "{file}");
        assert!(
            place
                .says(&["tools"])
                .contains("Write is forbidden by the rule Write (")
        );
        let call = json!({"name": "Write", "input": {"file_path": "n.txt", "content": "x"}});
        let (answers, complaints) = place.exec(&["--permission-mode", "acceptEdits"], &[call]);
        assert_eq!(complaints, "");
        assert_eq!(answers[0]["is_error"], true);
        let told = content(&answers[0]);
        assert!(
            told.contains("Permission to use Write has been denied by rule Write."),
            "{told}"
        );
        assert!(!place.path("work/n.txt").exists());
    }
}

#[test]
fn row_111_a_denied_file_is_left_out_of_searches() {
    let place = Place::new(&[
        (
            PROJECT,
            r#"{"permissions": {"deny": ["Read(./.env)", "Read(./private/**)"]}}"#,
        ),
        ("work/.env", "x=1\n"),
        ("work/sub/.env", "x=2\n"),
        ("work/private/k.txt", "x=3\n"),
        ("work/a.txt", "x=4\n"),
    ]);
    let call = |name: &str, input| json!({"name": name, "input": input});
    let calls = [
        call(
            "Grep",
            json!({"pattern": "x=", "path": place.path("work"), "output_mode": "content"}),
        ),
        call("Glob", json!({"pattern": "**/*"})),
        call("Grep", json!({"pattern": "x", "path": ".env"})),
        call("Grep", json!({"pattern": "x", "path": "private"})),
        call("Glob", json!({"pattern": "*", "path": "private"})),
        call("Read", json!({"file_path": ".env"})),
        call(
            "Edit",
            json!({"file_path": ".env", "old_string": "1", "new_string": "2"}),
        ),
        call("Read", json!({"file_path": "sub/.env"})),
        call(
            "ReplaceInFiles",
            json!({"pattern": "x=", "replacement": "y=", "path": "."}),
        ),
    ];
    let (answers, _) = place.exec(&["--permission-mode", "acceptEdits"], &calls);
    for search in &answers[..2] {
        let found = content(search);
        assert!(
            found.contains("a.txt") && found.contains("sub/.env"),
            "{found}"
        );
        assert!(
            !found.contains("private") && !found.contains("work/.env"),
            "{found}"
        );
        assert!(!found.contains("x=1") && !found.contains("x=3"), "{found}");
    }
    for (at, rule) in [
        (2, "Read(./.env)"),
        (3, "Read(./private/**)"),
        (4, "Read(./private/**)"),
        (5, "Read(./.env)"),
        (6, "Read(./.env)"),
    ] {
        let told = content(&answers[at]);
        assert!(
            told.contains(&format!("denied by rule {rule}")),
            "{at}: {told}"
        );
    }
    assert_eq!(answers[7]["is_error"], false);
    assert_eq!(place.read("work/.env"), "x=1\n", "{}", answers[8]);
    assert_eq!(place.read("work/private/k.txt"), "x=3\n", "{}", answers[8]);
}

#[test]
fn hooks_of_the_user_run_around_calls_with_the_variables_of_the_settings() {
    let command = |text: &str| json!([{"hooks": [{"type": "command", "command": text}]}]);
    let settings = json!({
        "env": {"WHO": "me", "GONE": ""},
        "hooks": {
            "PreToolUse": command("cat > /dev/null; echo before $WHO ${GONE-gone} >> log"),
            "PostToolUse": command("grep -o '\"tool_name\":\"[A-Za-z]*\"' >> log"),
        },
    });
    let place = Place::new(&[(USER, &settings.to_string()), ("work/a.txt", "alpha\n")]);
    let call = json!({"name": "Read", "input": {"file_path": "a.txt"}});
    let lines = format!("{call}\n");
    let ran = crate::binary::run(
        place.haft().env("GONE", "here").arg("exec"),
        lines.as_bytes(),
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        place.read("work/log"),
        "before me gone\n\"tool_name\":\"Read\"\n"
    );
}

#[test]
fn a_hook_of_the_user_refuses_a_call() {
    let refuse = json!({"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [
        {"type": "command", "command": "echo 'not this one' >&2; exit 2"},
    ]}]}});
    let place = Place::new(&[(USER, &refuse.to_string()), ("work/a.txt", "alpha\n")]);
    let calls = [
        json!({"name": "Read", "input": {"file_path": "a.txt"}}),
        json!({"name": "LS", "input": {}}),
    ];
    let (answers, _) = place.exec(&[], &calls);
    assert!(
        content(&answers[0]).contains("not this one"),
        "{}",
        answers[0]
    );
    assert_eq!(answers[1]["is_error"], false);
}

#[test]
fn what_is_wrong_with_settings_is_told_and_the_session_goes_on() {
    let place = Place::new(&[
        (
            USER,
            "{\n  \"permissions\": {\"deny\": [\"Read(x\", \"Undo\"]},\n  \"hooks\": {\"Never\": []}\n}",
        ),
        (PROJECT, "{ \"permissions\": "),
    ]);
    let ran = place.run(&["tools", "--json"]);
    assert_eq!(ran.code, 0);
    assert!(!ran.stdout.contains("\"Undo\""));
    insta::assert_snapshot!(ran.stderr);
}

#[test]
fn a_further_directory_that_is_not_there_is_told_and_the_session_goes_on() {
    let place = Place::new(&[
        (
            USER,
            r#"{"permissions": {"additionalDirectories": ["../gone", "../more"]}}"#,
        ),
        ("more/a.txt", "a\n"),
    ]);
    let call = json!({"name": "Read", "input": {"file_path": "../more/a.txt"}});
    let (answers, complaints) = place.exec(&[], &[call]);
    assert_eq!(answers[0]["is_error"], false);
    assert_eq!(
        complaints,
        "haft: additionalDirectories: /work/../gone is not a directory; it is ignored\n"
    );
    let ran = place.run(&["--add-dir", "../gone", "tools"]);
    assert_eq!(ran.code, 1, "a flag is meant");
}

#[test]
fn a_home_that_is_no_path_is_none() {
    let place = Place::new(&[(
        "work/.claude/settings.json",
        r#"{"permissions": {"allow": ["Bash(make)"]}}"#,
    )]);
    for home in ["", ".", "work"] {
        let mut command = place.haft();
        command.env("HOME", home).env("CLAUDE_CONFIG_DIR", "");
        let ran = crate::binary::run(command.args(["permissions", "list"]), b"");
        assert!(
            ran.stderr.contains("has not been trusted"),
            "{home:?}: {}",
            ran.stderr
        );
        let allows = |line: &str| line.starts_with("allow");
        assert!(!ran.stdout.lines().any(allows), "{home:?}: {}", ran.stdout);
        assert!(ran.stdout.contains("waits"), "{home:?}: {}", ran.stdout);
    }
}

#[test]
fn a_change_is_not_taken_back_where_nothing_may_be_changed_any_more() {
    let place = Place::new(&[("work/a.txt", "one\n")]);
    let mut command = place.haft();
    command.args(["--permission-mode", "acceptEdits"]);
    let mut conversation = Conversation::of(&mut command);
    let read = json!({"name": "Read", "input": {"file_path": "a.txt"}});
    conversation.ask(&read);
    let edit = json!({"name": "Edit", "input": {
        "file_path": "a.txt", "old_string": "one", "new_string": "two",
    }});
    assert_eq!(conversation.ask(&edit)["is_error"], false);
    place.write(USER, r#"{"permissions": {"deny": ["Edit(a.txt)"]}}"#);
    let undo = json!({"name": "Undo", "input": {}});
    let preview = json!({"name": "Undo", "input": {"preview": true}});
    let refused = conversation.ask(&undo);
    let told = "Permission to use Undo has been denied: it is about a.txt, which a rule denies";
    assert_eq!(content(&refused), told);
    assert_eq!(conversation.ask(&preview)["is_error"], false);
    place.write(USER, r#"{"permissions": {"deny": ["Read(a.txt)"]}}"#);
    assert_eq!(content(&conversation.ask(&preview)), told);
    assert_eq!(conversation.end(), 0);
    assert_eq!(place.read("work/a.txt"), "two\n");
}

#[test]
fn the_rules_in_force_are_listed_with_where_they_stand() {
    let place = Place::new(&[
        (
            USER,
            "{\"permissions\": {\n\"allow\": [\"Bash(npm test *)\"],\n\"additionalDirectories\": [\"../more\"]}}",
        ),
        (
            PROJECT,
            "{\"permissions\": {\n\"deny\": [\"Read(./.env)\"], \"ask\": [\"Bash(git push *)\"]}}",
        ),
        ("more/a", ""),
    ]);
    let flags = [
        "--disallowed-tools",
        "Bash(rm *)",
        "--permission-mode",
        "plan",
    ];
    let table = place.says(&[&flags[..], &["permissions", "list"]].concat());
    let json = place.says(&[&flags[..], &["permissions", "list", "--json"]].concat());
    insta::assert_snapshot!(format!("{table}\n{json}"));
    let none = Place::new(&[]).says(&["permissions", "list"]);
    insta::assert_snapshot!(none, @r"
    mode default
    no rules: reads inside the working directories and read-only commands run; everything else asks
    ");
}

#[test]
fn a_rule_written_while_it_runs_counts_from_the_next_call_on() {
    let place = Place::new(&[("work/a.txt", "alpha\n")]);
    let mut conversation = Conversation::of(&mut place.haft());
    let read = json!({"name": "Read", "input": {"file_path": "a.txt"}});
    assert_eq!(conversation.ask(&read)["is_error"], false);
    place.write(USER, r#"{"permissions": {"deny": ["Read(a.txt)"]}}"#);
    let refused = conversation.ask(&read);
    assert!(
        content(&refused).contains("denied by rule Read(a.txt)"),
        "{refused}"
    );
    place.write(USER, r#"{"permissions": {"allow": ["Edit"]}}"#);
    let write = json!({"name": "Write", "input": {"file_path": "n.txt", "content": "x"}});
    assert_eq!(conversation.ask(&read)["is_error"], true);
    assert_eq!(conversation.ask(&write)["is_error"], true);
    assert_eq!(conversation.end(), 0);
    assert!(!place.path("work/n.txt").exists());
}

#[test]
fn an_allow_rule_of_the_user_lets_edits_through_and_no_further() {
    let place = Place::new(&[(USER, r#"{"permissions": {"allow": ["Edit(docs/**)"]}}"#)]);
    let write = |path: &str| json!({"name": "Write", "input": {"file_path": path, "content": "x"}});
    let calls = [
        write("docs/a.md"),
        write("a.md"),
        write("docs/../b.md"),
        write("docs/.git/config"),
        write("../docs/a.md"),
    ];
    let (answers, _) = place.exec(&[], &calls);
    let refused: Vec<_> = answers
        .iter()
        .map(|answer| answer["is_error"] == true)
        .collect();
    assert_eq!(refused, [false, true, true, true, true], "{answers:?}");
    assert_eq!(place.read("work/docs/a.md"), "x");
}
