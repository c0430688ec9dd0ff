//! What configured MCP servers cost a session before its first request: `cargo bench -p haft-cli --bench mcp_start`.
//!
//! Ten servers stand in the user's file, one of which never answers and one of which dies at once. The first turn
//! does not wait for them, so that the time to the first request must hardly differ from that of a session without
//! any. Runs of both kinds take turns, and the difference of their medians counts: whatever else the machine does
//! happens to both.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_haft");
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/it/server.py");
const STARTS: usize = 25;
/// In milliseconds.
const BOUND: f64 = 50.0;

fn main() {
    // `cargo test` builds benches too and passes this; there is nothing to test here.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let dir = std::env::temp_dir().join(format!("haft-bench-mcp-start-{}", std::process::id()));
    let (none, ten) = (dir.join("none"), dir.join("ten"));
    for home in [&none, &ten] {
        fs::create_dir_all(home).unwrap();
    }
    fs::write(ten.join(".claude.json"), servers().to_string()).unwrap();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    // The first run of each finds nothing kept from an earlier one.
    for run in 0..=STARTS {
        let (a, b) = (first_request(&none), first_request(&ten));
        if run > 0 {
            without.push(a);
            with.push(b);
        }
    }
    let (without, with) = (median(without), median(with));
    let more = with - without;
    println!("| promise | measured | bound | |");
    println!("|---|---|---|---|");
    let verdict = if more < BOUND { "ok" } else { "MISSED" };
    println!(
        "| ten MCP servers in files: first request later by | {more:.1} ms ({without:.1} → {with:.1} ms) | < {BOUND} ms | {verdict} |"
    );
    fs::remove_dir_all(&dir).unwrap();
}

fn servers() -> Value {
    let mut servers = json!({
        "never": {"command": "sleep", "args": ["3600"]},
        "dead": {"command": "false"},
    });
    for number in 0..8 {
        servers[format!("good{number}")] = json!({"command": "python3", "args": [SERVER]});
    }
    json!({"mcpServers": servers})
}

/// How long a session takes to its first request, in milliseconds.
fn first_request(home: &Path) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let began = Instant::now();
    let mut child = Command::new(BINARY)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("ANTHROPIC_BASE_URL", url)
        .env("ANTHROPIC_API_KEY", "key")
        .args(["--model", "m", "--output-format", "json", "-p", "go"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let took = answer(&listener, began);
    assert!(child.wait().unwrap().success());
    took.as_secs_f64() * 1e3
}

/// Waits for a request, says when it was there, and answers it.
fn answer(listener: &TcpListener, began: Instant) -> Duration {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0);
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    let took = began.elapsed();
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "done"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    let body: String = events
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .unwrap();
    took
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
