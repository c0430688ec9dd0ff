//! `haft mcp login`, at a server on this machine that gives tokens itself; this test is the browser.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::Stdio,
    sync::{Arc, Mutex},
};

use haft_testkit::http::{HttpFake, HttpReply, RecordedHttpRequest, header};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::binary::{haft, run};

fn document(body: &Value) -> HttpReply {
    HttpReply::new(200, "application/json", body.to_string())
}

/// A server that wants to know who asks, and gives tokens to those who come back from a browser.
fn server() -> HttpFake {
    let own: Arc<Mutex<String>> = Arc::default();
    let base = Arc::clone(&own);
    let fake = HttpFake::start_with(move |asked| reply(asked, &base.lock().unwrap()));
    own.lock().unwrap().clone_from(&fake.url);
    fake
}

fn reply(asked: &RecordedHttpRequest, base: &str) -> HttpReply {
    match asked.target() {
        (_, "/.well-known/oauth-protected-resource/mcp") => document(
            &json!({"resource": format!("{base}/mcp"), "authorization_servers": [base], "scopes_supported": ["read"]}),
        ),
        (_, "/.well-known/oauth-authorization-server") => document(&json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        })),
        ("POST", "/register") => {
            document(&json!({"client_id": "us", "token_endpoint_auth_method": "none"}))
        }
        ("POST", "/token") => document(
            &json!({"access_token": "the-token", "token_type": "Bearer", "expires_in": 3600}),
        ),
        ("POST", "/mcp") if header(&asked.head, "authorization") != Some("Bearer the-token") => {
            let place = format!(
                "Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\""
            );
            HttpReply::new(401, "text/plain", "").header("www-authenticate", &place)
        }
        ("POST", "/mcp") => {
            let id = &asked.body["id"];
            let result = match asked.body["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "s", "version": "1"},
                }),
                Some("tools/list") => {
                    json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
                }
                Some("server/discover") => {
                    return document(
                        &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}),
                    );
                }
                _ => return HttpReply::new(202, "text/plain", ""),
            };
            document(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
        }
        _ => HttpReply::new(404, "text/plain", ""),
    }
}

/// A parameter of an address, with its escapes undone as far as they occur here.
fn parameter(address: &str, name: &str) -> String {
    let query = address.split_once('?').unwrap().1;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.find(|(own, _)| *own == name).unwrap().1;
    value.replace("%3A", ":").replace("%2F", "/")
}

/// What a browser is answered there.
fn visit(address: &str) -> String {
    let rest = address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_person_logs_in_is_connected_and_logs_out() {
    let (dir, server) = (tempdir().unwrap(), server());
    let url = format!("{}/mcp", server.url);
    let mcp = |args: &[&str]| run(haft(dir.path()).arg("mcp").args(args), b"");
    assert_eq!(mcp(&["add", "-t", "http", "s", &url]).code, 0);
    let hooks = json!({"hooks": {"Notification": [
        {"matcher": "auth_success", "hooks": [{"type": "command", "command": "cat > told.json"}]},
    ]}});
    fs::create_dir_all(dir.path().join(".claude")).unwrap();
    fs::write(dir.path().join(".claude/settings.json"), hooks.to_string()).unwrap();
    let before = mcp(&["list"]).stdout;
    assert!(before.contains("needs-auth"), "{before}");

    let mut login = haft(dir.path());
    let mut login = login
        .args(["mcp", "login", "s"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(login.stderr.take().unwrap()).lines();
    let address = said
        .map_while(Result::ok)
        .find(|line| line.starts_with("http"))
        .expect("an address to visit");
    assert!(
        address.starts_with(&format!("{}/authorize?", server.url)),
        "{address}"
    );
    assert_eq!(parameter(&address, "code_challenge_method"), "S256");
    assert_eq!(parameter(&address, "scope"), "read");
    let (back, state) = (
        parameter(&address, "redirect_uri"),
        parameter(&address, "state"),
    );
    // Others on this machine may call, too.
    assert!(visit(&format!("{back}?code=stolen&state=guessed")).starts_with("HTTP/1.1 400"));
    assert!(
        visit(&format!("{back}?code=c&state={state}&iss={}", server.url)).contains("logged in")
    );
    let ended = login.wait_with_output().unwrap();
    assert!(ended.status.success());
    assert!(String::from_utf8_lossy(&ended.stdout).contains("You are logged in to s"));
    let told = fs::read_to_string(dir.path().join("told.json")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["notification_type"], "auth_success");
    assert_eq!(told["message"], "You are logged in to s");

    let tokens = dir.path().join(".claude/haft/mcp-tokens.json");
    let mode = fs::metadata(&tokens).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let after = mcp(&["list"]).stdout;
    assert!(after.contains("connected"), "{after}");
    assert!(!after.contains("the-token"), "{after}");
    assert_eq!(mcp(&["logout", "s"]).code, 0);
    assert!(mcp(&["list"]).stdout.contains("needs-auth"));
}

/// An answer that does not say who sent the browser, where that was promised, may be another's.
#[test]
fn a_browser_that_does_not_say_where_it_comes_from_is_not_believed() {
    let (dir, server) = (tempdir().unwrap(), server());
    let url = format!("{}/mcp", server.url);
    let added = run(
        haft(dir.path()).args(["mcp", "add", "-t", "http", "s", &url]),
        b"",
    );
    assert_eq!(added.code, 0);
    let mut login = haft(dir.path());
    let mut login = login
        .args(["mcp", "login", "s"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(login.stderr.take().unwrap()).lines();
    let address = said
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line.starts_with("http"));
    let address = address.unwrap();
    let (back, state) = (
        parameter(&address, "redirect_uri"),
        parameter(&address, "state"),
    );
    assert!(visit(&format!("{back}?code=c&state={state}")).contains("failed"));
    assert!(!login.wait().unwrap().success());
    let asked = server.requests();
    assert!(!asked.iter().any(|asked| asked.target().1 == "/token"));
}
