//! MCP servers whose process is confined.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::{
    answer, call,
    mcp_programs::{results, until},
    scripted, text,
};

/// A server that does to files and hosts what it is asked to, and says what came of it.
const SERVER: &str = r#"
import json, os, socket, sys

def act(what, place):
    try:
        if what == "write":
            open(place, "w").write("x")
            return "written"
        if what == "read":
            return open(place).read()
        if what == "pid":
            return str(os.getpid())
        if what == "connect":
            host, port = place.rsplit(":", 1)
            socket.create_connection((host, int(port)), 2)
            return "connected"
        if what == "noise":
            sys.stderr.write("noise\\n" * 10000)
            return "loud"
    except OSError as error:
        return "refused: " + type(error).__name__

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, result = message.get("method"), None
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        text = {"type": "string"}
        result = {"tools": [{"name": "act", "inputSchema": {"type": "object", "properties": {"what": text, "place": text}}}]}
    elif method == "tools/call":
        given = message["params"]["arguments"]
        result = {"content": [{"type": "text", "text": act(given["what"], given.get("place", ""))}]}
    if result is None:
        answer = {"error": {"code": -32601, "message": "no"}}
    else:
        answer = {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"#;

fn act(what: &str, place: &Path) -> Value {
    call("mcp__s__act", json!({"what": what, "place": place}))
}

/// `haft` in a project with a server that is confined so; `None` where commands cannot be confined here.
fn confined(sandbox: &Value, calls: &Value) -> Option<(TempDir, Command)> {
    let dir = tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_haft"));
    if haft_sandbox::strongest(program, dir.path()) >= haft_sandbox::Mechanism::Reduced {
        haft_testkit::skip("commands cannot be confined whole on this machine");
        return None;
    }
    let script = dir.path().join("server.py");
    fs::write(&script, SERVER).unwrap();
    let server = json!({"command": "python3", "args": [script], "sandbox": sandbox});
    let named = json!({"mcpServers": {"s": server}}).to_string();
    let mut command = scripted(dir.path(), &json!([calls, [text("done")]]));
    command.args(["--mcp-config", &named, "--allowedTools", "mcp__s"]);
    Some((dir, command))
}

#[test]
fn a_confined_server_changes_files_of_the_project_and_nothing_else() {
    if haft_testkit::lacks("python3") {
        return;
    }
    haft_testkit::bound_this_process();
    let outside = tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "the secret").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let target = outside.path().join("made");
    let calls = json!([
        act("write", Path::new("made")),
        act("write", &target),
        act("read", Path::new("made")),
        act("read", &secret),
        act("connect", Path::new(&host)),
        act("write", Path::new(".git/hooks/pre-commit")),
        act("noise", Path::new("")),
        act("read", Path::new("server.py")),
    ]);
    let Some((dir, mut command)) = confined(&json!(true), &calls) else {
        return;
    };
    fs::create_dir_all(dir.path().join(".git/hooks")).unwrap();
    let deny = format!("Read(/{}/secret)", outside.path().display());
    command.args(["--disallowedTools", &deny]);
    let (texts, ..) = results(&mut command);
    assert_eq!(texts[0], "written");
    assert!(dir.path().join("made").exists());
    assert!(texts[1].starts_with("refused"), "{}", texts[1]);
    assert!(!target.exists());
    assert_eq!(texts[2], "x");
    assert!(!texts[3].contains("the secret"), "{}", texts[3]);
    assert!(texts[4].starts_with("refused"), "{}", texts[4]);
    assert!(texts[5].starts_with("refused"), "{}", texts[5]);
    assert!(!dir.path().join(".git/hooks/pre-commit").exists());
    assert_eq!(texts[6], "loud");
    assert!(texts[7].contains("import json"), "{}", texts[7]);
}

#[test]
fn one_that_only_reads_changes_nothing_and_one_with_a_network_has_it() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let calls = json!([
        act("write", Path::new("made")),
        act("read", Path::new("server.py"))
    ]);
    let Some((dir, mut command)) = confined(&json!({"profile": "readonly"}), &calls) else {
        return;
    };
    let (texts, ..) = results(&mut command);
    assert!(texts[0].starts_with("refused"), "{}", texts[0]);
    assert!(texts[1].contains("import json"), "{}", texts[1]);
    assert!(!dir.path().join("made").exists());
    haft_testkit::bound_this_process();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let calls = json!([act("connect", Path::new(&host))]);
    let sandbox = json!({"profile": "readonly", "network": true});
    let (_dir, mut command) = confined(&sandbox, &calls).unwrap();
    let (texts, ..) = results(&mut command);
    assert_eq!(texts[0], "connected");
}

#[test]
fn a_confined_server_dies_with_a_haft_that_is_killed() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let Some((dir, mut command)) =
        confined(&json!(true), &json!([act("write", Path::new("mark"))]))
    else {
        return;
    };
    let script = json!({"turns": [
        {"content": [act("write", Path::new("mark"))]},
        {"content": [text("on")], "hangs": true},
    ]});
    fs::write(
        dir.path().join(".haft-test-script.json"),
        script.to_string(),
    )
    .unwrap();
    let mut child = command
        .args(["-p", "go"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the server has written", || {
        dir.path().join("mark").exists()
    });
    let script = dir.path().join("server.py");
    let command_line = format!("python3\0{}\0", script.display());
    let servers = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|one| fs::read_to_string(one.path().join("cmdline")).ok());
        lines.filter(|line| line.ends_with(&command_line)).count()
    };
    assert!(servers() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the server is gone", || servers() == 0);
}

#[test]
fn what_a_sandbox_is_to_be_is_never_guessed() {
    let dir = tempdir().unwrap();
    let server =
        json!({"command": "python3", "args": ["server.py"], "sandbox": {"profile": "full"}});
    let named = json!({"mcpServers": {"s": server}}).to_string();
    let mut command = scripted(dir.path(), &json!([[text("done")]]));
    let ran = answer(command.args(["--mcp-config", &named, "-p", "go"]));
    assert!(
        ran.stderr.contains("`sandbox.profile` is neither"),
        "{}",
        ran.stderr
    );
}
