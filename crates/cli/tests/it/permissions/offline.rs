//! `sandbox.offlineCommands`, as the binary offers it, saves it and acts on it (vector F12).

use std::{
    env, fs, io, net::TcpListener, os::unix::fs::PermissionsExt, path::Path, process::Command,
};

use serde_json::{Value, json};

use super::{PROJECT, Place, USER, content};
use crate::{
    binary::{Conversation, Ran, run},
    headless::{call, lines, scripted, text},
};

/// A stand-in for the Go tool. It writes a file, tries to reach a listener of the machine directly, and
/// a host through the proxy.
const GO: &str = "#!/bin/bash\necho \"$1\" >> built\n\
    if [ \"$2\" = connect ]; then\n\
    (exec 3<>/dev/tcp/127.0.0.1/$3) 2>/dev/null && echo REACHED\n\
    exec 4<>/dev/tcp/127.0.0.1/${HTTPS_PROXY##*:}\n\
    printf 'CONNECT new.example:443 HTTP/1.1\\r\\nHost: new.example\\r\\n\\r\\n' >&4\n\
    head -n 1 <&4\nexit 1\nfi\n";

/// A project with a program `go` outside of it. `None` where commands cannot be confined completely.
fn place(files: &[(&str, &str)]) -> Option<Place> {
    haft_testkit::bound_this_process();
    let place = Place::new(files);
    let program = Path::new(env!("CARGO_BIN_EXE_haft"));
    if haft_sandbox::strongest(program, place.dir.path()) >= haft_sandbox::Mechanism::Reduced {
        haft_testkit::skip("commands without network: namespaces are not available");
        return None;
    }
    place.write("bin/go", GO);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path("bin/go"), executable).unwrap();
    Some(place)
}

fn with_path(place: &Place, mut command: Command) -> Command {
    let path = env::var("PATH").unwrap_or_default();
    let bin = place.path("bin");
    command.env("PATH", format!("{}:{path}", bin.display()));
    command
}

fn bash(id: u32, command: &str) -> Value {
    json!({"id": id, "name": "Bash", "input": {"command": command}})
}

fn is_unreached(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener
        .accept()
        .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[test]
fn f12_after_one_answer_similar_commands_run_without_network() {
    let Some(place) = place(&[]) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut command = with_path(&place, place.haft());
    let mut talk = Conversation::start(command.args(["exec", "--interactive-json"]));
    talk.say(&bash(1, "go test ./..."));
    let asked = talk.hear();
    assert_eq!(asked["type"], "permission_request", "{asked}");
    let offer = &asked["offers"][0];
    assert_eq!(offer["rules"][0], "OfflineCommand(go test *)", "{asked}");
    assert_eq!(asked["offers"][1]["rules"], json!(["Bash(go test *)"]));
    talk.say(&json!({
        "type": "permission_response",
        "request_id": asked["request_id"],
        "behavior": "allow",
        "rules": offer["rules"],
    }));
    let answer = talk.hear();
    assert_eq!(answer["is_error"], json!(false), "{answer}");
    // A command of the bundle runs unasked, its changes can be undone, and it reaches nothing.
    talk.say(&bash(3, "go build ./..."));
    let answer = talk.hear();
    assert_eq!(answer["id"], 3, "{answer}");
    assert_eq!(answer["structured"]["undo"], "exact", "{answer}");
    assert_eq!(place.read("work/built"), "test\nbuild\n");
    talk.say(&bash(4, &format!("go test connect {port}")));
    let answer = talk.hear();
    let said = content(&answer);
    assert!(
        !said.contains("REACHED") && is_unreached(&listener),
        "{said}"
    );
    assert!(said.contains("403"), "{said}");
    assert!(said.contains("new.example"), "{said}");
    assert!(said.contains("The rule `Bash(go test *)`"), "{said}");
    // Another command of the program asks.
    talk.say(&bash(5, "go get x"));
    assert_eq!(talk.hear()["type"], "permission_request");
}

/// Runs a scripted model headless.
fn headless(place: &Place, turns: &Value) -> Ran {
    let mut command = with_path(place, scripted(&place.path("work"), turns));
    command
        .env("HOME", place.path("home"))
        .env("CLAUDE_CONFIG_DIR", place.path("config"))
        .args(["-p", "go", "--output-format", "stream-json", "--verbose"]);
    run(&mut command, b"")
}

fn outcome(ran: &Ran) -> String {
    let messages = lines(ran);
    let mut users = messages.iter().filter(|message| message["type"] == "user");
    let result = users
        .next()
        .map(|message| &message["message"]["content"][0]);
    let text = result.and_then(|result| result["content"].as_str());
    text.unwrap_or_default().to_owned()
}

#[test]
fn entries_apply_from_user_settings_and_from_project_settings_only_after_trust() {
    let entries = r#"{"sandbox": {"offlineCommands": ["Bash(go test *)"]}}"#;
    let turns = json!([
        [call(
            "Bash",
            json!({"command": "cd . && go test connect 2>&1 | tail -5"})
        )],
        [text("done")],
    ]);
    for (file, trusts, runs) in [
        (USER, false, true),
        (PROJECT, false, false),
        (PROJECT, true, true),
    ] {
        let Some(place) = place(&[(file, entries)]) else {
            return;
        };
        if trusts {
            assert_eq!(place.run(&["permissions", "trust", "--yes"]).code, 0);
        }
        let ran = headless(&place, &turns);
        let said = outcome(&ran);
        assert_eq!(
            said.contains("new.example"),
            runs,
            "{file} {trusts}: {said}"
        );
        assert_eq!(said.contains("Permission to use Bash"), !runs, "{said}");
        assert_eq!(
            ran.stderr.contains("sandbox.offlineCommands"),
            !runs,
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn explain_shows_the_choice_and_what_an_entry_does() {
    let entries = r#"{"sandbox": {"offlineCommands": ["go test *"]}}"#;
    let Some(place) = place(&[(USER, entries)]) else {
        return;
    };
    let explained = |line: &str| -> Value {
        let said = place.run(&["permissions", "explain", "--json", "--bash", line]);
        serde_json::from_str(&said.stdout).unwrap()
    };
    let asks = explained("go vet ./...");
    assert_eq!(asks["decision"], "ask");
    assert_eq!(asks["offers"][0]["kind"], "offline", "{asks}");
    assert_eq!(asks["rules_that_would_allow"][0], "Bash(go vet *)");
    let runs = explained("go test ./...");
    assert_eq!(runs["decision"], "allow", "{runs}");
    assert_eq!(runs["confinement"]["network"], "none", "{runs}");
    assert_eq!(runs["confinement"]["profile"], "workspace", "{runs}");
}

/// A project of one toolchain whose test connects to this port of the machine.
struct ToolchainProject {
    program: &'static str,
    entry: &'static str,
    command: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// The text of a test that was run.
    ran: &'static str,
}

const PROJECTS: [ToolchainProject; 5] = [
    ToolchainProject {
        program: "cargo",
        entry: "cargo test *",
        command: "cargo test",
        files: &[
            (
                "work/Cargo.toml",
                "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "work/src/lib.rs",
                "#[test]\nfn connects() {\n    println!(\"TRIED\");\n    \
                 std::net::TcpStream::connect((\"127.0.0.1\", PORT)).unwrap();\n}\n",
            ),
        ],
        ran: "TRIED",
    },
    ToolchainProject {
        program: "npm",
        entry: "npm test *",
        command: "npm test",
        files: &[
            ("work/package.json", r#"{"scripts": {"test": "node t.js"}}"#),
            (
                "work/t.js",
                "console.log('TRIED'); require('net').connect(PORT, '127.0.0.1')\n",
            ),
        ],
        ran: "TRIED",
    },
    ToolchainProject {
        program: "pytest",
        entry: "pytest *",
        command: "pytest -s",
        files: &[(
            "work/test_x.py",
            "import socket\ndef test_x():\n    print('TRIED')\n    \
             socket.create_connection(('127.0.0.1', PORT))\n",
        )],
        ran: "TRIED",
    },
    ToolchainProject {
        program: "make",
        entry: "make test *",
        command: "make test",
        files: &[(
            "work/Makefile",
            "test:\n\t@echo TRIED; bash -c 'exec 3<>/dev/tcp/127.0.0.1/PORT'\n",
        )],
        ran: "TRIED",
    },
    ToolchainProject {
        program: "go",
        entry: "go test *",
        command: "go test ./...",
        files: &[
            ("work/go.mod", "module x\n\ngo 1.20\n"),
            (
                "work/x_test.go",
                "package x\nimport (\"net\"; \"testing\")\nfunc TestX(t *testing.T) {\n\
                 t.Log(\"TRIED\")\nif _, err := net.Dial(\"tcp\", \"127.0.0.1:PORT\"); err != nil { \
                 t.Fatal(err) }\n}\n",
            ),
        ],
        ran: "TRIED",
    },
];

/// The directory of a program. Cargo starts tests with the real one, not with a proxy that needs the
/// user's home.
fn directory_of(program: &str) -> Option<std::path::PathBuf> {
    if program == "cargo" {
        let cargo = env::var_os("CARGO").map(std::path::PathBuf::from)?;
        return Some(cargo.parent()?.to_path_buf());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).find(|directory| directory.join(program).is_file())
}

#[test]
fn a_test_of_any_toolchain_that_connects_fails() {
    for project in PROJECTS {
        // Only the installed toolchains; the one that builds haft always is.
        let Some(directory) = directory_of(project.program) else {
            assert_ne!(project.program, "cargo");
            continue;
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let entries = json!({"sandbox": {"offlineCommands": [project.entry]}});
        let Some(place) = place(&[(USER, &entries.to_string())]) else {
            return;
        };
        fs::remove_file(place.path("bin/go")).unwrap();
        for (file, content) in project.files {
            place.write(file, &content.replace("PORT", &port));
        }
        let turns = json!([
            [call("Bash", json!({"command": project.command}))],
            [text("done")]
        ]);
        let mut command = scripted(&place.path("work"), &turns);
        let path = env::var("PATH").unwrap_or_default();
        command
            .env("HOME", place.path("home"))
            .env("CLAUDE_CONFIG_DIR", place.path("config"))
            .env("PATH", format!("{}:{path}", directory.display()))
            .args(["-p", "go", "--output-format", "stream-json", "--verbose"]);
        let said = outcome(&run(&mut command, b""));
        assert!(said.contains(project.ran), "{}: {said}", project.program);
        assert!(is_unreached(&listener), "{}: {said}", project.program);
    }
}
