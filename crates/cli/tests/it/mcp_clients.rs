//! Several clients of one `haft mcp serve`, and clients that vanish: what belongs to whom, and what ends with them.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::{
    binary::{Conversation, haft},
    mcp_serve::Serving,
};

fn project() -> TempDir {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("a.txt"), "forty-two\n").unwrap();
    dir
}

/// How a client over HTTP names itself.
enum HttpClientKind {
    /// With a session.
    Session(String),
    /// Of the stateless revision, by its name.
    Stateless(&'static str),
}

/// A client over HTTP.
struct HttpClient<'a> {
    serving: &'a Serving,
    kind: HttpClientKind,
    next: u64,
}

impl<'a> HttpClient<'a> {
    fn begin(serving: &'a Serving) -> Self {
        let greeting =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}});
        let message =
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": greeting});
        let answer = post(serving, "", &message);
        let lines = answer.lines().map(str::to_ascii_lowercase);
        let mut ids =
            lines.filter_map(|line| Some(line.strip_prefix("mcp-session-id: ")?.to_owned()));
        Self {
            serving,
            kind: HttpClientKind::Session(ids.next().unwrap_or_else(|| panic!("{answer}"))),
            next: 1,
        }
    }

    fn stateless(serving: &'a Serving, name: &'static str) -> Self {
        Self {
            serving,
            kind: HttpClientKind::Stateless(name),
            next: 1,
        }
    }

    /// The text of what a call gives back.
    fn call(&mut self, name: &str, arguments: Value) -> String {
        self.next += 1;
        let mut params = json!({"name": name, "arguments": arguments});
        let headers = match &self.kind {
            HttpClientKind::Session(id) => format!("mcp-session-id: {id}\r\n"),
            HttpClientKind::Stateless(own) => {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": {"name": own, "version": "1"},
                });
                let version = "mcp-protocol-version: 2026-07-28\r\n";
                format!("{version}mcp-method: tools/call\r\nmcp-name: {name}\r\n")
            }
        };
        let message =
            json!({"jsonrpc": "2.0", "id": self.next, "method": "tools/call", "params": params});
        let answer = post(self.serving, &headers, &message);
        let json = answer
            .lines()
            .find_map(|line| {
                let line = line.strip_prefix("data: ").unwrap_or(line);
                line.starts_with('{').then_some(line)
            })
            .unwrap_or_else(|| panic!("{answer}"));
        let answer: Value = serde_json::from_str(json).unwrap();
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

fn post(serving: &Serving, headers: &str, message: &Value) -> String {
    let mut stream = TcpStream::connect(serving.address()).unwrap();
    let body = message.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         authorization: Bearer {}\r\n{headers}\r\n{body}",
        body.len(),
        serving.token,
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// What two clients do in turn, and what the second must not see of the first.
fn are_apart(mut one: HttpClient<'_>, mut two: HttpClient<'_>, dir: &Path) {
    let file = dir.join("new.txt");
    let _ = fs::remove_file(&file);
    // The ledger: what one has written, two has not read.
    one.call("Write", json!({"file_path": "new.txt", "content": "x\n"}));
    let edit = json!({"file_path": "new.txt", "old_string": "x", "new_string": "y"});
    let refused = two.call("Edit", edit);
    assert!(
        refused.contains("not been read") || refused.contains("Read it"),
        "{refused}"
    );
    // Undo: two has changed nothing.
    let undone = two.call("Undo", json!({}));
    assert!(file.exists(), "{undone}");
    // The directory.
    one.call("Bash", json!({"command": "cd sub && pwd"}));
    let here = one.call("Bash", json!({"command": "pwd"}));
    assert!(here.contains("/sub"), "{here}");
    let there = two.call("Bash", json!({"command": "pwd"}));
    assert!(!there.contains("/sub"), "{there}");
    // And one has its own undo still.
    let undone = one.call("Undo", json!({}));
    assert!(!file.exists(), "{undone}");
}

#[test]
fn clients_have_their_own_ledger_undo_and_directory() {
    let dir = project();
    let serving = Serving::start(dir.path(), &["--permission-mode", "acceptEdits"]);
    let (one, two) = (HttpClient::begin(&serving), HttpClient::begin(&serving));
    are_apart(one, two, dir.path());
    // Of the stateless revision too; here nothing but their names tells them apart.
    let one = HttpClient::stateless(&serving, "one");
    let two = HttpClient::stateless(&serving, "two");
    are_apart(one, two, dir.path());
    // The same name is the same client, also over another connection.
    let mut first = HttpClient::stateless(&serving, "same");
    first.call("Read", json!({"file_path": "a.txt"}));
    let mut again = HttpClient::stateless(&serving, "same");
    let edit = json!({"file_path": "a.txt", "old_string": "forty", "new_string": "fifty"});
    again.call("Edit", edit);
    let text = fs::read_to_string(dir.path().join("a.txt")).unwrap();
    assert_eq!(text, "fifty-two\n");
    serving.end();
}

/// A client over a pipe that answers what it is asked.
struct PipeClient {
    lines: Conversation,
    next: u64,
    /// What it was told beside answers.
    heard: Vec<Value>,
    roots: Value,
}

impl PipeClient {
    fn start(dir: &Path, flags: &[&str], capabilities: &Value) -> Self {
        let mut command = haft(dir);
        let lines = Conversation::start(command.args(["mcp", "serve"]).args(flags));
        let mut client = Self {
            lines,
            next: 0,
            heard: Vec::new(),
            roots: json!([]),
        };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {}});
        client.ask("initialize", params);
        let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.lines.say(&begun);
        client
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.lines
            .say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let heard = self.lines.hear();
            if heard.get("method").is_none() && heard["id"] == id {
                return heard;
            }
            if heard["method"] == "roots/list" {
                let result = json!({"roots": self.roots});
                self.lines
                    .say(&json!({"jsonrpc": "2.0", "id": heard["id"], "result": result}));
            }
            self.heard.push(heard);
        }
    }

    fn call(&mut self, name: &str, arguments: Value) -> String {
        let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": "p"}});
        let answer = self.ask("tools/call", params);
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn heard(&self, method: &str) -> Vec<&Value> {
        let all = self.heard.iter();
        all.filter(|message| message["method"] == method).collect()
    }
}

#[test]
fn a_client_hears_how_far_our_tools_are() {
    let dir = project();
    for at in 0..20 {
        fs::write(dir.path().join(format!("{at}.md")), "old\n").unwrap();
    }
    let mut client = PipeClient::start(dir.path(), &[], &json!({}));
    // It ends when it was heard of: no time is waited for.
    let listed = client.call("Bash", json!({"command": "echo begun; sleep 1; echo over"}));
    assert!(listed.contains("over"), "{listed}");
    let reports = client.heard("notifications/progress");
    assert!(!reports.is_empty());
    assert_eq!(reports[0]["params"]["progressToken"], "p");
    assert_eq!(reports[0]["params"]["message"], "begun");
    let done: Vec<f64> = reports
        .iter()
        .map(|report| report["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(done.is_sorted_by(|a, b| a < b), "{done:?}");
    assert_eq!(client.lines.end(), 0);
}

#[test]
fn the_roots_of_a_client_narrow_its_directories_and_never_widen_them() {
    let dir = project();
    let root = dir.path().canonicalize().unwrap();
    let elsewhere = tempdir().unwrap();
    let elsewhere = elsewhere.path().canonicalize().unwrap();
    fs::write(elsewhere.join("secret.txt"), "secret\n").unwrap();
    fs::write(root.join("sub/b.txt"), "inside\n").unwrap();
    let uri = |path: &Path| json!({"uri": format!("file://{}", path.display())});
    let can = json!({"roots": {"listChanged": true}});
    let mut client = PipeClient::start(&root, &[], &can);
    client.roots = json!([uri(&root.join("sub")), uri(&elsewhere), uri(Path::new("/"))]);
    // `/` is around what is permitted, so that all of it counts.
    let read =
        |client: &mut PipeClient, path: &Path| client.call("Read", json!({"file_path": path}));
    assert!(read(&mut client, &root.join("a.txt")).contains("forty-two"));
    let outside = read(&mut client, &elsewhere.join("secret.txt"));
    assert!(
        !outside.contains("secret\n") && outside.contains("not granted"),
        "{outside}"
    );
    let warnings = client.heard("notifications/message");
    let told = warnings
        .iter()
        .any(|one| one.to_string().contains(&*elsewhere.to_string_lossy()));
    assert!(told, "{warnings:?}");
    // One root: relative paths start there, and the rest needs permission.
    client.roots = json!([uri(&root.join("sub"))]);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    client.lines.say(&changed);
    assert!(read(&mut client, Path::new("b.txt")).contains("inside"));
    let above = read(&mut client, &root.join("a.txt"));
    assert!(!above.contains("forty-two"), "{above}");
    // None that is permitted: as the one who started it said.
    client.roots = json!([uri(&elsewhere)]);
    client.lines.say(&changed);
    assert!(read(&mut client, &root.join("a.txt")).contains("forty-two"));
    assert!(!read(&mut client, &elsewhere.join("secret.txt")).contains("secret\n"));
    assert_eq!(client.heard("roots/list").len(), 3);
    assert_eq!(client.lines.end(), 0);
}

#[test]
fn skills_and_commands_are_prompts() {
    let dir = project();
    let commands = dir.path().join(".claude/commands");
    fs::create_dir_all(&commands).unwrap();
    let text = "---\ndescription: Looks at a file\nargument-hint: FILE\n---\nLook at $ARGUMENTS closely.\n";
    fs::write(commands.join("look.md"), text).unwrap();
    let named = "---\ndescription: Two\narguments: [from, to]\n---\nFrom $from to $to.\n";
    fs::write(commands.join("move.md"), named).unwrap();
    let runs = "---\ndescription: Runs\n---\nIt says !`echo forty-$((1+1))`.\n";
    fs::write(commands.join("runs.md"), runs).unwrap();
    let changes = "---\ndescription: Changes\n---\n!`touch made.txt`\n";
    fs::write(commands.join("changes.md"), changes).unwrap();
    let mut client = PipeClient::start(dir.path(), &[], &json!({}));
    let listed = client.ask("prompts/list", json!({}));
    let prompts = listed["result"]["prompts"].as_array().unwrap();
    let look = prompts.iter().find(|one| one["name"] == "look").unwrap();
    assert_eq!(look["description"], "Looks at a file");
    assert_eq!(look["arguments"][0]["name"], "arguments");
    let said = |client: &mut PipeClient, name: &str, arguments: Value| {
        let answer = client.ask("prompts/get", json!({"name": name, "arguments": arguments}));
        let text = answer["result"]["messages"][0]["content"]["text"].as_str();
        text.map_or_else(|| answer["error"].to_string(), str::to_owned)
    };
    let text = said(&mut client, "look", json!({"arguments": "a.txt"}));
    assert!(text.contains("Look at a.txt closely."), "{text}");
    let text = said(&mut client, "move", json!({"to": "it's b", "from": "a b"}));
    assert!(text.contains("From a b to it's b."), "{text}");
    let text = said(&mut client, "runs", json!({}));
    assert!(text.contains("It says forty-2."), "{text}");
    // Its commands are calls of the session: what needs permission is refused.
    let refused = said(&mut client, "changes", json!({}));
    assert!(refused.contains("was not permitted"), "{refused}");
    assert!(!dir.path().join("made.txt").exists());
    let unknown = said(&mut client, "no-such", json!({}));
    assert!(unknown.contains("unknown prompt"), "{unknown}");
    let wrong = said(&mut client, "look", json!({"what": "x"}));
    assert!(wrong.contains("no argument"), "{wrong}");
    assert_eq!(client.lines.end(), 0);
}

/// Starts what then calls Bash and waits: over a pipe it starts haft itself.
const VANISHING: &str = r#"
import json, os, subprocess, sys, time, urllib.request
call = {"name": "Bash", "arguments": {"command": os.environ["CASE_COMMAND"], "timeout": 600000}}
hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
def message(id, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
if url := os.environ.get("CASE_URL"):
    def post(data, session):
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream",
                   "authorization": "Bearer " + os.environ["CASE_TOKEN"], **session}
        return urllib.request.urlopen(urllib.request.Request(url, data, headers))
    session = {"mcp-session-id": post(message(1, "initialize", hello), {}).headers["mcp-session-id"]}
    post(message(2, "tools/call", call), session).read()
else:
    child = subprocess.Popen([os.environ["CASE_BINARY"], "mcp", "serve"], stdin=subprocess.PIPE)
    child.stdin.write(message(1, "initialize", hello) + b"\n" + message(2, "tools/call", call) + b"\n")
    child.stdin.flush()
    time.sleep(600)
"#;

/// A client in a process of its own, once its command runs.
fn vanishing(dir: &Path, marker: &str, over_http: Option<&Serving>) -> Child {
    let started = dir.join("started");
    let _ = fs::remove_file(&started);
    let mut command: Command = haft_testkit::command("python3");
    command
        .args(["-c", VANISHING])
        .current_dir(dir)
        .env_clear()
        .env("HOME", dir)
        .env("PATH", "/usr/bin:/bin")
        .env("CASE_BINARY", env!("CARGO_BIN_EXE_haft"))
        .env("CASE_COMMAND", format!("sleep {marker}"))
        .stdout(Stdio::null());
    if let Some(serving) = over_http {
        command
            .env("CASE_URL", &serving.url)
            .env("CASE_TOKEN", &serving.token);
    }
    let child = command.spawn().unwrap();
    haft_testkit::until_blocking("its command runs", || runs(marker));
    child
}

/// Does a process of this argument run?
fn runs(marker: &str) -> bool {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = all.filter_map(|one| fs::read(one.path().join("cmdline")).ok());
    lines.any(|line| {
        line.split(|byte| *byte == 0).collect::<Vec<_>>()
            == [b"sleep".as_slice(), marker.as_bytes(), b""]
    })
}

#[test]
fn what_runs_for_a_client_ends_when_the_client_is_killed() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = project();
    let own = std::process::id();
    let marker = format!("1{own}.25");
    let mut client = vanishing(dir.path(), &marker, None);
    client.kill().unwrap();
    client.wait().unwrap();
    haft_testkit::until_blocking("the command is gone with its client", || !runs(&marker));
    // Over HTTP the server goes on, and so may the client, which can come back for a while.
    let serving = Serving::start(dir.path(), &["--gone-after", "1"]);
    let marker = format!("1{own}.75");
    let mut client = vanishing(dir.path(), &marker, Some(&serving));
    client.kill().unwrap();
    client.wait().unwrap();
    haft_testkit::until_blocking("the command is gone with its client", || !runs(&marker));
    let mut other = HttpClient::begin(&serving);
    assert!(
        other
            .call("Read", json!({"file_path": "a.txt"}))
            .contains("forty-two")
    );
    serving.end();
}
