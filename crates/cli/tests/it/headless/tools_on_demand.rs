//! Tools that are sent by name only: the model looks for them, and then calls them.

use std::{fs, path::Path, process::Command};

use haft_testkit::{
    anthropic::{text_reply, tool_reply},
    http::HttpFake,
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::answer;
use crate::binary::haft;

fn asking(server: &HttpFake, cwd: &Path) -> Command {
    let mut command = haft(cwd);
    command
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "key")
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .args(["--model", "m-1", "--permission-mode", "acceptEdits", "-p"]);
    command
}

/// The tools of a request as one text, without where the cache is to end.
fn tools(body: &Value) -> String {
    let tools = body["tools"].as_array().unwrap().iter();
    let tools: Vec<String> = tools
        .map(|tool| {
            let mut tool = tool.clone();
            tool.as_object_mut().unwrap().remove("cache_control");
            tool.to_string()
        })
        .collect();
    tools.join(",")
}

fn names(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn a_model_searches_and_then_calls_and_what_was_sent_stays_a_prefix() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "old\n").unwrap();
    let edit = json!({"file_path": "a.txt", "old_string": "old", "new_string": "new"});
    let server = HttpFake::start_strict(vec![
        tool_reply("Read", json!({"file_path": "a.txt"})),
        tool_reply("Edit", edit),
        tool_reply("ToolSearch", json!({"query": "select:Undo"})),
        tool_reply("Undo", json!({})),
        text_reply("undone"),
    ]);
    let ran = answer(asking(&server, dir.path()).arg("change it, and undo that"));
    assert_eq!(
        (ran.code, ran.stdout.trim()),
        (0, "undone"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        fs::read_to_string(dir.path().join("a.txt")).unwrap(),
        "old\n"
    );
    let asked = server.bodies();
    assert!(!names(&asked[2]).contains(&"Undo"));
    assert_eq!(names(&asked[3]).last(), Some(&"Undo"));
    for pair in asked.windows(2) {
        let (before, after) = (tools(&pair[0]), tools(&pair[1]));
        assert!(after.starts_with(&before), "{after}");
    }
    // The next run of the same conversation sends the same bytes, and one more at the end.
    let server = HttpFake::start_strict(vec![
        tool_reply("ToolSearch", json!({"query": "select:Config,NotebookEdit"})),
        text_reply("loaded"),
    ]);
    let mut command = asking(&server, dir.path());
    let ran = answer(command.args(["go on", "--continue"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let resumed = server.bodies();
    assert_eq!(tools(&resumed[0]), tools(asked.last().unwrap()));
    assert!(names(&resumed[1]).ends_with(&["Undo", "Config", "NotebookEdit"]));
    let server = HttpFake::start_strict(vec![text_reply("still there")]);
    let mut command = asking(&server, dir.path());
    let ran = answer(command.args(["and now", "--continue"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(tools(&server.bodies()[0]), tools(&resumed[1]));
}

/// A server is ours too: `haft mcp serve`.
#[test]
fn tools_of_servers_are_told_by_name_found_and_called() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "forty-two\n").unwrap();
    let servers = json!({"mcpServers": {"files": {
        "command": env!("CARGO_BIN_EXE_haft"),
        "args": ["mcp", "serve", "--tools", "Read,Grep"],
    }}});
    let server = HttpFake::start_strict(vec![
        tool_reply("ToolSearch", json!({"query": "+mcp__files read"})),
        tool_reply("mcp__files__Read", json!({"file_path": "a.txt"})),
        text_reply("It says 42."),
    ]);
    let mut command = asking(&server, dir.path());
    command.args(["what is in a.txt?", "--allowed-tools", "mcp__files"]);
    let ran = answer(command.args(["--mcp-config", &servers.to_string()]));
    assert_eq!(
        (ran.code, ran.stdout.trim()),
        (0, "It says 42."),
        "{}",
        ran.stderr
    );
    let asked = server.bodies();
    let has = |body: &Value| names(body).contains(&"mcp__files__Read");
    assert!(!has(&asked[0]) && has(&asked[1]), "{:?}", names(&asked[1]));
    let first = asked[0]["messages"].to_string();
    assert!(
        first.contains("- files: mcp__files__Grep, mcp__files__Read"),
        "{first}"
    );
    let last = asked[2]["messages"].to_string();
    assert!(last.contains("forty-two"), "{last}");
    assert_eq!(last.matches("- files: ").count(), 1, "told once");
}

#[test]
fn the_environment_and_the_budget_decide_what_is_sent() {
    let dir = tempdir().unwrap();
    let sent = |variable: &str, flags: &[&str]| {
        let server = HttpFake::start_strict(vec![text_reply("hi")]);
        let mut command = asking(&server, dir.path());
        command.env("ENABLE_TOOL_SEARCH", variable).args(flags);
        let ran = answer(command.arg("hi"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let bodies = server.bodies();
        let names = names(&bodies[0]);
        let has = |name: &str| names.contains(&name);
        (has("Undo"), has("ToolSearch"), has("TaskCreate"))
    };
    assert_eq!(sent("true", &[]), (false, true, true));
    assert_eq!(sent("false", &[]), (true, false, true));
    assert_eq!(sent("auto", &[]), (true, false, true));
    assert_eq!(sent("auto:0", &[]), (false, true, true));
    assert_eq!(
        sent("true", &["--tool-budget", "500"]),
        (false, true, false)
    );
    let mut command = haft(dir.path());
    let ran = answer(command.env("ENABLE_TOOL_SEARCH", "maybe").arg("tools"));
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("ENABLE_TOOL_SEARCH=maybe"),
        "{}",
        ran.stderr
    );
}
