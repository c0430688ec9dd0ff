use std::{fs, io::Write};

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, call, kinds, scripted, steady_lines, text};

fn bash(command: &str) -> Value {
    call("Bash", json!({"command": command}))
}

#[test]
fn the_exchange_that_programs_expect() {
    let dir = tempdir().unwrap();
    let turns = json!([[bash("touch one")], [text("done")]]);
    let mut command = scripted(dir.path(), &turns);
    command
        .args(["--permission-prompt-tool", "stdio", "--system-prompt", ""])
        .env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1");
    let mut talk = Talk::new(&mut command);
    let mut heard = Vec::new();
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]});
    talk.request("req_1", &json!({"subtype": "initialize", "hooks": hooks}));
    heard.extend(talk.hear_until("control_response"));
    talk.user("hi");
    heard.extend(talk.hear_until("control_request"));
    let hook = heard.last().unwrap().clone();
    assert_eq!(hook["request"]["subtype"], "hook_callback");
    assert_eq!(hook["request"]["callback_id"], "hook_0");
    assert_eq!(
        hook["request"]["input"]["tool_input"]["command"],
        "touch one"
    );
    talk.respond(&hook, &json!({}));
    heard.extend(talk.hear_until("control_request"));
    let question = heard.last().unwrap().clone();
    assert_eq!(question["request"]["subtype"], "can_use_tool");
    assert_eq!(question["request"]["tool_use_id"], "toolu_0_0");
    let changed = json!({"command": "touch two"});
    talk.respond(
        &question,
        &json!({"behavior": "allow", "updatedInput": changed}),
    );
    heard.extend(talk.hear_until("result"));
    heard.extend(talk.hear_until("system/session_state_changed"));
    talk.request(
        "req_2",
        &json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}),
    );
    let (rest, code) = talk.end();
    heard.extend(rest);
    assert_eq!(code, 0);
    assert!(dir.path().join("two").exists());
    assert!(!dir.path().join("one").exists());
    insta::assert_snapshot!(kinds(&heard).join("\n"));
}

#[test]
fn each_choice_of_rules_is_a_suggestion() {
    let dir = tempdir().unwrap();
    let turns = json!([[bash("bd-of-no-one list -a")], [text("done")]]);
    let mut command = scripted(dir.path(), &turns);
    command.args(["--permission-prompt-tool", "stdio"]);
    let mut talk = Talk::new(&mut command);
    talk.request("req_1", &json!({"subtype": "initialize", "hooks": null}));
    talk.hear_until("control_response");
    talk.user("hi");
    let heard = talk.hear_until("control_request");
    let question = heard.last().unwrap().clone();
    let suggestions = &question["request"]["permission_suggestions"];
    let rules = suggestions.as_array().unwrap().iter().map(|suggestion| {
        let rule = &suggestion["rules"][0]["ruleContent"];
        rule.as_str().unwrap().to_owned()
    });
    let rules: Vec<String> = rules.collect();
    assert_eq!(rules, ["bd-of-no-one list *", "bd-of-no-one list -a"]);
    talk.respond(
        &question,
        &json!({"behavior": "deny", "message": "no", "interrupt": false}),
    );
    talk.hear_until("result");
    let (_, code) = talk.end();
    assert_eq!(code, 0);
}

#[test]
fn what_initialize_is_answered() {
    let dir = tempdir().unwrap();
    let mut talk = Talk::new(&mut scripted(dir.path(), &json!([])));
    talk.request("a", &json!({"subtype": "initialize", "hooks": null}));
    talk.request("b", &json!({"subtype": "no_such_thing"}));
    talk.request(
        "c",
        &json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}),
    );
    talk.request("d", &json!({"subtype": "mcp_status"}));
    let (heard, code) = talk.end();
    assert_eq!(code, 0);
    insta::assert_snapshot!(steady_lines(&heard, dir.path()));
}

#[test]
fn prompts_and_shapes_can_come_with_initialize() {
    let dir = tempdir().unwrap();
    let record = dir.path().join("tape");
    let mut command = scripted(dir.path(), &json!([[text("{}")]]));
    let mut talk = Talk::new(command.arg("--record").arg(&record));
    talk.request(
        "i",
        &json!({
            "subtype": "initialize",
            "systemPrompt": ["Be a clerk."],
            "appendSystemPrompt": "Be kind.",
            "jsonSchema": {"type": "object"},
        }),
    );
    talk.user("hi");
    let (heard, code) = talk.end();
    assert_eq!(code, 0);
    assert_eq!(heard.last().unwrap()["structured_output"], json!({}));
    let tape = fs::read_to_string(record).unwrap();
    assert!(tape.contains("Be a clerk.") && tape.contains("Be kind."));
    assert!(!tape.contains("Working directory"));
}

#[test]
fn messages_run_in_order_in_one_session() {
    let dir = tempdir().unwrap();
    let turns = json!([[text("one")], [text("two")]]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.arg("--replay-user-messages"));
    talk.user("first");
    let uuid = "11111111-1111-4111-8111-111111111111";
    let second = json!({"role": "user", "content": [{"type": "text", "text": "second"}]});
    talk.say(&json!({"type": "keep_alive"}));
    talk.say(&json!({"type": "user", "message": second, "uuid": uuid}));
    let (heard, code) = talk.end();
    assert_eq!(code, 0);
    let results: Vec<_> = heard.iter().filter(|one| one["type"] == "result").collect();
    let said: Vec<_> = results.iter().map(|one| one["result"].clone()).collect();
    assert_eq!(said, ["one", "two"]);
    assert_eq!(results[0]["session_id"], results[1]["session_id"]);
    let replayed: Vec<_> = heard.iter().filter(|one| one["isReplay"] == true).collect();
    assert_eq!(replayed.len(), 2);
    assert_eq!(replayed[1]["uuid"], uuid);
}

#[test]
fn a_changed_input_is_held_to_the_rules_too() {
    let dir = tempdir().unwrap();
    let kept = dir.path().join("kept");
    fs::write(&kept, "x").unwrap();
    let turns = json!([[bash("touch a")], [text("Refused.")]]);
    let mut command = scripted(dir.path(), &turns);
    command.args([
        "--permission-prompt-tool",
        "stdio",
        "--disallowedTools",
        "Bash(rm *)",
    ]);
    let mut talk = Talk::new(&mut command);
    talk.user("go");
    let question = talk.hear_until("control_request").pop().unwrap();
    let changed = json!({"command": "rm kept"});
    talk.respond(
        &question,
        &json!({"behavior": "allow", "updatedInput": changed}),
    );
    let heard = talk.hear_until("result");
    let result = heard.last().unwrap();
    assert_eq!(
        result["permission_denials"].as_array().unwrap().len(),
        1,
        "{heard:#?}"
    );
    assert!(kept.exists());
    assert_eq!(talk.end().1, 0);
}

#[test]
fn a_refusal_can_end_the_turn() {
    let dir = tempdir().unwrap();
    let turns = json!([[bash("touch x")], [text("never said")]]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--permission-prompt-tool=stdio"]));
    talk.user("go");
    let question = talk.hear_until("control_request").pop().unwrap();
    let no = json!({"behavior": "deny", "message": "no", "interrupt": true});
    talk.respond(&question, &no);
    let heard = talk.hear_until("result");
    let result = heard.last().unwrap();
    assert_eq!(result["subtype"], "error_during_execution", "{result}");
    assert_eq!(talk.end().1, 1);
    assert!(!dir.path().join("x").exists());
}

#[test]
fn a_hook_at_the_other_end_can_refuse_and_must_answer_in_time() {
    let dir = tempdir().unwrap();
    let list = call("LS", json!({"path": "."}));
    let turns = json!([[bash("echo hi")], [list], [text("Neither.")]]);
    let mut talk = Talk::new(&mut scripted(dir.path(), &turns));
    let hooks = json!({"PreToolUse": [
        {"matcher": "Bash", "hookCallbackIds": ["answers"]},
        {"matcher": "LS", "hookCallbackIds": ["never answers"], "timeout": 0.1},
    ]});
    talk.request("i", &json!({"subtype": "initialize", "hooks": hooks}));
    talk.user("go");
    let hook = talk.hear_until("control_request").pop().unwrap();
    let decision = json!({
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "not today",
    });
    talk.respond(&hook, &json!({"hookSpecificOutput": decision}));
    let heard = talk.hear_until("result");
    let kinds = kinds(&heard);
    assert!(
        kinds.contains(&"control_cancel_request".to_owned()),
        "{kinds:?}"
    );
    let results: Vec<String> = heard
        .iter()
        .filter(|one| one["type"] == "user")
        .map(|one| one["message"]["content"][0]["content"].to_string())
        .collect();
    assert!(results[0].contains("not today"), "{results:?}");
    assert!(
        results[1].contains("did not answer within 100ms"),
        "{results:?}"
    );
    assert_eq!(talk.end().1, 0);
}

#[test]
fn a_hook_that_fails_counts_only_where_it_guards() {
    let dir = tempdir().unwrap();
    let list = call("LS", json!({"path": "."}));
    let turns = json!([[bash("echo hi")], [list], [text("One of them.")]]);
    let mut talk = Talk::new(&mut scripted(dir.path(), &turns));
    let hooks = json!({"PreToolUse": [
        {"matcher": "Bash", "hookCallbackIds": ["guard"], "onFailure": "block"},
        {"matcher": "LS", "hookCallbackIds": ["watcher"]},
    ]});
    talk.request("i", &json!({"subtype": "initialize", "hooks": hooks}));
    talk.user("go");
    let mut heard = Vec::new();
    for _ in 0..2 {
        heard.extend(talk.hear_until("control_request"));
        let hook = heard.last().unwrap().clone();
        talk.fail(&hook, "it broke");
    }
    heard.extend(talk.hear_until("result"));
    let results: Vec<_> = heard.iter().filter(|one| one["type"] == "user").collect();
    let block = |at: usize| &results[at]["message"]["content"][0];
    assert_eq!(block(0)["is_error"], true);
    assert!(
        block(0)["content"].to_string().contains("it broke"),
        "{}",
        block(0)
    );
    assert_eq!(block(1)["is_error"], false, "{}", block(1));
    assert_eq!(talk.end().1, 0);
}

#[test]
fn another_model_can_be_asked_from_now_on() {
    let dir = tempdir().unwrap();
    let turns = json!([[text("one")], [text("two")]]);
    let mut talk = Talk::new(&mut scripted(dir.path(), &turns));
    let mut models = Vec::new();
    for (id, model) in [("a", json!("m-2")), ("b", json!(null))] {
        talk.request(id, &json!({"subtype": "set_model", "model": model}));
        talk.user("hi");
        let heard = talk.hear_until("result");
        let said = heard.iter().find(|one| one["type"] == "assistant").unwrap();
        models.push(said["message"]["model"].clone());
    }
    assert_eq!(models, ["m-2", "scripted"]);
    assert_eq!(talk.end().1, 0);
}

#[test]
fn what_must_be_said_now_is_said_between_two_rounds() {
    let dir = tempdir().unwrap();
    let record = dir.path().join("tape");
    let turns = json!([[bash("touch x")], [text("ok")]]);
    let mut command = scripted(dir.path(), &turns);
    command.args(["--permission-prompt-tool", "stdio", "--record"]);
    let mut talk = Talk::new(command.arg(&record));
    talk.user("go");
    let question = talk.hear_until("control_request").pop().unwrap();
    let now = json!({"role": "user", "content": "And be quick."});
    talk.say(&json!({"type": "user", "message": now, "priority": "now"}));
    talk.respond(&question, &json!({"behavior": "allow"}));
    let (heard, code) = talk.end();
    assert_eq!(code, 0);
    assert_eq!(
        kinds(&heard),
        ["user", "user", "assistant", "result/success"]
    );
    assert_eq!(heard[1]["message"]["content"][0]["text"], "And be quick.");
    assert!(
        fs::read_to_string(record)
            .unwrap()
            .contains("And be quick.")
    );
}

#[test]
fn what_needs_no_answer_goes_with_the_next_message() {
    let dir = tempdir().unwrap();
    let record = dir.path().join("tape");
    let mut command = scripted(dir.path(), &json!([[text("ok")]]));
    let mut talk = Talk::new(command.arg("--record").arg(&record));
    let aside = json!({"role": "user", "content": "By the way."});
    talk.say(&json!({"type": "user", "message": aside, "shouldQuery": false}));
    talk.user("hi");
    let (heard, code) = talk.end();
    assert_eq!(code, 0);
    assert_eq!(
        kinds(&heard),
        ["system/init", "assistant", "result/success"]
    );
    assert!(fs::read_to_string(record).unwrap().contains("By the way."));
}

#[test]
fn an_interrupt_is_answered_first_and_the_session_stays_usable() {
    let dir = tempdir().unwrap();
    let turns = json!([[bash("touch started; sleep 600")], [text("Still here.")]]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--allowedTools", "Bash"]));
    talk.user("sleep");
    while !dir.path().join("started").exists() {
        std::thread::yield_now();
    }
    talk.request("stop", &json!({"subtype": "interrupt"}));
    let heard = talk.hear_until("result");
    let kinds = kinds(&heard);
    let at = |kind: &str| kinds.iter().position(|one| one == kind).unwrap();
    assert!(
        at("control_response") < at("result/error_during_execution"),
        "{kinds:?}"
    );
    let marker = "[Request interrupted by user for tool use]";
    assert!(
        heard
            .iter()
            .any(|one| one["message"]["content"][0]["text"] == marker)
    );
    assert_eq!(heard.last().unwrap()["terminal_reason"], "aborted_tools");
    talk.user("there?");
    let heard = talk.hear_until("result");
    assert_eq!(heard.last().unwrap()["result"], "Still here.");
    assert_eq!(talk.end().1, 0);
}

#[test]
fn a_mode_counts_from_the_next_message() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("x");
    let turns = json!([
        [call("Write", json!({"file_path": file, "content": "x"}))],
        [text("ok")]
    ]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--permission-prompt-tool", "stdio"]));
    talk.request(
        "m",
        &json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}),
    );
    talk.user("go");
    let (heard, code) = talk.end();
    assert_eq!(code, 0);
    assert!(
        !kinds(&heard).contains(&"control_request".to_owned()),
        "{heard:#?}"
    );
    assert_eq!(fs::read_to_string(file).unwrap(), "x");
}

#[test]
fn the_end_of_input_refuses_what_is_still_asked() {
    let dir = tempdir().unwrap();
    let turns = json!([[bash("touch x")], [text("I may not.")]]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--permission-prompt-tool", "stdio"]));
    talk.user("go");
    talk.hear_until("control_request");
    let (heard, code) = talk.end();
    assert_eq!(code, 0);
    assert_eq!(
        heard.last().unwrap()["permission_denials"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(!dir.path().join("x").exists());
}

#[test]
fn a_line_that_is_no_json_ends_it() {
    let dir = tempdir().unwrap();
    let mut talk = Talk::new(&mut scripted(dir.path(), &json!([])));
    talk.say(&json!({"type": "unknown"}));
    talk.stdin
        .as_mut()
        .unwrap()
        .write_all(b"\n{nonsense\n")
        .unwrap();
    let (heard, code) = talk.end();
    assert_eq!(code, 1);
    assert_eq!(kinds(&heard), ["result/error_during_execution"]);
}

#[test]
fn signals_end_it_with_the_code_that_says_so() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let dir = tempdir().unwrap();
        let ended = dir.path().join("ended");
        let hook = json!({"type": "command", "command": format!("touch {}", ended.display())});
        let settings = json!({"hooks": {"SessionEnd": [{"hooks": [hook]}]}});
        let turns = json!([[bash("touch started; sleep 600")]]);
        let mut command = scripted(dir.path(), &turns);
        command
            .args(["--allowedTools", "Bash", "--settings"])
            .arg(settings.to_string());
        let mut talk = Talk::new(&mut command);
        talk.user("sleep");
        while !dir.path().join("started").exists() {
            std::thread::yield_now();
        }
        talk.signal(signal);
        let heard: Vec<Value> = std::iter::from_fn(|| talk.hear()).collect();
        let has_result = heard.iter().any(|one| one["type"] == "result");
        assert_eq!(has_result, signal == "INT", "{signal}");
        assert_eq!(talk.child.wait().unwrap().code(), Some(code), "{signal}");
        assert!(ended.exists(), "{signal}: SessionEnd");
    }
}

#[test]
fn short_names_are_what_the_environment_says_and_each_model_is_counted_by_itself() {
    let dir = tempdir().unwrap();
    let turn = |text: &str, usage: Value| json!({"content": [{"type": "text", "text": text}], "usage": usage});
    let turns = json!([
        turn(
            "one",
            json!({"input": 10, "output": 1, "cache_read": 100, "cache_write": 7})
        ),
        turn("two", json!({"input": 20, "output": 2})),
        turn("three", json!({"input": 40, "output": 4})),
    ]);
    let price = |input: f64| {
        json!({
            "input": input, "output": 0.0, "cache_read": 0.0, "cache_write": 0.0,
            "cache_write_1h": 0.0,
        })
    };
    let prices = json!({"big-1": price(1e6), "small-2": price(2e6)});
    let mut command = scripted(dir.path(), &turns);
    command
        .args(["--model", "opus", "--prices", &prices.to_string()])
        .env("ANTHROPIC_DEFAULT_OPUS_MODEL", "big-1")
        .env("ANTHROPIC_DEFAULT_HAIKU_MODEL", "small-2");
    let mut talk = Talk::new(&mut command);
    let mut results = Vec::new();
    for (id, model) in [("a", "default"), ("b", "haiku"), ("c", "opus")] {
        talk.request(id, &json!({"subtype": "set_model", "model": model}));
        talk.user("hi");
        results.push(talk.hear_until("result").pop().unwrap());
    }
    assert_eq!(talk.end().1, 0);
    let tokens = |result: &Value| {
        let usage = &result["usage"];
        ["input_tokens", "output_tokens", "cache_read_input_tokens"].map(|name| usage[name].clone())
    };
    // The usage is that of the turn; money and models are of the whole process.
    assert_eq!(tokens(&results[0]), [10, 1, 100]);
    assert_eq!(tokens(&results[1]), [20, 2, 0]);
    assert_eq!(tokens(&results[2]), [40, 4, 0]);
    let costs: Vec<f64> = results
        .iter()
        .map(|result| result["total_cost_usd"].as_f64().unwrap())
        .collect();
    assert_eq!(costs, [10.0, 50.0, 90.0]);
    let models = &results[2]["modelUsage"];
    assert_eq!(models.as_object().unwrap().len(), 2);
    let counted = |name: &str| {
        let model = &models[name];
        let cost = model["costUSD"].as_f64().unwrap();
        let tokens = [
            "inputTokens",
            "outputTokens",
            "cacheReadInputTokens",
            "cacheCreationInputTokens",
        ];
        (tokens.map(|name| model[name].as_u64().unwrap()), cost)
    };
    assert_eq!(counted("big-1"), ([50, 5, 100, 7], 50.0));
    assert_eq!(counted("small-2"), ([20, 2, 0, 0], 40.0));
}
