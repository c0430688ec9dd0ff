use serde_json::{Value, json};

use super::{Place, USER, content};

fn decision(place: &Place, flags: &[&str], command: &str) -> String {
    let args = [
        flags,
        &["permissions", "explain", "--json", "--bash", command],
    ]
    .concat();
    let said: Value = serde_json::from_str(&place.says(&args)).unwrap();
    said["decision"].as_str().unwrap().to_owned()
}

#[test]
fn rules_of_the_command_line_in_every_form() {
    let place = Place::new(&[]);
    for flags in [
        &["--allowed-tools", "Bash(make)"][..],
        &["--allowedTools", "Bash(make)"],
        &["--allowed-tools=Bash(make)"],
        &["--allowed-tools", "Read,Bash(make)"],
        &["--allowed-tools", "Read Bash(make)"],
        &["--allowed-tools", "Read", "Bash(make)"],
        &["--allowed-tools", "Bash(a, b),Bash(make)"],
        &["--allowed-tools", "Read", "--allowed-tools", "Bash(make)"],
        &["--allowed-tools", "Bash"],
    ] {
        assert_eq!(decision(&place, flags, "make"), "allow", "{flags:?}");
        let denied = [flags, &["--disallowed-tools", "Bash(make *)"]].concat();
        assert_eq!(decision(&place, &denied, "make"), "deny", "{denied:?}");
    }
    assert_eq!(
        decision(&place, &["--disallowedTools", "Bash"], "ls"),
        "deny"
    );
}

#[test]
fn behind_the_command_the_flags_mean_the_same() {
    let place = Place::new(&[]);
    let args = [
        "permissions",
        "explain",
        "--allowed-tools",
        "Bash(make)",
        "Read",
        "--bash",
        "make",
    ];
    assert!(place.says(&args).starts_with("allow"));
    // A value that is attached is the only one, so that a call can follow.
    let args = [
        "call",
        "--allowed-tools=Edit",
        "Write",
        "file_path=n.txt",
        "content=x",
    ];
    assert!(place.says(&args).contains("n.txt"));
    assert_eq!(place.read("work/n.txt"), "x");
}

#[test]
fn a_rule_that_makes_no_sense_is_told_and_the_others_count() {
    let place = Place::new(&[]);
    let ran = place.run(&[
        "--allowed-tools",
        "mcp__*",
        "Bash(make)",
        "--disallowed-tools",
        "Raed",
        "permissions",
        "explain",
        "--bash",
        "make",
    ]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.starts_with("allow"), "{}", ran.stdout);
    insta::assert_snapshot!(ran.stderr);
}

#[test]
fn settings_on_the_command_line_are_json_or_a_file() {
    let place = Place::new(&[(
        "work/given.json",
        r#"{"permissions": {"deny": ["Bash(ls *)"]}}"#,
    )]);
    let inline = r#"{"permissions": {"deny": ["Bash(ls *)"], "allow": ["Bash(make)"]}}"#;
    assert_eq!(decision(&place, &["--settings", inline], "ls"), "deny");
    assert_eq!(decision(&place, &["--settings", inline], "make"), "allow");
    assert_eq!(
        decision(&place, &["--settings", "given.json"], "ls"),
        "deny"
    );
    assert_eq!(
        decision(&place, &["--settings", "./given.json"], "make"),
        "ask"
    );
}

#[test]
fn a_file_is_named_from_where_the_command_is_typed() {
    let place = Place::new(&[
        (
            "work/given.json",
            r#"{"permissions": {"deny": ["Bash(ls *)"]}}"#,
        ),
        ("work/sub/a.txt", ""),
        ("work/more/b.txt", ""),
    ]);
    let flags = [
        "--cwd",
        "sub",
        "--settings",
        "given.json",
        "--add-dir",
        "more",
    ];
    assert_eq!(decision(&place, &flags, "ls"), "deny");
    assert_eq!(decision(&place, &flags, "cat ../more/b.txt"), "allow");
    assert_eq!(decision(&place, &flags, "cat ../given.json"), "ask");
}

#[test]
fn settings_that_were_asked_for_and_are_not_there_end_it() {
    let place = Place::new(&[("work/broken.json", "{\n\"permissions\": ]}")]);
    for (given, said) in [
        ("{\"permissions\": ", "haft: given settings: line 1"),
        (
            "nowhere.json",
            "haft: given settings: /work/nowhere.json is not a file",
        ),
        ("broken.json", "haft: /work/broken.json:2: "),
        (".", "it is not a regular file"),
    ] {
        for command in [&["tools"][..], &["exec"], &["permissions", "list"]] {
            let ran = place.run(&[&["--settings", given], command].concat());
            assert_eq!(ran.code, 1, "{given}");
            assert!(ran.stderr.contains(said), "{given}: {}", ran.stderr);
            assert_eq!(ran.stdout, "");
        }
    }
}

#[test]
fn sources_may_be_limited_to_none() {
    let place = Place::new(&[(USER, r#"{"permissions": {"deny": ["Bash(ls *)"]}}"#)]);
    assert_eq!(decision(&place, &[], "ls"), "deny");
    assert_eq!(decision(&place, &["--setting-sources", ""], "ls"), "allow");
    assert_eq!(
        decision(&place, &["--setting-sources", "project,local"], "ls"),
        "allow"
    );
    assert_eq!(
        decision(&place, &["--setting-sources", "user"], "ls"),
        "deny"
    );
    let ran = place.run(&["--setting-sources", "users", "tools"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("expected user, project or local"));
}

#[test]
fn bypass_is_not_for_root_unless_the_machine_is_a_sandbox() {
    let place = Place::new(&[]);
    let root = rustix::process::geteuid().is_root();
    for flags in [
        &["--dangerously-skip-permissions"][..],
        &["--permission-mode", "bypassPermissions"],
        &[
            "--settings",
            r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#,
        ],
    ] {
        let ran = place.run(&[flags, &["tools"]].concat());
        assert_eq!(ran.code, i32::from(root), "{flags:?}: {}", ran.stderr);
        if root {
            assert!(ran.stderr.contains("refused for root"), "{}", ran.stderr);
        }
        let write = ["call", "Write", "file_path=n.txt", "content=x"];
        let sandboxed = crate::binary::run(
            place.haft().env("IS_SANDBOX", "1").args(flags).args(write),
            b"",
        );
        assert_eq!(sandboxed.code, 0, "{}", sandboxed.stderr);
    }
    let forbidden = r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#;
    let args = [
        "--settings",
        forbidden,
        "--dangerously-skip-permissions",
        "tools",
    ];
    let ran = crate::binary::run(place.haft().env("IS_SANDBOX", "1").args(args), b"");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("switched off"), "{}", ran.stderr);
}

#[test]
fn mode_auto_needs_trust_and_says_so_in_one_line() {
    let place = Place::new(&[(USER, r#"{"permissions": {"defaultMode": "acceptEdits"}}"#)]);
    let ran = place.run(&["--permission-mode", "auto", "permissions", "list"]);
    assert!(ran.stdout.starts_with("mode default\n"), "{}", ran.stdout);
    let told = "haft: auto needs a trusted directory; this one is not trusted. Using default.\n";
    assert_eq!(ran.stderr, told);
}

#[test]
fn bypass_stops_at_what_is_denied_and_what_is_asked_for() {
    let place = Place::new(&[("work/.env", "A=1"), ("work/a.txt", "a")]);
    let args = [
        "--dangerously-skip-permissions",
        "--disallowed-tools",
        "Read(./.env)",
        "--settings",
        r#"{"permissions": {"ask": ["Read(a.txt)"]}}"#,
        "exec",
    ];
    let calls = [
        json!({"name": "Read", "input": {"file_path": ".env"}}),
        json!({"name": "Read", "input": {"file_path": "a.txt"}}),
        json!({"name": "Write", "input": {"file_path": ".git/x", "content": "x"}}),
    ];
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let ran = crate::binary::run(
        place.haft().env("IS_SANDBOX", "1").args(args),
        lines.as_bytes(),
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let answers: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(content(&answers[0]).contains("has been denied by rule Read(./.env)"));
    assert!(content(&answers[1]).contains("ask rule Read(a.txt)"));
    assert_eq!(answers[2]["is_error"], false, "{}", answers[2]);
}
