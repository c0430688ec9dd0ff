//! MCP servers that kinds of subagents name.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    answer, call, lines,
    mcp_programs::{entry, until},
    subagents::{aside, result_of, scripted, streamed, turn},
    text,
};
use crate::binary::haft;

/// A subagent of the kind `worker` that makes these calls.
fn errand(cwd: &Path, calls: &Value) -> std::process::Command {
    let launch = json!({"description": "Works", "prompt": "the errand", "subagent_type": "worker"});
    let mut launch = call("Agent", launch);
    launch["id"] = json!("launch");
    let main = [turn(json!([launch])), turn(json!([text("done")]))];
    let own = [
        turn(calls.clone()),
        turn(json!([text("the errand is done")])),
    ];
    let mut command = scripted(cwd, &main, &[aside("the errand", &own)]);
    command.args(["--allowedTools", "mcp__own,mcp__shared,Agent"]);
    command
}

/// What the calls of the subagent came to.
fn results(told: &[Value]) -> Vec<String> {
    let inner = told
        .iter()
        .filter(|one| one["type"] == "user" && !one["parent_tool_use_id"].is_null());
    let blocks = inner.flat_map(|one| {
        one["message"]["content"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    });
    let texts = blocks.filter(|block| block["type"] == "tool_result");
    texts
        .map(|block| block["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

fn echo(server: &str) -> Value {
    call(
        &format!("mcp__{server}__echo"),
        json!({"text": format!("from {server}")}),
    )
}

fn pid(server: &str) -> Value {
    call(&format!("mcp__{server}__pid"), json!({}))
}

#[test]
fn a_subagent_has_the_servers_it_names_and_its_own_end_with_it() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let shared = json!({"mcpServers": {"shared": entry(&[])}}).to_string();
    let worker = json!({"worker": {
        "description": "Works",
        "prompt": "Work.",
        // Servers that are named are had beside the tools that are listed.
        "tools": ["Read"],
        "mcpServers": ["shared", {"own": entry(&["child"])}],
    }});
    let calls = json!([echo("own"), echo("shared"), pid("own")]);
    let mut command = errand(dir.path(), &calls);
    command.args(["--mcp-config", &shared, "--agents", &worker.to_string()]);
    let told = streamed(&mut command);
    let init = told.iter().find(|one| one["subtype"] == "init").unwrap();
    // The session has none of its own servers.
    assert_eq!(
        init["mcp_servers"],
        json!([{"name": "shared", "status": "connected"}])
    );
    assert!(!init["tools"].to_string().contains("mcp__own"));
    let texts = results(&told);
    assert_eq!(texts[..2], ["from own", "from shared"], "{texts:?}");
    let pid: u32 = texts[2].parse().unwrap();
    until("the server is gone", || {
        !Path::new(&format!("/proc/{pid}")).exists()
    });
    let report = result_of(&told, "launch")["message"]["content"][0]["content"].to_string();
    assert!(report.contains("the errand is done"), "{report}");
}

#[test]
fn what_a_subagent_cannot_have_is_said_to_it_and_it_works_without() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let worker = json!({"worker": {
        "description": "Works",
        "prompt": "Work.",
        "mcpServers": ["nowhere", {"own": {"command": "no-such-program"}, "denied": entry(&[])}],
    }});
    let settings = json!({"deniedMcpServers": [{"serverName": "denied"}]}).to_string();
    let calls = json!([echo("denied")]);
    let mut command = errand(dir.path(), &calls);
    command.args(["--agents", &worker.to_string(), "--settings", &settings]);
    command.args(["-p", "go", "--output-format", "stream-json"]);
    let ran = answer(&mut command);
    assert!(!results(&lines(&ran))[0].contains("from denied"));
    // The person learns of it, too.
    assert!(ran.stderr.contains("deniedMcpServers"), "{}", ran.stderr);
    let own = super::subagents::transcripts(dir.path());
    let transcript = fs::read_to_string(&own[0]).unwrap();
    for part in [
        "nowhere",
        "no-such-program cannot be started",
        "deniedMcpServers",
    ] {
        assert!(transcript.contains(part), "{part} is not in {transcript}");
    }
}

#[test]
fn servers_of_an_agent_of_the_project_wait_for_trust_and_again_when_they_change() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let (dir, home) = (tempdir().unwrap(), tempdir().unwrap());
    let agents = dir.path().join(".claude/agents");
    fs::create_dir_all(&agents).unwrap();
    let write = |modes: &str| {
        let entry = entry(&[]);
        let file = format!(
            "---\nname: worker\ndescription: Works\nmcpServers:\n  - own:\n      command: python3\n      args: [{}{modes}]\n---\nWork.\n",
            entry["args"][0]
        );
        fs::write(agents.join("worker.md"), file).unwrap();
    };
    let run = || {
        let mut command = errand(dir.path(), &json!([echo("own")]));
        command.env("HOME", home.path());
        results(&streamed(&mut command))[0].clone()
    };
    write("");
    assert!(!run().contains("from own"));
    let trust = || {
        let mut command = haft(dir.path());
        command.env("HOME", home.path());
        answer(command.args(["permissions", "trust", "--yes"]))
    };
    assert_eq!(trust().code, 0);
    assert_eq!(run(), "from own");
    write(", stays");
    assert!(!run().contains("from own"));
    assert_eq!(trust().code, 0);
    assert_eq!(run(), "from own");
}

#[test]
fn the_servers_of_a_main_agent_are_those_of_the_session() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let worker = json!({"worker": {
        "description": "Works",
        "prompt": "Work.",
        "mcpServers": [{"own": entry(&[])}],
    }});
    let turns = [turn(json!([echo("own")])), turn(json!([text("done")]))];
    let mut command = scripted(dir.path(), &turns, &[]);
    command
        .args(["--agents", &worker.to_string(), "--agent", "worker"])
        .args(["--allowedTools", "mcp__own"]);
    let told = streamed(&mut command);
    let all = Value::from(told).to_string();
    assert!(all.contains("from own"), "{all}");
}
