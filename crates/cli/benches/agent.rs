//! What a loop costs beside its model: `cargo bench -p haft-cli --bench agent`.
//!
//! The model is a server in this process, so that what is measured is all ours: from the start of the
//! binary to its first request, from the end of one reply to the next request, from the end of a block
//! to the start of its tool.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use haft::{CallContext, Effects, Haft, PermissionMode, Tool, ToolError, ToolOutput};
use haft_agent::{Agent, AgentEvent, ModelSettings};
use haft_models::{Anthropic, Http, HttpOptions, anthropic::AnthropicOptions};
use haft_testkit::{
    StepwiseModelServer,
    measure::{self, median, memory, millis, row},
    model_line::{call_block, text_block},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const STARTS: usize = 31;
const COMMANDS: usize = 20;
const TURNS: usize = 200;
const SESSIONS: usize = 5;
const MARKS: usize = 101;

fn binary() -> PathBuf {
    measure::binary(env!("CARGO_BIN_EXE_haft"))
}

fn main() {
    if measure::is_test_run() {
        return;
    }
    let dir = std::env::temp_dir().join(format!("haft-bench-agent-{}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    for number in 0..TURNS {
        let text: String = (0..40)
            .map(|line| format!("{number}: line {line} of it\n"))
            .collect();
        fs::write(dir.join(format!("file_{number}.txt")), text).unwrap();
    }
    measure::table();
    start(&dir);
    first_command(&dir);
    turns(&dir);
    overlap(&dir);
    fs::remove_dir_all(&dir).unwrap();
}

fn haft(dir: &Path, url: &str) -> Child {
    Command::new(binary())
        .current_dir(dir)
        .env_clear()
        .env("HOME", dir)
        .env("PATH", "/usr/bin:/bin")
        .env("ANTHROPIC_BASE_URL", url)
        .env("ANTHROPIC_API_KEY", "key")
        .args(["--model", "m", "--output-format", "stream-json", "-p", "go"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// From nothing to the first request, and what that request says before anyone spoke.
fn start(dir: &Path) {
    let mut samples = Vec::new();
    let mut first = Vec::new();
    for _ in 0..STARTS {
        let mut line = StepwiseModelServer::open();
        let started = Instant::now();
        let mut child = haft(dir, line.url());
        let (body, at) = line.request();
        samples.push(at - started);
        first = body;
        line.reply().unwrap();
        assert!(child.wait().unwrap().success());
    }
    let took = millis(median(samples));
    row(
        "process start to first request",
        &format!("{took:.1} ms"),
        "≤ 20 ms",
        took <= 20.0,
    );
    let first: Value = serde_json::from_slice(&first).unwrap();
    let bytes = |name: &str| first[name].to_string().len();
    let (tools, system) = (bytes("tools"), bytes("system"));
    row(
        "tools and system prompt of the first request",
        &format!("{} bytes ({tools} + {system})", tools + system),
        "≤ 20,000 bytes",
        tools + system <= 20_000,
    );
}

/// The first command of a session, whose sandbox is set up while the reply is still being received.
fn first_command(dir: &Path) {
    let mut samples = Vec::new();
    for _ in 0..COMMANDS {
        let mut line = StepwiseModelServer::open();
        let mut child = haft(dir, line.url());
        line.request();
        line.begin().unwrap();
        line.send_events(&text_block(0, "I look.")).unwrap();
        // The model writes its call.
        thread::sleep(Duration::from_millis(500));
        let input = json!({"command": "echo first"});
        line.send_events(&call_block(1, "toolu_1", "Bash", &input))
            .unwrap();
        let ended = line.end("tool_use").unwrap();
        let (body, at) = line.request();
        assert!(contains(&body, "first"));
        samples.push(at - ended);
        line.reply().unwrap();
        assert!(child.wait().unwrap().success());
    }
    let took = millis(median(samples));
    row(
        "end of a reply with the first Bash to the next request",
        &format!("{took:.2} ms"),
        "≤ 8 ms",
        took <= 8.0,
    );
}

/// A long session: one Read a turn.
fn turns(dir: &Path) {
    let (mut all, mut early, mut late) = (Vec::new(), Vec::new(), Vec::new());
    let (mut peak, mut growth, mut connections) = (0, 0, 0);
    for _ in 0..SESSIONS {
        let mut line = StepwiseModelServer::open();
        let mut child = haft(dir, line.url());
        line.request();
        let mut at_20 = 0;
        for turn in 0..TURNS {
            let path = dir.join(format!("file_{turn}.txt"));
            let input = json!({"file_path": path});
            line.begin().unwrap();
            line.send_events(&call_block(0, &format!("toolu_{turn}"), "Read", &input))
                .unwrap();
            let ended = line.end("tool_use").unwrap();
            let (body, at) = line.request();
            let read = contains(&body, &format!("{turn}: line 39 of it"));
            assert!(read, "turn {turn}: {}", String::from_utf8_lossy(&body));
            let took = at - ended;
            all.push(took);
            match turn {
                5..15 => early.push(took),
                190.. => late.push(took),
                _ => {}
            }
            if turn == 19 {
                at_20 = memory(child.id(), "VmRSS");
            }
        }
        peak = peak.max(memory(child.id(), "VmHWM"));
        growth = growth.max(memory(child.id(), "VmRSS").saturating_sub(at_20));
        connections = connections.max(line.connections());
        line.reply().unwrap();
        assert!(child.wait().unwrap().success());
    }
    let took = millis(median(all));
    row(
        "end of a reply with one Read to the next request",
        &format!("{took:.2} ms"),
        "≤ 2 ms",
        took <= 2.0,
    );
    let (early, late) = (millis(median(early)), millis(median(late)));
    row(
        "the same at turn 200 against turn 10",
        &format!("{:.2}x ({late:.2} ms, {early:.2} ms)", late / early),
        "≤ 1.3x",
        late / early <= 1.3,
    );
    row(
        "connections that a session of 200 turns makes",
        &connections.to_string(),
        "≤ 3",
        connections <= 3,
    );
    row(
        "peak memory of a session of 200 turns",
        &format!("{:.1} MB", peak as f64 / 1e3),
        "≤ 40 MB",
        peak <= 40_000,
    );
    row(
        "growth from turn 20 to turn 200",
        &format!("{:.1} MB", growth as f64 / 1e3),
        "≤ 4 MB",
        growth <= 4_000,
    );
}

fn contains(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Says when it was called.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MarkInput {}

struct Mark(Arc<Mutex<Option<Instant>>>);

impl Tool for Mark {
    type Input = MarkInput;
    const NAME: &'static str = "Mark";

    fn effects(&self, _: &MarkInput) -> Effects {
        Effects::NONE
    }

    async fn call(&self, _: &MarkInput, _: &CallContext) -> Result<ToolOutput, ToolError> {
        *self.0.lock().unwrap() = Some(Instant::now());
        Ok(ToolOutput::text("marked"))
    }
}

/// From the end of a call's block to the start of its tool, while the reply goes on.
fn overlap(dir: &Path) {
    let mut line = StepwiseModelServer::open();
    let url = line.url().to_owned();
    let called = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&called);
    let server = thread::spawn(move || {
        let mut samples = Vec::new();
        for turn in 0..MARKS {
            line.request();
            line.begin().unwrap();
            let sent = Instant::now();
            line.send_events(&call_block(0, &format!("toolu_{turn}"), "Mark", &json!({})))
                .unwrap();
            let started = loop {
                if let Some(started) = seen.lock().unwrap().take() {
                    break started;
                }
                assert!(
                    sent.elapsed() < Duration::from_secs(5),
                    "it waits for the end"
                );
                thread::sleep(Duration::from_millis(1));
            };
            samples.push(started - sent);
            line.send_events(&text_block(1, &turn.to_string())).unwrap();
            line.end("tool_use").unwrap();
        }
        line.request();
        line.reply().unwrap();
        samples
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let folder: PathBuf = dir.join("session");
    let dir = dir.to_path_buf();
    runtime.block_on(async move {
        let haft = Haft::builder(&dir)
            .permission_mode(PermissionMode::Default)
            .session_folder(folder)
            .tool(Mark(called))
            .build()
            .await
            .unwrap();
        let mut options = AnthropicOptions::from_env();
        options.base_url = url;
        options.api_key = Some("key".into());
        let model = Anthropic::new(Http::new(HttpOptions::from_env()), options);
        let mut limits = haft_agent::RunLimits::default();
        limits.stop_after_repeats = u32::MAX;
        let scheduler = haft.into_scheduler();
        let mut agent = Agent::builder(scheduler, Arc::new(model), ModelSettings::new("m"))
            .limits(limits)
            .build();
        let running = tokio::spawn(async move { agent.run("go", &|_: &AgentEvent| {}).await });
        let ended = running.await.unwrap();
        assert!(!ended.is_error(), "{ended:?}");
    });
    let took = millis(median(server.join().unwrap()));
    row(
        "end of a call's block to the start of its tool",
        &format!("{took:.2} ms"),
        "≤ 5 ms",
        took <= 5.0,
    );
}
