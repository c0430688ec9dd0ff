//! Tasks, plan mode and questions, with the program at the other end or no one.

use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, answer, call, lines, scripted, text};
use crate::binary::{exec, haft, run};

const JSON_OUT: [&str; 2] = ["--output-format", "json"];
const STREAM_OUT: [&str; 3] = ["--output-format", "stream-json", "--verbose"];

/// What the model read of each call, in order.
fn results(messages: &[Value]) -> Vec<String> {
    let blocks = messages
        .iter()
        .filter(|message| message["type"] == "user")
        .filter_map(|message| message["message"]["content"].as_array())
        .flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results
        .map(|block| block["content"].as_str().unwrap().to_owned())
        .collect()
}

fn question() -> Value {
    let option = |label: &str| json!({"label": label, "description": "so"});
    call(
        "AskUserQuestion",
        json!({"questions": [{
            "question": "Which way?",
            "header": "Way",
            "options": [option("Left"), option("Right")],
            "multiSelect": false,
        }], "answers": {"Which way?": "the model's own"}}),
    )
}

#[test]
fn tasks_go_on_with_the_session() {
    let dir = tempdir().unwrap();
    let create = |subject: &str| call("TaskCreate", json!({"subject": subject, "description": ""}));
    let turns = json!([[create("Build"), create("Test")], [text("planned")]]);
    let ran = answer(
        scripted(dir.path(), &turns)
            .args(["-p", "plan"])
            .args(JSON_OUT),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let turns = json!([
        [
            call("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
            call("TaskList", json!({}))
        ],
        [text("seen")],
    ]);
    let mut command = scripted(dir.path(), &turns);
    let ran = answer(command.args(["-p", "go on", "--continue"]).args(STREAM_OUT));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = results(&lines(&ran));
    assert_eq!(told[1], "1. [completed] Build\n2. [pending] Test");
}

#[test]
fn the_environment_chooses_the_tools_for_the_list() {
    let dir = tempdir().unwrap();
    let names = |variables: &[(&str, &str)]| {
        let mut command = haft(dir.path());
        command
            .args(["tools", "--json"])
            .envs(variables.iter().copied());
        let ran = run(&mut command, b"");
        let tools: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
        let names = names.filter(|name| name.starts_with("To") || name.starts_with("TaskC"));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["TaskCreate", "ToolSearch"]);
    let old = [("CLAUDE_CODE_ENABLE_TASKS", "0")];
    assert_eq!(names(&old), ["TodoWrite", "ToolSearch"]);
    let none = [("CLAUDE_CODE_ENABLE_TODO_TOOLS", "0")];
    assert_eq!(names(&none), ["ToolSearch"]);
}

/// tools.md §16: a model that tries everything changes nothing.
#[test]
fn plan_mode_with_nobody_to_ask() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "alpha\n").unwrap();
    let turns = json!([
        [call("Read", json!({"file_path": "a.txt"}))],
        [
            call(
                "Edit",
                json!({"file_path": "a.txt", "old_string": "alpha", "new_string": "x"})
            ),
            call("Write", json!({"file_path": "b.txt", "content": "x"})),
            call("Bash", json!({"command": "touch made"})),
            call("Bash", json!({"command": "cat a.txt"})),
            call("MemoryWrite", json!({"path": "x.md", "content": "x"})),
            call("Config", json!({"setting": "model", "value": "x"})),
            call("ExitPlanMode", json!({"plan": "1. Do it"})),
        ],
        [text("I cannot.")],
    ]);
    let mut command = scripted(dir.path(), &turns);
    command
        .args(["-p", "plan", "--permission-mode", "plan"])
        .args(STREAM_OUT);
    let ran = answer(&mut command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = lines(&ran);
    let denials = messages.last().unwrap()["permission_denials"]
        .as_array()
        .unwrap();
    let denied: Vec<&str> = denials
        .iter()
        .map(|one| one["tool_name"].as_str().unwrap())
        .collect();
    let expected = [
        "Edit",
        "Write",
        "Bash",
        "MemoryWrite",
        "Config",
        "ExitPlanMode",
    ];
    assert_eq!(denied, expected);
    assert_eq!(results(&messages)[4], "alpha");
    assert_eq!(
        fs::read_to_string(dir.path().join("a.txt")).unwrap(),
        "alpha\n"
    );
    for made in ["b.txt", "made", ".claude/settings.local.json"] {
        assert!(!dir.path().join(made).exists(), "{made}");
    }
}

#[test]
fn whoever_is_alone_begins_no_plan_and_asks_nothing() {
    let dir = tempdir().unwrap();
    let turns = json!([
        [call("EnterPlanMode", json!({})), question()],
        [text("so be it")]
    ]);
    for mode in ["default", "dontAsk", "acceptEdits"] {
        let mut command = scripted(dir.path(), &turns);
        command
            .args(["-p", "x", "--permission-mode", mode])
            .args(STREAM_OUT);
        let ran = answer(&mut command);
        let messages = lines(&ran);
        let denials = &messages.last().unwrap()["permission_denials"];
        assert_eq!(denials.as_array().unwrap().len(), 2, "{mode}");
        if mode == "default" {
            insta::assert_snapshot!(results(&messages).join("\n\n"));
        }
    }
}

#[test]
fn a_question_arrives_at_the_other_end_and_its_answer_at_the_model() {
    let dir = tempdir().unwrap();
    let turns = json!([[question()], [text("left it is")]]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--permission-prompt-tool", "stdio"]));
    talk.user("ask me");
    let asked = talk.hear_until("control_request").pop().unwrap();
    let request = &asked["request"];
    assert_eq!(request["subtype"], "can_use_tool");
    assert_eq!(request["tool_name"], "AskUserQuestion");
    let mut input = request["input"].clone();
    assert_eq!(input.get("answers"), None, "a model answers nothing itself");
    input["answers"] = json!({"Which way?": "Left"});
    talk.respond(&asked, &json!({"behavior": "allow", "updatedInput": input}));
    let heard = talk.hear_until("result");
    assert_eq!(results(&heard), ["\"Which way?\" = \"Left\""]);
    let told = heard
        .iter()
        .find(|one| one["tool_use_result"].is_object())
        .unwrap();
    assert_eq!(
        told["tool_use_result"]["answers"],
        json!({"Which way?": "Left"})
    );
    assert_eq!(talk.end().1, 0);
}

#[test]
fn a_question_that_nobody_answers_in_time_is_left() {
    let dir = tempdir().unwrap();
    // The shortest that can be set is a minute; what is not allowed is told and left out.
    let turns = json!([[question()], [text("then not")]]);
    let mut command = scripted(dir.path(), &turns);
    command
        .args(["--permission-prompt-tool", "stdio"])
        .args(["--settings", r#"{"askUserQuestionTimeout": "1s"}"#]);
    let mut talk = Talk::new(&mut command);
    talk.user("ask me");
    let asked = talk.hear_until("control_request").pop().unwrap();
    talk.respond(&asked, &json!({"behavior": "deny", "message": "not now"}));
    let heard = talk.hear_until("result");
    assert!(results(&heard)[0].ends_with("They said: not now"));
    assert_eq!(talk.end().1, 0);
}

#[test]
fn a_plan_is_approved_or_sent_back_from_the_other_end() {
    let dir = tempdir().unwrap();
    let turns = json!([
        [call("EnterPlanMode", json!({}))],
        [call("ExitPlanMode", json!({"plan": "1. Leap"}))],
        [call("ExitPlanMode", json!({"plan": "1. Look"}))],
        [call("Write", json!({"file_path": "b.txt", "content": "x"}))],
        [text("done")],
    ]);
    let mut command = scripted(dir.path(), &turns);
    command.args([
        "--permission-prompt-tool",
        "stdio",
        "--permission-mode",
        "acceptEdits",
    ]);
    let mut talk = Talk::new(&mut command);
    talk.user("plan it");
    let asked = talk.hear_until("control_request").pop().unwrap();
    assert_eq!(asked["request"]["tool_name"], "ExitPlanMode");
    assert_eq!(asked["request"]["input"]["plan"], "1. Leap");
    talk.respond(
        &asked,
        &json!({"behavior": "deny", "message": "look first"}),
    );
    let heard = talk.hear_until("control_request");
    let told = results(&heard);
    assert!(
        told[0].contains("They said: look first\nPlan mode stays on."),
        "{told:?}"
    );
    let asked = heard.last().unwrap().clone();
    let input = asked["request"]["input"].clone();
    talk.respond(&asked, &json!({"behavior": "allow", "updatedInput": input}));
    let heard = talk.hear_until("result");
    assert!(results(&heard)[0].starts_with("The plan is approved"));
    // Back in the mode before: the edit needs no word.
    assert_eq!(fs::read_to_string(dir.path().join("b.txt")).unwrap(), "x");
    assert_eq!(talk.end().1, 0);
}

#[test]
fn a_tool_that_is_not_loaded_is_found_and_used() {
    let dir = tempdir().unwrap();
    let record = dir.path().join("tape");
    let turns = json!([
        [call("ToolSearch", json!({"query": "select:Config"}))],
        [call("Config", json!({"setting": "model"}))],
        [text("found")],
    ]);
    let mut command = scripted(dir.path(), &turns);
    command
        .args(["-p", "x"])
        .args(STREAM_OUT)
        .arg("--record")
        .arg(&record);
    let ran = answer(&mut command);
    let told = results(&lines(&ran));
    assert!(told[0].starts_with("Can be called from now on:\n{\"name\":\"Config\""));
    assert_eq!(told[1], "model is not set.");
    let tape = fs::read_to_string(record).unwrap();
    assert!(
        tape.contains("not loaded yet, such as Config, CronCreate, CronDelete"),
        "the model is told which there are"
    );
}

#[test]
fn notes_are_kept_for_the_next_session() {
    let dir = tempdir().unwrap();
    let write = call(
        "MemoryWrite",
        json!({"path": "MEMORY.md", "content": "Use make.\n"}),
    );
    let turns = json!([[write], [text("kept")]]);
    let mut command = scripted(dir.path(), &turns);
    let ran = answer(
        command
            .args(["-p", "x", "--allowedTools", "MemoryWrite"])
            .args(JSON_OUT),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let read = json!({"name": "MemoryRead", "input": {"path": "MEMORY.md"}}).to_string();
    let answers = exec(dir.path(), &[], &read);
    assert_eq!(answers[0]["content"], "Use make.\n", "{answers:?}");
}

#[test]
fn whoever_sleeps_is_woken_by_a_word() {
    let dir = tempdir().unwrap();
    let turns = json!([
        [call("Sleep", json!({"seconds": 3600})), question()],
        [text("awake")],
    ]);
    let mut command = scripted(dir.path(), &turns);
    command.args(["--tools", "default,Sleep", "--max-turns", "5"]);
    let mut talk = Talk::new(&mut command);
    talk.user("wait");
    talk.hear_until("assistant");
    let now = json!({"role": "user", "content": "That is enough."});
    talk.say(&json!({"type": "user", "message": now, "priority": "now"}));
    let heard = talk.hear_until("result");
    assert!(results(&heard)[0].starts_with("Woken after"), "{heard:?}");
    assert_eq!(talk.end().1, 0);
}

/// What every session pays for before anyone has said a word.
#[test]
fn the_first_request_stays_small() {
    let dir = tempdir().unwrap();
    let record = dir.path().join("tape");
    let mut command = scripted(dir.path(), &json!([[text("hello")]]));
    let ran = answer(command.args(["-p", "hi"]).arg("--record").arg(&record));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let tape = fs::read_to_string(&record).unwrap();
    let part = |holds: &str| {
        let line = tape.lines().find(|line| line.starts_with(holds)).unwrap();
        line.len() - "{\"part\":}".len()
    };
    let system = part("{\"part\":[{\"text\":");
    let tools = part("{\"part\":[{\"name\":");
    assert!(tools + system <= 20_000, "tools {tools} + system {system}");
}
