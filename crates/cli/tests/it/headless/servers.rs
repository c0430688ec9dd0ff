//! MCP servers that the program at the other end runs: here that is this test.

use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, answer, call, kinds, lines, scripted, steady, text};

const CALC: &str = r#"{"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}"#;

/// Everything up to a message of this kind. Messages to servers are answered, but for these methods.
fn hear_serving(talk: &mut Talk, kind: &str, silent: &[&str]) -> Vec<Value> {
    let mut heard = Vec::new();
    loop {
        let Some(message) = talk.hear() else {
            panic!("the end came before {kind}: {heard:#?}");
        };
        heard.push(message.clone());
        let request = &message["request"];
        if request["subtype"] == "mcp_message" {
            let sent = &request["message"];
            let method = sent["method"].as_str().unwrap();
            if !silent.contains(&method) && method != "notifications/cancelled" {
                let response = json!({"mcp_response": served(sent)});
                talk.respond(&message, &response);
            }
        }
        let last = kinds(&heard).pop().unwrap();
        if last.starts_with(kind)
            && (kind != "control_request" || request["subtype"] != "mcp_message")
        {
            return heard;
        }
    }
}

/// What the server answers.
fn served(sent: &Value) -> Value {
    let result = match sent["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": false}},
            "serverInfo": {"name": "calc", "version": "1.0.0"},
        }),
        "tools/list" => {
            let number = json!({"type": "integer"});
            json!({"tools": [{
                "name": "add",
                "description": "Add",
                "annotations": {"readOnlyHint": true},
                "inputSchema": {
                    "type": "object",
                    "properties": {"a": number, "b": number},
                    "required": ["a", "b"],
                },
            }]})
        }
        "tools/call" => {
            let given = &sent["params"]["arguments"];
            let sum = given["a"].as_i64().unwrap() + given["b"].as_i64().unwrap();
            json!({"content": [{"type": "text", "text": sum.to_string()}]})
        }
        _ => return json!({"jsonrpc": "2.0", "result": {}}),
    };
    json!({"jsonrpc": "2.0", "id": sent["id"], "result": result})
}

fn add() -> Value {
    call("mcp__calc__add", json!({"a": 40, "b": 2}))
}

/// The methods that servers were sent, in order.
fn methods(heard: &[Value]) -> Vec<&str> {
    let sent = heard.iter().map(|one| &one["request"]["message"]["method"]);
    sent.filter_map(Value::as_str).collect()
}

#[test]
fn the_exchange_that_programs_expect_with_a_server() {
    let dir = tempdir().unwrap();
    let bash = call("Bash", json!({"command": "touch one"}));
    let turns = json!([[add()], [bash], [text("done")]]);
    let mut command = scripted(dir.path(), &turns);
    command
        .args(["--permission-prompt-tool", "stdio", "--system-prompt", ""])
        .args(["--mcp-config", CALC, "--allowedTools", "mcp__calc"])
        .env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1");
    let mut talk = Talk::new(&mut command);
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]});
    talk.request("req_1", &json!({"subtype": "initialize", "hooks": hooks}));
    let mut heard = talk.hear_until("control_response");
    talk.user("hi");
    heard.extend(hear_serving(&mut talk, "control_request", &[]));
    let hook = heard.last().unwrap().clone();
    talk.respond(&hook, &json!({}));
    heard.extend(talk.hear_until("control_request"));
    let question = heard.last().unwrap().clone();
    talk.respond(&question, &json!({"behavior": "allow"}));
    heard.extend(talk.hear_until("result"));
    heard.extend(talk.hear_until("system/session_state_changed"));
    let (rest, code) = talk.end();
    assert_eq!((rest, code), (Vec::new(), 0));
    let told: Vec<String> = heard
        .iter()
        .map(|one| {
            let kind = kinds(std::slice::from_ref(one)).pop().unwrap();
            let more = match kind.as_str() {
                "control_request" => match &one["request"]["message"]["method"] {
                    Value::String(method) => format!("mcp_message {method}"),
                    _ => one["request"]["subtype"].as_str().unwrap().to_owned(),
                },
                "system/session_state_changed" => one["state"].as_str().unwrap().to_owned(),
                "system/init" => one["mcp_servers"].to_string(),
                "user" => one["message"]["content"][0]["content"].to_string(),
                _ => String::new(),
            };
            format!("{kind} {more}").trim_end().to_owned()
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
    let init = heard.iter().find(|one| one["subtype"] == "init").unwrap();
    assert!(init["tools"].to_string().contains("mcp__calc__add"));
}

#[test]
fn a_server_can_be_named_by_initialize_and_no_built_in_need_be_there() {
    let dir = tempdir().unwrap();
    let mut command = scripted(dir.path(), &json!([[text("hi")]]));
    let mut talk = Talk::new(command.args(["--tools", ""]));
    talk.request(
        "i",
        &json!({"subtype": "initialize", "sdkMcpServers": ["calc"]}),
    );
    talk.user("hi");
    let heard = hear_serving(&mut talk, "system/init", &[]);
    let init = heard.last().unwrap();
    assert_eq!(init["tools"], json!(["mcp__calc__add"]));
    assert_eq!(talk.end().1, 0);
}

#[test]
fn a_server_that_never_answers_is_told_of_as_failed() {
    let dir = tempdir().unwrap();
    let mut command = scripted(dir.path(), &json!([[text("without it")]]));
    command
        .args(["--mcp-config", CALC])
        .env("MCP_TIMEOUT", "200");
    let mut talk = Talk::new(&mut command);
    talk.user("hi");
    let heard = hear_serving(&mut talk, "result", &["initialize"]);
    let init = heard.iter().find(|one| one["subtype"] == "init").unwrap();
    let why = "it did not answer within 200ms (MCP_TIMEOUT)";
    let failed = json!([{"name": "calc", "status": "failed", "error": why}]);
    assert_eq!(init["mcp_servers"], failed);
    assert!(kinds(&heard).contains(&"control_cancel_request".to_owned()));
    assert_eq!(heard.last().unwrap()["result"], "without it");
    assert_eq!(talk.end().1, 0);
}

#[test]
fn an_interrupt_ends_the_waiting_for_a_server() {
    let dir = tempdir().unwrap();
    let turns = json!([[text("never heard")], [text("still here")]]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--mcp-config", CALC]));
    talk.user("hi");
    talk.hear_until("control_request");
    talk.request("stop", &json!({"subtype": "interrupt"}));
    let heard = talk.hear_until("result");
    assert_eq!(heard.last().unwrap()["subtype"], "error_during_execution");
    talk.user("there?");
    let heard = talk.hear_until("result");
    let init = heard.iter().find(|one| one["subtype"] == "init").unwrap();
    // It is still waited for, but by no one.
    assert_eq!(init["mcp_servers"][0]["status"], "pending");
    assert_eq!(heard.last().unwrap()["is_error"], false);
    assert_eq!(talk.end().1, 0);
}

#[test]
fn a_call_that_is_never_answered_ends_with_the_interrupt() {
    let dir = tempdir().unwrap();
    let turns = json!([[add()], [text("still here")]]);
    let mut command = scripted(dir.path(), &turns);
    command.args(["--mcp-config", CALC, "--allowedTools", "mcp__calc__add"]);
    let mut talk = Talk::new(&mut command);
    talk.user("add");
    let mut heard = Vec::new();
    while methods(&heard).last() != Some(&"tools/call") {
        heard.extend(hear_serving(&mut talk, "", &["tools/call"]));
    }
    let id = heard.last().unwrap()["request"]["message"]["id"].clone();
    talk.request("stop", &json!({"subtype": "interrupt"}));
    let heard = talk.hear_until("result");
    let cancelled = heard
        .iter()
        .find(|one| one["request"]["message"]["method"] == "notifications/cancelled")
        .unwrap();
    assert_eq!(cancelled["request"]["message"]["params"]["requestId"], id);
    assert_eq!(heard.last().unwrap()["terminal_reason"], "aborted_tools");
    talk.user("there?");
    assert_eq!(
        talk.hear_until("result").last().unwrap()["result"],
        "still here"
    );
    assert_eq!(talk.end().1, 0);
}

#[test]
fn calls_that_only_read_run_side_by_side() {
    let dir = tempdir().unwrap();
    let sum = |a: i64| call("mcp__calc__add", json!({"a": a, "b": 0}));
    let turns = json!([[sum(1), sum(2)], [text("Sums.")]]);
    let mut command = scripted(dir.path(), &turns);
    command.args(["--mcp-config", CALC, "--allowedTools", "mcp__calc"]);
    let mut talk = Talk::new(&mut command);
    talk.user("add");
    let mut open: Vec<Value> = Vec::new();
    while open.len() < 2 {
        let heard = hear_serving(&mut talk, "", &["tools/call"]).pop().unwrap();
        if heard["request"]["message"]["method"] == "tools/call" {
            open.push(heard);
        }
    }
    // The last that was asked is answered first.
    while let Some(request) = open.pop() {
        let answer = served(&request["request"]["message"]);
        talk.respond(&request, &json!({"mcp_response": answer}));
    }
    let heard = talk.hear_until("result");
    let results: Vec<_> = heard
        .iter()
        .filter(|one| one["type"] == "user")
        .map(|one| one["message"]["content"][0]["content"].clone())
        .collect();
    assert_eq!(results, ["1", "2"]);
    assert_eq!(talk.end().1, 0);
}

#[test]
fn a_call_that_takes_too_long_is_an_error() {
    let dir = tempdir().unwrap();
    let turns = json!([[add()], [text("too slow")]]);
    let mut command = scripted(dir.path(), &turns);
    command
        .args(["--mcp-config", CALC, "--allowedTools", "mcp__calc__add"])
        .env("MCP_TOOL_TIMEOUT", "300");
    let mut talk = Talk::new(&mut command);
    talk.user("add");
    let heard = hear_serving(&mut talk, "result", &["tools/call"]);
    let blocks = heard.iter().map(|one| &one["message"]["content"][0]);
    let mut results = blocks.filter(|block| block["type"] == "tool_result");
    let block = results.next().unwrap();
    assert_eq!(block["is_error"], true);
    assert!(
        block["content"]
            .to_string()
            .contains("timed out after 0.3 s"),
        "{block}"
    );
    assert_eq!(talk.end().1, 0);
}

#[test]
fn servers_that_cannot_be_had_are_told_with_the_reason() {
    let dir = tempdir().unwrap();
    let config = json!({"mcpServers": {
        "near": {"type": "sdk", "name": "near"},
        "program": {"command": "no-such-program-here"},
        "far": {"type": "ws", "url": "ws://127.0.0.1:9"},
        "odd": {"type": "pigeon"},
    }});
    let file = dir.path().join(".servers.json");
    fs::write(&file, config.to_string()).unwrap();
    let mut command = scripted(dir.path(), &json!([[text("hi")]]));
    command
        .args(["-p", "hi", "--output-format", "stream-json", "--mcp-config"])
        .arg(&file);
    let ran = answer(&mut command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let init = steady(lines(&ran)[0].clone(), dir.path());
    // They fail side by side.
    let mut warnings: Vec<&str> = ran.stderr.lines().collect();
    warnings.sort_unstable();
    let told = format!(
        "{:#}\n{:#}\n{}",
        init["mcp_servers"],
        init["mcp_server_errors"],
        warnings.join("\n")
    );
    insta::assert_snapshot!(told);
}

#[test]
fn servers_are_set_and_asked_about_while_a_session_runs() {
    let dir = tempdir().unwrap();
    let mut talk = Talk::new(&mut scripted(dir.path(), &json!([[text("hi")]])));
    let set = |servers: Value| json!({"subtype": "mcp_set_servers", "servers": servers});
    let sdk = json!({"type": "sdk"});
    talk.request("a", &set(json!({"one": sdk, "calc": sdk, "odd": 1})));
    talk.request("b", &set(json!({"calc": sdk})));
    talk.user("hi");
    let mut heard = hear_serving(&mut talk, "result", &[]);
    talk.request("d", &json!({"subtype": "mcp_status"}));
    talk.request("e", &json!({"subtype": "mcp_reconnect", "serverName": "x"}));
    let off = json!({"subtype": "mcp_toggle", "serverName": "calc", "enabled": false});
    talk.request("h", &off);
    talk.request(
        "f",
        &json!({"subtype": "mcp_message", "server_name": "calc", "message": {}}),
    );
    talk.request(
        "g",
        &json!({"subtype": "mcp_message", "server_name": "x", "message": {}}),
    );
    heard.extend(talk.end().0);
    let answers: Vec<String> = heard
        .iter()
        .filter(|one| one["type"] == "control_response")
        .map(|one| one["response"].to_string())
        .collect();
    let mut answers = answers;
    answers.sort_unstable();
    insta::assert_snapshot!(answers.join("\n"));
}
