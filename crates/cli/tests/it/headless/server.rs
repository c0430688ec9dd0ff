//! A provider on this machine that speaks as Anthropic does.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::Path,
    process::Command,
    thread::JoinHandle,
};

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{answer, kinds, lines};
use crate::binary::haft;

/// Gives these answers, one a request, and then what it was asked.
pub(super) struct Server {
    pub(super) url: String,
    pub(super) asked: JoinHandle<Vec<Value>>,
}

impl Server {
    pub(super) fn new(answers: Vec<(u16, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = std::thread::spawn(move || {
            answers
                .iter()
                .map(|(status, body)| serve(&listener, *status, body))
                .collect()
        });
        Self { url, asked }
    }

    fn haft(&self, cwd: &Path) -> Command {
        let mut command = haft(cwd);
        command
            .env("ANTHROPIC_BASE_URL", &self.url)
            .env("ANTHROPIC_API_KEY", "key")
            .env("CLAUDE_CODE_MAX_RETRIES", "0")
            .args(["--model", "m-1", "--output-format", "stream-json", "-p"]);
        command
    }
}

fn serve(listener: &TcpListener, status: u16, body: &str) -> Value {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut asked = vec![0; length];
    reader.read_exact(&mut asked).unwrap();
    let kind = if status == 200 {
        "text/event-stream"
    } else {
        "application/json"
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    serde_json::from_slice(&asked).unwrap()
}

/// A reply of these blocks, as a stream.
fn reply(blocks: &[Value], stop: &str) -> (u16, String) {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1-2026", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 12, "output_tokens": 1},
    });
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = match block["type"].as_str().unwrap() {
            "text" => (
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": block["text"]}),
            ),
            _ => (
                json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}),
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}),
            ),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 40}}));
    events.push(json!({"type": "message_stop"}));
    let body = events
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect();
    (200, body)
}

fn said(text: &str) -> (u16, String) {
    reply(&[json!({"type": "text", "text": text})], "end_turn")
}

fn called(name: &str, input: Value) -> (u16, String) {
    let block = json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": input});
    reply(&[block], "tool_use")
}

#[test]
fn a_text_answer() {
    let dir = tempdir().unwrap();
    let server = Server::new(vec![said("Hello.")]);
    let ran = answer(server.haft(dir.path()).arg("hi"));
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
    let asked = server.asked.join().unwrap();
    assert_eq!(asked[0]["model"], "m-1");
}

#[test]
fn a_file_is_read_and_its_text_sent_back() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "forty-two\n").unwrap();
    let read = called("Read", json!({"file_path": dir.path().join("a.txt")}));
    let server = Server::new(vec![read, said("It says 42.")]);
    let ran = answer(server.haft(dir.path()).arg("what is in a.txt?"));
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
    let asked = server.asked.join().unwrap();
    let sent = asked[1]["messages"].to_string();
    assert!(
        sent.contains("toolu_1") && sent.contains("forty-two"),
        "{sent}"
    );
}

#[test]
fn a_command_runs_and_its_output_is_sent_back() {
    let dir = tempdir().unwrap();
    let bash = called("Bash", json!({"command": "echo $((6 * 7)) | cat"}));
    let server = Server::new(vec![bash, said("42.")]);
    let ran = answer(
        server
            .haft(dir.path())
            .args(["what is 6 * 7?", "--allowedTools", "Bash"]),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = lines(&ran);
    assert_eq!(
        messages[2]["tool_use_result"]["stdout"], "42",
        "{}",
        messages[2]
    );
    assert_eq!(messages.last().unwrap()["permission_denials"], json!([]));
    let asked = server.asked.join().unwrap();
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
    let bash = called("Bash", json!({"command": "sh run.sh"}));
    let server = Server::new(vec![bash, said("It was kept out.")]);
    let ran = answer(
        server
            .haft(dir.path())
            .args(["run it", "--allowedTools", "Bash"]),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(dir.path().join("inside").exists());
    assert!(!outside.path().join("x").exists());
    let asked = server.asked.join().unwrap();
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
    let server = Server::new(vec![(200, body)]);
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
    assert_eq!(server.asked.join().unwrap()[0]["model"], "m");
}

#[test]
fn a_key_that_is_not_known_ends_it() {
    let dir = tempdir().unwrap();
    let error = json!({"type": "authentication_error", "message": "invalid x-api-key"});
    let body = json!({"type": "error", "error": error, "request_id": "req_1"});
    let server = Server::new(vec![(401, body.to_string())]);
    let ran = answer(server.haft(dir.path()).arg("hi"));
    let messages = lines(&ran);
    assert_eq!(ran.code, 1);
    assert_eq!(
        messages[1]["error"], "authentication_failed",
        "{}",
        messages[1]
    );
    assert_eq!(messages[2]["api_error_status"], 401);
    assert_eq!(server.asked.join().unwrap().len(), 1);
}
