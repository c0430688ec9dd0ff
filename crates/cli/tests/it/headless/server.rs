//! A provider on this machine that speaks as Anthropic does.

use std::{fs, path::Path, process::Command};

use haft_testkit::{
    anthropic::{text_reply, tool_reply},
    http::{HttpFake, HttpReply},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{answer, kinds, lines};
use crate::binary::haft;

fn asking(server: &HttpFake, cwd: &Path) -> Command {
    let mut command = haft(cwd);
    command
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "key")
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .args(["--model", "m-1", "--output-format", "stream-json", "-p"]);
    command
}

#[test]
fn a_text_answer() {
    let dir = tempdir().unwrap();
    let server = HttpFake::start_strict(vec![text_reply("Hello.")]);
    let ran = answer(asking(&server, dir.path()).arg("hi"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = lines(&ran);
    assert_eq!(
        kinds(&messages),
        ["system/init", "assistant", "result/success"]
    );
    assert_eq!(messages[0]["apiKeySource"], "ANTHROPIC_API_KEY");
    assert_eq!(messages[1]["message"]["model"], "m-1-2026");
    assert_eq!(messages[2]["result"], "Hello.");
    assert_eq!(messages[2]["usage"]["output_tokens"], 40);
    let asked = server.bodies();
    assert_eq!(asked[0]["model"], "m-1");
}

#[test]
fn a_file_is_read_and_its_text_sent_back() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "forty-two\n").unwrap();
    let read = tool_reply("Read", json!({"file_path": dir.path().join("a.txt")}));
    let server = HttpFake::start_strict(vec![read, text_reply("It says 42.")]);
    let ran = answer(asking(&server, dir.path()).arg("what is in a.txt?"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = lines(&ran);
    let expected = [
        "system/init",
        "assistant",
        "user",
        "assistant",
        "result/success",
    ];
    assert_eq!(kinds(&messages), expected);
    assert_eq!(messages[4]["num_turns"], 2);
    let asked = server.bodies();
    let sent = asked[1]["messages"].to_string();
    assert!(
        sent.contains("toolu_1") && sent.contains("forty-two"),
        "{sent}"
    );
}

#[test]
fn a_command_runs_and_its_output_is_sent_back() {
    let dir = tempdir().unwrap();
    let bash = tool_reply("Bash", json!({"command": "echo $((6 * 7)) | cat"}));
    let server = HttpFake::start_strict(vec![bash, text_reply("42.")]);
    let ran =
        answer(asking(&server, dir.path()).args(["what is 6 * 7?", "--allowedTools", "Bash"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = lines(&ran);
    assert_eq!(
        messages[2]["tool_use_result"]["stdout"], "42",
        "{}",
        messages[2]
    );
    assert_eq!(messages.last().unwrap()["permission_denials"], json!([]));
    let asked = server.bodies();
    let result = asked[1]["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert!(result.contains("42"), "{result}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_command_cannot_reach_what_nobody_permitted() {
    let dir = tempdir().unwrap();
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    // In a file, where only the kernel can see what it does.
    let script = format!(
        "touch inside; touch {}/x || echo kept out",
        outside.path().display()
    );
    fs::write(dir.path().join("run.sh"), script).unwrap();
    let bash = tool_reply("Bash", json!({"command": "sh run.sh"}));
    let server = HttpFake::start_strict(vec![bash, text_reply("It was kept out.")]);
    let ran = answer(asking(&server, dir.path()).args(["run it", "--allowedTools", "Bash"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(dir.path().join("inside").exists());
    assert!(!outside.path().join("x").exists());
    let asked = server.bodies();
    let told = asked[1]["messages"].to_string();
    assert!(told.contains("kept out"), "{told}");
}

#[test]
fn a_base_url_of_the_other_sort_is_asked_the_other_way() {
    let dir = tempdir().unwrap();
    let piece = |delta: Value, finish: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        let chunk =
            json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": choices});
        format!("data: {chunk}\n\n")
    };
    let hello = json!({"role": "assistant", "content": "Hello."});
    let mut body = piece(hello, json!(null)) + &piece(json!({}), json!("stop"));
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13});
    let last = json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": usage});
    body += &format!("data: {last}\n\ndata: [DONE]\n\n");
    let server = HttpFake::start_strict(vec![HttpReply::events(body)]);
    let flags = [
        "-p",
        "hi",
        "--model",
        "m",
        "--include-partial-messages",
        "--base-url",
    ];
    let mut command = haft(dir.path());
    command.args(flags).arg(format!("{}/v1", server.url));
    command.args(["--output-format", "stream-json"]);
    let ran = answer(command.env("OPENAI_API_KEY", "key"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = lines(&ran);
    assert_eq!(messages[0]["apiKeySource"], "OPENAI_API_KEY");
    let result = messages.last().unwrap();
    assert_eq!(result["result"], "Hello.");
    // What it cost comes after why it stopped, and stands in its end all the same.
    let end = messages
        .iter()
        .find(|one| one["event"]["type"] == "message_delta")
        .unwrap();
    assert_eq!(end["event"]["usage"]["output_tokens"], 4);
    assert_eq!(server.bodies()[0]["model"], "m");
}

#[test]
fn a_key_that_is_not_known_ends_it() {
    let dir = tempdir().unwrap();
    let error = json!({"type": "authentication_error", "message": "invalid x-api-key"});
    let body = json!({"type": "error", "error": error, "request_id": "req_1"});
    let server = HttpFake::start_strict(vec![HttpReply::new(
        401,
        "application/json",
        body.to_string(),
    )]);
    let ran = answer(asking(&server, dir.path()).arg("hi"));
    let messages = lines(&ran);
    assert_eq!(ran.code, 1);
    assert_eq!(
        messages[1]["error"], "authentication_failed",
        "{}",
        messages[1]
    );
    assert_eq!(messages[2]["api_error_status"], 401);
    assert_eq!(server.bodies().len(), 1);
}
