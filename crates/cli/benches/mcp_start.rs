//! What configured MCP servers cost a session before its first request: `cargo bench -p haft-cli --bench mcp_start`.
//!
//! Ten servers stand in the user's file, one of which never answers and one of which dies at once. The first turn
//! does not wait for them, so that the time to the first request must hardly differ from that of a session without
//! any. Runs of both kinds take turns, and the difference of their medians counts: whatever else the machine does
//! happens to both.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use haft_testkit::{
    StepwiseModelServer,
    measure::{self, median, millis},
};
use serde_json::{Value, json};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/it/server.py");
const STARTS: usize = 25;
/// In milliseconds.
const BOUND: f64 = 50.0;

fn binary() -> PathBuf {
    measure::binary(env!("CARGO_BIN_EXE_haft"))
}

fn main() {
    if measure::is_test_run() {
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
    let (without, with) = (millis(median(without)), millis(median(with)));
    let more = with - without;
    measure::table();
    measure::row(
        "ten MCP servers in files: first request later by",
        &format!("{more:.1} ms ({without:.1} → {with:.1} ms)"),
        &format!("< {BOUND} ms"),
        more < BOUND,
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

/// How long a session takes to its first request.
fn first_request(home: &Path) -> Duration {
    let mut line = StepwiseModelServer::open();
    let began = Instant::now();
    let mut child = Command::new(binary())
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("ANTHROPIC_BASE_URL", line.url())
        .env("ANTHROPIC_API_KEY", "key")
        .args(["--model", "m", "--output-format", "json", "-p", "go"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (_, at) = line.request();
    line.reply().unwrap();
    assert!(child.wait().unwrap().success());
    at - began
}
