use std::{fs, time::Instant};

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, answer, call, kinds, lines, scripted, steady_lines, text};

fn background(command: &str) -> Value {
    let input = json!({
        "command": command,
        "run_in_background": true,
        "description": "Waits",
    });
    call("Bash", input)
}

const UNTIL_GO: &str = "while [ ! -e go ]; do command sleep 0.05; done; echo gone";

#[test]
fn a_task_that_ends_between_two_messages_is_told_in_a_turn_of_its_own() {
    let dir = tempdir().unwrap();
    let turns = json!([[background(UNTIL_GO)], [text("started")], [text("heard")]]);
    let mut command = scripted(dir.path(), &turns);
    command
        .arg("--allowedTools=Bash")
        .env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1");
    let mut talk = Talk::new(&mut command);
    talk.user("go");
    let mut heard = talk.hear_until("result");
    // A command in the background keeps no one from being idle.
    heard.extend(talk.hear_until("system/session_state_changed"));
    fs::write(dir.path().join("go"), "").unwrap();
    heard.extend(talk.hear_until("result"));
    heard.extend(talk.hear_until("system/session_state_changed"));
    let (rest, code) = talk.end();
    assert_eq!((rest, code), (Vec::new(), 0));
    let result = &heard[heard.len() - 2];
    assert_eq!(result["result"], "heard");
    let output = heard
        .iter()
        .find(|one| one["subtype"] == "task_notification");
    let file = output.unwrap()["output_file"].as_str().unwrap().to_owned();
    assert_eq!(fs::read_to_string(&file).unwrap(), "gone\n");
    let tasks: Vec<Value> = heard
        .iter()
        .filter(|one| {
            one["subtype"]
                .as_str()
                .is_some_and(|name| name.starts_with("task_"))
        })
        .cloned()
        .map(|mut one| {
            if !one["patch"].is_null() {
                one["patch"]["end_time"] = json!(0);
            }
            if one["output_file"] == file.as_str() {
                one["output_file"] = json!("[file]");
            }
            one
        })
        .collect();
    insta::assert_snapshot!(format!(
        "{}\n\n{}",
        kinds(&heard).join("\n"),
        steady_lines(&tasks, dir.path())
    ));
}

#[test]
fn a_task_that_does_not_end_is_stopped_a_while_after_the_last_result() {
    let dir = tempdir().unwrap();
    let turns = json!([[background("command sleep 1000")], [text("started")]]);
    let mut command = scripted(dir.path(), &turns);
    let flags = ["-p", "go", "--output-format", "stream-json"];
    let started = Instant::now();
    let ran = answer(command.args(flags).arg("--allowedTools=Bash"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = lines(&ran);
    let result = told.iter().position(|one| one["type"] == "result").unwrap();
    assert_eq!(told[result]["result"], "started");
    let last = told.last().unwrap();
    assert_eq!(last["subtype"], "task_notification");
    assert_eq!(last["status"], "stopped");
    assert!(started.elapsed().as_secs() >= 5);
}

#[test]
fn a_task_that_ends_in_that_while_is_told_of_but_nobody_is_asked_again() {
    let dir = tempdir().unwrap();
    let turns = json!([[background(UNTIL_GO)], [text("started")], [text("never")]]);
    let mut talk = Talk::new(scripted(dir.path(), &turns).arg("--allowedTools=Bash"));
    talk.user("go");
    talk.stdin = None;
    talk.hear_until("result");
    fs::write(dir.path().join("go"), "").unwrap();
    let (rest, code) = talk.end();
    assert_eq!(code, 0);
    assert_eq!(
        kinds(&rest),
        ["system/task_updated", "system/task_notification"]
    );
    assert_eq!(rest[1]["status"], "completed");
}
