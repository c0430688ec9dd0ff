use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    thread,
};

use data_encoding::BASE64;
use haft_testkit::until_blocking;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::{Talk, call, kinds, steady_lines, text};

/// A session in this directory, whose home lies elsewhere.
fn scripted(project: &Project, turns: &Value) -> Command {
    let mut command = super::scripted(project.path(), turns);
    command.env("HOME", project.home.path()).env("TZ", "UTC0");
    command
}

struct Project {
    dir: TempDir,
    home: TempDir,
}

impl Project {
    fn new() -> Self {
        Self {
            dir: tempdir().unwrap(),
            home: tempdir().unwrap(),
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }
}

fn monitor(command: &str) -> Value {
    call(
        "Monitor",
        json!({"description": "Watches", "command": command, "persistent": true}),
    )
}

fn hourly(durable: bool) -> Value {
    let input = json!({"cron": "7 * * * *", "prompt": "look", "durable": durable});
    call("CronCreate", input)
}

/// How many processes work in this directory, beside the program itself.
fn processes_in(directory: &Path) -> usize {
    let directory = fs::canonicalize(directory).unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let cwds = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    cwds.filter(|cwd| cwd.starts_with(&directory)).count()
}

/// What lies in the workspace, without what the test put there.
fn files_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names
        .filter(|name| name != ".haft-test-script.json")
        .collect();
    names.sort();
    names
}

#[test]
fn the_lines_of_a_monitor_are_told_in_turns_of_their_own() {
    let dir = Project::new();
    let command = "while [ ! -e go ]; do command sleep 0.05; done; echo '1 error'; while [ ! -e end ]; do command sleep 0.05; done";
    let turns = json!([
        [monitor(command)],
        [text("watches")],
        [text("saw it")],
        [text("over")]
    ]);
    let mut talk = Talk::new(scripted(&dir, &turns).arg("--allowedTools=Monitor"));
    talk.user("go");
    let mut heard = talk.hear_until("result");
    fs::write(dir.path().join("go"), "").unwrap();
    heard.extend(talk.hear_until("result"));
    assert_eq!(heard.last().unwrap()["result"], "saw it");
    fs::write(dir.path().join("end"), "").unwrap();
    heard.extend(talk.hear_until("result"));
    assert_eq!(heard.last().unwrap()["result"], "over");
    let (rest, code) = talk.end();
    assert_eq!((rest, code), (Vec::new(), 0));
    let told = heard.into_iter().filter(|one| {
        let is_task = one["subtype"]
            .as_str()
            .is_some_and(|name| name.starts_with("task_"));
        is_task || one["isSynthetic"] == true
    });
    let told: Vec<Value> = told
        .map(|mut one| {
            if !one["patch"].is_null() {
                one["patch"]["end_time"] = json!(0);
            }
            if one["output_file"].is_string() {
                one["output_file"] = json!("[file]");
            }
            if let Some(text) = one["message"]["content"][0]["text"].as_str() {
                let lines = text
                    .lines()
                    .filter(|line| !line.starts_with("<output_file>"));
                let text: Vec<&str> = lines.collect();
                one["message"]["content"][0]["text"] = json!(text.join("\n"));
            }
            one
        })
        .collect();
    insta::assert_snapshot!(format!(
        "{}\n\n{}",
        kinds(&told).join("\n"),
        steady_lines(&told, dir.path())
    ));
}

#[test]
fn nothing_is_left_behind_however_it_ends() {
    for end in ["EOF", "TERM", "KILL"] {
        let dir = Project::new();
        let turns = json!([
            [
                monitor("trap '' TERM; echo up; while :; do command sleep 0.1; done"),
                monitor("command sleep 1000"),
                hourly(false),
                call(
                    "ScheduleWakeup",
                    json!({"delaySeconds": 60, "prompt": "wake"})
                ),
            ],
            [text("done")],
            [text("up")],
            [text("more")],
        ]);
        let mut talk = Talk::new(scripted(&dir, &turns).arg("--allowedTools=Monitor"));
        talk.user("go");
        let heard = talk.hear_until("result");
        let failed = heard
            .iter()
            .find(|one| one["message"]["content"][0]["is_error"] == true);
        assert!(failed.is_none(), "{failed:?}");
        assert!(processes_in(dir.path()) > 1);
        match end {
            "EOF" => {
                let (_, code) = talk.end();
                assert_eq!(code, 0);
            }
            signal => {
                talk.signal(signal);
                talk.gone();
            }
        }
        until_blocking(&format!("nothing runs after {end}"), || {
            processes_in(dir.path()) == 0
        });
        assert_eq!(files_in(dir.path()), Vec::<String>::new(), "{end}");
    }
}

#[test]
fn what_is_durable_is_kept_and_nothing_else() {
    for end in ["EOF", "KILL"] {
        let dir = Project::new();
        let turns = json!([[hourly(true), hourly(false)], [text("done")]]);
        let mut talk = Talk::new(&mut scripted(&dir, &turns));
        talk.user("go");
        talk.hear_until("result");
        match end {
            "EOF" => assert_eq!(talk.end().1, 0),
            signal => {
                talk.signal(signal);
                talk.gone();
            }
        }
        assert_eq!(files_in(dir.path()), [".claude"]);
        assert_eq!(
            files_in(&dir.path().join(".claude")),
            ["scheduled_tasks.json"]
        );
        // The next session has it.
        let turns = json!([[call("CronList", json!({}))], [text("listed")]]);
        let mut talk = Talk::new(&mut scripted(&dir, &turns));
        talk.user("list");
        let heard = talk.hear_until("result");
        let jobs = heard
            .iter()
            .find_map(|one| one["tool_use_result"]["jobs"].as_array());
        let jobs = jobs.unwrap();
        assert_eq!(jobs.len(), 1);
        assert_eq!(
            (&jobs[0]["durable"], &jobs[0]["cron"]),
            (&json!(true), &json!("7 * * * *"))
        );
        assert_eq!(talk.end().1, 0);
    }
}

#[test]
fn rules_for_bash_count_for_the_command_of_a_monitor() {
    let outcome = |command: &str, flags: &[&str]| {
        let dir = Project::new();
        let watch = json!({"description": "Watches", "command": command, "timeout_ms": 50_000});
        let turns = json!([
            [call("Monitor", watch)],
            [text("done")],
            [text("read")],
            [text("x")]
        ]);
        let mut command = scripted(&dir, &turns);
        let mut talk = Talk::new(command.args(flags));
        talk.user("go");
        let heard = talk.hear_until("result");
        talk.end();
        let made = dir.path().join("made").exists();
        let result = heard.iter().find(|one| one["type"] == "user").unwrap();
        let result = &result["message"]["content"][0];
        (
            result["is_error"] == true,
            result["content"].to_string(),
            made,
        )
    };
    let (is_error, why, made) = outcome("touch made", &[]);
    assert!(
        is_error && why.contains("was not granted") && !made,
        "{why}"
    );
    let denied = ["--allowedTools=Monitor", "--disallowedTools=Bash(touch *)"];
    let (is_error, why, made) = outcome("touch made", &denied);
    assert!(is_error && why.contains("Bash(touch *)") && !made, "{why}");
    let (is_error, why, _) = outcome("touch made", &["--allowedTools=Bash(touch *)"]);
    assert!(!is_error, "{why}");
}

#[test]
fn hooks_learn_what_is_scheduled_and_what_watches() {
    let dir = Project::new();
    let turns = json!([
        [monitor("command sleep 1000"), hourly(false)],
        [text("done")]
    ]);
    let hook = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "cat > stopped.json"}]}]}});
    let mut command = scripted(&dir, &turns);
    command
        .arg("--allowedTools=Monitor")
        .args(["--settings", &hook.to_string()]);
    let mut talk = Talk::new(&mut command);
    talk.user("go");
    talk.hear_until("result");
    assert_eq!(talk.end().1, 0);
    let told = fs::read_to_string(dir.path().join("stopped.json")).unwrap();
    let mut told: Value = serde_json::from_str(&told).unwrap();
    told["session_crons"][0]["id"] = json!("[id]");
    insta::assert_snapshot!(format!(
        "{}\n{}",
        told["background_tasks"], told["session_crons"]
    ));
}

/// A server that opens a WebSocket, says this, and waits for the end.
fn serve(listener: TcpListener, frames: &'static [u8]) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let asked = head(&mut stream);
        let key = asked.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("sec-websocket-key")
                .then_some(value)
        });
        let text = format!("{}258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key.unwrap());
        let answer = BASE64.encode(&sha1(text.as_bytes()));
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {answer}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(frames).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
        asked
    })
}

fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).unwrap()
}

/// By a program of the system: the product has it from a library that tests need not.
fn sha1(bytes: &[u8]) -> Vec<u8> {
    let mut child = haft_testkit::command("sha1sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    data_encoding::HEXLOWER
        .decode(&text.as_bytes()[..40])
        .unwrap()
}

#[test]
fn a_socket_on_this_machine_is_listened_to_only_where_a_rule_names_it_and_a_person_agrees() {
    let dir = Project::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = serve(listener, b"\x81\x05hello\x82\x02\0\0\x88\x02\x03\xe8");
    let ws = call(
        "Monitor",
        json!({"description": "Listens", "ws": {"url": format!("ws://127.0.0.1:{port}/feed?a=1")}}),
    );
    let turns = json!([
        [ws],
        [text("refused")],
        [ws],
        [text("listens")],
        [text("heard")]
    ]);
    // No rule names it.
    let mut command = scripted(&dir, &turns);
    command.args([
        "--permission-prompt-tool",
        "stdio",
        "--allowedTools=Monitor",
    ]);
    let mut talk = Talk::new(&mut command);
    talk.user("go");
    let heard = talk.hear_until("result");
    let refused = heard
        .iter()
        .find(|one| one["message"]["content"][0]["is_error"] == true);
    let why = refused.unwrap()["message"]["content"][0]["content"].to_string();
    assert!(why.contains("loopback address"), "{why}");
    assert_eq!(talk.end().1, 0);
    // One does: then a person is asked, though a rule lets the tool through.
    let settings = json!({"sandbox": {"network": {"allowedDomains": ["127.0.0.1"]}}});
    let turns = json!([[ws], [text("listens")], [text("heard")], [text("over")]]);
    let mut command = scripted(&dir, &turns);
    command
        .args([
            "--permission-prompt-tool",
            "stdio",
            "--allowedTools=Monitor",
        ])
        .args(["--settings", &settings.to_string()]);
    let mut talk = Talk::new(&mut command);
    talk.user("go");
    let heard = talk.hear_until("control_request");
    let question = heard.last().unwrap().clone();
    assert_eq!(question["request"]["tool_name"], "Monitor");
    talk.respond(
        &question,
        &json!({"behavior": "allow", "updatedInput": question["request"]["input"]}),
    );
    // It may have said everything before the model is asked the next time, or after.
    let is_read = |one: &Value| {
        let text = one["message"]["content"][0]["text"].as_str();
        text.is_some_and(|text| text.contains("hello"))
    };
    let mut heard = talk.hear_until("result");
    while !heard.iter().any(is_read) {
        heard.extend(talk.hear_until("result"));
    }
    assert_eq!(talk.end().1, 0);
    let said: Vec<&str> = heard
        .iter()
        .filter_map(|one| one["message"]["content"][0]["text"].as_str())
        .filter(|text| text.contains("hello"))
        .collect();
    assert!(
        said[0].contains("hello\n[binary frame, 2 bytes]"),
        "{said:?}"
    );
    let asked = server.join().unwrap();
    assert!(asked.starts_with("GET /feed?a=1 HTTP/1.1\r\n"), "{asked}");
}

/// The connection of a monitor ends with the program, whatever ends that.
#[test]
fn a_socket_is_closed_however_it_ends() {
    for end in ["EOF", "TERM", "KILL"] {
        let dir = Project::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = serve(listener, b"\x81\x05hello");
        let ws = call(
            "Monitor",
            json!({"description": "Listens", "ws": {"url": format!("ws://127.0.0.1:{port}/")}, "persistent": true}),
        );
        let turns = json!([[ws], [text("listens")], [text("heard")], [text("more")]]);
        let settings = json!({"sandbox": {"network": {"allowedDomains": ["127.0.0.1"]}}});
        let mut command = scripted(&dir, &turns);
        command
            .args([
                "--permission-prompt-tool",
                "stdio",
                "--allowedTools=Monitor",
            ])
            .args(["--settings", &settings.to_string()]);
        let mut talk = Talk::new(&mut command);
        talk.user("go");
        let question = talk.hear_until("control_request").pop().unwrap();
        talk.respond(
            &question,
            &json!({"behavior": "allow", "updatedInput": question["request"]["input"]}),
        );
        talk.hear_until("result");
        match end {
            "EOF" => assert_eq!(talk.end().1, 0),
            signal => {
                talk.signal(signal);
                talk.gone();
            }
        }
        // It reads until the other end is gone, at most for a while.
        until_blocking(&format!("the connection is gone after {end}"), || {
            server.is_finished()
        });
        server.join().unwrap();
        until_blocking("nothing runs", || processes_in(dir.path()) == 0);
        assert_eq!(files_in(dir.path()), Vec::<String>::new(), "{end}");
    }
}
