//! Prompts that are said later, in an editor.

use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::editor::{Editor, call, project, script, text};
use crate::{
    binary::{Conversation, haft},
    test_clock::TestClock,
};

fn hourly() -> Value {
    call(
        "CronCreate",
        json!({"cron": "7 * * * *", "prompt": "look at the build"}),
    )
}

/// An editor without a session, whose agent goes by this clock.
fn editor(dir: &TempDir, clock: &TestClock, turns: &[Value]) -> Editor {
    let script = script(dir.path(), turns);
    let mut command: Command = haft(dir.path());
    command
        .env("TZ", "UTC0")
        .env("HAFT_TEST_CLOCK", clock.file())
        .args(["acp", "--script", &script]);
    let mut editor = Editor {
        talk: Conversation::start(&mut command),
        next: 0,
        seen: Vec::new(),
        answers: vec!["allow"],
        session: String::new(),
        files: None,
    };
    editor.ask("initialize", json!({"protocolVersion": 1}));
    editor
}

/// Waits until the model has said this.
fn says(editor: &mut Editor, words: &str) {
    editor.until(words, |message| {
        let update = &message["params"]["update"];
        update["sessionUpdate"] == "agent_message_chunk" && update["content"]["text"] == words
    });
}

#[test]
fn a_schedule_fires_between_turns_and_the_editor_sees_what_is_said_and_answered() {
    let (dir, clock) = (project(), TestClock::new());
    let turns = [
        hourly(),
        text("Made."),
        text("All green."),
        text("Typed."),
        text("Still green."),
    ];
    let mut agent = editor(&dir, &clock, &turns);
    agent.opens(dir.path());
    let done = agent.prompt("watch it");
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    agent.seen.clear();
    clock.set_minutes(2 * 60);
    says(&mut agent, "All green.");
    let said = agent.said("user_message_chunk");
    assert!(
        said.contains("every hour at minute 7") && said.ends_with("look at the build"),
        "{said}"
    );
    // It is no prompt of the editor: none is answered, and the next one gets its own answer.
    let done = agent.prompt("well?");
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(agent.said("agent_message_chunk"), "Typed.");
    clock.set_minutes(3 * 60);
    says(&mut agent, "Still green.");
    assert_eq!(agent.talk.end(), 0);
}

#[test]
fn a_session_that_is_loaded_says_what_it_had_scheduled_without_another_word() {
    let (dir, clock) = (project(), TestClock::new());
    let mut first = editor(&dir, &clock, &[hourly(), text("Made.")]);
    first.opens(dir.path());
    first.prompt("watch it");
    let id = first.session.clone();
    assert_eq!(first.talk.end(), 0);
    let mut second = editor(&dir, &clock, &[text("All green.")]);
    let load = json!({"sessionId": id, "cwd": dir.path(), "mcpServers": []});
    let loaded = second.ask("session/load", load);
    assert!(loaded["error"].is_null(), "{loaded}");
    clock.set_minutes(2 * 60);
    says(&mut second, "All green.");
    assert_eq!(second.talk.end(), 0);
}
