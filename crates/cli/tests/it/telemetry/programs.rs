//! Telemetry of tools without a model: `exec`, `call` and `mcp serve`.

use std::{fs, net::TcpListener, process::Command};

use serde_json::Value;
use tempfile::tempdir;

use super::{Receiver, attribute, named, spans, things};
use crate::binary::{haft, run};

/// The variables that send everything to this port.
fn sending(command: &mut Command, port: u16) -> &mut Command {
    command.env("CLAUDE_CODE_ENABLE_TELEMETRY", "1").env(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        format!("http://127.0.0.1:{port}"),
    )
}

/// Tools without a model: the calls of programs count too.
#[test]
fn calls_of_programs_are_received_too() {
    let requests = [
        (
            vec!["exec"],
            "{\"id\": 1, \"name\": \"Read\", \"input\": {\"file_path\": \"a.txt\"}}\n\
             {\"id\": 2, \"name\": \"Nonsense\", \"input\": {}}\n\
             {\"id\": 3, \"name\": \"Write\", \"input\": {\"file_path\": \"/etc/passwd\", \"content\": \"x\"}}\n",
            vec![
                "execute_tool Nonsense",
                "execute_tool Read",
                "execute_tool Write",
            ],
        ),
        (
            vec!["call", "Read", "file_path=a.txt"],
            "",
            vec!["execute_tool Read"],
        ),
        (
            vec!["mcp", "serve"],
            "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-06-18\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"t\", \"version\": \"1\"}}}\n\
             {\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}\n\
             {\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"tools/call\", \"params\": {\"name\": \"Read\", \"arguments\": {\"file_path\": \"a.txt\"}}}\n",
            vec!["execute_tool Read"],
        ),
    ];
    for (words, stdin, expected) in requests {
        let Some(receiver) = Receiver::start() else {
            return;
        };
        let dir = tempdir().unwrap();
        fs::write(dir.path().join("a.txt"), "the contents of a\n").unwrap();
        let mut command = haft(dir.path());
        let ran = run(
            sending(&mut command, receiver.port).args(&words),
            stdin.as_bytes(),
        );
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (0, ""),
            "{words:?}: {}",
            ran.stdout
        );
        let received = receiver.received();
        let spans = spans(&received);
        let mut names: Vec<&str> = spans.iter().filter_map(|s| s["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{words:?}");
        for span in &spans {
            assert!(attribute(span, "session.id").is_some(), "{span}");
            assert_eq!(
                attribute(span, "gen_ai.operation.name").unwrap(),
                "execute_tool"
            );
        }
        if words == ["exec"] {
            let refused = named(&spans, "execute_tool Write");
            assert_eq!(attribute(refused, "haft.decision").unwrap(), "reject");
        }
        let metrics = things(
            &received,
            "/v1/metrics",
            ["resourceMetrics", "scopeMetrics", "metrics"],
        );
        let mut names: Vec<&str> = metrics.iter().filter_map(|m| m["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "haft.session.count",
                "haft.tool.calls",
                "haft.tool.duration"
            ],
            "{words:?}"
        );
        let all = received.iter().map(Value::to_string).collect::<String>();
        assert!(
            !all.contains("the contents of a") && !all.contains("a.txt"),
            "{words:?}"
        );
    }
}

/// One that looks at what there is does not count as a session.
#[test]
fn nothing_is_sent_of_a_look_at_the_tools() {
    haft_testkit::bound_this_process();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let dir = tempdir().unwrap();
    let ran = run(sending(&mut haft(dir.path()), port).arg("tools"), b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(listener.accept().is_err());
}
