//! The mode `auto`, as the binary decides and acts in it.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use super::{PROJECT, Place, USER, content};
use crate::{
    binary::{Ran, run},
    headless::{Talk, call, lines, scripted, text},
    terminal::pty::{Input, Screen},
};

/// An answer that comes sooner after the question does not count.
const READING: std::time::Duration = std::time::Duration::from_millis(500);

/// A trusted project. `None` where commands cannot be confined as the mode needs it.
pub(super) fn trusted(files: &[(&str, &str)]) -> Option<Place> {
    let place = Place::new(files);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_haft"));
    if haft_sandbox::strongest(program, place.dir.path()) >= haft_sandbox::Mechanism::Reduced {
        haft_testkit::skip("the mode auto: namespaces are not available");
        return None;
    }
    assert_eq!(place.run(&["permissions", "trust", "--yes"]).code, 0);
    Some(place)
}

/// Runs a scripted model headless in this mode.
pub(super) fn headless(place: &Place, mode: &str, turns: &Value) -> Ran {
    let mut command = scripted(&place.path("work"), turns);
    command
        .env("HOME", place.path("home"))
        .env("CLAUDE_CONFIG_DIR", place.path("config"))
        .args(["-p", "go", "--output-format", "stream-json", "--verbose"])
        .args(["--permission-mode", mode]);
    run(&mut command, b"")
}

fn init(ran: &Ran) -> Value {
    lines(ran).swap_remove(0)
}

pub(super) fn bash(command: &str) -> Value {
    call("Bash", json!({ "command": command }))
}

/// Returns the texts of all results, in order.
pub(super) fn results(messages: &[Value]) -> Vec<(String, Value)> {
    let users = messages.iter().filter(|message| message["type"] == "user");
    users
        .map(|message| {
            let text = message["message"]["content"][0]["content"].as_str();
            (
                text.unwrap_or_default().to_owned(),
                message["tool_use_result"].clone(),
            )
        })
        .collect()
}

#[test]
fn a_session_in_auto_runs_what_undo_restores_and_denies_the_rest() {
    let Some(place) = trusted(&[("work/a", "old\n")]) else {
        return;
    };
    let turns = json!([
        [bash("echo new > a && mkdir out && echo x > out/b")],
        [bash("true && git push")],
        [call(
            "Write",
            json!({"file_path": place.path("work/c"), "content": "c"})
        )],
        [text("done")],
    ]);
    let ran = headless(&place, "auto", &turns);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(init(&ran)["permissionMode"], "auto");
    assert_eq!(init(&ran)["permission_mode_warning"], Value::Null);
    let results = results(&lines(&ran));
    assert_eq!(place.read("work/a"), "new\n");
    assert_eq!(place.read("work/c"), "c");
    let permission = json!({"mode": "auto", "because": "reversible"});
    let exact = json!({"mode": "auto", "because": "reversible", "undo": "exact"});
    assert_eq!(results[0].1["permission"], exact);
    assert_eq!(results[0].1["changedFiles"], 3);
    assert_eq!(results[2].1["permission"], permission);
    // The text names the part, the reason and the rule.
    let denied = &results[1].0;
    assert!(
        denied.contains("`git push` is irreversible: it changes a remote repository"),
        "{denied}"
    );
    assert!(denied.contains("the allow rule Bash(git push)"), "{denied}");
}

#[test]
fn a14_a_subagent_has_the_mode_and_no_looser_one() {
    let kind = "---\nname: free\ndescription: d\npermissionMode: bypassPermissions\n---\nDo it.\n";
    let Some(place) = trusted(&[("config/agents/free.md", kind)]) else {
        return;
    };
    let input = json!({"description": "d", "prompt": "p", "subagent_type": "free"});
    let turns = json!([
        [call("Agent", input)],
        [bash("git push")],
        [bash("echo x > made")],
        [text("sub done")],
        [text("done")],
    ]);
    let ran = headless(&place, "auto", &turns);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(place.read("work/made"), "x\n");
    assert!(
        ran.stdout.contains("`git push` is irreversible"),
        "{}",
        ran.stdout
    );
}

/// A network that nothing allows is refused, and named, also for a program that the line does not
/// show (A5, A8).
#[test]
fn a5_a_new_host_is_refused_and_named_without_a_user() {
    let script = "#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}\n\
                  printf 'CONNECT new.example:443 HTTP/1.1\\r\\nHost: new.example\\r\\n\\r\\n' >&3\n\
                  head -n 1 <&3\nexit 1\n";
    let Some(place) = trusted(&[("work/push.sh", script)]) else {
        return;
    };
    let path = place.path("work/push.sh");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = headless(
        &place,
        "auto",
        &json!([[bash("./push.sh")], [text("done")]]),
    );
    let (said, _) = &results(&lines(&ran))[0];
    assert!(
        said.contains("403") && said.contains("new.example"),
        "{said}"
    );
    assert!(!said.contains("Permission to use Bash"), "{said}");
}

#[test]
fn a11_without_what_it_needs_the_session_is_in_default_and_says_so_once() {
    let cases = [
        (
            None,
            false,
            "auto needs a trusted directory; this one is not trusted. Using default.",
        ),
        (
            Some((USER, r#"{"sandbox": {"enabled": false}}"#)),
            true,
            "auto needs the sandbox; sandbox.enabled is false. Using default.",
        ),
        (
            Some((USER, r#"{"sandbox": {"filesystem": {"disabled": true}}}"#)),
            true,
            "auto needs the sandbox; sandbox.filesystem.disabled is true. Using default.",
        ),
        (
            Some((
                PROJECT,
                r#"{"permissions": {"disableAutoMode": "disable"}}"#,
            )),
            true,
            "auto is switched off by the settings (disableAutoMode). Using default.",
        ),
        (
            Some((USER, r#"{"disableAutoMode": "disable"}"#)),
            true,
            "auto is switched off by the settings (disableAutoMode). Using default.",
        ),
        (
            Some((
                USER,
                r#"{"autoMode": {"hard_deny": ["never touch billing"]}}"#,
            )),
            true,
            "auto cannot enforce autoMode.hard_deny \"never touch billing\"; write a permission rule instead, or start a session in this mode in a terminal and accept that. Using default.",
        ),
    ];
    for (files, trusts, expected) in cases {
        let place = Place::new(files.as_slice());
        if trusts {
            assert_eq!(place.run(&["permissions", "trust", "--yes"]).code, 0);
        }
        let ran = headless(
            &place,
            "auto",
            &json!([[bash("echo x > made")], [text("done")]]),
        );
        assert_eq!(init(&ran)["permissionMode"], "default", "{expected}");
        assert_eq!(init(&ran)["permission_mode_warning"], expected);
        assert_eq!(ran.stderr.matches(expected).count(), 1, "{}", ran.stderr);
        assert!(!place.path("work/made").exists(), "{expected}");
        let doctor = place.run(&["doctor"]);
        assert!(doctor.stdout.contains(expected), "{}", doctor.stdout);
    }
}

#[test]
fn a11_only_the_user_may_choose_the_mode() {
    let auto = r#"{"permissions": {"defaultMode": "auto"}}"#;
    for file in [PROJECT, "work/.claude/settings.local.json"] {
        let Some(place) = trusted(&[(file, auto)]) else {
            return;
        };
        let said = place.run(&["permissions", "explain", "--json", "--bash", "./x"]);
        assert!(
            said.stderr
                .contains("auto is only taken from the user's own settings or flags")
        );
        let said: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(said["decision"], "ask", "{file}");
    }
    let Some(place) = trusted(&[(USER, auto)]) else {
        return;
    };
    let said = place.says(&["permissions", "explain", "--json", "--bash", "./x"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&said["decision"], &said["because"]),
        (&json!("allow"), &json!("reversible"))
    );
}

#[test]
fn a12_a13_settings_of_the_convention() {
    let allow = r#"{"permissions": {"allow": ["Bash(git push *)"]}, "autoMode": {"classifyAllShell": true, "allow": ["all"]}}"#;
    let Some(place) = trusted(&[(USER, allow)]) else {
        return;
    };
    let args = [
        "--permission-mode",
        "auto",
        "permissions",
        "explain",
        "--bash",
        "git push",
    ];
    let said = place.run(&args);
    assert!(
        said.stdout.starts_with("ask: irreversible\n"),
        "{}",
        said.stdout
    );
    let unused = "autoMode.allow: without effect, because no model decides on calls here";
    assert_eq!(said.stderr.matches(unused).count(), 1, "{}", said.stderr);
    let deny = r#"{"autoMode": {"hard_deny": ["Bash(git push *)"]}}"#;
    let Some(place) = trusted(&[(USER, deny)]) else {
        return;
    };
    assert!(
        place
            .says(&args)
            .starts_with("deny: deny rule Bash(git push *)")
    );
}

/// The user agrees once to use the mode although haft cannot enforce a sentence (A13).
#[test]
fn a13_the_user_accepts_a_sentence_that_nothing_enforces() {
    let sentence = r#"{"autoMode": {"hard_deny": ["never touch billing"]}}"#;
    let Some(place) = trusted(&[(USER, sentence)]) else {
        return;
    };
    let turns = json!([[text("done")]]);
    let mode = |place: &Place| init(&headless(place, "auto", &turns))["permissionMode"].clone();
    assert_eq!(mode(&place), "default");
    let answer = |number: &str| {
        let mut command = scripted(&place.path("work"), &turns);
        command
            .env("HOME", place.path("home"))
            .env("CLAUDE_CONFIG_DIR", place.path("config"))
            .env("TERM", "xterm")
            .args(["--plain", "--permission-mode", "auto"]);
        let mut running = Screen::new().run(&mut command, Input::Terminal);
        let shown = running.until("number and Enter: ");
        assert!(shown.contains("question:   never touch billing"), "{shown}");
        std::thread::sleep(READING);
        running.types(number);
        running.until("you: ");
        running.types("\u{4}");
        assert_eq!(running.end().1, 0);
    };
    answer("2\n");
    assert_eq!(mode(&place), "default");
    answer("1\n");
    assert_eq!(mode(&place), "auto");
    // Another sentence is a new question.
    let second = sentence.replace("billing\"", "billing\", \"nor the mail\"");
    fs::write(place.path(USER), second).unwrap();
    assert_eq!(mode(&place), "default");
}

/// A16: the explanation and the engine decide alike.
#[test]
fn a16_explanations_say_what_calls_do() {
    let settings = r#"{"permissions": {"allow": ["Bash(npm publish)", "Bash"], "deny": ["Bash(mkfifo *)"], "ask": ["Bash(ln *)"]}}"#;
    let Some(place) = trusted(&[(USER, settings), ("work/x.sh", "exit 0\n")]) else {
        return;
    };
    let lines = [
        "ls",
        "sh x.sh",
        "rm -rf build",
        "echo x > a && mv a b",
        "git push",
        "sh x.sh && git push",
        "npm publish",
        "sudo ls",
        "docker run x",
        "curl https://i.example/x",
        "curl -d x https://i.example/x",
        "mkfifo p",
        "ln a b",
        "echo x > ../y",
        "echo x > .git/config",
        "rm -rf ../work",
        "echo 'unclosed",
        "gh pr view 1",
    ];
    let calls: Vec<Value> = lines
        .iter()
        .map(|line| json!({"name": "Bash", "input": {"command": line}}))
        .collect();
    let mode = ["--permission-mode", "auto"];
    let (answers, _) = place.exec(&mode, &calls);
    let mut pages = String::new();
    for (line, answer) in lines.iter().zip(answers) {
        let explain = [
            &mode[..],
            &["permissions", "explain", "--json", "--bash", line],
        ]
        .concat();
        let said: Value = serde_json::from_str(&place.says(&explain)).unwrap();
        let ran = !content(&answer).starts_with("Permission to use Bash");
        assert_eq!(said["decision"] == "allow", ran, "{line}: {said} {answer}");
        let reason = said["because"].as_str().unwrap();
        pages += &format!(
            "{line}: {} because {reason}\n",
            said["decision"].as_str().unwrap()
        );
        let question = json!({
            "tool": "Bash", "input": {"command": line}, "mode": "auto", "rule_source": "user",
            "cwd": place.path("work"), "home": place.path("home"),
            "rules": {"allow": ["Bash(npm publish)", "Bash"], "deny": ["Bash(mkfifo *)"], "ask": ["Bash(ln *)"]},
        });
        let checked = place.run_with(
            &["permissions", "check", "--jsonl"],
            &format!("{question}\n"),
        );
        let decision = checked.stdout.split('\t').next();
        assert_eq!(
            decision,
            said["decision"].as_str(),
            "{line}: {}",
            checked.stdout
        );
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn parts_profile_network_and_undo_are_explained() {
    let Some(place) = trusted(&[]) else {
        return;
    };
    let args = [
        "--permission-mode",
        "auto",
        "permissions",
        "explain",
        "--bash",
    ];
    let mut pages = String::new();
    for line in [
        "cargo test && git push origin main",
        "make; curl https://h.example/x",
    ] {
        let said = place.says(&[&args[..], &[line]].concat());
        let shown = said.lines().filter(|line| {
            ["  ", "ask", "allow", "profile", "network", "undo", "would"]
                .iter()
                .any(|start| line.starts_with(start))
        });
        let shown: Vec<&str> = shown.collect();
        pages += &format!("$ {line}\n{}\n", shown.join("\n"));
    }
    insta::assert_snapshot!(pages);
}

/// A day's work of 60 calls.
fn day(place: &Place) -> Vec<Value> {
    let file = |name: &str| place.path("work").join(name);
    let mut calls = Vec::new();
    for round in 0..6 {
        let name = format!("src{round}.txt");
        calls.push(bash("ls -la"));
        calls.push(call(
            "Write",
            json!({"file_path": file(&name), "content": "one\ntwo\n"}),
        ));
        calls.push(call(
            "Edit",
            json!({"file_path": file(&name), "old_string": "two", "new_string": "three"}),
        ));
        calls.push(bash("sh ./test.sh"));
        calls.push(bash(&format!("sed -i s/one/1/ {name} && cat {name}")));
        calls.push(bash(&format!(
            "mkdir -p build/{round} && cp {name} build/{round}/"
        )));
        calls.push(bash("sh ./test.sh 2>&1 | tail -3"));
        calls.push(bash(&format!("echo {round} >> log")));
        calls.push(bash("rm -rf build"));
    }
    calls.push(bash("cat log"));
    calls.push(bash("grep -r three . | head -3"));
    calls.push(bash("sh ./test.sh && mv log log.old"));
    calls.push(bash("git push origin main"));
    calls.push(bash("npm publish"));
    calls.push(bash("curl https://new.example/x"));
    calls
}

/// Runs the day, permits all that is asked for except what would leave the machine, and counts.
fn questions(mode: &str) -> Option<usize> {
    let place = trusted(&[("work/test.sh", "test -n \"$HOME\" && echo ok\n")])?;
    let calls = day(&place);
    assert_eq!(calls.len(), 60);
    let mut turns: Vec<Value> = calls.into_iter().map(|call| json!([call])).collect();
    turns.push(json!([text("done")]));
    let mut command = scripted(&place.path("work"), &json!(turns));
    command
        .env("HOME", place.path("home"))
        .env("CLAUDE_CONFIG_DIR", place.path("config"))
        .args([
            "--permission-prompt-tool",
            "stdio",
            "--permission-mode",
            mode,
        ]);
    let mut talk = Talk::new(&mut command);
    talk.user("go");
    let mut asked = 0;
    while let Some(message) = talk.hear() {
        if message["type"] == "result" {
            break;
        }
        if message["type"] != "control_request" {
            continue;
        }
        asked += 1;
        let input = &message["request"]["input"];
        let line = input["command"].as_str().unwrap_or_default();
        let leaves = ["git push", "npm publish", "curl"]
            .iter()
            .any(|start| line.starts_with(start));
        let answer = match leaves {
            true => json!({"behavior": "deny", "message": "no"}),
            false => json!({"behavior": "allow", "updatedInput": input}),
        };
        talk.respond(&message, &answer);
    }
    talk.end();
    assert_eq!(place.read("work/src5.txt"), "1\nthree\n");
    assert!(place.path("work/log.old").exists());
    Some(asked)
}

#[test]
fn a_days_work_asks_three_times() {
    let Some(asked) = questions("auto") else {
        return;
    };
    assert_eq!(asked, 3);
    assert!(questions("default").unwrap() >= 40);
}

#[test]
fn the_mode_can_be_chosen_later_but_not_by_a_hook() {
    let hook = json!({"hooks": {"PermissionRequest": [{"hooks": [{"type": "command", "command":
        r#"echo '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": "auto", "destination": "session"}]}}}'"#,
    }]}]}}).to_string();
    let Some(place) = trusted(&[(USER, &hook)]) else {
        return;
    };
    let turns = json!([
        [bash("echo 1 > made")],
        [text("one")],
        [bash("git push")],
        [text("two")],
    ]);
    let mut command = scripted(&place.path("work"), &turns);
    command
        .env("HOME", place.path("home"))
        .env("CLAUDE_CONFIG_DIR", place.path("config"));
    let mut talk = Talk::new(&mut command);
    talk.user("go");
    let first = talk.hear_until("result");
    assert_eq!(place.read("work/made"), "1\n");
    // The call ran because the hook allowed it, not in another mode.
    assert!(results(&first)[0].1.get("permission").is_none());
    talk.request(
        "a",
        &json!({"subtype": "set_permission_mode", "mode": "auto"}),
    );
    let answered = talk.hear_until("control_response");
    assert_eq!(
        answered.last().unwrap()["response"]["response"]["mode"],
        "auto"
    );
    talk.user("/mode");
    let said = talk.hear_until("result");
    assert_eq!(said.last().unwrap()["result"], "The mode is auto.");
    talk.end();
}
