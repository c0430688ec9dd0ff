//! `displayContent` of MessageDisplay: what people see in place of the model's words.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{answer, call, lines, scripted, text};

/// A hook that notes what it was told and then says this.
fn hook(says: &str) -> String {
    let command = format!("cat >> seen.jsonl; echo >> seen.jsonl; printf '%s' '{says}'");
    json!({"hooks": {"MessageDisplay": [{"hooks": [{"type": "command", "command": command}]}]}})
        .to_string()
}

fn shows(content: &str) -> String {
    json!({"hookSpecificOutput": {"hookEventName": "MessageDisplay", "displayContent": content}})
        .to_string()
}

fn seen(dir: &Path) -> Vec<Value> {
    let seen = fs::read_to_string(dir.join("seen.jsonl")).unwrap_or_default();
    let lines = seen.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Every file below.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}

#[test]
fn people_see_what_a_hook_says_and_the_conversation_keeps_the_models_words() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "alpha\n").unwrap();
    let turns = json!([
        [
            text("first secret"),
            call("Read", json!({"file_path": "a.txt"}))
        ],
        [text("second secret")],
    ]);
    let settings = hook(&shows("[hidden]"));
    let ran = answer(scripted(dir.path(), &turns).args(["-p", "go", "--settings", &settings]));
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "[hidden]\n"),
        "{}",
        ran.stderr
    );
    let told = seen(dir.path());
    let deltas: Vec<&Value> = told.iter().map(|one| &one["delta"]).collect();
    assert_eq!(deltas, ["first secret", "second secret"]);
    for one in &told {
        assert_eq!(
            (&one["index"], &one["final"]),
            (&json!(0), &json!(true)),
            "{one}"
        );
    }

    let mut command = scripted(dir.path(), &turns);
    command.args(["-p", "go", "--settings", &settings]).args([
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
    ]);
    let ran = answer(&mut command);
    assert!(!ran.stdout.contains("secret"), "{}", ran.stdout);
    let messages = lines(&ran);
    let shown: Vec<&str> = messages
        .iter()
        .filter(|one| one["type"] == "assistant")
        .filter_map(|one| one["message"]["content"][0]["text"].as_str())
        .collect();
    assert_eq!(shown, ["[hidden]", "[hidden]"]);
    assert_eq!(messages.last().unwrap()["result"], "[hidden]");
    // The model goes on with what it said.
    let transcripts = files(&dir.path().join(".claude/projects"));
    let kept = transcripts
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .map(|path| fs::read_to_string(path).unwrap());
    let kept: String = kept.collect();
    assert!(kept.contains("first secret") && kept.contains("second secret"));
    let said = kept.lines().filter(|line| !line.contains("haft-hook"));
    assert!(
        !said.clone().any(|line| line.contains("[hidden]")),
        "{kept}"
    );
    assert!(said.count() > 0);
}

#[test]
fn a_hook_that_says_nothing_of_use_changes_nothing() {
    let wrong = json!({"hookSpecificOutput": {"hookEventName": "Stop", "displayContent": "x"}});
    for says in ["", "plain words", &wrong.to_string()] {
        let dir = tempdir().unwrap();
        let turns = json!([[text("as it is")]]);
        let ran =
            answer(scripted(dir.path(), &turns).args(["-p", "go", "--settings", &hook(says)]));
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "as it is\n"), "{says}");
        assert_eq!(seen(dir.path()).len(), 1, "{says}");
    }
    // Nothing can be shown, too.
    let dir = tempdir().unwrap();
    let settings = hook(&shows(""));
    let turns = json!([[text("as it is")]]);
    let ran = answer(scripted(dir.path(), &turns).args(["-p", "go", "--settings", &settings]));
    assert!(!ran.stdout.contains("as it is"), "{}", ran.stdout);
}
