//! What the program at the other end may ask, and what it is told about refusals.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, answer, call, kinds, scripted, steady_lines, text};

fn bash(command: &str) -> Value {
    call("Bash", json!({"command": command}))
}

fn of_kind<'a>(heard: &'a [Value], subtype: &str) -> Vec<&'a Value> {
    heard
        .iter()
        .filter(|one| one["subtype"] == subtype)
        .collect()
}

#[test]
fn a_refusal_is_told_where_nobody_was_asked() {
    let dir = tempdir().unwrap();
    let turns = json!([
        [bash("touch by-rule")],
        [bash("touch by-hook")],
        [bash("touch by-nobody")],
        [text("Nothing.")]
    ]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--disallowedTools", "Bash(touch by-rule)"]));
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h"]}]});
    talk.request("i", &json!({"subtype": "initialize", "hooks": hooks}));
    talk.user("go");
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.extend(talk.hear_until("control_request"));
        let hook = heard.last().unwrap().clone();
        let command = &hook["request"]["input"]["tool_input"]["command"];
        let decision = match command == "touch by-hook" {
            true => json!({"hookEventName": "PreToolUse", "permissionDecision": "deny"}),
            false => json!({"hookEventName": "PreToolUse"}),
        };
        talk.respond(&hook, &json!({"hookSpecificOutput": decision}));
    }
    heard.extend(talk.hear_until("result"));
    let told: Vec<Value> = of_kind(&heard, "permission_denied")
        .into_iter()
        .cloned()
        .collect();
    insta::assert_snapshot!(steady_lines(&told, dir.path()));
    let denials = &heard.last().unwrap()["permission_denials"];
    assert_eq!(denials.as_array().unwrap().len(), 3);
    assert_eq!(talk.end().1, 0);
}

#[test]
fn rules_that_come_with_an_answer_count_at_once_and_are_kept_where_it_says() {
    let dir = tempdir().unwrap();
    let turns = json!([
        [bash("mkdir a")],
        [bash("mkdir b")],
        [bash("touch x")],
        [bash("touch y")],
        [text("Done.")]
    ]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--permission-prompt-tool", "stdio"]));
    talk.user("go");
    for (rule, destination) in [("mkdir *", "localSettings"), ("touch *", "userSettings")] {
        let question = talk.hear_until("control_request").pop().unwrap();
        let rules = json!([{"toolName": "Bash", "ruleContent": rule}]);
        let update = json!({
            "type": "addRules", "rules": rules, "behavior": "allow", "destination": destination,
        });
        let allow = json!({"behavior": "allow", "updatedPermissions": [update]});
        talk.respond(&question, &allow);
    }
    let heard = talk.hear_until("result");
    assert!(!kinds(&heard).contains(&"control_request".to_owned()));
    let told = of_kind(&heard, "informational")[0]["content"].to_string();
    assert!(told.contains("to this session only"), "{told}");
    for name in ["a", "b", "x", "y"] {
        assert!(dir.path().join(name).exists(), "{name}");
    }
    let kept = fs::read_to_string(dir.path().join(".claude/settings.local.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["permissions"]["allow"], json!(["Bash(mkdir *)"]));
    assert_eq!(talk.end().1, 0);

    // The next session knows it for what a person agreed to here. What is written beside it by
    // another hand does not count, and neither does all of it elsewhere.
    let next = |folder: &Path, command: &str| {
        let turns = json!([[bash(command)], [text("Done.")]]);
        let ran = answer(
            scripted(dir.path(), &turns)
                .current_dir(folder)
                .arg("-p")
                .arg("go"),
        );
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
    };
    assert_eq!(next(dir.path(), "mkdir c"), "");
    assert!(dir.path().join("c").exists());
    let local = dir.path().join(".claude/settings.local.json");
    let wider = json!({
        "permissions": {"allow": ["Bash(mkdir *)", "Bash"]},
        "sandbox": {"excludedCommands": ["*"]},
    });
    fs::write(&local, wider.to_string()).unwrap();
    let said = next(dir.path(), "mkdir d");
    assert!(
        said.contains("1 allow rule, sandbox.excludedCommands"),
        "{said}"
    );
    assert!(dir.path().join("d").exists(), "that one was agreed to");
    next(dir.path(), "touch z");
    assert!(!dir.path().join("z").exists());
    let other = tempdir().unwrap();
    fs::create_dir(other.path().join(".claude")).unwrap();
    fs::copy(&local, other.path().join(".claude/settings.local.json")).unwrap();
    next(other.path(), "mkdir e");
    assert!(!other.path().join("e").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_question_of_the_sandbox_names_the_call() {
    let dir = tempdir().unwrap();
    // Commands have a `/tmp` and a `/var/tmp` of their own.
    let home = std::env::home_dir().unwrap_or_default();
    let mut places = [PathBuf::from(env!("CARGO_TARGET_TMPDIR")), home].into_iter();
    let is_own = |place: &Path| {
        ["/tmp", "/var/tmp"]
            .iter()
            .any(|own| place.starts_with(own))
    };
    let outside = places.find(|place| !is_own(place)).unwrap();
    let outside = tempfile::tempdir_in(outside).unwrap();
    // In a file, where only the kernel can see what it does.
    let script = format!("touch {}/x", outside.path().display());
    fs::write(dir.path().join("run.sh"), script).unwrap();
    let turns = json!([[bash("sh run.sh")], [bash("sh run.sh")], [text("Done.")]]);
    let mut command = scripted(dir.path(), &turns);
    command.args([
        "--permission-prompt-tool",
        "stdio",
        "--allowedTools",
        "Bash",
    ]);
    let mut talk = Talk::new(&mut command);
    talk.user("go");
    let question = talk.hear_until("control_request").pop().unwrap();
    assert_eq!(question["request"]["tool_use_id"], "toolu_0_0");
    assert_eq!(
        question["request"]["input"],
        json!({"command": "sh run.sh"})
    );
    let reason = question["request"]["decision_reason"].to_string();
    assert!(reason.contains("the sandbox refused: "), "{reason}");
    // Another command in its place is no yes to this one.
    let changed = json!({"behavior": "allow", "updatedInput": {"command": "true"}});
    talk.respond(&question, &changed);
    let question = talk.hear_until("control_request").pop().unwrap();
    assert!(!outside.path().join("x").exists());
    talk.respond(&question, &json!({"behavior": "allow"}));
    let heard = talk.hear_until("result");
    assert!(outside.path().join("x").exists(), "{heard:#?}");
    assert_eq!(talk.end().1, 0);
}

#[test]
fn a_message_that_waits_can_be_taken_back() {
    let dir = tempdir().unwrap();
    let turns = json!([[bash("touch x")], [text("one")], [text("two")]]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--permission-prompt-tool", "stdio"]));
    talk.user("first");
    let question = talk.hear_until("control_request").pop().unwrap();
    let uuid = "11111111-1111-4111-8111-111111111111";
    let second = json!({"role": "user", "content": "second"});
    talk.say(&json!({"type": "user", "message": second, "uuid": uuid}));
    let cancel = json!({"subtype": "cancel_async_message", "message_uuid": uuid});
    talk.request("a", &cancel);
    talk.request("b", &cancel);
    let mut heard = talk.hear_until("control_response");
    heard.extend(talk.hear_until("control_response"));
    let cancelled: Vec<_> = heard
        .iter()
        .map(|one| one["response"]["response"]["cancelled"].clone())
        .collect();
    assert_eq!(cancelled, [json!(true), json!(false)]);
    talk.respond(&question, &json!({"behavior": "allow"}));
    let (heard, code) = talk.end();
    assert_eq!(code, 0);
    let results = heard.iter().filter(|one| one["type"] == "result").count();
    assert_eq!(results, 1);
}

#[test]
fn how_full_the_window_is() {
    let dir = tempdir().unwrap();
    let mut talk = Talk::new(&mut scripted(dir.path(), &json!([[text("hi")]])));
    let ask = json!({"subtype": "get_context_usage"});
    talk.request("a", &ask);
    let before = talk.hear_until("control_response").pop().unwrap();
    let before = &before["response"]["response"];
    assert_eq!(before["totalTokens"], 0);
    assert_eq!(before["model"], "scripted");
    talk.user("hi");
    talk.hear_until("result");
    talk.request("b", &ask);
    let after = talk.hear_until("control_response").pop().unwrap();
    let after = &after["response"]["response"];
    assert!(after["totalTokens"].as_u64().unwrap() > 1000, "{after}");
    let names: Vec<_> = after["categories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert!(
        names.starts_with(&["System prompt", "System tools"]),
        "{names:?}"
    );
    assert_eq!(talk.end().1, 0);
}

#[test]
fn files_are_taken_back_to_a_message() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("notes");
    let write = |text: &str| call("Write", json!({"file_path": file, "content": text}));
    let turns = json!([[write("one\n")], [text("1")], [write("two\n")], [text("2")]]);
    let mut command = scripted(dir.path(), &turns);
    command
        .args(["--permission-mode", "acceptEdits", "--replay-user-messages"])
        .env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
    let mut talk = Talk::new(&mut command);
    let mut ids = Vec::new();
    for _ in 0..2 {
        talk.user("go");
        let heard = talk.hear_until("result");
        let replayed = heard.iter().find(|one| one["isReplay"] == true).unwrap();
        ids.push(replayed["uuid"].clone());
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    let mut rewind = |message: &Value, dry: bool| {
        let request =
            json!({"subtype": "rewind_files", "user_message_id": message, "dry_run": dry});
        talk.request("r", &request);
        talk.hear_until("control_response").pop().unwrap()["response"].clone()
    };
    let would = rewind(&ids[1], true);
    assert_eq!(would["response"]["canRewind"], true, "{would}");
    assert_eq!(would["response"]["filesChanged"], json!([file]));
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    assert_eq!(rewind(&ids[1], false)["subtype"], "success");
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
    assert_eq!(rewind(&ids[0], false)["subtype"], "success");
    assert!(!file.exists());
    assert_eq!(rewind(&json!("nobody"), false)["subtype"], "error");
    assert_eq!(
        rewind(&json!("nobody"), true)["response"]["canRewind"],
        false
    );
    assert_eq!(talk.end().1, 0);
}

#[test]
fn lines_of_the_conversation_are_told_before_the_result() {
    let dir = tempdir().unwrap();
    let mut command = scripted(dir.path(), &json!([[text("hi")]]));
    let mut talk = Talk::new(command.arg("--session-mirror"));
    talk.user("hello");
    let heard = talk.hear_until("result");
    let first = mirrored(&heard);
    assert!(first.contains("hello"));
    let session = heard.last().unwrap()["session_id"].as_str().unwrap();
    assert_eq!(talk.end().1, 0);

    // A copy of a conversation is told from its beginning.
    let mut command = scripted(dir.path(), &json!([[text("hi")]]));
    command.args(["--session-mirror", "--fork-session", "--resume", session]);
    let mut talk = Talk::new(&mut command);
    talk.user("again");
    let copied = mirrored(&talk.hear_until("result"));
    assert!(copied.contains("hello") && copied.contains("again"));
    assert_eq!(talk.end().1, 0);
}

/// The lines of a conversation as they were told, which must be those of its file.
fn mirrored(heard: &[Value]) -> String {
    let mirrored: Vec<_> = heard
        .iter()
        .filter(|one| one["type"] == "transcript_mirror")
        .collect();
    let path = mirrored[0]["filePath"].as_str().unwrap();
    let written = fs::read_to_string(path).unwrap();
    let told: Vec<String> = mirrored
        .iter()
        .flat_map(|one| one["entries"].as_array().unwrap())
        .map(Value::to_string)
        .collect();
    assert_eq!(told.join("\n"), written.trim_end());
    written
}

#[test]
fn a_command_is_moved_to_the_background_and_stopped_there() {
    let dir = tempdir().unwrap();
    let turns = json!([
        [bash("touch started; sleep 600")],
        [text("I go on.")],
        [text("It has ended.")]
    ]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--allowedTools", "Bash"]));
    talk.user("go");
    while !dir.path().join("started").exists() {
        std::thread::yield_now();
    }
    let ask = |id: &str| json!({"subtype": "background_tasks", "tool_use_id": id});
    talk.request("a", &ask("nobody"));
    let refused = talk.hear_until("control_response").pop().unwrap();
    assert_eq!(refused["response"]["subtype"], "error");
    talk.request("b", &ask("toolu_0_0"));
    let heard = talk.hear_until("result");
    let moved = heard.iter().find(|one| one["type"] == "control_response");
    assert_eq!(moved.unwrap()["response"]["subtype"], "success");
    assert_eq!(heard.last().unwrap()["result"], "I go on.");
    let task = of_kind(&heard, "task_started")[0]["task_id"].clone();
    let stop = |id: &Value| json!({"subtype": "stop_task", "task_id": id});
    talk.request("c", &stop(&json!("nobody")));
    let refused = talk.hear_until("control_response").pop().unwrap();
    assert_eq!(refused["response"]["subtype"], "error");
    talk.request("d", &stop(&task));
    let heard = talk.hear_until("result");
    assert_eq!(of_kind(&heard, "task_notification")[0]["status"], "stopped");
    assert_eq!(talk.end().1, 0);
}
