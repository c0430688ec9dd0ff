//! Clients that do what they should not.

use std::{
    fs,
    io::{BufRead, BufReader, Write as _},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use haft_testkit::until_blocking;
use serde_json::{Value, json};

use super::{
    editor::{Editor, call, code, edit, project, read, script, text},
    is_running,
};
use crate::binary::haft;

/// Says this line, which is none that a client should say.
fn say(editor: &mut Editor, line: &[u8]) {
    let stdin = editor.talk.stdin.as_mut().unwrap();
    stdin.write_all(line).unwrap();
    stdin.write_all(b"\n").unwrap();
}

/// The next answer, with what it is about.
fn refusal(editor: &mut Editor) -> (Value, i64) {
    let answer = editor.until("an answer", |message| message.get("method").is_none());
    (answer["id"].clone(), code(&answer))
}

#[test]
fn lines_that_are_no_messages_are_refused_one_by_one() {
    let dir = project();
    let mut editor = Editor::with_turns(&dir, &[text("still here")]);
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let deep_params = format!(
        "{{\"id\":5,\"method\":\"session/new\",\"params\":{}1{}}}",
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let long = format!(
        "{{\"id\":6,\"method\":\"initialize\",\"params\":\"{}\"}}",
        "x".repeat(50 << 20)
    );
    let cases: [(&[u8], Value, i64); 12] = [
        (b"not json", Value::Null, -32700),
        (b"{\"id\":1,", Value::Null, -32700),
        (b"\xff\xfe\x00", Value::Null, -32700),
        (&deep, Value::Null, -32700),
        (deep_params.as_bytes(), Value::Null, -32700),
        (long.as_bytes(), Value::Null, -32600),
        (b"17", Value::Null, -32600),
        (b"[]", Value::Null, -32600),
        (b"{}", Value::Null, -32600),
        (b"{\"id\":9}", json!(9), -32600),
        (
            b"{\"id\":null,\"method\":\"session/list\"}",
            Value::Null,
            -32600,
        ),
        (
            b"{\"id\":1.5,\"method\":\"fs/read_text_file\",\"params\":{}}",
            json!(1.5),
            -32601,
        ),
    ];
    for (line, id, code) in cases {
        say(&mut editor, line);
        let refused = refusal(&mut editor);
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        assert_eq!(refused, (id, code), "{shown}");
    }
    let answer = editor.prompt("hi");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(editor.talk.end(), 0);
}

#[test]
fn a_question_writes_out_names_that_look_alike() {
    let dir = project();
    for name in ["caf\u{e9}.txt", "cafe\u{301}.txt", "c\u{43e}nfig"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    let lines = [
        "rm 'caf\u{e9}.txt'",
        "rm 'cafe\u{301}.txt'",
        "rm config",
        "touch b # \u{202e}tac",
        "rm c\u{43e}nfig",
    ];
    let mut turns: Vec<Value> = lines
        .iter()
        .map(|line| call("Bash", json!({ "command": line })))
        .collect();
    turns.push(text("ok"));
    let mut editor = Editor::with_turns(&dir, &turns);
    editor.answers = vec!["reject"];
    let mut shown = Vec::new();
    let params = editor.prompt_of(json!([{"type": "text", "text": "go"}]));
    editor.ask("session/prompt", params);
    for question in editor.questions() {
        let call = &question["params"]["toolCall"];
        shown.push(format!("{} {}", call["title"], call["content"]));
    }
    assert_eq!(shown.len(), lines.len(), "{shown:?}");
    let both =
        |name: &str, other: &str| format!("{name} is not {other}, which is in the same directory");
    let expected = [
        both("caf<U+00E9>.txt", "cafe<U+0301>.txt"),
        both("cafe<U+0301>.txt", "caf<U+00E9>.txt"),
        both("config", "c<U+043E>nfig"),
        "<U+202E>tac".to_owned(),
        "c<U+043E>nfig".to_owned(),
    ];
    for (text, expected) in shown.iter().zip(&expected) {
        assert!(text.contains(expected.as_str()), "{expected}: {text}");
        let hides = |letter: char| matches!(letter, '\u{202e}' | '\u{301}' | '\u{43e}');
        assert!(!text.contains(hides), "{text:?}");
    }
}

#[test]
fn params_that_make_no_sense_are_refused_with_the_field() {
    let dir = project();
    let mut editor = Editor::with_turns(&dir, &[text("still here")]);
    let session = editor.session.clone();
    let cwd = json!(dir.path());
    let cases = [
        ("session/new", json!(null), -32602),
        ("session/new", json!([1]), -32602),
        ("session/new", json!({"cwd": 7}), -32602),
        ("session/new", json!({"cwd": "/does/not/exist"}), -32602),
        ("session/new", json!({"cwd": dir.path().join("a")}), -32602),
        (
            "session/new",
            json!({"cwd": cwd, "mcpServers": "all"}),
            -32602,
        ),
        (
            "session/new",
            json!({"cwd": cwd, "mcpServers": [{"command": "x"}]}),
            -32602,
        ),
        (
            "session/new",
            json!({"cwd": cwd, "mcpServers": [{"name": "x"}]}),
            -32602,
        ),
        (
            "session/new",
            json!({"cwd": cwd, "additionalDirectories": ["../.."]}),
            -32602,
        ),
        (
            "session/new",
            json!({"cwd": cwd, "additionalDirectories": [1]}),
            -32602,
        ),
        (
            "session/load",
            json!({"cwd": cwd, "sessionId": "../../etc/passwd"}),
            -32002,
        ),
        ("session/load", json!({"cwd": cwd, "sessionId": 5}), -32002),
        (
            "session/load",
            json!({"cwd": "/", "sessionId": session}),
            -32002,
        ),
        ("session/list", json!({"cursor": "-1"}), -32602),
        ("session/list", json!({"cursor": 1}), -32602),
        ("session/prompt", json!({"sessionId": session}), -32602),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": "hi"}),
            -32602,
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{}]}),
            -32602,
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": 1}]}),
            -32602,
        ),
        (
            "session/prompt",
            json!({"prompt": [{"type": "text", "text": "hi"}]}),
            -32002,
        ),
        (
            "session/set_mode",
            json!({"sessionId": session, "modeId": 1}),
            -32602,
        ),
        (
            "session/set_mode",
            json!({"sessionId": "x", "modeId": "plan"}),
            -32002,
        ),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "mode"}),
            -32602,
        ),
        ("session/close", json!({"sessionId": "x"}), -32002),
        ("session/fork", json!({"sessionId": session}), -32601),
        ("terminal/create", json!({"sessionId": session}), -32601),
        ("", json!({}), -32601),
    ];
    for (method, params, expected) in cases {
        let shown = params.to_string();
        let answer = editor.ask(method, params);
        assert_eq!(code(&answer), expected, "{method} {shown}: {answer}");
    }
    // One that is not known is gone already.
    let gone = editor.ask("session/delete", json!({"sessionId": "x"}));
    assert_eq!(gone["result"], json!({}));
    let answer = editor.prompt("hi");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
}

#[test]
fn two_prompts_at_once_are_answered_one_after_the_other_and_no_more_than_eight_wait() {
    let dir = project();
    let go = dir.path().join("go");
    let waits = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    let mut turns = vec![call("Bash", json!({"command": waits}))];
    turns.extend((0..12).map(|number| text(&format!("answer {number}"))));
    let mut editor = Editor::with_turns(&dir, &turns);
    let params = editor.prompt_of(json!([{"type": "text", "text": "go"}]));
    let first = editor.send("session/prompt", params.clone());
    editor.until("work", |message| {
        message["params"]["update"]["status"] == "in_progress"
    });
    let waiting: Vec<u64> = (0..8)
        .map(|_| editor.send("session/prompt", params.clone()))
        .collect();
    let over = editor.send("session/prompt", params);
    assert_eq!(code(&editor.answer(over)), -32600);
    fs::write(go, "").unwrap();
    assert_eq!(editor.answer(first)["result"]["stopReason"], "end_turn");
    let mut open = waiting.clone();
    while !open.is_empty() {
        let message = editor.until("an answer", |message| message.get("method").is_none());
        assert_eq!(message["result"]["stopReason"], "end_turn", "{message}");
        open.retain(|id| message["id"] != *id);
    }
}

#[test]
fn answers_that_no_one_waits_for_change_nothing() {
    let dir = project();
    let mut editor = Editor::with_turns(&dir, &[read(), edit("a", "two", "2"), text("ok")]);
    editor.answers.clear();
    let params = editor.prompt_of(json!([{"type": "text", "text": "edit"}]));
    let prompt = editor.send("session/prompt", params);
    let question = editor.until("question", |message| {
        message["method"] == "session/request_permission"
    });
    let id = question["id"].as_i64().unwrap();
    let allow = json!({"outcome": {"outcome": "selected", "optionId": "allow"}});
    for wrong in [
        json!(id + 1),
        json!(-1),
        json!(id.to_string()),
        json!(1e300),
    ] {
        editor.talk.say(&json!({"id": wrong, "result": allow}));
    }
    // Out of order: a mode, and questions about other things, in the middle of a question.
    let session = editor.session.clone();
    let listed = editor.send("session/list", json!({}));
    assert!(editor.answer(listed)["result"]["sessions"].is_array());
    let again = editor.send("initialize", json!({"protocolVersion": 1}));
    assert_eq!(editor.answer(again)["result"]["protocolVersion"], 1);
    let now = fs::read_to_string(dir.path().join("a")).unwrap();
    assert_eq!(now, "one\ntwo\nthree\n");
    // One that makes no sense is a no, and so is an option that was not offered.
    let odd = json!({"outcome": {"outcome": "selected", "optionId": "everything"}});
    editor.talk.say(&json!({"id": id, "result": odd}));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.states().last(), Some(&"failed"));
    // Twice is once.
    editor.talk.say(&json!({"id": id, "result": allow}));
    let now = fs::read_to_string(dir.path().join("a")).unwrap();
    assert_eq!(now, "one\ntwo\nthree\n");
    let closed = editor.ask("session/close", json!({"sessionId": session}));
    assert_eq!(closed["result"], json!({}));
}

#[test]
fn sessions_do_not_reach_into_each_other() {
    let (one, other) = (project(), project());
    let script = script(one.path(), &[edit("a", "two", "2"), text("ok")]);
    let mut editor = Editor::begun(one.path(), &["--script", &script]);
    editor.opens(one.path());
    let first = editor.session.clone();
    editor.opens(other.path());
    assert_ne!(first, editor.session);
    // The one that is read in the first is not read in the second.
    let uri = format!(
        "file://{}",
        one.path().canonicalize().unwrap().join("a").display()
    );
    let file = json!({"uri": uri, "text": "one\ntwo\nthree\n"});
    let blocks = json!([{"type": "resource", "resource": file}]);
    let answer = editor.ask(
        "session/prompt",
        json!({"sessionId": editor.session.clone(), "prompt": blocks}),
    );
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(editor.states().last(), Some(&"failed"));
    let updates = editor
        .seen
        .iter()
        .filter(|message| message["method"] == "session/update");
    for update in updates {
        assert_eq!(update["params"]["sessionId"], editor.session.as_str());
    }
    for dir in [&one, &other] {
        let now = fs::read_to_string(dir.path().join("a")).unwrap();
        assert_eq!(now, "one\ntwo\nthree\n");
    }
}

#[test]
fn a_client_that_reads_nothing_does_not_hold_up_the_end() {
    let dir = project();
    let long = "x".repeat(1 << 20);
    let script = script(dir.path(), &[text(&long)]);
    let mut child = haft(dir.path())
        .args(["acp", "--script", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |id: u64, method: &str, params: Value| {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{line}").unwrap();
    };
    ask(1, "initialize", json!({"protocolVersion": 1}));
    ask(2, "session/new", json!({"cwd": dir.path()}));
    let mut session = String::new();
    while session.is_empty() {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if let Some(id) = message["result"]["sessionId"].as_str() {
            id.clone_into(&mut session);
        }
    }
    let blocks = json!([{"type": "text", "text": "go"}]);
    ask(
        3,
        "session/prompt",
        json!({"sessionId": session, "prompt": blocks}),
    );
    // From here on nothing is read: the pipe is full, and more waits behind it.
    let kept = || {
        let projects = fs::read_dir(dir.path().join(".claude/projects"));
        let mut files = projects
            .into_iter()
            .flatten()
            .map(|project| project.unwrap().path().join(format!("{session}.jsonl")));
        files.any(|file| fs::metadata(file).is_ok_and(|is| is.len() > 1 << 20))
    };
    until_blocking("the answer is kept", kept);
    drop(stdin);
    assert!(
        has_ended(&mut child),
        "it waits for a client that does not read"
    );
    drop(stdout);
}

/// Does it end by itself? One that does not is ended.
fn has_ended(child: &mut Child) -> bool {
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(30) {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

/// A client that is a process of its own, so that it can be killed; its model runs a command for ever.
const CLIENT: &str = r#"
coproc AGENT { exec "$1" acp --script "$2"; }
echo "agent $AGENT_PID"
say() { printf '%s\n' "$1" >&"${AGENT[1]}"; }
say '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
say '{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"'"$3"'","mcpServers":[]}}'
while read -r line <&"${AGENT[0]}"; do
  if [[ $line =~ \"sessionId\":\"([^\"]+)\" && -z $session ]]; then
    session=${BASH_REMATCH[1]}
    say '{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"'"$session"'","prompt":[{"type":"text","text":"go"}]}}'
  fi
done
"#;

#[test]
fn a_client_that_is_killed_leaves_no_process() {
    let dir = project();
    let sleeps = format!("2000.{}", std::process::id());
    let line = format!("sleep {sleeps}");
    let script = script(dir.path(), &[call("Bash", json!({"command": line}))]);
    let mut client = haft_testkit::command("bash")
        .args(["-c", CLIENT, "client", env!("CARGO_BIN_EXE_haft"), &script])
        .arg(dir.path())
        .env("HOME", dir.path())
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stdout = BufReader::new(client.stdout.take().unwrap());
    stdout.read_line(&mut said).unwrap();
    let agent: u32 = said.trim().strip_prefix("agent ").unwrap().parse().unwrap();
    until_blocking("the command", || is_running(&sleeps));
    client.kill().unwrap();
    client.wait().unwrap();
    until_blocking("the command's end", || !is_running(&sleeps));
    let name = format!("/proc/{agent}/cmdline");
    until_blocking("the agent's end", || {
        fs::read(&name).map_or(true, |line| line.is_empty())
    });
}
