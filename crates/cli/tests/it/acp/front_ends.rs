//! One session, opened by different front ends.

use serde_json::json;

use super::editor::{Editor, edit, project, read, script, text};
use crate::binary::haft;

#[test]
fn begun_at_the_command_line_gone_on_with_in_an_editor_and_shown() {
    let dir = project();
    let first = script(dir.path(), &[read(), text("It has three lines.")]);
    let ran = haft(dir.path())
        .args([
            "-p",
            "how long is it?",
            "--output-format",
            "json",
            "--script",
            &first,
        ])
        .output()
        .unwrap();
    let result: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let session = result["session_id"].as_str().unwrap().to_owned();

    let second = script(dir.path(), &[edit("a", "two", "2"), text("Changed.")]);
    let mut editor = Editor::begun(dir.path(), &["--script", &second]);
    let place = json!({"sessionId": session, "cwd": dir.path(), "mcpServers": []});
    editor.ask("session/load", place);
    assert_eq!(editor.said("user_message_chunk"), "how long is it?");
    editor.session = session.clone();
    let answer = editor.prompt("change it");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(editor.talk.end(), 0);

    let third = script(dir.path(), &[text("Gone on.")]);
    let ran = haft(dir.path())
        .args(["-p", "go on", "--resume", &session, "--script", &third])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");

    let shown = haft(dir.path())
        .args(["sessions", "show", &session])
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    for words in [
        "how long is it?",
        "It has three lines.",
        "change it",
        "Changed.",
        "go on",
        "Gone on.",
    ] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
}
