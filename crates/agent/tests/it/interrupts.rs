//! Stopping at any instant.

use haft_agent::{EndReason, ResultSubtype};
use haft_models::StopReason;
use serde_json::json;

use crate::rig::{Due, Rig, Steered, Step, assert_valid, call, scripted, shown, stop, text_reply};

#[tokio::test]
async fn while_the_model_talks() {
    let rig = Rig::new();
    let mut reply = text_reply(0, "first");
    reply.insert(3, Step::Until("never"));
    let model = Steered::new(&rig.stage, [reply, text_reply(0, "here I am")]);
    let mut agent = rig.agent(model).await;
    // Steps: one for what is heard (began), one for each step of the stream and what is heard of it.
    rig.stage.at(8, Due::Interrupt(agent.control()));
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(ended.subtype, ResultSubtype::DuringExecution);
    assert_eq!(ended.reason, EndReason::AbortedStreaming);
    assert!(ended.is_error());
    assert_valid(agent.conversation());
    let ended = agent.run("still there?", &rig.ear).await;
    assert_eq!(ended.text, "here I am");
    assert_eq!(
        shown(agent.conversation().messages()),
        [
            "user: go",
            "model: first",
            "user: [Request interrupted by user]",
            "user: still there?",
            "model: here I am",
        ]
    );
}

#[tokio::test]
async fn while_a_tool_runs_and_another_waits() {
    let rig = Rig::new();
    let script = json!({"turns": [
        {"content": [
            {"type": "tool_use", "id": "a", "name": "Echo", "input": {"text": "hi"}},
            {"type": "tool_use", "id": "b", "name": "Hang", "input": {"polite": true}},
            {"type": "tool_use", "id": "c", "name": "Work", "input": {"key": "c"}},
        ]},
        {"content": [{"type": "text", "text": "done"}]},
    ]});
    let mut agent = rig.agent(scripted(&script)).await;
    let control = agent.control();
    let is_running = || {
        let lines = rig.lines();
        lines
            .iter()
            .any(|line| line.contains("haft-started") && line.contains("Hang"))
    };
    let (ended, ()) = tokio::join!(agent.run("go", &rig.ear), async {
        while !is_running() {
            tokio::task::yield_now().await;
        }
        control.interrupt();
    });
    assert_eq!(ended.reason, EndReason::AbortedTools);
    assert_valid(agent.conversation());
    assert_eq!(
        shown(agent.conversation().messages())[4..],
        [
            "user: result a: hi",
            "user: result b error: [Request interrupted by user for tool use]",
            "user: result c error: [Request interrupted by user for tool use]",
            "user: [Request interrupted by user for tool use]",
        ]
    );
    assert!(rig.stage.runs().is_empty());
    assert!(!control.interrupt());
    assert_eq!(agent.run("go on", &rig.ear).await.text, "done");
}

#[tokio::test]
async fn a_run_that_is_dropped_is_caught_up_with() {
    let rig = Rig::new();
    let mut reply = call(0, "a", &json!({"key": "a", "raises": "a is over"}));
    reply.extend(call(1, "b", &json!({"key": "b", "until": "never"})));
    reply.push(stop(StopReason::ToolUse));
    let model = Steered::new(&rig.stage, [reply, text_reply(0, "done")]);
    let mut agent = rig.agent(model).await;
    tokio::select! {
        _ = agent.run("go", &rig.ear) => panic!("b never ends"),
        () = async {
            while !rig.lines().iter().any(|line| line.contains("a done")) {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    assert_eq!(agent.run("again", &rig.ear).await.text, "done");
    assert_valid(agent.conversation());
    assert_eq!(
        shown(agent.conversation().messages()),
        [
            "user: go",
            "model: Work a",
            "model: Work b",
            "user: result a: a done",
            "user: result b error: [Request interrupted by user for tool use]",
            "user: again",
            "model: done",
        ]
    );
    assert_eq!(rig.stage.runs().into_values().collect::<Vec<_>>(), [1, 1]);
}
