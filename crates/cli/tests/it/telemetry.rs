//! Telemetry: what an independent receiver reads of a session, and collectors that do not behave.
//!
//! `.ci/run` installs the official messages of OTLP; elsewhere the tests that need them are skipped.

mod programs;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::binary::{Ran, haft, run};

/// Where the version is pinned.
const PINNED: &str = include_str!("../otel/requirements.txt");

/// The Python that has the messages; `None` where there is none and need not be.
fn python() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let venv = target.join("otel/venv");
    if fs::read_to_string(venv.join("pinned")).ok().as_deref() == Some(PINNED) {
        return Some(venv.join("bin/python"));
    }
    haft_testkit::skip("a receiver of OTLP: opentelemetry-proto is absent; `.ci/run` installs it");
    None
}

/// A collector in another language, by others' hands.
struct Receiver {
    child: Child,
    port: u16,
    lines: BufReader<std::process::ChildStdout>,
}

impl Receiver {
    fn start() -> Option<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otel/receiver.py");
        let mut child = haft_testkit::command(python()?)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut port = String::new();
        lines.read_line(&mut port).unwrap();
        Some(Self {
            child,
            port: port.trim().parse().unwrap(),
            lines,
        })
    }

    /// Everything that came, once the session is over.
    fn received(mut self) -> Vec<Value> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.lines.read_to_string(&mut text).unwrap();
        self.child.wait().unwrap();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }
}

/// A session of a read, a refused command, a call that makes no sense and a subagent's look.
fn session(cwd: &Path, port: u16, variables: &[(&str, &str)]) -> Command {
    fs::write(cwd.join("a.txt"), "the contents of a\n").unwrap();
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let turn = |content: Value| json!({"content": content, "usage": {"input": 10, "output": 5, "cache_read": 100}});
    let script = json!({
        "turns": [
            turn(json!([
                call("t1", "Read", json!({"file_path": "a.txt"})),
                call("t2", "Bash", json!({"command": "curl http://example.com/secret-command"})),
                call("t3", "Nonsense", json!({})),
                call("t4", "Agent", json!({"description": "Looks", "prompt": "look around", "subagent_type": "Explore"})),
            ])),
            turn(json!([{"type": "text", "text": "the model's own words"}])),
        ],
        "conversations": [{"when": "look around", "turns": [
            turn(json!([call("u1", "Glob", json!({"pattern": "*.txt"}))])),
            turn(json!([{"type": "text", "text": "found"}])),
        ]}],
    });
    let file = cwd.join(".haft-test-script.json");
    fs::write(&file, script.to_string()).unwrap();
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [
        {"type": "command", "command": "exit 0"}]}]}});
    let settings = cwd.join("settings.json");
    fs::write(&settings, hooks.to_string()).unwrap();
    let mut command = haft(cwd);
    command
        .env("CLAUDE_CODE_ENABLE_TELEMETRY", "1")
        .env(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            format!("http://127.0.0.1:{port}"),
        )
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20key")
        .env("OTEL_RESOURCE_ATTRIBUTES", "team=tools")
        .envs(variables.iter().copied())
        .arg("--script")
        .arg(file)
        .arg("--settings")
        .arg(settings)
        .args(["-p", "a prompt of a person"]);
    command
}

/// The things of one kind in all messages.
fn things(received: &[Value], path: &str, pointers: [&str; 3]) -> Vec<Value> {
    let mut all = Vec::new();
    for one in received.iter().filter(|one| one["path"] == path) {
        for resource in one["message"][pointers[0]].as_array().unwrap() {
            for scope in resource[pointers[1]].as_array().unwrap() {
                all.extend(scope[pointers[2]].as_array().unwrap().iter().cloned());
            }
        }
    }
    all
}

fn spans(received: &[Value]) -> Vec<Value> {
    things(
        received,
        "/v1/traces",
        ["resourceSpans", "scopeSpans", "spans"],
    )
}

fn attribute<'a>(thing: &'a Value, name: &str) -> Option<&'a Value> {
    let mut attributes = thing["attributes"].as_array()?.iter();
    let found = attributes.find(|one| one["key"] == name)?;
    found["value"].as_object()?.values().next()
}

fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let names: Vec<&Value> = spans.iter().map(|span| &span["name"]).collect();
    let found = spans.iter().find(|span| span["name"] == name);
    found.unwrap_or_else(|| panic!("no span {name}: {names:?}"))
}

#[test]
fn an_independent_receiver_reads_what_a_session_did() {
    for protocol in ["http/protobuf", "http/json"] {
        let Some(receiver) = Receiver::start() else {
            return;
        };
        let dir = tempdir().unwrap();
        let mut command = session(
            dir.path(),
            receiver.port,
            &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)],
        );
        let ran = run(&mut command, b"");
        assert_eq!((ran.code, said(&ran).as_str()), (0, ""), "{}", ran.stdout);
        let received = receiver.received();
        for one in &received {
            assert_eq!(one.get("problem"), None, "{one}");
            assert_eq!(one["key"], "a key");
        }
        let spans = spans(&received);
        let mut names: Vec<&str> = spans.iter().filter_map(|s| s["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "chat scripted",
                "chat scripted",
                "chat scripted",
                "chat scripted",
                "execute_tool Agent",
                "execute_tool Bash",
                "execute_tool Glob",
                "execute_tool Nonsense",
                "execute_tool Read",
                "hook PreToolUse",
                "invoke_agent haft",
            ]
        );
        let run = named(&spans, "invoke_agent haft");
        assert_eq!(run.get("parentSpanId"), None);
        for span in &spans {
            assert_eq!(span["traceId"], run["traceId"], "{span}");
            assert!(attribute(span, "session.id").is_some(), "{span}");
            let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
            assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
        }
        let agent = named(&spans, "execute_tool Agent");
        assert_eq!(agent["parentSpanId"], run["spanId"]);
        let glob = named(&spans, "execute_tool Glob");
        assert_eq!(glob["parentSpanId"], agent["spanId"]);
        assert_eq!(attribute(glob, "gen_ai.agent.name").unwrap(), "Explore");
        let refused = named(&spans, "execute_tool Bash");
        assert_eq!(attribute(refused, "haft.decision").unwrap(), "reject");
        assert_eq!(attribute(refused, "error.type").unwrap(), "refused");
        assert_eq!(refused["status"]["code"], "STATUS_CODE_ERROR");
        let read = named(&spans, "execute_tool Read");
        assert_eq!(attribute(read, "haft.decision").unwrap(), "accept");
        assert_eq!(attribute(read, "gen_ai.tool.call.id").unwrap(), "t1");
        let chat = named(&spans, "chat scripted");
        assert_eq!(chat["kind"], "SPAN_KIND_CLIENT");
        assert_eq!(attribute(chat, "gen_ai.usage.input_tokens").unwrap(), "110");
        assert_eq!(attribute(chat, "gen_ai.usage.output_tokens").unwrap(), "5");

        let metrics = ["resourceMetrics", "scopeMetrics", "metrics"];
        let metrics = things(&received, "/v1/metrics", metrics);
        let mut names: Vec<&str> = metrics.iter().filter_map(|m| m["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "gen_ai.client.operation.duration",
                "gen_ai.client.token.usage",
                "haft.hook.duration",
                "haft.prompt.count",
                "haft.session.count",
                "haft.token.usage",
                "haft.tool.calls",
                "haft.tool.duration",
            ]
        );
        let tokens = named(&metrics, "gen_ai.client.token.usage");
        let points = tokens["histogram"]["dataPoints"].as_array().unwrap();
        let input = points
            .iter()
            .find(|point| attribute(point, "gen_ai.token.type").unwrap() == "input")
            .unwrap();
        assert_eq!(
            (&input["count"], &input["sum"]),
            (&json!("4"), &json!(440.0))
        );

        let logs = ["resourceLogs", "scopeLogs", "logRecords"];
        let logs = things(&received, "/v1/logs", logs);
        let of = |name: &str| logs.iter().filter(|log| log["eventName"] == name).count();
        assert_eq!(of("haft.api_request"), 4);
        assert_eq!(of("haft.tool_decision"), 4, "one call was never judged");
        assert_eq!(of("haft.tool_result"), 5);
        assert_eq!(of("haft.user_prompt"), 1);
        let resource = &received[0]["message"];
        assert!(resource.to_string().contains("\"team\""), "{resource}");
        // Nothing of what was said, called with or answered.
        let all = received.iter().map(Value::to_string).collect::<String>();
        for content in [
            "a prompt of a person",
            "the model's own words",
            "secret-command",
            "the contents of a",
            "look around",
            "a.txt",
        ] {
            assert!(!all.contains(content), "{protocol}: {content}");
        }
    }
}

#[test]
fn contents_are_sent_where_they_are_asked_for_and_no_others() {
    let cases = [
        (
            "OTEL_LOG_USER_PROMPTS",
            vec!["a prompt of a person"],
            vec!["secret-command", "contents of a"],
        ),
        (
            "OTEL_LOG_TOOL_DETAILS",
            vec!["secret-command"],
            vec!["a prompt of a person", "contents of a"],
        ),
        (
            "OTEL_LOG_TOOL_CONTENT",
            vec!["secret-command", "contents of a"],
            vec!["a prompt of a person"],
        ),
    ];
    for (variable, with, without) in cases {
        let Some(receiver) = Receiver::start() else {
            return;
        };
        let dir = tempdir().unwrap();
        let ran = run(
            &mut session(dir.path(), receiver.port, &[(variable, "1")]),
            b"",
        );
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let received = receiver.received();
        let all = received.iter().map(Value::to_string).collect::<String>();
        for content in with {
            assert!(all.contains(content), "{variable}: {content}");
        }
        for content in without {
            assert!(!all.contains(content), "{variable}: {content}");
        }
    }
}

/// What was said on stderr of telemetry: the session says there what it refused, too.
fn said(ran: &Ran) -> String {
    let lines = ran.stderr.lines();
    let lines: Vec<&str> = lines
        .filter(|line| !line.starts_with("haft: refused: "))
        .collect();
    lines.join("\n")
}

/// A collector that does this with each connection.
fn collector(does: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let does = does.clone();
            thread::spawn(move || does(stream));
        }
    });
    port
}

/// The head of a request, and as much of its body as comes with it.
fn take(stream: &mut TcpStream) {
    let mut buffer = [0; 1 << 16];
    let _ = stream.read(&mut buffer);
}

/// The session worked: its answer is what it should be.
fn worked(ran: &Ran) {
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "the model's own words\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn collectors_that_do_not_behave_neither_break_nor_hold_up_a_session() {
    let never = collector(|stream| {
        // Held open.
        thread::sleep(Duration::from_secs(60));
        drop(stream);
    });
    let hangs_up = collector(drop);
    let endless = collector(|mut stream| {
        take(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n");
        let part = [b'x'; 1 << 16];
        while stream.write_all(&part).is_ok() {}
    });
    let slow = collector(|mut stream| {
        take(&mut stream);
        for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: "
            .iter()
            .cycle()
        {
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
    let garbage = collector(|mut stream| {
        take(&mut stream);
        let _ = stream.write_all(b"\x00\xff\x1b[2Jnot HTTP at all\r\n\r\n");
    });
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = elsewhere.local_addr().unwrap().port();
    let redirects = collector(move |mut stream| {
        take(&mut stream);
        let answer = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:{other}/\r\ncontent-length: 0\r\n\r\n"
        );
        let _ = stream.write_all(answer.as_bytes());
    });
    let nothing = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = nothing.local_addr().unwrap().port();
    drop(nothing);
    let cases = [
        ("never", never, "within 700 ms"),
        ("hangs up", hangs_up, "does not accept data"),
        ("endless", endless, ""),
        ("slow", slow, "within 700 ms"),
        ("garbage", garbage, "does not accept data"),
        ("redirects", redirects, "redirects are not followed"),
        ("closed", closed, "does not accept data"),
    ];
    for (what, port, expected) in cases {
        let dir = tempdir().unwrap();
        let quick = [("CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS", "700")];
        let ran = run(&mut session(dir.path(), port, &quick), b"");
        worked(&ran);
        assert!(ran.stderr.contains(expected), "{what}: {}", ran.stderr);
        assert!(said(&ran).lines().count() <= 1, "{what}: {}", ran.stderr);
        assert!(!ran.stderr.contains('\u{1b}'), "{what}: {:?}", ran.stderr);
        assert!(!ran.stderr.contains("a key"), "{what}: {}", ran.stderr);
    }
    // No one was sent where the redirect led.
    elsewhere.set_nonblocking(true).unwrap();
    assert!(elsewhere.accept().is_err());
}

#[test]
fn bad_tls_is_a_line_and_no_more() {
    let plain = collector(|mut stream| {
        take(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    });
    let dir = tempdir().unwrap();
    let url = format!("https://127.0.0.1:{plain}");
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())];
    let ran = run(&mut session(dir.path(), plain, &variables), b"");
    worked(&ran);
    assert!(
        ran.stderr.contains("does not accept data"),
        "{}",
        ran.stderr
    );
    assert_eq!(said(&ran).lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn wrong_variables_are_said_and_the_session_works() {
    for (name, value, expected) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "grpc is not offered"),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "collector:4317",
            "is not a URL",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://[::bad",
            "does not accept data",
        ),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "hunter2",
            "expected name=value",
        ),
        (
            "OTEL_METRIC_EXPORT_INTERVAL",
            "soon",
            "expected milliseconds",
        ),
        ("OTEL_METRICS_EXPORTER", "prometheus", "only `otlp`"),
    ] {
        let closed = collector(|mut stream| {
            take(&mut stream);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        });
        let dir = tempdir().unwrap();
        let ran = run(&mut session(dir.path(), closed, &[(name, value)]), b"");
        worked(&ran);
        assert!(
            ran.stderr.contains(expected),
            "{name}={value}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
}

#[test]
fn nothing_is_sent_unless_it_is_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for variables in [
        [("CLAUDE_CODE_ENABLE_TELEMETRY", "0")],
        [("OTEL_SDK_DISABLED", "true")],
    ] {
        let dir = tempdir().unwrap();
        let ran = run(&mut session(dir.path(), port, &variables), b"");
        worked(&ran);
        assert_eq!(said(&ran), "");
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}

#[test]
fn a_session_that_the_system_ends_does_not_wait_for_a_collector() {
    let never = collector(|stream| {
        thread::sleep(Duration::from_secs(60));
        drop(stream);
    });
    let dir = tempdir().unwrap();
    let mut command = session(
        dir.path(),
        never,
        &[("CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS", "60000")],
    );
    let hangs =
        json!({"turns": [{"content": [{"type": "text", "text": "so far"}], "hangs": true}]});
    fs::write(dir.path().join(".haft-test-script.json"), hangs.to_string()).unwrap();
    let mut child = command
        .args(["--output-format", "stream-json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let began = Instant::now();
    child.wait().unwrap();
    // Far less than it would have waited otherwise, on however busy a machine.
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
}

/// The product has nothing of it unless it is built in.
#[test]
fn without_the_feature_there_is_nothing_of_it() {
    let tree = |features: &[&str]| {
        let ran = haft_testkit::command(env!("CARGO"))
            .args([
                "tree",
                "--offline",
                "--locked",
                "-p",
                "haft-cli",
                "-e",
                "normal",
                "--prefix",
                "none",
            ])
            .args(features)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        String::from_utf8(ran.stdout).unwrap()
    };
    let (without, with) = (tree(&[]), tree(&["--features", "otel"]));
    assert!(!without.contains("telemetry"), "{without}");
    let count = |tree: &str| {
        let mut names: Vec<&str> = tree
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    };
    assert_eq!(
        count(&with),
        count(&without) + 1,
        "one crate, and none of others"
    );
    // Where it is not built in, its one word is in one file.
    let named = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../host/src/telemetry/disabled.rs"
    ));
    assert!(!named.unwrap().contains("haft_telemetry"));
}
