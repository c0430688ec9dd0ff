//! What an editor waits for: `cargo bench -p haft-cli --bench acp`.
//!
//! From the start of `haft acp` to the answer to `initialize`, from a prompt to the model's first request, from a cancel to
//! the prompt's answer, from the end of the input to that of the process, and what each further session weighs. The model
//! is a server in this process. `--bench agent` has the same figures without an editor.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use haft_testkit::{
    StepwiseModelServer,
    measure::{self, median, memory, millis, row},
    model_line::call_block,
};
use serde_json::{Value, json};

const STARTS: usize = 31;
const PROMPTS: usize = 31;
const STOPS: usize = 9;
const SESSIONS: u64 = 50;

fn binary() -> PathBuf {
    measure::binary(env!("CARGO_BIN_EXE_haft"))
}

fn main() {
    if measure::is_test_run() {
        return;
    }
    let dir = std::env::temp_dir().join(format!("haft-bench-acp-{}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    measure::table();
    starts(&dir);
    prompts(&dir);
    stops(&dir);
    sessions(&dir);
    fs::remove_dir_all(&dir).unwrap();
}

/// An editor, and the agent that it has started.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Editor {
    fn start(dir: &Path, url: &str) -> Self {
        let mut child = Command::new(binary())
            .current_dir(dir)
            .env_clear()
            .env("HOME", dir)
            .env("PATH", "/usr/bin:/bin")
            .env("ANTHROPIC_BASE_URL", url)
            .env("ANTHROPIC_API_KEY", "key")
            .args(["acp", "--model", "m", "--allowed-tools", "Bash"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            next: 0,
        }
    }

    fn begun(dir: &Path, url: &str) -> Self {
        let mut editor = Self::start(dir, url);
        editor.initialize();
        editor
    }

    fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended");
        serde_json::from_str(&line).unwrap()
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.hear();
            if message["id"] == id && message.get("method").is_none() {
                return message["result"].clone();
            }
        }
    }

    fn initialize(&mut self) {
        let id = self.send("initialize", &json!({"protocolVersion": 1}));
        assert_eq!(self.answer(id)["protocolVersion"], 1);
    }

    fn session(&mut self, cwd: &Path) -> String {
        let id = self.send("session/new", &json!({"cwd": cwd, "mcpServers": []}));
        self.answer(id)["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompt(&mut self, session: &str) -> u64 {
        let blocks = json!([{"type": "text", "text": "go"}]);
        self.send(
            "session/prompt",
            &json!({"sessionId": session, "prompt": blocks}),
        )
    }

    /// How long it takes to end when nothing more is said.
    fn end(mut self) -> Duration {
        let began = Instant::now();
        self.input = None;
        assert!(self.child.wait().unwrap().success());
        began.elapsed()
    }
}

fn starts(dir: &Path) {
    let mut samples = Vec::new();
    for _ in 0..STARTS {
        let began = Instant::now();
        let editor = Editor::begun(dir, "http://127.0.0.1:9");
        samples.push(began.elapsed());
        editor.end();
    }
    let took = millis(median(samples));
    row(
        "acp: process start to initialize answered",
        &format!("{took:.1} ms"),
        "≤ 15 ms",
        took <= 15.0,
    );
}

fn prompts(dir: &Path) {
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for _ in 0..PROMPTS {
        let mut line = StepwiseModelServer::open();
        let mut editor = Editor::begun(dir, line.url());
        let session = editor.session(dir);
        for samples in [&mut first, &mut later] {
            let began = Instant::now();
            let id = editor.prompt(&session);
            let (_, at) = line.request();
            samples.push(at - began);
            line.reply().unwrap();
            assert_eq!(editor.answer(id)["stopReason"], "end_turn");
        }
        editor.end();
    }
    for (what, samples) in [("first prompt", first), ("second prompt", later)] {
        let took = millis(median(samples));
        row(
            &format!("acp: {what} to its first request"),
            &format!("{took:.1} ms"),
            "≤ 20 ms",
            took <= 20.0,
        );
    }
}

/// A command is at work: it is cancelled, and in another process the editor goes away.
fn stops(dir: &Path) {
    let (mut cancels, mut ends) = (Vec::new(), Vec::new());
    for at in 0..STOPS * 2 {
        let mut line = StepwiseModelServer::open();
        let mut editor = Editor::begun(dir, line.url());
        let session = editor.session(dir);
        let id = editor.prompt(&session);
        line.request();
        line.begin().unwrap();
        let input = json!({"command": "sleep 60"});
        line.send_events(&call_block(0, "toolu_1", "Bash", &input))
            .unwrap();
        line.end("tool_use").unwrap();
        while editor.hear()["params"]["update"]["status"] != "in_progress" {}
        if at % 2 == 0 {
            let began = Instant::now();
            let params = json!({"sessionId": session});
            editor.say(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
            assert_eq!(editor.answer(id)["stopReason"], "cancelled");
            cancels.push(began.elapsed());
            editor.end();
        } else {
            ends.push(editor.end());
        }
    }
    for (what, samples, bound) in [
        ("cancel of a command to the answer", cancels, 1000.0),
        ("end of the input, with a command, to the end", ends, 2000.0),
    ] {
        let worst = millis(samples.into_iter().max().unwrap());
        row(
            &format!("acp: {what}, at worst"),
            &format!("{worst:.0} ms"),
            &format!("≤ {bound} ms"),
            worst <= bound,
        );
    }
}

/// Each has a prompt behind it: a session that was never asked anything is no session yet.
fn sessions(dir: &Path) {
    let mut line = StepwiseModelServer::open();
    let mut editor = Editor::begun(dir, line.url());
    let folders: Vec<PathBuf> = (0..=SESSIONS)
        .map(|number| {
            let folder = dir.join(format!("project_{number}"));
            fs::create_dir(&folder).unwrap();
            folder
        })
        .collect();
    let mut at_first = 0;
    for (number, folder) in folders.iter().enumerate() {
        let session = editor.session(folder);
        let id = editor.prompt(&session);
        line.request();
        line.reply().unwrap();
        assert_eq!(editor.answer(id)["stopReason"], "end_turn");
        if number == 0 {
            at_first = memory(editor.child.id(), "VmRSS");
        }
    }
    let all = memory(editor.child.id(), "VmRSS");
    let each = all.saturating_sub(at_first) as f64 / SESSIONS as f64 / 1024.0;
    row(
        &format!("acp: memory of each of {SESSIONS} further sessions"),
        &format!("{each:.2} MB"),
        "≤ 2 MB",
        each <= 2.0,
    );
    editor.end();
}
