use std::{env, fs, path::PathBuf, process::Command};

use haft_testkit::TempProject;
use serde_json::json;

/// The example, built beside the tests.
fn program() -> PathBuf {
    let test = env::current_exe().unwrap();
    let built = test.parent().and_then(|deps| deps.parent()).unwrap();
    built.join("examples/agent")
}

#[test]
fn forty_lines_are_an_agent_with_a_tool_of_its_own_and_commands() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/agent.rs");
    let lines = fs::read_to_string(example).unwrap().lines().count();
    assert!(lines <= 40, "{lines} lines");

    let project = TempProject::new([]);
    let call = |name: &str, input| json!({"type": "tool_use", "name": name, "input": input});
    let script = json!({"turns": [
        {"content": [
            {"type": "text", "text": "Let me see."},
            call("Shout", json!({"text": "hello"})),
            call("Bash", json!({"command": "echo made by a command > made.txt"})),
        ]},
        {"content": [{"type": "text", "text": "Done."}]},
    ]});
    project.write("script.json", script.to_string());
    let output = Command::new(program())
        .args(["scripted", "go"])
        .current_dir(project.root())
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap())
        .env("HOME", project.path("home"))
        .env("SCRIPT", project.path("script.json"))
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}{failed}");
    assert!(shown.starts_with("Let me see."), "{shown}");
    assert!(shown.ends_with("Done."), "{shown}");
    assert!(shown.contains("[allowed: "), "{shown}");
    let made = fs::read_to_string(project.path("made.txt")).unwrap();
    assert_eq!(made, "made by a command\n");
}
