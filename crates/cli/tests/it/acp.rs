//! `haft acp` as an editor meets it: the vectors, and clients that do what they should not.

mod attacks;
mod buffers;
mod editor;
mod front_ends;
mod manifest;
mod rule_choices;
mod schedules;

use std::fs;

use haft_testkit::{
    http::{HttpFake, HttpReply},
    until_blocking,
};
use serde_json::{Value, json};

use self::editor::{Editor, call, code, edit, project, read, script, text};
use crate::binary::{Conversation, haft};

#[test]
fn vectors_1_to_4_what_is_refused_and_what_is_said_first() {
    let dir = project();
    let script = script(dir.path(), &[text("Hello")]);
    let mut editor = Editor::start(dir.path(), &["--script", &script]);
    let early = editor.ask("session/new", json!({"cwd": "/", "mcpServers": []}));
    assert_eq!(code(&early), -32600);
    let wrong = editor.ask("initialize", json!({"protocolVersion": "one"}));
    assert_eq!(code(&wrong), -32602);
    let begun = editor.ask("initialize", json!({"protocolVersion": 1}));
    let mut result = begun["result"].clone();
    result["agentInfo"]["version"] = json!("VERSION");
    insta::assert_json_snapshot!(result);
    for version in [7, -1, 0] {
        let begun = editor.ask("initialize", json!({"protocolVersion": version}));
        assert_eq!(begun["result"]["protocolVersion"], 1);
    }
    let refused = editor.ask("session/new", json!({"cwd": "rel", "mcpServers": []}));
    assert_eq!(code(&refused), -32602);
    assert_eq!(refused["error"]["data"], json!({"field": "cwd"}));
    assert_eq!(code(&editor.ask("session/nonsense", json!({}))), -32601);
    assert_eq!(editor.talk.end(), 0);
}

#[test]
fn vectors_5_and_6_a_session_and_its_first_words() {
    let dir = project();
    let script = script(dir.path(), &[text("Hello")]);
    let mut editor = Editor::begun(dir.path(), &["--script", &script]);
    let opened = editor.ask("session/new", json!({"cwd": dir.path()}));
    assert!(editor.seen.is_empty(), "{:?}", editor.seen);
    assert_eq!(opened["result"]["modes"]["currentModeId"], "default");
    let options = opened["result"]["configOptions"].as_array().unwrap();
    let ids: Vec<_> = options
        .iter()
        .map(|option| option["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["mode", "model", "effort"]);
    editor.session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let commands = editor.until("commands", |message| {
        message["params"]["update"]["sessionUpdate"] == "available_commands_update"
    });
    let commands = commands["params"]["update"]["availableCommands"]
        .as_array()
        .unwrap()
        .clone();
    assert!(commands.iter().any(|command| command["name"] == "compact"));

    let answer = editor.prompt("hi");
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
    assert_eq!(editor.said("agent_message_chunk"), "Hello");
    let info = editor.updates("session_info_update");
    assert_eq!(info[0]["title"], "hi");
    let answer = editor.prompt("/status");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(!editor.said("agent_message_chunk").is_empty());
}

#[test]
fn vector_7_a_call_is_shown_from_its_name_to_its_result() {
    let dir = project();
    let mut editor =
        Editor::with_turns(&dir, &[call("Read", json!({"file_path": "a"})), text("ok")]);
    editor.prompt("read");
    let begun = editor.updates("tool_call");
    assert_eq!(begun[0]["kind"], "read");
    assert_eq!(begun[0]["status"], "pending");
    let path = dir.path().join("a").canonicalize().unwrap();
    let places = editor.updates("tool_call_update");
    let places = places.iter().find(|update| update["locations"].is_array());
    assert_eq!(places.unwrap()["locations"], json!([{"path": path}]));
    assert_eq!(editor.states().last(), Some(&"completed"));
}

#[test]
fn vectors_8_and_9_an_edit_is_shown_asked_about_and_made_or_not() {
    let dir = project();
    let turns = [
        read(),
        edit("a", "two", "2"),
        edit("a", "one", "1"),
        text("ok"),
    ];
    let mut editor = Editor::with_turns(&dir, &turns);
    editor.answers = vec!["allow", "reject"];
    let answer = editor.prompt("edit");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let question = &editor.questions()[0]["params"];
    assert_eq!(question["toolCall"]["status"], "pending");
    assert_eq!(question["toolCall"]["kind"], "edit");
    let path = dir.path().join("a").canonicalize().unwrap();
    let diff = json!({"type": "diff", "path": path, "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n"});
    assert_eq!(question["toolCall"]["content"][0], diff);
    let options: Vec<_> = question["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| {
            (
                option["optionId"].as_str().unwrap(),
                option["kind"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("allow", "allow_once"),
        ("always", "allow_always"),
        ("reject", "reject_once"),
    ];
    assert_eq!(options, expected);
    let done = editor.updates("tool_call_update");
    let done = done
        .iter()
        .filter(|update| update["status"] == "completed")
        .nth(1)
        .unwrap();
    assert_eq!(done["content"], json!([diff]));
    assert_eq!(
        editor.states(),
        [
            "pending",
            "in_progress",
            "completed",
            "pending",
            "in_progress",
            "completed",
            "pending",
            "failed"
        ]
    );
    let now = fs::read_to_string(dir.path().join("a")).unwrap();
    assert_eq!(now, "one\n2\nthree\n");
}

#[test]
fn vector_10_always_is_a_mode_for_edits() {
    let dir = project();
    let turns = [
        read(),
        edit("a", "two", "2"),
        edit("a", "one", "1"),
        text("ok"),
    ];
    let mut editor = Editor::with_turns(&dir, &turns);
    editor.answers = vec!["always"];
    editor.prompt("edit");
    assert_eq!(editor.questions().len(), 1);
    let modes = editor.updates("current_mode_update");
    assert_eq!(modes[0]["currentModeId"], "acceptEdits");
    let now = fs::read_to_string(dir.path().join("a")).unwrap();
    assert_eq!(now, "1\n2\nthree\n");
}

#[test]
fn vector_11_a_cancelled_question_is_taken_back() {
    let dir = project();
    let mut editor = Editor::with_turns(&dir, &[read(), edit("a", "two", "2"), text("ok")]);
    editor.answers.clear();
    let params = editor.prompt_of(json!([{"type": "text", "text": "edit"}]));
    let id = editor.send("session/prompt", params);
    editor.until("question", |message| {
        message["method"] == "session/request_permission"
    });
    let session = editor.session.clone();
    editor.note("session/cancel", json!({"sessionId": session}));
    let answer = editor.answer(id);
    assert_eq!(answer["result"], json!({"stopReason": "cancelled"}));
    let taken_back = |message: &&Value| message["method"] == "$/cancel_request";
    assert_eq!(editor.seen.iter().filter(taken_back).count(), 1);
    assert_eq!(editor.states().last(), Some(&"failed"));
    let now = fs::read_to_string(dir.path().join("a")).unwrap();
    assert_eq!(now, "one\ntwo\nthree\n");
}

#[test]
fn vector_12_a_prompt_can_be_cancelled_at_once_and_so_can_those_behind_it() {
    let dir = project();
    let hangs = json!({"hangs": true});
    let mut editor = Editor::with_turns(&dir, &[hangs.clone(), hangs, text("ok")]);
    let params = editor.prompt_of(json!([{"type": "text", "text": "go"}]));
    let first = editor.send("session/prompt", params.clone());
    let second = editor.send("session/prompt", params);
    let session = editor.session.clone();
    editor.note("session/cancel", json!({"sessionId": session}));
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let message = editor.hear();
        if message.get("method").is_none() {
            assert_eq!(message["result"], json!({"stopReason": "cancelled"}));
            answers.push(message["id"].as_u64().unwrap());
        }
    }
    answers.sort_unstable();
    assert_eq!(answers, [first, second]);
}

#[test]
fn vectors_13_and_25_what_runs_ends_with_the_prompt_or_with_the_editor() {
    let dir = project();
    for ends in ["cancel", "close", "end"] {
        // A length of time that no other process sleeps for: by it the command is found, whatever its id.
        let sleeps = format!("1000.{}", std::process::id());
        let line = format!("sleep {sleeps}");
        let turns = [call("Bash", json!({"command": line})), text("ok")];
        let mut editor = Editor::with_turns(&dir, &turns);
        let params = editor.prompt_of(json!([{"type": "text", "text": "sleep"}]));
        let id = editor.send("session/prompt", params);
        editor.until("work", |message| {
            message["params"]["update"]["status"] == "in_progress"
        });
        until_blocking("the command", || is_running(&sleeps));
        let session = editor.session.clone();
        match ends {
            "cancel" => {
                editor.note("session/cancel", json!({"sessionId": session}));
                let answer = editor.answer(id);
                assert_eq!(answer["result"], json!({"stopReason": "cancelled"}));
            }
            "close" => {
                let closing = editor.send("session/close", json!({"sessionId": session}));
                assert_eq!(editor.answer(closing)["result"], json!({}));
            }
            _ => {}
        }
        // Where only the prompt or the session is over, the agent still runs: it is not its end that ends the command.
        if ends != "end" {
            until_blocking("the command's end", || !is_running(&sleeps));
        }
        assert_eq!(editor.talk.end(), 0, "{ends}");
        until_blocking("the command's end", || !is_running(&sleeps));
    }
}

/// Is there a process with this argument?
pub(crate) fn is_running(argument: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| {
        line.split(|byte| *byte == 0)
            .any(|word| word == argument.as_bytes())
    })
}

#[test]
fn vectors_14_and_15_a_model_that_cannot_answer() {
    let dir = project();
    for (status, expected) in [(401, -32000), (500, -32603)] {
        let refused = (0..9).map(|_| HttpReply::error(status, "x", "no such luck"));
        let server = HttpFake::start(refused);
        let mut command = haft(dir.path());
        command
            .env("ANTHROPIC_API_KEY", "k")
            .env("ANTHROPIC_BASE_URL", &server.url)
            .env("CLAUDE_CODE_MAX_RETRIES", "0")
            .args(["acp", "--model", "m"]);
        let mut editor = Editor {
            talk: Conversation::start(&mut command),
            next: 0,
            seen: Vec::new(),
            answers: vec!["allow"],
            session: String::new(),
            files: None,
        };
        editor.ask("initialize", json!({"protocolVersion": 1}));
        editor.opens(dir.path());
        let answer = editor.prompt("hi");
        assert_eq!(code(&answer), expected, "{answer}");
        let details = answer["error"]["data"]["details"].as_str().unwrap();
        assert!(details.contains("no such luck"), "{details}");
    }
}

#[test]
fn vectors_16_and_17_modes_and_options() {
    let dir = project();
    let mut editor = Editor::with_turns(&dir, &[text("ok")]);
    let session = editor.session.clone();
    let answer = editor.ask(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "plan"}),
    );
    assert_eq!(answer["result"], json!({}));
    let change = editor.until("mode", |message| {
        message["params"]["update"]["sessionUpdate"] == "current_mode_update"
    });
    assert_eq!(change["params"]["update"]["currentModeId"], "plan");
    let change = editor.until("options", |message| {
        message["params"]["update"]["sessionUpdate"] == "config_option_update"
    });
    let options = &change["params"]["update"]["configOptions"];
    assert_eq!(options[0]["currentValue"], "plan");
    let option =
        |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    let refused = editor.ask("session/set_config_option", option("mode", "nope"));
    assert_eq!(code(&refused), -32602);
    assert_eq!(refused["error"]["data"], json!({"field": "value"}));
    let refused = editor.ask("session/set_config_option", option("colour", "red"));
    assert_eq!(refused["error"]["data"], json!({"field": "configId"}));
    let bypass = editor.ask(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "bypassPermissions"}),
    );
    assert_eq!(code(&bypass), -32602);
    let chosen = editor.ask("session/set_config_option", option("effort", "high"));
    assert_eq!(chosen["result"]["configOptions"][2]["currentValue"], "high");
    let chosen = editor.ask("session/set_config_option", option("model", "another"));
    assert_eq!(
        chosen["result"]["configOptions"][1]["currentValue"],
        "another"
    );
}

#[test]
fn vectors_18_to_20_a_session_is_taken_up_by_another_process() {
    let dir = project();
    let mut editor =
        Editor::with_turns(&dir, &[read(), edit("a", "two", "2"), text("It is done.")]);
    editor.prompt("please edit");
    let session = editor.session.clone();
    assert_eq!(editor.talk.end(), 0);

    let script = script(dir.path(), &[text("Yes.")]);
    let mut editor = Editor::begun(dir.path(), &["--script", &script]);
    let listed = editor.ask("session/list", json!({"cwd": dir.path()}));
    let first = &listed["result"]["sessions"][0];
    assert_eq!(first["sessionId"], session.as_str());
    assert_eq!(first["title"], "please edit");
    assert_eq!(
        code(&editor.ask("session/list", json!({"cursor": "x"}))),
        -32602
    );

    let place = json!({"sessionId": session, "cwd": dir.path(), "mcpServers": []});
    let loaded = editor.ask("session/load", place.clone());
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "default");
    assert_eq!(editor.said("user_message_chunk"), "please edit");
    assert_eq!(editor.said("agent_message_chunk"), "It is done.");
    let calls = editor.updates("tool_call");
    assert_eq!(calls[1]["status"], "completed");
    assert_eq!(calls[1]["content"][0]["newText"], "one\n2\nthree\n");
    editor.session = session.clone();
    let answer = editor.prompt("really?");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(editor.talk.end(), 0);

    let mut editor = Editor::begun(dir.path(), &["--script", &script]);
    let resumed = editor.ask("session/resume", place);
    assert!(resumed["result"]["modes"].is_object());
    assert!(editor.seen.is_empty(), "{:?}", editor.seen);
    for name in ["nope", "00000000-0000-4000-8000-000000000009"] {
        let unknown = json!({"sessionId": name, "cwd": dir.path(), "mcpServers": []});
        let unknown = editor.ask("session/load", unknown);
        assert_eq!(code(&unknown), -32002);
        assert_eq!(unknown["error"]["data"], json!({"sessionId": name}));
    }
    // Deleted twice: what is not there is gone.
    for _ in 0..2 {
        let deleted = editor.ask("session/delete", json!({"sessionId": session}));
        assert_eq!(deleted["result"], json!({}));
    }
    let listed = editor.ask("session/list", json!({"cwd": dir.path()}));
    assert_eq!(listed["result"]["sessions"], json!([]));
}

#[test]
fn vectors_21_and_22_what_a_prompt_may_hold() {
    let dir = project();
    let path = dir.path().canonicalize().unwrap().join("a");
    let mut editor = Editor::with_turns(&dir, &[edit("a", "two", "2"), text("ok")]);
    let audio = editor.prompt_of(json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]));
    assert_eq!(code(&editor.ask("session/prompt", audio)), -32602);
    let uri = format!("file://{}", path.display());
    let file = json!({"uri": uri, "text": "one\ntwo\nthree\n"});
    let blocks =
        json!([{"type": "text", "text": "edit this"}, {"type": "resource", "resource": file}]);
    let blocks = editor.prompt_of(blocks);
    let answer = editor.ask("session/prompt", blocks);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(
        editor.states().last(),
        Some(&"completed"),
        "{:#?}",
        editor.seen
    );
    assert_eq!(fs::read_to_string(path).unwrap(), "one\n2\nthree\n");
}

#[test]
fn nonsense_is_answered_and_the_session_goes_on() {
    let dir = project();
    let mut editor = Editor::with_turns(&dir, &[text("still here")]);
    editor.until("commands", |message| message["method"] == "session/update");
    editor.talk.say(&json!([1, 2]));
    assert_eq!(code(&editor.hear()), -32600);
    editor.talk.say(&json!({"id": {}, "method": "x"}));
    assert_eq!(code(&editor.hear()), -32600);
    // An answer that no one waits for, and notifications that do not exist.
    editor.talk.say(&json!({"id": 4711, "result": {}}));
    editor.note("session/whatever", json!(null));
    editor.note("session/cancel", json!({"sessionId": "nope"}));
    let unknown = editor.ask("session/prompt", json!({"sessionId": "nope", "prompt": []}));
    assert_eq!(code(&unknown), -32002);
    let answer = editor.prompt("hi");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(editor.said("agent_message_chunk"), "still here");
}

#[test]
fn the_models_list_of_tasks_is_the_plan() {
    let dir = project();
    let task = |subject: &str| {
        call(
            "TaskCreate",
            json!({"subject": subject, "description": subject}),
        )
    };
    let begun = call(
        "TaskUpdate",
        json!({"taskId": "1", "status": "in_progress"}),
    );
    let mut editor = Editor::with_turns(&dir, &[task("find"), task("fix"), begun, text("ok")]);
    editor.prompt("go");
    let plans = editor.updates("plan");
    let states: Vec<_> = plans.last().unwrap()["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (
                entry["content"].as_str().unwrap(),
                entry["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(states, [("find", "in_progress"), ("fix", "pending")]);
    assert!(editor.updates("tool_call").is_empty());
}

#[test]
fn an_editor_that_vanishes_in_a_question_leaves_nothing_behind() {
    let dir = project();
    let mut editor = Editor::with_turns(&dir, &[read(), edit("a", "two", "2"), text("ok")]);
    editor.answers.clear();
    let params = editor.prompt_of(json!([{"type": "text", "text": "edit"}]));
    editor.send("session/prompt", params);
    editor.until("question", |message| {
        message["method"] == "session/request_permission"
    });
    assert_eq!(editor.talk.end(), 0);
    let now = fs::read_to_string(dir.path().join("a")).unwrap();
    assert_eq!(now, "one\ntwo\nthree\n");
}

#[test]
fn a_killed_agent_loses_nothing_that_was_said() {
    let dir = project();
    let mut editor = Editor::with_turns(
        &dir,
        &[read(), text("It has three lines."), json!({"hangs": true})],
    );
    editor.prompt("how long is it?");
    let params = editor.prompt_of(json!([{"type": "text", "text": "and now?"}]));
    editor.send("session/prompt", params);
    let session = editor.session.clone();
    let kept = || {
        let projects = fs::read_dir(dir.path().join(".claude/projects")).unwrap();
        let mut files =
            projects.map(|project| project.unwrap().path().join(format!("{session}.jsonl")));
        files.any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("and now?")))
    };
    until_blocking("the second prompt is kept", kept);
    editor.talk.child.kill().unwrap();
    editor.talk.child.wait().unwrap();

    let script = script(dir.path(), &[text("Still three.")]);
    let mut editor = Editor::begun(dir.path(), &["--script", &script]);
    let place = json!({"sessionId": session, "cwd": dir.path(), "mcpServers": []});
    let loaded = editor.ask("session/load", place);
    assert!(loaded["result"].is_object(), "{loaded}");
    assert_eq!(editor.said("user_message_chunk"), "how long is it?and now?");
    assert_eq!(editor.said("agent_message_chunk"), "It has three lines.");
    editor.session = session;
    let answer = editor.prompt("again");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(editor.said("agent_message_chunk"), "Still three.");
}

#[test]
fn a_plan_is_asked_about_and_gone_ahead_with() {
    let dir = project();
    let plan = call("ExitPlanMode", json!({"plan": "1. Edit the file."}));
    let turns = [read(), plan, edit("a", "two", "2"), text("ok")];
    let mut editor = Editor::with_turns(&dir, &turns);
    let session = editor.session.clone();
    editor.ask(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "plan"}),
    );
    editor.answers = vec!["acceptEdits"];
    let answer = editor.prompt("plan it");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let question = &editor.questions()[0]["params"];
    assert_eq!(question["toolCall"]["kind"], "switch_mode");
    assert_eq!(
        question["toolCall"]["content"][0]["content"]["text"],
        "1. Edit the file."
    );
    let modes = editor.updates("current_mode_update");
    assert_eq!(modes.last().unwrap()["currentModeId"], "acceptEdits");
    assert_eq!(editor.questions().len(), 1);
    let now = fs::read_to_string(dir.path().join("a")).unwrap();
    assert_eq!(now, "one\n2\nthree\n");
}

#[test]
fn a_question_is_a_form_or_a_choice() {
    let dir = project();
    let options =
        json!([{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]);
    let asked = json!({"questions": [{"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": false}]});
    let turns = [call("AskUserQuestion", asked), text("ok")];
    for can_form in [false, true] {
        let script = script(dir.path(), &turns);
        let mut editor = Editor::start(dir.path(), &["--script", &script]);
        let can = match can_form {
            true => json!({"elicitation": {"form": {}}}),
            false => json!({}),
        };
        editor.ask(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": can}),
        );
        editor.opens(dir.path());
        editor.answers = vec!["1"];
        let params = editor.prompt_of(json!([{"type": "text", "text": "ask"}]));
        let id = editor.send("session/prompt", params);
        if can_form {
            let form = editor.until("form", |message| message["method"] == "elicitation/create");
            let question = &form["params"]["requestedSchema"]["properties"]["q1"];
            assert_eq!(question["title"], "Which colour?");
            assert_eq!(question["oneOf"][1]["const"], "Blue");
            let filled_in = json!({"action": "accept", "content": {"q1": "Blue"}});
            editor
                .talk
                .say(&json!({"jsonrpc": "2.0", "id": form["id"], "result": filled_in}));
        }
        assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
        let done = editor.updates("tool_call_update");
        let done = done.iter().rfind(|update| update["status"] == "completed");
        let words = done.unwrap().to_string();
        assert!(words.contains("Blue"), "{words}");
    }
}

#[test]
fn output_is_shown_as_it_comes_where_an_editor_has_terminals_for_it() {
    let dir = project();
    let go = dir.path().join("go");
    let line = format!(
        "echo first; until [ -e {} ]; do sleep 0.01; done; echo second; exit 3",
        go.display()
    );
    let script = script(
        dir.path(),
        &[call("Bash", json!({"command": line})), text("ok")],
    );
    let mut editor = Editor::start(dir.path(), &["--script", &script]);
    let can = json!({"_meta": {"terminal_output": true}});
    editor.ask(
        "initialize",
        json!({"protocolVersion": 1, "clientCapabilities": can}),
    );
    editor.opens(dir.path());
    let params = editor.prompt_of(json!([{"type": "text", "text": "run"}]));
    let id = editor.send("session/prompt", params);
    let first = editor.until("output", |message| {
        message["params"]["update"]["_meta"]["terminal_output"].is_object()
    });
    let terminal = &first["params"]["update"]["_meta"]["terminal_output"];
    assert_eq!(terminal["data"], "first\r\n");
    fs::write(go, "").unwrap();
    assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
    let begun = editor.updates("tool_call");
    assert_eq!(begun[0]["content"][0]["type"], "terminal");
    assert_eq!(
        begun[0]["_meta"]["terminal_info"]["terminal_id"],
        terminal["terminal_id"]
    );
    let ends = editor.updates("tool_call_update");
    let ends = ends
        .iter()
        .find(|update| update["_meta"]["terminal_exit"].is_object());
    assert_eq!(ends.unwrap()["_meta"]["terminal_exit"]["exit_code"], 3);
}
