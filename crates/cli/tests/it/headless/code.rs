use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::Stdio,
};

use haft_testkit::{
    anthropic::{text_reply, tool_reply},
    http::HttpFake,
    until_blocking,
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::answer;
use crate::binary::{Conversation, haft};

/// The messages of each request, as text.
fn asked(server: &HttpFake) -> Vec<String> {
    let bodies = server.bodies();
    bodies
        .iter()
        .map(|body| body["messages"].to_string())
        .collect()
}

#[test]
fn an_edit_that_breaks_a_caller_is_reported_in_the_same_run_and_one_that_breaks_nothing_is_not() {
    let binary = Path::new(env!("CARGO_BIN_EXE_haft"));
    let servers = binary
        .ancestors()
        .nth(2)
        .unwrap()
        .join("lsp/node_modules/.bin");
    if !servers.join("pyright-langserver").exists() {
        return haft_testkit::skip("pyright is not installed (.ci/run does it)");
    }
    if haft_testkit::lacks("node") {
        return;
    }
    let dir = tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (a, b) = (root.join("a.py"), root.join("b.py"));
    fs::write(&a, "def greet(name: str) -> str:\n    return name\n").unwrap();
    fs::write(&b, "from a import greet\n\nprint(greet(\"x\"))\n").unwrap();
    fs::write(root.join("pyrightconfig.json"), "{}").unwrap();
    let trusted = answer(haft(&root).args(["permissions", "trust", "--yes"]));
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    let problems =
        |file: &Path| tool_reply("LSP", json!({"operation": "diagnostics", "filePath": file}));
    let edit = |old: &str, new: &str| {
        tool_reply(
            "Edit",
            json!({"file_path": a, "old_string": old, "new_string": new}),
        )
    };
    let server = HttpFake::start_strict(vec![
        tool_reply("Read", json!({"file_path": a})),
        tool_reply("Read", json!({"file_path": b})),
        tool_reply("ToolSearch", json!({"query": "select:LSP"})),
        problems(&a),
        problems(&b),
        edit("    return name\n", "    # as it is\n    return name\n"),
        problems(&b),
        edit("name: str", "name: int"),
        problems(&b), // a busy machine may need longer than a reply waits
        text_reply("Done."),
    ]);
    let mut path = OsString::from(&servers);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = haft(&root);
    command
        .env("PATH", path)
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "key")
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .args([
            "--model",
            "m-1",
            "--permission-mode",
            "acceptEdits",
            "-p",
            "go",
        ]);
    let ran = answer(&mut command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let asked = asked(&server);
    let first: Value = server.bodies()[0]["tools"].clone();
    let names = first
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].to_string());
    assert!(!names.collect::<Vec<_>>().contains(&"\"LSP\"".to_owned()));
    assert!(!asked[7].contains("The edits above"), "{}", asked[7]);
    let last = asked.last().unwrap();
    assert!(last.contains("New problems reported by pyright"), "{last}");
    assert!(
        last.contains("b.py:3:13 error reportArgumentType"),
        "{last}"
    );
}

/// A server that finds nothing wrong with a document, and one function in it: its first argument.
const STAND_IN: &str = r#"#!/bin/bash
say() { printf 'Content-Length: %s\r\n\r\n%s' "${#1}" "$1"; }
hear() { while IFS= read -r line; do case "$line" in Content-Length*) n=${line#*: }; n=${n%$'\r'};; $'\r') break;; esac; done; IFS= read -r -N "$n" body; }
hear; say '{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"documentSymbolProvider":true}}}'
while hear; do
  id=$(sed -n 's/.*"id":\([0-9]*\).*/\1/p' <<<"$body")
  [ -n "$id" ] && say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":[{\"name\":\"$1\",\"kind\":12,\"range\":{\"start\":{\"line\":0,\"character\":0},\"end\":{\"line\":0,\"character\":1}}}]}"
  # haft waits 5 s for a server that says nothing about a new document.
  opened=$(sed -n '/didOpen/s/.*"uri":"\([^"]*\)".*/\1/p' <<<"$body")
  [ -n "$opened" ] && say "{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/publishDiagnostics\",\"params\":{\"uri\":\"$opened\",\"diagnostics\":[]}}"
done
"#;

pub(crate) fn stand_in(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, STAND_IN).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn symbols(file: &str) -> Value {
    json!({"name": "LSP", "input": {"operation": "documentSymbol", "filePath": file}})
}

fn text(answer: &Value) -> String {
    match &answer["content"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[test]
fn a_server_that_a_project_names_runs_once_that_is_trusted_and_not_after_it_changed() {
    let dir = tempdir().unwrap();
    let (root, home) = (dir.path().join("work"), dir.path().join("home"));
    fs::create_dir_all(&home).unwrap();
    stand_in(&root.join("tools/my-ls"));
    let root = root.canonicalize().unwrap();
    fs::write(root.join("a.mine"), "a\n").unwrap();
    let name = |word: &str| {
        let entry = json!({"command": "./tools/my-ls", "args": [word], "extensionToLanguage": {".mine": "mine"}});
        let settings = json!({"lsp": {"mine": entry, "memoryMb": 1, "allowUnsandboxed": true}});
        fs::create_dir_all(root.join(".claude")).unwrap();
        fs::write(root.join(".claude/settings.json"), settings.to_string()).unwrap();
    };
    let ask = || {
        let mut session = Conversation::of(haft(&root).env("HOME", &home));
        let answer = session.ask(&symbols("a.mine"));
        session.end();
        text(&answer)
    };
    let trust = || {
        let mut trust = haft(&root);
        trust.env("HOME", &home);
        let trusted = answer(trust.args(["permissions", "trust", "--yes"]));
        assert_eq!(trusted.code, 0, "{}", trusted.stderr);
        trusted.stdout + &trusted.stderr
    };
    trust();
    assert!(ask().contains("No language server for .mine"), "{}", ask());
    // 15: it was trusted without this server.
    name("first");
    assert!(ask().contains("not trusted"), "{}", ask());
    let shown = trust();
    assert!(shown.contains("settings.json lsp"), "{shown}");
    assert_eq!(ask(), "function first 1");
    name("second");
    assert!(ask().contains("not trusted"), "{}", ask());
    trust();
    assert_eq!(ask(), "function second 1");
}

/// A folder to work in, and a home where a plugin is enabled that brings a server, and one that cannot be had.
fn with_plugin(dir: &Path) -> (PathBuf, PathBuf) {
    let root = dir.join("work");
    let plugin = dir.join("kit");
    fs::create_dir_all(&root).unwrap();
    stand_in(&plugin.join("bin/ls"));
    let entry = json!({
        "command": "${CLAUDE_PLUGIN_ROOT}/bin/ls", "args": ["kit"],
        "extensionToLanguage": {".mine": "mine"},
    });
    let far = json!({"command": "x", "transport": "socket", "extensionToLanguage": {".x": "x"}});
    let servers = json!({"mine": entry, "far": far});
    fs::write(plugin.join(".lsp.json"), servers.to_string()).unwrap();
    let user = dir.join("home/.claude");
    fs::create_dir_all(user.join("plugins")).unwrap();
    let enabled = json!({"enabledPlugins": {"kit@here": true}});
    fs::write(user.join("settings.json"), enabled.to_string()).unwrap();
    let installed = json!({"plugins": {"kit@here": [{"installPath": plugin}]}});
    let list = user.join("plugins/installed_plugins.json");
    fs::write(list, installed.to_string()).unwrap();
    (root, plugin)
}

#[test]
fn exec_has_the_servers_of_plugins_where_the_directory_is_trusted() {
    let dir = tempdir().unwrap();
    let (root, _) = with_plugin(dir.path());
    let home = dir.path().join("home");
    fs::write(root.join("a.mine"), "a\n").unwrap();
    let ask = |flags: &[&str]| {
        let mut command = haft(&root);
        let mut session = Conversation::of(command.env("HOME", &home).args(flags));
        let answer = session.ask(&symbols("a.mine"));
        session.end();
        text(&answer)
    };
    assert!(ask(&[]).contains("not trusted"), "{}", ask(&[]));
    let mut trust = haft(&root);
    let trusted = answer(
        trust
            .env("HOME", &home)
            .args(["permissions", "trust", "--yes"]),
    );
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    assert_eq!(ask(&[]), "function kit 1");
}

/// A server that says without end what no one asked for, once it is asked something.
const FLOODING: &str = r#"#!/usr/bin/env python3
import json, os, sys
out, source = sys.stdout.buffer, sys.stdin.buffer
def frame(message):
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body
while True:
    length = 0
    while (line := source.readline()) != b"\r\n":
        if not line:
            sys.exit()
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    asked = json.loads(source.read(length))
    if asked["method"] == "textDocument/didOpen":
        # haft waits 5 s for a server that says nothing about a new document.
        said = {"uri": asked["params"]["textDocument"]["uri"], "diagnostics": []}
        out.write(frame({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": said}))
        out.flush()
    if "id" not in asked:
        continue
    result = None
    if asked["method"] == "initialize":
        result = {"capabilities": {"documentSymbolProvider": True}}
    elif asked["method"] == "textDocument/documentSymbol":
        if os.path.exists("flood"):
            said = {"type": 3, "message": "x" * 100_000}
            many = frame({"jsonrpc": "2.0", "method": "window/logMessage", "params": said}) * 10
            while True:
                out.write(many)
                os.write(2, b"and this\n")
        place = {"line": 0, "character": 0}
        result = [{"name": "f", "kind": 12, "range": {"start": place, "end": place}}]
    out.write(frame({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
    out.flush()
"#;

#[test]
fn a_server_that_floods_is_named_and_the_session_goes_on() {
    use std::os::unix::fs::PermissionsExt;
    let has_python = haft_testkit::command("python3").arg("--version").output();
    if !has_python.is_ok_and(|ran| ran.status.success()) {
        return haft_testkit::skip("python3 is not installed");
    }
    let dir = tempdir().unwrap();
    let (root, home) = (dir.path().join("work"), dir.path().join("home"));
    fs::create_dir_all(home.join(".claude")).unwrap();
    fs::create_dir_all(&root).unwrap();
    let root = root.canonicalize().unwrap();
    let server = home.join("server");
    fs::write(&server, FLOODING).unwrap();
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).unwrap();
    let entry = json!({"command": server, "extensionToLanguage": {".mine": "mine"}});
    let settings = json!({"lsp": {"mine": entry}});
    fs::write(home.join(".claude/settings.json"), settings.to_string()).unwrap();
    fs::write(root.join("a.mine"), "a\n").unwrap();
    let mut trust = haft(&root);
    let trust = trust.env("HOME", &home);
    let trusted = answer(trust.args(["permissions", "trust", "--yes"]));
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    let mut session = Conversation::of(haft(&root).env("HOME", &home));
    assert_eq!(text(&session.ask(&symbols("a.mine"))), "function f 1");
    fs::write(root.join("flood"), "").unwrap();
    let flooded = session.ask(&symbols("a.mine"));
    assert_eq!(flooded["is_error"], true, "{flooded}");
    let said = text(&flooded);
    assert!(
        said.contains("mine died (it floods") && said.contains("try again"),
        "{said}"
    );
    // Other tools work, and so does the server once it behaves.
    let read = json!({"name": "Read", "input": {"file_path": root.join("a.mine")}});
    assert_eq!(session.ask(&read)["is_error"], false);
    fs::remove_file(root.join("flood")).unwrap();
    assert_eq!(text(&session.ask(&symbols("a.mine"))), "function f 1");
    session.end();
}

#[test]
fn doctor_lists_servers_of_plugins_and_what_is_wrong_with_entries() {
    let dir = tempdir().unwrap();
    let (root, plugin) = with_plugin(dir.path());
    let mut doctor = haft(&root);
    doctor.env("HOME", dir.path().join("home")).arg("doctor");
    let shown = answer(&mut doctor).stdout;
    let program = plugin.join("bin/ls");
    assert!(
        shown.contains("kit:mine") && shown.contains(program.to_str().unwrap()),
        "{shown}"
    );
    assert!(
        shown.contains("not started: the directory is not trusted"),
        "{shown}"
    );
    assert!(
        shown.contains("kit:far") && shown.contains("sockets are not supported"),
        "{shown}"
    );
}

#[test]
fn no_server_outlives_haft_however_it_ends() {
    let binary = Path::new(env!("CARGO_BIN_EXE_haft"));
    let servers = binary
        .ancestors()
        .nth(2)
        .unwrap()
        .join("lsp/node_modules/.bin");
    if !servers.join("pyright-langserver").exists() {
        return haft_testkit::skip("pyright is not installed (.ci/run does it)");
    }
    if haft_testkit::lacks("node") {
        return;
    }
    // A name of their own, by which no other test's server is found.
    let names = tempdir().unwrap();
    let folder = names.path().join("servers");
    std::os::unix::fs::symlink(&servers, &folder).unwrap();
    let named = folder.to_string_lossy();
    let mut path = OsString::from(&folder);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    // 19, and the others.
    for end in ["EOF", "TERM", "KILL"] {
        let dir = tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("a.py"), "def greet() -> int:\n    return 1\n").unwrap();
        let trusted = answer(haft(&root).args(["permissions", "trust", "--yes"]));
        assert_eq!(trusted.code, 0, "{}", trusted.stderr);
        let mut child = haft(&root)
            .env("PATH", &path)
            .arg("exec")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let line = format!("{}\n", symbols("a.py"));
        let stdin = child.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        let mut heard = String::new();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
        lines.read_line(&mut heard).unwrap();
        assert!(heard.contains("function greet 1"), "{heard}");
        // Its directory is not to be seen from outside of its sandbox; its program is.
        let processes = || {
            let all = fs::read_dir("/proc").unwrap().flatten();
            let lines = all.filter_map(|one| fs::read(one.path().join("cmdline")).ok());
            let is_one = |line: &Vec<u8>| String::from_utf8_lossy(line).contains(&*named);
            lines.filter(is_one).count()
        };
        assert!(processes() > 0);
        match end {
            "EOF" => drop(child.stdin.take()),
            name => {
                let id = child.id().to_string();
                let sent = haft_testkit::command("kill")
                    .args(["-s", name, &id])
                    .status();
                assert!(sent.unwrap().success());
            }
        }
        child.wait().unwrap();
        until_blocking(&format!("nothing runs after {end}"), || processes() == 0);
    }
}
