//! Calls run while the model still talks.

use haft_agent::ResultSubtype;
use haft_models::StopReason;
use serde_json::json;

use crate::rig::{Rig, Steered, Step, assert_valid, call, shown, stop, text_reply};

#[tokio::test]
async fn a_call_is_over_before_the_reply_is() {
    let rig = Rig::new();
    let mut reply = call(0, "a", &json!({"key": "a", "raises": "a is over"}));
    // Without overlap, no one would ever raise the flag.
    reply.push(Step::Until("a is over"));
    reply.extend(call(1, "b", &json!({"key": "b"})));
    reply.push(stop(StopReason::ToolUse));
    let model = Steered::new(&rig.stage, [reply, text_reply(0, "done")]);
    let mut agent = rig.agent(model).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(
        (ended.subtype, ended.text.as_str()),
        (ResultSubtype::Success, "done")
    );
    assert_eq!(ended.num_turns, 2);
    assert_valid(agent.conversation());
    assert_eq!(
        rig.ear.lines(),
        [
            "began m bypassPermissions",
            "called a",
            "called b",
            "answered a: a done",
            "answered b: b done",
            "said done",
        ]
    );
}

#[tokio::test]
async fn results_keep_the_order_of_the_calls_whatever_ends_first() {
    let rig = Rig::new();
    let mut reply = call(0, "slow", &json!({"key": "slow", "until": "quick is over"}));
    reply.extend(call(
        1,
        "quick",
        &json!({"key": "quick", "raises": "quick is over"}),
    ));
    reply.push(stop(StopReason::ToolUse));
    let model = Steered::new(&rig.stage, [reply, text_reply(0, "done")]);
    let mut agent = rig.agent(model).await;
    agent.run("go", &rig.ear).await;
    assert_eq!(
        shown(agent.conversation().messages()),
        [
            "user: go",
            "model: Work slow",
            "model: Work quick",
            "user: result slow: slow done",
            "user: result quick: quick done",
            "model: done",
        ]
    );
    // In the transcript each stands as soon as it is known.
    let lines = rig.lines();
    let at = |what: &str| lines.iter().position(|line| line.contains(what)).unwrap();
    assert!(at("quick done") < at("slow done"));
}

#[tokio::test]
async fn blocks_that_end_out_of_order_are_answered_in_order() {
    let rig = Rig::new();
    let first = call(0, "first", &json!({"key": "first"}));
    let second = call(1, "second", &json!({"key": "second"}));
    let mut reply = vec![
        first[0].clone(),
        second[0].clone(),
        second[1].clone(),
        second[2].clone(),
    ];
    reply.extend([
        first[1].clone(),
        first[2].clone(),
        stop(StopReason::ToolUse),
    ]);
    let model = Steered::new(&rig.stage, [reply, text_reply(0, "done")]);
    let mut agent = rig.agent(model).await;
    agent.run("go", &rig.ear).await;
    assert_valid(agent.conversation());
    let shown = shown(agent.conversation().messages());
    assert_eq!(
        shown[3..5],
        [
            "user: result first: first done",
            "user: result second: second done"
        ]
    );
}
