//! What a loop costs beside its model: `cargo bench -p haft-cli --bench agent`.
//!
//! The model is a server in this process, so that what is measured is all ours: from the start of the
//! binary to its first request, from the end of one reply to the next request, from the end of a block
//! to the start of its tool.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use haft::{CallContext, Effects, Haft, PermissionMode, Tool, ToolError, ToolOutput};
use haft_agent::{Agent, AgentEvent, ModelSettings};
use haft_models::{Anthropic, Http, HttpOptions, anthropic::AnthropicOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_haft");
const STARTS: usize = 31;
const TURNS: usize = 200;
const SESSIONS: usize = 5;
const MARKS: usize = 101;

fn main() {
    // `cargo test` builds benches too and passes this; there is nothing to test here.
    if std::env::args().any(|arg| arg == "--test") {
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
    println!("| promise | measured | bound | |");
    println!("|---|---|---|---|");
    start(&dir);
    turns(&dir);
    overlap(&dir);
    fs::remove_dir_all(&dir).unwrap();
}

/// A model that does as it is told, on whichever connection it is asked.
struct Line {
    url: String,
    requests: Receiver<Request>,
    writer: Option<TcpStream>,
    connections: Arc<AtomicUsize>,
}

/// A request, when all of it was here, and where the answer goes.
type Request = (Vec<u8>, Instant, TcpStream);

impl Line {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        // It ends with this process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::Relaxed);
                let sender = sender.clone();
                thread::spawn(move || serve(&stream.unwrap(), &sender));
            }
        });
        Self {
            url,
            requests,
            writer: None,
            connections,
        }
    }

    /// The next request, and when all of it was here.
    fn request(&mut self) -> (Vec<u8>, Instant) {
        let patience = Duration::from_secs(30);
        let (body, at, writer) = self.requests.recv_timeout(patience).unwrap();
        self.writer = Some(writer);
        (body, at)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.writer.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn begin(&mut self) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        self.write(head.as_bytes());
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 12, "output_tokens": 1},
        });
        self.say(&[json!({"type": "message_start", "message": message})]);
    }

    fn say(&mut self, events: &[Value]) {
        let mut text = String::new();
        for event in events {
            let name = event["type"].as_str().unwrap();
            text += &format!("event: {name}\ndata: {event}\n\n");
        }
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.write(chunk.as_bytes());
    }

    /// The end of a reply, and when all of it was sent.
    fn end(&mut self, stop: &str) -> Instant {
        let delta = json!({"stop_reason": stop, "stop_sequence": null});
        self.say(&[
            json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 40}}),
            json!({"type": "message_stop"}),
        ]);
        self.write(b"0\r\n\r\n");
        Instant::now()
    }

    fn reply_with_text(&mut self) {
        self.begin();
        let block = json!({"type": "text", "text": ""});
        let delta = json!({"type": "text_delta", "text": "done"});
        self.say(&[
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
        ]);
        self.end("end_turn");
    }
}

fn call(index: usize, id: &str, name: &str, input: &Value) -> [Value; 3] {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
    [
        json!({"type": "content_block_start", "index": index, "content_block": block}),
        json!({"type": "content_block_delta", "index": index, "delta": delta}),
        json!({"type": "content_block_stop", "index": index}),
    ]
}

/// Reads requests until the connection ends.
fn serve(stream: &TcpStream, requests: &Sender<Request>) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let at = Instant::now();
        if requests
            .send((body, at, stream.try_clone().unwrap()))
            .is_err()
        {
            return;
        }
    }
}

fn haft(dir: &Path, url: &str) -> Child {
    Command::new(BINARY)
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
        let mut line = Line::open();
        let started = Instant::now();
        let mut child = haft(dir, &line.url);
        let (body, at) = line.request();
        samples.push(at - started);
        first = body;
        line.reply_with_text();
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

/// A long session: one Read a turn.
fn turns(dir: &Path) {
    let (mut all, mut early, mut late) = (Vec::new(), Vec::new(), Vec::new());
    let (mut peak, mut growth, mut connections) = (0, 0, 0);
    for _ in 0..SESSIONS {
        let mut line = Line::open();
        let mut child = haft(dir, &line.url);
        line.request();
        let mut at_20 = 0;
        for turn in 0..TURNS {
            let path = dir.join(format!("file_{turn}.txt"));
            let input = json!({"file_path": path});
            line.begin();
            line.say(&call(0, &format!("toolu_{turn}"), "Read", &input));
            let ended = line.end("tool_use");
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
                at_20 = memory(&child, "VmRSS");
            }
        }
        peak = peak.max(memory(&child, "VmHWM"));
        growth = growth.max(memory(&child, "VmRSS").saturating_sub(at_20));
        connections = connections.max(line.connections.load(Ordering::Relaxed));
        line.reply_with_text();
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

/// In KB, as the kernel counts it.
fn memory(child: &Child, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
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
    let mut line = Line::open();
    let url = line.url.clone();
    let called = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&called);
    let server = thread::spawn(move || {
        let mut samples = Vec::new();
        for turn in 0..MARKS {
            line.request();
            line.begin();
            let sent = Instant::now();
            line.say(&call(0, &format!("toolu_{turn}"), "Mark", &json!({})));
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
            let block = json!({"type": "text", "text": ""});
            let delta = json!({"type": "text_delta", "text": turn.to_string()});
            line.say(&[
                json!({"type": "content_block_start", "index": 1, "content_block": block}),
                json!({"type": "content_block_delta", "index": 1, "delta": delta}),
                json!({"type": "content_block_stop", "index": 1}),
            ]);
            line.end("tool_use");
        }
        line.request();
        line.reply_with_text();
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

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort();
    samples[samples.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn row(promise: &str, measured: &str, bound: &str, kept: bool) {
    println!(
        "| {promise} | {measured} | {bound} | {} |",
        if kept { "kept" } else { "BROKEN" }
    );
}
