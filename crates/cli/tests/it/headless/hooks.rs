//! Hooks, with the whole binary around them.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use haft_testkit::http::{HttpFake, HttpReply};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, answer, call, kinds, lines, scripted, steady_lines, text};
use crate::binary::Ran;

fn bash(command: &str) -> Value {
    call("Bash", json!({"command": command}))
}

fn command(command: &str) -> Value {
    json!({"type": "command", "command": command})
}

/// `haft -p` with a script, and these settings.
fn hooked(cwd: &Path, turns: &Value, settings: &Value) -> Command {
    let mut haft = scripted(cwd, turns);
    haft.args(["-p", "--output-format", "stream-json", "--settings"])
        .arg(settings.to_string());
    haft
}

fn on(event: &str, hook: &Value) -> Value {
    json!({"hooks": {event: [{"hooks": [hook]}]}})
}

/// All messages; whether a hook is slow enough to be reported in between is a matter of luck.
fn told(ran: &Ran) -> Vec<Value> {
    let mut messages = lines(ran);
    messages.retain(|one| one["subtype"] != "hook_progress");
    messages
}

fn of_kind<'a>(messages: &'a [Value], subtype: &str) -> Vec<&'a Value> {
    let fits = |one: &&Value| one["subtype"] == subtype;
    messages.iter().filter(fits).collect()
}

fn result_of_the_call(messages: &[Value]) -> &Value {
    let user = messages.iter().find(|one| one["type"] == "user").unwrap();
    &user["message"]["content"][0]
}

#[test]
fn v21_hooks_of_the_beginning_are_always_told_of() {
    let dir = tempdir().unwrap();
    let settings = json!({"hooks": {
        "SessionStart": [{"matcher": "startup", "hooks": [command("echo words; echo err >&2")]}],
        "UserPromptSubmit": [{"hooks": [command("echo more")]}],
    }});
    let turns = json!([[text("Hello.")]]);
    let ran = answer(hooked(dir.path(), &turns, &settings).arg("hi"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = told(&ran);
    insta::assert_snapshot!(steady_lines(&messages[..2], dir.path()));
    let first = "system/hook_started system/hook_response system/init user assistant";
    assert!(
        kinds(&messages).join(" ").starts_with(first),
        "{:?}",
        kinds(&messages)
    );
    assert_eq!(of_kind(&messages, "hook_started").len(), 1);

    let mut all = hooked(dir.path(), &turns, &settings);
    let ran = answer(all.args(["--include-hook-events", "hi"]));
    let messages = told(&ran);
    let names: Vec<&Value> = of_kind(&messages, "hook_response")
        .iter()
        .map(|one| &one["hook_name"])
        .collect();
    assert_eq!(names, ["SessionStart:startup", "UserPromptSubmit"]);
}

#[test]
fn v22_variables_that_hooks_set_reach_later_commands() {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    let settings = json!({"hooks": {
        "SessionStart": [{"hooks": [command("echo 'export A=1' >> \"$CLAUDE_ENV_FILE\"")]}],
        "CwdChanged": [{"hooks": [command("echo \"export B=${PWD##*/}\" >> \"$CLAUDE_ENV_FILE\"")]}],
    }});
    let turns = json!([
        [bash("echo $A")],
        [bash("cd sub")],
        [bash("echo $A-$B; touch made")],
        [text("Done.")],
    ]);
    let mut haft = hooked(dir.path(), &turns, &settings);
    let ran = answer(haft.args(["go", "--allowedTools", "Bash"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = told(&ran);
    let outputs: Vec<&Value> = messages
        .iter()
        .filter(|one| one["type"] == "user")
        .map(|one| &one["tool_use_result"]["stdout"])
        .collect();
    assert_eq!(outputs, ["1", "", "1-sub"], "{}", ran.stdout);
}

#[test]
fn v23_hooks_may_bring_the_first_words() {
    let dir = tempdir().unwrap();
    let said = json!({"hookSpecificOutput": {
        "hookEventName": "SessionStart", "initialUserMessage": "hi",
    }});
    let settings = json!({"hooks": {
        "SessionStart": [{"hooks": [command(&format!("echo '{said}'"))]}],
        "UserPromptSubmit": [{"hooks": [command("cat >> prompts; echo >> prompts")]}],
    }});
    let prompts = || {
        let read = fs::read_to_string(dir.path().join("prompts")).unwrap();
        fs::remove_file(dir.path().join("prompts")).unwrap();
        let lines = read.lines().filter(|line| !line.is_empty());
        let told: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        told.iter()
            .map(|one| one["prompt"].clone())
            .collect::<Vec<_>>()
    };
    let turns = json!([[text("One.")], [text("Two.")]]);
    let ran = answer(&mut hooked(dir.path(), &turns, &settings));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(told(&ran).last().unwrap()["result"], "One.");
    assert_eq!(prompts(), ["hi"]);

    let ran = answer(hooked(dir.path(), &turns, &settings).arg("given"));
    let messages = told(&ran);
    let results: Vec<&Value> = of_kind(&messages, "success")
        .iter()
        .map(|one| &one["result"])
        .collect();
    assert_eq!(results, ["One.", "Two."]);
    assert_eq!(prompts(), ["hi", "given"]);

    // Hooks that bring none make no prompt.
    let settings = on("SessionStart", &command("touch ran"));
    let ran = answer(&mut hooked(dir.path(), &turns, &settings));
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("no prompt was given"), "{}", ran.stderr);
    assert!(dir.path().join("ran").exists());
}

#[test]
fn v28_v29_a_server_is_told_and_decides() {
    let deny = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "the server says no",
    }});
    for (status, body, denied) in [(500, "", false), (200, &*deny.to_string(), true)] {
        let dir = tempdir().unwrap();
        let server = HttpFake::start_strict(vec![HttpReply::new(
            status,
            "application/json",
            body.to_owned(),
        )]);
        let hook = json!({"type": "http", "url": format!("{}/hook", server.url)});
        let turns = json!([[bash("echo ran")], [text("Done.")]]);
        let mut haft = hooked(dir.path(), &turns, &on("PreToolUse", &hook));
        let ran = answer(haft.arg("go"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let messages = told(&ran);
        let content = result_of_the_call(&messages)["content"].as_str().unwrap();
        assert_eq!(content.contains("the server says no"), denied, "{content}");
        assert_eq!(content.contains("ran"), !denied, "{content}");
        // What a hook refuses is no message of its own; that it failed is one.
        assert!(of_kind(&messages, "permission_denied").is_empty());
        assert_eq!(
            of_kind(&messages, "informational").len(),
            usize::from(!denied)
        );
        let asked = server.bodies();
        assert_eq!(asked[0]["tool_input"]["command"], "echo ran");
        assert_eq!(asked[0]["hook_event_name"], "PreToolUse");
    }
}

#[test]
fn a_server_that_the_settings_do_not_list_is_not_told() {
    let dir = tempdir().unwrap();
    // No one listens there: it would fail in another way.
    let hook = json!({"type": "http", "url": "http://127.0.0.1:9/hook"});
    let mut settings = on("PreToolUse", &hook);
    settings["allowedHttpHookUrls"] = json!([]);
    let turns = json!([[bash("echo ran")], [text("Done.")]]);
    let ran = answer(hooked(dir.path(), &turns, &settings).arg("go"));
    let messages = told(&ran);
    let notice = of_kind(&messages, "informational")[0]["content"].to_string();
    assert!(notice.contains("allowedHttpHookUrls"), "{notice}");
    assert_eq!(result_of_the_call(&messages)["content"], "ran");
}

#[test]
fn v34_a_call_that_is_put_off_ends_the_run() {
    let dir = tempdir().unwrap();
    let said = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "defer",
    }});
    let settings = on("PreToolUse", &command(&format!("echo '{said}'")));
    let turns = json!([[bash("touch ran")], [text("Never.")]]);
    let ran = answer(hooked(dir.path(), &turns, &settings).arg("go"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = told(&ran);
    let result = messages.last().unwrap();
    assert_eq!(result["stop_reason"], "tool_deferred");
    assert_eq!(result["terminal_reason"], "tool_deferred");
    let deferred = json!({"id": "toolu_0_0", "name": "Bash", "input": {"command": "touch ran"}});
    assert_eq!(result["deferred_tool_use"], deferred);
    assert_eq!(result["permission_denials"], json!([]));
    assert!(!dir.path().join("ran").exists());
}

#[test]
fn the_sessions_model_is_asked_and_what_it_costs_counts() {
    let dir = tempdir().unwrap();
    let hook = json!({"type": "prompt", "prompt": "Is this harmless? $ARGUMENTS"});
    let no = text(r#"{"ok": false, "reason": "not today"}"#);
    let turns = json!([[bash("touch ran")], [no.clone()], [text("Never.")]]);
    let ran = answer(hooked(dir.path(), &turns, &on("PreToolUse", &hook)).arg("go"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = told(&ran);
    let result = messages.last().unwrap();
    assert_eq!(result["terminal_reason"], "hook_stopped", "{}", ran.stdout);
    assert_eq!(result["num_turns"], 1);
    let content = &result_of_the_call(&messages)["content"];
    assert_eq!(content, "PreToolUse:User hook: not today");
    assert!(!dir.path().join("ran").exists());
    // The reply and the verdict, of five tokens each.
    assert_eq!(result["modelUsage"]["scripted"]["outputTokens"], 10);

    let yes = text(r#"{"ok": true}"#);
    let turns = json!([[text("Done.")], [no], [text("Done now.")], [yes]]);
    let ran = answer(hooked(dir.path(), &turns, &on("Stop", &hook)).arg("go"));
    let messages = told(&ran);
    assert_eq!(messages.last().unwrap()["result"], "Done now.");
    assert_eq!(messages.last().unwrap()["num_turns"], 2);
}

#[test]
fn a_model_may_look_around_before_it_answers() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("state.txt"), "red\n").unwrap();
    let hook = json!({"type": "agent", "prompt": "Is state.txt green?", "timeout": 600});
    let look = call("Read", json!({"file_path": dir.path().join("state.txt")}));
    let change = call(
        "Write",
        json!({"file_path": dir.path().join("x"), "content": "x"}),
    );
    let no = text(r#"It is red. {"ok": false, "reason": "state.txt is red"}"#);
    let yes = text(r#"{"ok": true}"#);
    let turns = json!([
        [text("Done.")],
        [look, change],
        [no],
        [text("Done again.")],
        [yes],
    ]);
    let settings = on("Stop", &hook);
    let ran = answer(hooked(dir.path(), &turns, &settings).arg("go"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = told(&ran);
    let result = messages.last().unwrap();
    assert_eq!(result["result"], "Done again.", "{}", ran.stdout);
    assert!(ran.stdout.contains("state.txt is red"));
    // It has tools that only read.
    assert!(!dir.path().join("x").exists());
    assert_eq!(result["modelUsage"]["scripted"]["outputTokens"], 25);
}

#[test]
fn setup_hooks_run_only_when_asked_for() {
    let dir = tempdir().unwrap();
    let settings = json!({"hooks": {
        "Setup": [
            {"matcher": "init", "hooks": [command("touch init")]},
            {"matcher": "maintenance", "hooks": [command("touch maintenance")]},
        ],
        "SessionEnd": [{"hooks": [command("touch end")]}],
    }});
    let turns = json!([[text("Hello.")]]);
    let there = |name: &str| fs::remove_file(dir.path().join(name)).is_ok();
    answer(hooked(dir.path(), &turns, &settings).arg("hi"));
    assert!(!there("init") && !there("maintenance") && there("end"));
    let ran = answer(hooked(dir.path(), &turns, &settings).arg("--init-only"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        kinds(&told(&ran)),
        ["system/hook_started", "system/hook_response"]
    );
    assert!(there("init") && !there("maintenance") && there("end"));
    let ran = answer(hooked(dir.path(), &turns, &settings).args(["--maintenance", "hi"]));
    assert_eq!(told(&ran).last().unwrap()["result"], "Hello.");
    assert!(!there("init") && there("maintenance"));
}

#[test]
fn what_runs_beside_the_session_is_killed_with_it() {
    let dir = tempdir().unwrap();
    let hook = json!({"type": "command", "async": true, "command": "echo on; sleep 600"});
    let settings = on("UserPromptSubmit", &hook);
    let turns = json!([[text("Hello.")]]);
    let begun = Instant::now();
    let mut haft = hooked(dir.path(), &turns, &settings);
    let ran = answer(haft.args(["--include-hook-events", "hi"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(begun.elapsed() < Duration::from_secs(300));
    let messages = told(&ran);
    let ended = of_kind(&messages, "hook_response");
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["outcome"], "cancelled");
}

#[test]
fn the_end_of_a_session_is_not_held_up() {
    let dir = tempdir().unwrap();
    let settings = on("SessionEnd", &command("touch begun; sleep 600"));
    let turns = json!([[text("Hello.")]]);
    let begun = Instant::now();
    let ran = answer(hooked(dir.path(), &turns, &settings).arg("hi"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(begun.elapsed() < Duration::from_secs(300));
    assert!(dir.path().join("begun").exists());
}

#[test]
fn a_hook_that_ran_beside_the_session_wakes_the_model() {
    let dir = tempdir().unwrap();
    let wait = "[ -e once ] && exit 0; touch once; until [ -e wake ]; do sleep 0.01; done; \
                echo the build broke >&2; exit 2";
    let hook = json!({"type": "command", "asyncRewake": true, "command": wait});
    let turns = json!([[text("Done.")], [text("I will look.")]]);
    let mut haft = scripted(dir.path(), &turns);
    haft.arg("--settings")
        .arg(on("UserPromptSubmit", &hook).to_string());
    let mut talk = Talk::new(&mut haft);
    talk.user("go");
    let heard = talk.hear_until("result");
    assert_eq!(heard.last().unwrap()["result"], "Done.");
    fs::write(dir.path().join("wake"), "").unwrap();
    let heard = talk.hear_until("result");
    assert_eq!(heard.last().unwrap()["result"], "I will look.");
    let told = heard
        .iter()
        .any(|one| one.to_string().contains("the build broke"));
    assert!(told, "{heard:?}");
    assert_eq!(talk.end().1, 0);
}

#[test]
fn v27_tasks_are_created_and_completed_only_if_nobody_objects() {
    let dir = tempdir().unwrap();
    let settings = json!({"hooks": {
        "TaskCreated": [{"hooks": [command("grep -q forbidden && { echo not this >&2; exit 2; }; true")]}],
        "TaskCompleted": [{"hooks": [command("echo untested >&2; exit 2")]}],
    }});
    let create = |subject: &str| {
        call(
            "TaskCreate",
            json!({"subject": subject, "description": "d"}),
        )
    };
    let turns = json!([
        [create("forbidden")],
        [create("allowed")],
        [call(
            "TaskUpdate",
            json!({"taskId": "1", "status": "completed"})
        )],
        [call("TaskList", json!({}))],
        [text("Done.")],
    ]);
    let ran = answer(hooked(dir.path(), &turns, &settings).arg("go"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = told(&ran);
    let results: Vec<String> = messages
        .iter()
        .filter(|one| one["type"] == "user")
        .map(|one| one["message"]["content"][0]["content"].to_string())
        .collect();
    assert!(results[0].contains("not this"), "{results:?}");
    assert!(results[1].contains("allowed"), "{results:?}");
    assert!(results[2].contains("untested"), "{results:?}");
    assert!(
        results[3].contains("allowed") && !results[3].contains("forbidden"),
        "{results:?}"
    );
    assert!(
        results[3].contains("pending") || results[3].contains("☐"),
        "{results:?}"
    );
}
