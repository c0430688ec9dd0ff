//! Servers that commands in the background run, each in the network that its command has: pages find them there, as
//! long as they run, and find nothing else that way.

use std::{fs, net::TcpStream};

use haft_testkit::{PageServer, until_blocking};
use serde_json::{Value, json};

use super::Session;

/// Listens at the port it is given, writes down which that is and what it is asked for. `deaf`: takes connections and
/// closes them. `newer`: listens at `::1`.
const SERVER: &str = r#"
import http.server, os, socket, sys
port, name = int(sys.argv[1]), sys.argv[2]
PAGE = f"<title>{name}</title><h1>Of {name}</h1><p id=out></p><script>fetch('/data').then(r => r.text()).then(t => out.textContent = t)</script>"
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open("asked-" + name, "a") as log: log.write(self.path + "\n")
        body = (PAGE if self.path == "/" else "data of " + name).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
host = "::1" if name == "newer" else "127.0.0.1"
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
server = Server((host, port), Handler)
with open("part-" + name, "w") as file: file.write(str(server.server_address[1]))
os.rename("part-" + name, "port-" + name)
if name == "deaf":
    while True: server.socket.accept()[0].close()
server.serve_forever()
"#;

/// Commands have a network for themselves, but for one that is run outside.
fn confined(rules: &Value) -> Value {
    json!({
        "sandbox": {"enabled": true, "excludedCommands": ["python3 outside.py *"]},
        "permissions": rules,
    })
}

fn start(rules: &Value) -> Option<Session> {
    let has_python = haft_testkit::command("python3").arg("--version").output();
    if !has_python.is_ok_and(|ran| ran.status.success()) {
        haft_testkit::skip("servers in a command's network: python3 is not installed");
        return None;
    }
    let files = [("serve.py", SERVER), ("outside.py", SERVER)];
    Session::start(&confined(rules), &files)
}

impl Session {
    /// Has a command serve; its port.
    fn serve(&mut self, script: &str, port: u16, name: &str) -> u16 {
        self.background(&format!("python3 {script} {port} {name}"));
        let file = self.work().join(format!("port-{name}"));
        until_blocking("it serves", || file.exists());
        fs::read_to_string(file).unwrap().parse().unwrap()
    }

    /// What a server was asked for.
    fn asked(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(format!("asked-{name}"))).unwrap_or_default()
    }

    fn stop(&mut self, task: &str) {
        let (failed, said) = self.tool("TaskStop", &json!({"task_id": task}));
        assert!(!failed, "{said}");
    }
}

fn open(host: &str, port: u16) -> Value {
    json!({"action": "navigate", "url": format!("http://{host}:{port}/")})
}

#[test]
fn a_server_in_the_network_of_its_command_is_seen_until_it_ends() {
    let rules = json!({"allow": ["Bash(python3 *)"]});
    let Some(mut session) = start(&rules) else {
        return;
    };
    // Another program of this machine has the same port in the network of the machine.
    let machine = PageServer::start([("/", "<h1>Of the machine</h1>")]);
    let port = machine.port();
    assert_eq!(session.serve("serve.py", port, "inside"), port);
    for host in ["localhost", "127.0.0.1", "app.localhost"] {
        let shown = session.good(&open(host, port));
        assert!(shown.contains("- heading \"Of inside\""), "{host}: {shown}");
        session.good(&json!({"action": "wait_for", "text": "data of inside", "timeout": 60000}));
    }
    // It listens at no other address, so that this one is another's.
    session.bad(&open("[::1]", port));
    session.stop("bash_1");
    let refused = session.bad(&open("localhost", port));
    assert!(refused.contains("localhost"), "{refused}");
    assert_eq!(machine.requested_paths(), Vec::<String>::new());
    drop(machine);
    until_blocking("the port is free", || {
        TcpStream::connect(("127.0.0.1", port)).is_err()
    });
    let ended = session.bad(&open("localhost", port));
    let expected = format!(
        "Nothing listens at localhost:{port} now: background task bash_1 (`python3 serve.py {port} inside`) did"
    );
    assert!(ended.contains(&expected), "{ended}");
    // Once it is there again, so is its page.
    fs::remove_file(session.work().join("port-inside")).unwrap();
    session.serve("serve.py", port, "inside");
    let shown = session.good(&open("localhost", port));
    assert!(shown.contains("- heading \"Of inside\""), "{shown}");
    drop(session.end());
}

#[test]
fn a_server_of_another_session_is_not_reached() {
    let Some(mut first) = start(&json!({"allow": ["Bash(python3 *)"]})) else {
        return;
    };
    let machine = PageServer::start([("/", "<h1>Of the machine</h1>")]);
    let port = first.serve("serve.py", machine.port(), "inside");
    let rules = json!({"allow": ["WebFetch(domain:localhost)"]});
    let Some(mut second) = start(&rules) else {
        return;
    };
    let shown = second.good(&open("localhost", port));
    assert!(shown.contains("- heading \"Of the machine\""), "{shown}");
    drop(machine);
    until_blocking("the port is free", || {
        TcpStream::connect(("127.0.0.1", port)).is_err()
    });
    let nothing = second.bad(&open("localhost", port));
    let expected = format!("Nothing listens at localhost:{port}. Is the dev server running?");
    assert!(nothing.contains(&expected), "{nothing}");
    drop(second.end());
    assert_eq!(first.asked("inside"), "");
    drop(first.end());
}

#[test]
fn rules_hold_in_the_network_of_a_command_too() {
    let rules = json!({
        "allow": ["Bash(python3 *)"],
        "deny": ["Browser(domain:localhost)", "WebFetch(domain:127.0.0.1)"],
    });
    let Some(mut session) = start(&rules) else {
        return;
    };
    let port = session.serve("serve.py", 0, "inside");
    for host in ["localhost", "127.0.0.1", "app.localhost"] {
        let (failed, said) = session.call(&open(host, port));
        assert!(failed, "{host}: {said}");
    }
    assert_eq!(session.asked("inside"), "");
    drop(session.end());
}

#[test]
fn two_servers_at_one_port_in_two_networks_are_both_named() {
    let Some(mut session) = start(&json!({"allow": ["Bash(python3 *)"]})) else {
        return;
    };
    let port = session.serve("outside.py", 0, "outside");
    let shown = session.good(&open("localhost", port));
    assert!(shown.contains("- heading \"Of outside\""), "{shown}");
    session.serve("serve.py", port, "inside");
    let both = session.bad(&open("localhost", port));
    for words in [
        &format!(
            "Port {port} is served by background task bash_1 (`python3 outside.py 0 outside`)"
        ),
        &format!(" and background task bash_2 (`python3 serve.py {port} inside`)"),
        "TaskStop",
    ] {
        assert!(both.contains(words), "{words}: {both}");
    }
    assert_eq!(session.asked("inside"), "");
    session.stop("bash_1");
    let shown = session.good(&open("localhost", port));
    assert!(shown.contains("- heading \"Of inside\""), "{shown}");
    drop(session.end());
}

#[test]
fn a_server_that_says_nothing_is_named() {
    let Some(mut session) = start(&json!({"allow": ["Bash(python3 *)"]})) else {
        return;
    };
    let port = session.serve("serve.py", 0, "deaf");
    let deaf = session.bad(&open("localhost", port));
    let expected = format!("localhost:{port} does not answer (net::ERR_");
    assert!(deaf.contains(&expected), "{deaf}");
    let by = "though background task bash_1 (`python3 serve.py 0 deaf`) listens there";
    assert!(deaf.contains(by), "{deaf}");
    drop(session.end());
}

/// At one port of a command's network stands the proxy by which the command goes out. A command that listens at the
/// same port of another address does not open that to pages.
#[test]
fn the_way_out_of_a_command_is_no_server_of_it() {
    haft_testkit::bound_this_process();
    if std::net::TcpListener::bind(("::1", 0)).is_err() {
        return haft_testkit::skip("a server at ::1: there is no such address");
    }
    let Some(mut session) = start(&json!({"allow": ["Bash(python3 *)"]})) else {
        return;
    };
    let port = session.serve("serve.py", haft_sandbox::PROXY_PORT, "newer");
    for host in ["localhost", "[::1]"] {
        let shown = session.good(&open(host, port));
        assert!(shown.contains("- heading \"Of newer\""), "{host}: {shown}");
    }
    let refused = session.bad(&open("127.0.0.1", port));
    assert!(!refused.contains("sandbox refused"), "{refused}");
    drop(session.end());
}

#[test]
fn a_server_of_an_interpreter_is_seen() {
    let code = "import threading, http.server\n\
        class Handler(http.server.BaseHTTPRequestHandler):\n\
        \x20   def do_GET(self): self.send_response(200); self.send_header('Content-Type', 'text/html'); self.end_headers(); self.wfile.write(b'<h1>Of REPL</h1>')\n\
        \x20   def log_message(self, *a): pass\n\
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)\n\
        threading.Thread(target=server.serve_forever, daemon=True).start()\n\
        'PORT ' + str(server.server_address[1]) + ' END'";
    let Some(mut session) = start(&json!({"allow": ["REPL(python)"]})) else {
        return;
    };
    let input = json!({"language": "python", "code": code});
    let (failed, said) = session.tool("REPL", &input);
    assert!(!failed, "{said}");
    let port = said
        .split("PORT ")
        .nth(1)
        .and_then(|rest| rest.split(" END").next());
    let port: u16 = port.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    let shown = session.good(&open("localhost", port));
    assert!(shown.contains("- heading \"Of REPL\""), "{shown}");
    drop(session.end());
}
