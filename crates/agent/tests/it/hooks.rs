//! Programs of the user's that have a say in the loop. The numbers are those of the vectors of hooks.md.

use std::sync::Arc;

use haft_agent::{Agent, ModelSettings, Reason, Subtype};
use haft_contract::PermissionMode;
use haft_engine::{
    hooks::{Hooks, read},
    permissions::{Bases, Scope},
};
use haft_models::Scripted;
use serde_json::{Value, json};

use crate::rig::{Rig, assert_valid, scripted, shown};

fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "usage": {"input": 900}})
}

fn echo() -> Value {
    json!({"content": [{"type": "tool_use", "id": "a", "name": "Echo", "input": {"text": "hi"}}]})
}

/// An agent with one hook.
async fn agent(rig: &Rig, model: &Scripted, event: &str, command: &str) -> Agent {
    let work = rig.project.path("work");
    let bases = Bases {
        cwd: work.clone(),
        home: work.clone(),
        slash: work.clone(),
    };
    let hooks = json!({event: [{"hooks": [{"type": "command", "command": command}]}]});
    let (handlers, problems) = read(Scope::User, None, &hooks, &bases);
    assert_eq!(problems, []);
    let hooks = Hooks::new(handlers, &work);
    let scheduler = rig.scheduler(PermissionMode::BypassPermissions, |builder| {
        builder.hooks(hooks)
    });
    let mut settings = ModelSettings::new("m");
    settings.window = 1000;
    Agent::builder(scheduler.await, Arc::new(model.clone()), settings).build()
}

#[tokio::test]
async fn v13_and_21_what_they_say_goes_with_the_prompt() {
    for event in ["UserPromptSubmit", "SessionStart"] {
        let rig = Rig::new();
        let model = scripted(&json!({"turns": [says("yes")]}));
        let mut agent = agent(&rig, &model, event, "echo extra words").await;
        agent.run("go", &rig.ear).await;
        let asked = shown(model.requests()[0].history.messages()).join("\n");
        assert!(
            asked.contains("<system-reminder>\nextra words"),
            "{event}: {asked}"
        );
        assert!(asked.contains("user: go"), "{asked}");
    }
}

#[tokio::test]
async fn v14_a_prompt_is_held_up() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [says("yes")]}));
    let command = r#"echo '{"decision":"block","reason":"not today"}'"#;
    let mut agent = agent(&rig, &model, "UserPromptSubmit", command).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!((ended.subtype, ended.num_turns), (Subtype::Success, 0));
    assert_eq!(
        (ended.text.as_str(), ended.reason),
        ("not today", Reason::HookStopped)
    );
    assert!(model.requests().is_empty());
    assert_eq!(agent.conversation().messages().len(), 0);
}

#[tokio::test]
async fn v19_and_20_the_model_is_sent_on_but_not_for_ever() {
    let rig = Rig::new();
    let turns: Vec<Value> = (0..20).map(|_| echo_free("done")).collect();
    let model = scripted(&json!({"turns": turns}));
    let command = "cat >> seen.txt; echo go on >&2; exit 2";
    let mut agent = agent(&rig, &model, "Stop", command).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!((ended.subtype, ended.num_turns), (Subtype::Success, 9));
    assert_valid(agent.conversation());
    let asked = shown(model.requests()[1].history.messages()).join("\n");
    assert!(
        asked.ends_with("<system-reminder>\ngo on\n</system-reminder>"),
        "{asked}"
    );
    let seen = rig.project.read("work/seen.txt");
    let seen: Vec<Value> = seen
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(seen[0]["stop_hook_active"], false);
    assert_eq!(seen[1]["stop_hook_active"], true);
    assert_eq!(seen[0]["last_assistant_message"], "done");
    assert_eq!(seen[0]["permission_mode"], "bypassPermissions");
}

fn echo_free(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

#[tokio::test]
async fn after_a_round_of_tools_they_may_end_it() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [echo(), says("never")]}));
    let command = "cat > seen.txt; echo enough >&2; exit 2";
    let mut agent = agent(&rig, &model, "PostToolBatch", command).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(ended.reason, Reason::HookStopped);
    assert_eq!(model.requests().len(), 1);
    assert_valid(agent.conversation());
    let seen: Value = serde_json::from_str(&rig.project.read("work/seen.txt")).unwrap();
    assert_eq!(seen["tool_calls"][0]["tool_use_id"], "a");
    let history = shown(agent.conversation().messages());
    assert!(history.last().unwrap().contains("enough"), "{history:?}");
}

#[tokio::test]
async fn they_may_keep_a_conversation_from_being_summed_up() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [says("one"), says("two")]}));
    let mut agent = agent(&rig, &model, "PreCompact", "echo keep it >&2; exit 2").await;
    agent.run("go", &rig.ear).await;
    agent.run("on", &rig.ear).await;
    assert_eq!(shown(agent.conversation().messages()).len(), 4);
    let lines = rig.ear.lines();
    let told = "info: the conversation is not summed up: keep it";
    assert!(lines.iter().any(|line| line == told), "{lines:?}");
}

#[tokio::test]
async fn they_are_told_of_the_end() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": []}));
    let mut agent = agent(&rig, &model, "SessionEnd", "cat > end.txt").await;
    agent.end("other", &rig.ear).await;
    let seen: Value = serde_json::from_str(&rig.project.read("work/end.txt")).unwrap();
    assert_eq!(seen["reason"], "other");
}

#[tokio::test]
async fn they_hear_of_a_summary_and_may_add_to_it() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [echo_free("hello"), echo_free("We said hello.")]}));
    let command = r#"grep -q '"source":"compact"' && echo remember this"#;
    let mut first = agent(&rig, &model, "SessionStart", command).await;
    first.run("hi", &rig.ear).await;
    assert!(first.compact("", &rig.ear).await.unwrap());
    let history = shown(first.conversation().messages()).join("\n");
    assert!(
        history.contains("<system-reminder>\nremember this"),
        "{history}"
    );
    assert_eq!(history.matches("remember this").count(), 1);

    let model = scripted(&json!({"turns": [echo_free("hello"), echo_free("We said hello.")]}));
    let mut second = agent(&rig, &model, "PostCompact", "cat > summary.txt").await;
    second.run("hi", &rig.ear).await;
    second.compact("", &rig.ear).await.unwrap();
    let seen: Value = serde_json::from_str(&rig.project.read("work/summary.txt")).unwrap();
    assert_eq!(seen["trigger"], "manual");
    assert_eq!(seen["compact_summary"], "We said hello.");
}

#[tokio::test]
async fn they_are_told_when_the_model_cannot_answer() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [{"error": {"kind": "overloaded", "message": "busy"}}]}));
    let mut agent = agent(&rig, &model, "StopFailure", "cat > failure.txt").await;
    assert_eq!(agent.run("go", &rig.ear).await.reason, Reason::ApiError);
    let seen: Value = serde_json::from_str(&rig.project.read("work/failure.txt")).unwrap();
    assert_eq!(seen["error"], "overloaded");
}
