//! What MCP servers want to know of a person, put to the program at the other end: here that is this test.

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, call, mcp_programs::named, scripted, text};

fn act(what: &str) -> Value {
    call("mcp__s__act", json!({"what": what}))
}

/// A session with a server that is asked to do this.
fn talk(dir: &std::path::Path, what: &str, flags: &[&str]) -> Talk {
    let turns = json!([[act(what)], [text("done")]]);
    let mut command = scripted(dir, &turns);
    command
        .args(["--mcp-config", &named(&[]), "--allowedTools", "mcp__s"])
        .args(flags);
    Talk::new(&mut command)
}

/// What the call came to.
fn result(heard: &[Value]) -> String {
    let mut results = heard.iter().filter(|one| one["type"] == "user");
    results.next().unwrap()["message"]["content"][0]["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_program_is_asked_what_a_server_wants_to_know() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let mut talk = talk(dir.path(), "ask", &[]);
    talk.request("i", &json!({"subtype": "initialize", "hooks": null}));
    talk.hear_until("control_response");
    talk.user("go");
    let asked = talk.hear_until("control_request").pop().unwrap();
    assert_eq!(
        asked["request"],
        json!({
            "subtype": "elicitation",
            "mcp_server_name": "s",
            "message": "Who?",
            "mode": "form",
            "requested_schema": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "n": {"type": "integer", "default": 7}},
            },
        })
    );
    talk.respond(
        &asked,
        &json!({"action": "accept", "content": {"name": "Ada"}}),
    );
    let heard = talk.hear_until("result");
    let answer: Value = serde_json::from_str(&result(&heard)).unwrap();
    assert_eq!(
        answer,
        json!({"action": "accept", "content": {"name": "Ada", "n": 7}})
    );
    assert_eq!(talk.end().1, 0);
}

#[test]
fn an_address_that_must_be_visited_first_is_put_to_it_and_the_call_made_again() {
    if haft_testkit::lacks("python3") {
        return;
    }
    for (action, expected) in [("accept", "visited"), ("decline", "visit it first")] {
        let dir = tempdir().unwrap();
        let mut talk = talk(dir.path(), "visit", &[]);
        talk.request("i", &json!({"subtype": "initialize", "hooks": null}));
        talk.hear_until("control_response");
        talk.user("go");
        let asked = talk.hear_until("control_request").pop().unwrap();
        let request = &asked["request"];
        assert_eq!(request["subtype"], "elicitation");
        assert_eq!(request["mode"], "url");
        assert_eq!(request["url"], "https://login.example/x");
        assert_eq!(request["elicitation_id"], "e1");
        talk.respond(&asked, &json!({"action": action}));
        let heard = talk.hear_until("result");
        let told = result(&heard);
        assert!(told.contains(expected), "{action}: {told}");
        assert_eq!(talk.end().1, 0);
    }
}

/// As an SDK does that does not know such requests: the question is put in the other way that there is.
#[test]
fn a_program_that_does_not_know_such_requests_is_asked_as_for_a_tool() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let mut talk = talk(dir.path(), "ask", &["--permission-prompt-tool", "stdio"]);
    talk.request("i", &json!({"subtype": "initialize", "hooks": null}));
    talk.hear_until("control_response");
    talk.user("go");
    let asked = talk.hear_until("control_request").pop().unwrap();
    assert_eq!(asked["request"]["subtype"], "elicitation");
    talk.fail(&asked, "Unsupported control request subtype: elicitation");
    let asked = talk.hear_until("control_request").pop().unwrap();
    let request = &asked["request"];
    assert_eq!(request["subtype"], "can_use_tool");
    let questions = request["input"]["questions"].as_array().unwrap();
    let first = questions[0]["question"].as_str().unwrap();
    let mut input = request["input"].clone();
    input["answers"] = json!({first: "Ada"});
    talk.respond(&asked, &json!({"behavior": "allow", "updatedInput": input}));
    let heard = talk.hear_until("result");
    assert!(result(&heard).contains("Ada"), "{}", result(&heard));
    assert_eq!(talk.end().1, 0);
}

/// One that has not introduced itself cannot be asked, and servers learn that.
#[test]
fn without_anyone_to_ask_servers_are_not_told_that_they_may() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let mut talk = talk(dir.path(), "capabilities", &[]);
    talk.user("go");
    let heard = talk.hear_until("result");
    let told = result(&heard);
    assert!(!told.contains("elicitation"), "{told}");
    assert_eq!(talk.end().1, 0);
}

/// Settings with a hook of each of these events that keeps what it gets in a file of that name, and prints this.
fn hooked(dir: &std::path::Path, events: &[(&str, Value)]) -> String {
    let handlers = events.iter().map(|(event, printed)| {
        let said = dir.join(format!("{event}.said"));
        std::fs::write(&said, printed.to_string()).unwrap();
        let got = dir.join(format!("{event}.json"));
        let command = format!("cat > '{}'; cat '{}'", got.display(), said.display());
        let entry = json!([{"matcher": "s", "hooks": [{"type": "command", "command": command}]}]);
        ((*event).to_owned(), entry)
    });
    let hooks: serde_json::Map<String, Value> = handlers.collect();
    json!({"hooks": hooks}).to_string()
}

fn got(dir: &std::path::Path, event: &str) -> Value {
    let text = std::fs::read_to_string(dir.join(format!("{event}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// No one else is there to ask, and servers are told that they may.
#[test]
fn a_hook_answers_in_the_place_of_a_person() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let specific = |action: &str| json!({"hookSpecificOutput": {"hookEventName": "Elicitation", "action": action, "content": {"name": "Grace"}}});
    for (action, expected) in [
        (
            "accept",
            json!({"action": "accept", "content": {"name": "Grace", "n": 7}}),
        ),
        ("decline", json!({"action": "decline"})),
        ("cancel", json!({"action": "cancel"})),
    ] {
        let dir = tempdir().unwrap();
        let settings = hooked(
            dir.path(),
            &[
                ("Elicitation", specific(action)),
                ("ElicitationResult", json!({})),
            ],
        );
        let mut talk = talk(dir.path(), "ask", &["--settings", &settings]);
        talk.user("go");
        let heard = talk.hear_until("result");
        let answer: Value = serde_json::from_str(&result(&heard)).unwrap();
        assert_eq!(answer, expected);
        assert_eq!(talk.end().1, 0);
        let event = got(dir.path(), "Elicitation");
        assert_eq!(event["hook_event_name"], "Elicitation");
        assert_eq!(event["mcp_server_name"], "s");
        assert_eq!(event["message"], "Who?");
        assert_eq!(event["mode"], "form");
        assert_eq!(event["permission_mode"], "default");
        assert_eq!(event["requested_schema"]["type"], "object");
        // No person has answered.
        assert!(!dir.path().join("ElicitationResult.json").exists());
    }
}

#[test]
fn a_hook_sees_what_a_person_answers_and_may_change_it() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let changed = json!({"hookSpecificOutput": {"hookEventName": "ElicitationResult", "action": "accept", "content": {"name": "Grace", "n": 1}}});
    let refused =
        json!({"hookSpecificOutput": {"hookEventName": "ElicitationResult", "action": "decline"}});
    for (printed, expected) in [
        (
            changed,
            json!({"action": "accept", "content": {"name": "Grace", "n": 1}}),
        ),
        (refused, json!({"action": "decline"})),
        (
            json!({}),
            json!({"action": "accept", "content": {"name": "Ada", "n": 7}}),
        ),
    ] {
        let dir = tempdir().unwrap();
        let events = [("Elicitation", json!({})), ("ElicitationResult", printed)];
        let settings = hooked(dir.path(), &events);
        let mut talk = talk(dir.path(), "ask", &["--settings", &settings]);
        talk.request("i", &json!({"subtype": "initialize", "hooks": null}));
        talk.hear_until("control_response");
        talk.user("go");
        let asked = talk.hear_until("control_request").pop().unwrap();
        talk.respond(
            &asked,
            &json!({"action": "accept", "content": {"name": "Ada"}}),
        );
        let heard = talk.hear_until("result");
        let answer: Value = serde_json::from_str(&result(&heard)).unwrap();
        assert_eq!(answer, expected);
        assert_eq!(talk.end().1, 0);
        let event = got(dir.path(), "ElicitationResult");
        assert_eq!(event["mcp_server_name"], "s");
        assert_eq!(event["action"], "accept");
        assert_eq!(event["content"], json!({"name": "Ada"}));
        assert_eq!(event["mode"], "form");
    }
}

/// Exit code 2 declines; a handler for another server has no say.
#[test]
fn a_hook_declines_for_a_person_who_is_not_even_asked() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let handler = |command: &str| json!([{"type": "command", "command": command}]);
    let settings = json!({"hooks": {"Elicitation": [
        {"matcher": "other", "hooks": handler("echo '{\"hookSpecificOutput\": {\"hookEventName\": \"Elicitation\", \"action\": \"accept\"}}'")},
        {"matcher": "s", "hooks": handler("echo no >&2; exit 2")},
    ]}});
    let mut talk = talk(dir.path(), "visit", &["--settings", &settings.to_string()]);
    talk.request("i", &json!({"subtype": "initialize", "hooks": null}));
    talk.hear_until("control_response");
    talk.user("go");
    let heard = talk.hear_until("result");
    assert!(result(&heard).contains("visit it first"));
    assert_eq!(talk.end().1, 0);
}

/// Those who wait for a person elsewhere learn that one is asked, and what came of it.
#[test]
fn hooks_learn_of_questions_of_servers_and_their_answers() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let asked = [
        (
            "ask",
            json!({"action": "accept", "content": {"name": "Ada"}}),
            vec!["elicitation_dialog", "elicitation_response"],
        ),
        (
            "visit",
            json!({"action": "accept"}),
            vec![
                "elicitation_complete",
                "elicitation_response",
                "elicitation_url_dialog",
            ],
        ),
        (
            "ask",
            json!({"action": "decline"}),
            vec!["elicitation_dialog", "elicitation_response"],
        ),
    ];
    for (what, response, expected) in asked {
        let dir = tempdir().unwrap();
        // Each in a file of its own, which appears whole.
        let command = "cat > n.$$.tmp; mv n.$$.tmp n.$$.json";
        let settings = json!({"hooks": {"Notification": [
            {"matcher": "elicitation_.*", "hooks": [{"type": "command", "command": command}]},
        ]}})
        .to_string();
        let mut talk = talk(dir.path(), what, &["--settings", &settings]);
        talk.request("i", &json!({"subtype": "initialize", "hooks": null}));
        talk.hear_until("control_response");
        talk.user("go");
        let question = talk.hear_until("control_request").pop().unwrap();
        talk.respond(&question, &response);
        talk.hear_until("result");
        let told = || {
            let files = std::fs::read_dir(dir.path()).unwrap().flatten();
            let files = files.map(|file| file.path());
            let files = files.filter(|file| file.extension().is_some_and(|end| end == "json"));
            let texts = files.filter(|file| {
                file.file_name()
                    .unwrap()
                    .as_encoded_bytes()
                    .starts_with(b"n.")
            });
            let mut told: Vec<Value> = texts
                .map(|file| serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap())
                .collect();
            told.sort_by_key(|one| one["notification_type"].to_string());
            told
        };
        haft_testkit::until_blocking("all hooks ran", || told().len() >= expected.len());
        let told = told();
        let kinds: Vec<&str> = told
            .iter()
            .filter_map(|one| one["notification_type"].as_str())
            .collect();
        assert_eq!(kinds, expected, "{what}");
        assert!(
            told.iter().all(|one| one["message"]
                .as_str()
                .is_some_and(|text| text.contains("MCP server s"))),
            "{told:?}"
        );
        let answer = told
            .iter()
            .find(|one| one["notification_type"] == "elicitation_response")
            .unwrap();
        let action = response["action"].as_str().unwrap();
        assert!(
            answer["message"].as_str().unwrap().ends_with(action),
            "{answer}"
        );
        assert_eq!(talk.end().1, 0);
    }
}
