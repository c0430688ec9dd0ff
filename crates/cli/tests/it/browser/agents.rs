//! One browser for a session and its subagents, a tab for each.

use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::binary::{haft, run};

#[test]
fn a_subagent_has_a_tab_of_its_own() {
    if super::missing() {
        return;
    }
    let dir = tempdir().unwrap();
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("a.html"), "<h1>Of the main agent</h1>").unwrap();
    fs::write(work.join("b.html"), "<h1>Of the subagent</h1>").unwrap();
    let call =
        |name: &str, input: Value| json!([{"type": "tool_use", "name": name, "input": input}]);
    let browser = |input: Value| call("Browser", input);
    let turn = |content: Value| json!({"content": content, "usage": {"input": 10, "output": 5}});
    let done = json!([{"type": "text", "text": "Done."}]);
    let launch = call(
        "Agent",
        json!({"description": "Looks", "prompt": "LOOK AT IT"}),
    );
    let main = [
        browser(json!({"action": "navigate", "url": "a.html"})),
        launch,
        browser(json!({"action": "snapshot"})),
        browser(json!({"action": "tabs"})),
        done.clone(),
    ];
    let agent = [
        browser(json!({"action": "snapshot"})),
        browser(json!({"action": "navigate", "url": "b.html"})),
        browser(json!({"action": "tabs"})),
        browser(json!({"action": "tabs", "tab": 1})),
        browser(json!({"action": "close", "tab": 1})),
        done,
    ];
    let script = json!({
        "turns": main.map(turn),
        "conversations": [{"when": "LOOK AT IT", "turns": agent.map(turn)}],
    });
    let file = dir.path().join("script.json");
    fs::write(&file, script.to_string()).unwrap();
    let mut command = haft(&work);
    command.env("HOME", dir.path()).env_remove("HAFT_BROWSER");
    command.arg("--script").arg(&file);
    command.args(["-p", "go", "--output-format", "stream-json", "--verbose"]);
    let ran = run(&mut command, b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let results: Vec<(bool, String)> = ran
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["type"] == "user")
        .flat_map(|message| {
            message["message"]["content"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .filter(|block| block["type"] == "tool_result")
        .map(|block| (block["is_error"] == true, block["content"].to_string()))
        .collect();
    let with = |words: &str| {
        results
            .iter()
            .filter(|(_, text)| text.contains(words))
            .count()
    };
    // Its own page, opened by it, and not what the other looks at.
    assert_eq!(with("Of the subagent"), 1, "{results:#?}");
    assert_eq!(with("Of the main agent"), 2, "{results:#?}");
    assert_eq!(with("(another agent's)"), 1, "{results:#?}");
    let refused = results
        .iter()
        .filter(|(failed, text)| *failed && text.contains("Tab 1 is another agent's."));
    assert_eq!(refused.count(), 2, "{results:#?}");
    // When it is over, its tab is gone.
    let last = results
        .iter()
        .rfind(|(_, text)| text.contains("1: http://haft.localhost/a.html"));
    assert!(
        last.is_some_and(|(_, text)| !text.contains("b.html")),
        "{results:#?}"
    );
}
