//! What ends a run, and what the model and the sink are told.

use haft_agent::{Agent, AgentEvent, EndReason, ModelSettings, ResultSubtype, RunLimits};
use haft_contract::{Content, PermissionMode};
use haft_models::{Price, Prices, Retry, RetryPolicy, StopReason};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

use crate::rig::{Rig, Steered, Step, assert_valid, call, scripted, shown, stop, text_reply};

fn limits(change: impl FnOnce(&mut RunLimits)) -> RunLimits {
    let mut limits = RunLimits::default();
    change(&mut limits);
    limits
}

fn echo(text: &str) -> Value {
    json!({"content": [{"type": "tool_use", "name": "Echo", "input": {"text": text}}],
           "usage": {"input": 1000, "output": 100}})
}

fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "usage": {"input": 2000, "output": 10}})
}

#[tokio::test]
async fn a_text_ends_it() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [echo("a"), echo("b"), echo("c"), says("done")]}));
    let mut agent = rig.agent(model.clone()).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(
        (ended.subtype, ended.reason),
        (ResultSubtype::Success, EndReason::Completed)
    );
    assert_eq!((ended.text.as_str(), ended.num_turns), ("done", 4));
    assert_eq!(ended.stop_reason, Some(StopReason::EndTurn));
    assert_eq!((ended.usage.input, ended.usage.output), (5000, 310));
    assert!(!ended.is_error());
    // Every request begins with the same bytes, and says the earlier messages again as they were.
    let requests = model.requests();
    assert!(
        requests
            .windows(2)
            .all(|pair| Arc::ptr_eq(&pair[0].prefix, &pair[1].prefix))
    );
    let first = shown(requests[0].history.messages());
    assert_eq!(shown(requests[3].history.messages())[..first.len()], first);
}

#[tokio::test]
async fn after_the_tools_of_the_last_round_no_more_is_asked() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [echo("a"), echo("b"), says("never")]}));
    let builder = rig.builder(model.clone()).await;
    let mut agent = builder
        .limits(limits(|limits| limits.max_turns = Some(1)))
        .build();
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(
        (ended.subtype, ended.reason),
        (ResultSubtype::MaxTurns, EndReason::MaxTurns)
    );
    assert_eq!(ended.errors, ["Reached maximum number of turns (1)"]);
    assert_eq!(
        (ended.num_turns, ended.stop_reason),
        (2, Some(StopReason::ToolUse))
    );
    assert_eq!(model.requests().len(), 1);
    assert_valid(agent.conversation());
    assert!(
        rig.ear
            .lines()
            .contains(&"answered toolu_0_0: a".to_owned())
    );
}

#[tokio::test]
async fn money_runs_out() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [echo("a"), echo("b"), says("never")]}));
    let price = Price {
        input: 1000.0,
        output: 0.0,
        cache_read: 0.0,
        cache_write: 0.0,
        cache_write_1h: 0.0,
    };
    let builder = rig
        .builder(model)
        .await
        .prices(Prices::default().with("m", price));
    let limits = limits(|limits| limits.max_budget_usd = Some(1.5));
    let mut agent = builder.limits(limits).build();
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(
        (ended.subtype, ended.num_turns),
        (ResultSubtype::MaxBudget, 2)
    );
    assert_eq!(ended.ledger.total_cost(), 2.0);
    assert_eq!(ended.ledger.models().next().unwrap().0, "m");
    assert_valid(agent.conversation());
}

#[tokio::test]
async fn a_call_that_is_not_permitted_is_told_and_listed() {
    let rig = Rig::new();
    let script = json!({"turns": [
        {"content": [{"type": "tool_use", "id": "a", "name": "Work", "input": {"key": "k", "alone": true}}]},
        says("well then"),
    ]});
    let scheduler = rig
        .scheduler(PermissionMode::Default, |builder| builder)
        .await;
    let model = Arc::new(scripted(&script));
    let mut agent = Agent::builder(scheduler, model, ModelSettings::new("m")).build();
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(ended.subtype, ResultSubtype::Success);
    let [denial] = ended.permission_denials.as_slice() else {
        panic!("{:?}", ended.permission_denials)
    };
    assert_eq!(
        (denial.tool_name.as_str(), denial.tool_use_id.as_str()),
        ("Work", "a")
    );
    assert_eq!(denial.tool_input["key"], "k");
    assert!(rig.stage.runs().is_empty());
    assert!(
        rig.ear
            .lines()
            .iter()
            .any(|line| line.starts_with("answered a error denied"))
    );
}

#[tokio::test]
async fn an_input_that_is_no_json_is_answered_and_not_run() {
    let rig = Rig::new();
    let script = json!({"turns": [
        {"content": [{"type": "tool_use", "id": "a", "name": "Work", "input_text": "{\"key\": "}]},
        says("sorry"),
    ]});
    let mut agent = rig.agent(scripted(&script)).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(ended.text, "sorry");
    assert_valid(agent.conversation());
    let shown = shown(agent.conversation().messages());
    assert!(shown[2].contains("The call was not run"), "{shown:?}");
}

#[tokio::test]
async fn the_model_cannot_answer() {
    let rig = Rig::new();
    let script = json!({"turns": [
        {"error": {"kind": "auth", "message": "bad key", "status": 401}},
        says("better now"),
    ]});
    let mut agent = rig.agent(scripted(&script)).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(
        (ended.subtype, ended.reason),
        (ResultSubtype::Success, EndReason::ApiError)
    );
    assert!(
        ended.is_error() && ended.text.starts_with("API Error: "),
        "{}",
        ended.text
    );
    assert_eq!(ended.api_error.unwrap().status, Some(401));
    assert_eq!(ended.num_turns, 0);
    assert_eq!(agent.run("again", &rig.ear).await.text, "better now");
    assert_valid(agent.conversation());
}

#[tokio::test]
async fn a_reply_that_is_asked_for_again_stands_once() {
    let rig = Rig::new();
    let script = json!({"turns": [
        {"content": [{"type": "text", "text": "half"}], "error": {"kind": "server", "message": "gone"}},
        says("whole"),
    ]});
    let policy = RetryPolicy {
        first_delay: Duration::ZERO,
        ..RetryPolicy::default()
    };
    let model = Retry::new(Arc::new(scripted(&script)), policy);
    let mut agent = rig.agent(model).await;
    assert_eq!(agent.run("go", &rig.ear).await.text, "whole");
    assert_eq!(
        shown(agent.conversation().messages()),
        ["user: go", "model: whole"]
    );
    assert!(!rig.lines().iter().any(|line| line.contains("half")));
    let lines = rig.ear.lines();
    assert_eq!(
        lines[1..],
        ["said half", "discard", "retry 1", "said whole"]
    );
}

#[tokio::test]
async fn calls_of_a_reply_that_was_cut_off_have_run_once() {
    let rig = Rig::new();
    let script = json!({"turns": [
        {"content": [{"type": "tool_use", "id": "a", "name": "Work", "input": {"key": "k"}}],
         "error": {"kind": "server", "message": "gone"}},
        says("done"),
    ]});
    let model = Retry::new(Arc::new(scripted(&script)), RetryPolicy::default());
    let mut agent = rig.agent(model).await;
    assert_eq!(agent.run("go", &rig.ear).await.text, "done");
    assert_eq!(rig.stage.runs()["k"], 1);
    assert_valid(agent.conversation());
}

#[tokio::test]
async fn what_is_said_meanwhile_comes_between_two_rounds() {
    let rig = Rig::new();
    let mut reply = call(0, "a", &json!({"key": "a", "until": "steered"}));
    reply.push(stop(StopReason::ToolUse));
    let mut last = text_reply(0, "done");
    last.insert(3, Step::Until("steered again"));
    let model = Steered::new(&rig.stage, [reply, last, text_reply(0, "and that too")]);
    let mut agent = rig.agent(model).await;
    let control = agent.control();
    let (ended, ()) = tokio::join!(agent.run("go", &rig.ear), async {
        control.steer(vec![Content::text("also this")]);
        rig.stage.flag("steered");
        while !rig.ear.lines().contains(&"said done".to_owned()) {
            tokio::task::yield_now().await;
        }
        control.steer(vec![Content::text("one more")]);
        control.set_model("other");
        control.set_permission_mode(PermissionMode::DontAsk);
        rig.stage.flag("steered again");
    });
    assert_eq!(ended.text, "and that too");
    assert_valid(agent.conversation());
    let shown = shown(agent.conversation().messages()).join("\n");
    assert!(shown.contains("user: also this"), "{shown}");
    assert!(
        shown.contains("model: done\nuser: one more\nmodel: and that too"),
        "{shown}"
    );
    assert_eq!(agent.settings().name, "other");
    assert_eq!(agent.context().mode, PermissionMode::DontAsk);
}

#[tokio::test]
async fn going_in_circles_is_told_and_then_ended() {
    let rig = Rig::new();
    let turns: Vec<Value> = (0..20).map(|_| echo("same")).collect();
    let model = scripted(&json!({"turns": turns}));
    let mut agent = rig.agent(model.clone()).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(
        (ended.subtype, ended.reason),
        (ResultSubtype::DuringExecution, EndReason::RepeatedCalls)
    );
    assert_eq!(model.requests().len(), 7);
    assert_valid(agent.conversation());
    let told = rig.ear.lines();
    let told: Vec<_> = told
        .iter()
        .filter(|line| line.starts_with("added Repeats"))
        .collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("the same calls 4 times"), "{told:?}");
}

#[tokio::test]
async fn what_the_project_wants_known_opens_the_first_message_only() {
    let rig = Rig::new();
    rig.project.write("work/CLAUDE.md", "Use tabs.");
    let model = scripted(&json!({"turns": [says("one"), says("two")]}));
    let mut agent = rig.agent(model).await;
    agent.run("go", &rig.ear).await;
    agent.run("on", &rig.ear).await;
    let shown = shown(agent.conversation().messages());
    assert!(shown[0].contains("Use tabs.") && shown[0].contains("<system-reminder>"));
    assert_eq!(
        shown[1..],
        ["user: go", "model: one", "user: on", "model: two"]
    );
}

#[tokio::test]
async fn a_run_may_move_between_threads() {
    let rig = Rig::new();
    let mut agent = rig.agent(scripted(&json!({"turns": [says("done")]}))).await;
    let ended = tokio::spawn(async move { agent.run("go", &|_: &_| {}).await }).await;
    assert_eq!(ended.unwrap().text, "done");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_long_is_told_of_every_few_seconds() {
    let rig = Rig::new();
    let mut first = call(0, "a", &json!({"key": "a", "until": "never-mind"}));
    first.push(stop(StopReason::ToolUse));
    let model = Steered::new(&rig.stage, [first, text_reply(0, "done")]);
    let mut agent = rig.agent(model).await;
    let late = async {
        tokio::time::sleep(Duration::from_secs(12)).await;
        rig.stage.flag("never-mind");
    };
    tokio::join!(agent.run("go", &rig.ear), late);
    let heard = rig.ear.heard.lock().unwrap();
    let told: Vec<_> = heard
        .iter()
        .filter_map(|event| match event {
            AgentEvent::CallRunning {
                tool_use_id,
                tool_name,
                elapsed,
            } => Some((tool_use_id.as_str(), tool_name.as_str(), elapsed.as_secs())),
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter()
            .all(|(id, name, _)| (*id, *name) == ("a", "Work"))
    );
}
