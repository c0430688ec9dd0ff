//! A conversation that grows too long.

use std::sync::Arc;

use haft_agent::{
    Agent, EndReason, ModelSettings, OpenTranscript,
    transcript::{TranscriptStore, load::load},
};
use haft_contract::{PermissionMode, SessionId};
use haft_models::ScriptedModel;
use serde_json::{Value, json};

use crate::rig::{Rig, assert_valid, scripted, shown};

async fn agent(rig: &Rig, model: &ScriptedModel, window: u64) -> Agent {
    let scheduler = rig
        .scheduler(PermissionMode::BypassPermissions, |builder| builder)
        .await;
    let mut settings = ModelSettings::new("m");
    settings.window = window;
    let store = Arc::clone(&rig.store) as Arc<dyn TranscriptStore>;
    let session = OpenTranscript::new(SessionId::new(), store);
    Agent::builder(scheduler, Arc::new(model.clone()), settings)
        .session(session)
        .build()
}

fn says(text: &str, tokens: u64) -> Value {
    json!({"content": [{"type": "text", "text": text}], "usage": {"input": tokens, "output": 0}})
}

fn peeks(path: &str, tokens: u64) -> Value {
    json!({"content": [{"type": "tool_use", "name": "Peek", "input": {"path": path}}],
           "usage": {"input": tokens, "output": 0}})
}

#[tokio::test]
async fn near_the_end_of_the_window_a_summary_takes_its_place() {
    let rig = Rig::new();
    rig.project.write("work/CLAUDE.md", "Use tabs.");
    let model = scripted(&json!({"turns": [
        peeks("a.txt", 100),
        {"content": [{"type": "tool_use", "name": "Append", "input": {"path": "b.txt", "line": "x"}}],
         "usage": {"input": 900}},
        says("It was all about alpha.", 950),
        peeks("b.txt", 200),
        says("done", 300),
    ]}));
    let mut agent = agent(&rig, &model, 1000).await;
    let ended = agent.run("look around", &rig.ear).await;
    assert_eq!(ended.text, "done");
    assert_valid(agent.conversation());
    // The summary costs too, but is none of the run's replies.
    assert_eq!(ended.num_turns, 4);
    assert_eq!(ended.usage.input, 100 + 900 + 200 + 300);
    assert_eq!(
        ended.ledger.models().next().unwrap().1.usage.input,
        1500 + 950
    );
    let lines = rig.ear.lines();
    assert!(lines.contains(&"compacting auto".to_owned()), "{lines:?}");
    assert!(lines.contains(&"compacted auto".to_owned()), "{lines:?}");
    let history = shown(agent.conversation().messages()).join("\n");
    let root = rig.project.root().display().to_string();
    insta::assert_snapshot!("after_a_summary", history.replace(&root, "PROJECT"));
    // The request for the summary says everything there was, after the same prefix.
    let requests = model.requests();
    assert!(Arc::ptr_eq(&requests[0].prefix, &requests[2].prefix));
    assert_eq!(requests[2].history.messages().len(), 5);
    // On disk nothing is lost, and what is read back is what goes on.
    let lines = rig.lines();
    assert!(
        lines
            .iter()
            .any(|line| line.contains("\"compact_boundary\""))
    );
    assert!(lines.iter().any(|line| line.contains("alpha\\n")));
    let loaded = load(&lines, None).unwrap();
    assert_eq!(
        shown(loaded.conversation.messages()),
        shown(agent.conversation().messages())
    );
    assert_eq!(loaded.files, agent.files());
    assert!(loaded.files.reads.contains(&rig.project.path("work/a.txt")));
    assert!(
        loaded
            .files
            .writes
            .contains(&rig.project.path("work/b.txt"))
    );
}

#[tokio::test]
async fn a_conversation_the_provider_will_not_take_is_summed_up_and_sent_again() {
    let rig = Rig::new();
    let too_long = json!({"error": {"kind": "context_too_long", "message": "too long"}});
    let model = scripted(&json!({"turns": [
        peeks("a.txt", 0), too_long, says("in short", 0), says("done", 0),
    ]}));
    let mut agent = agent(&rig, &model, 1_000_000).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(ended.text, "done");
    assert_valid(agent.conversation());

    let rig = Rig::new();
    let model = scripted(&json!({"turns": [too_long, says("in short", 0), too_long]}));
    let mut agent = self::agent(&rig, &model, 1_000_000).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(ended.reason, EndReason::PromptTooLong);
    assert!(ended.is_error());
}

#[tokio::test]
async fn old_results_give_way_first() {
    let rig = Rig::new();
    let name = |number| format!("long-{number}.txt");
    for number in 0..8 {
        rig.project
            .write(&format!("work/{}", name(number)), "long ".repeat(100));
    }
    let mut turns: Vec<Value> = (0..8).map(|number| peeks(&name(number), 100)).collect();
    // Over 70 % of the window, but not over 85 % once the old results are gone.
    turns[6]["usage"]["input"] = json!(8500);
    turns.push(says("done", 100));
    let model = scripted(&json!({"turns": turns}));
    let mut agent = agent(&rig, &model, 10_000).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!((ended.text.as_str(), ended.num_turns), ("done", 9));
    assert_valid(agent.conversation());
    let requests = model.requests();
    let long = |number: usize| {
        let lines = shown(requests[number].history.messages());
        lines
            .iter()
            .filter(|line| line.contains("long long"))
            .count()
    };
    // Seven results; four of them are new enough to stay.
    assert_eq!([long(6), long(7), long(8)], [6, 4, 5]);
    let history = shown(requests[7].history.messages());
    assert!(
        history[2].contains("was removed to free space"),
        "{}",
        history[2]
    );
    assert!(
        !rig.ear
            .lines()
            .iter()
            .any(|line| line.starts_with("compact"))
    );
}

#[tokio::test]
async fn a_person_may_ask_for_it() {
    let rig = Rig::new();
    let model =
        scripted(&json!({"turns": [says("hello", 0), says("We said hello.", 0), says("yes", 0)]}));
    let mut agent = agent(&rig, &model, 1000).await;
    assert!(!agent.compact("", &rig.ear).await.unwrap());
    agent.run("hi", &rig.ear).await;
    assert!(agent.compact("keep the greeting", &rig.ear).await.unwrap());
    let asked = shown(model.requests()[1].history.messages());
    assert!(asked.last().unwrap().contains("keep the greeting"));
    agent.run("still there?", &rig.ear).await;
    assert_valid(agent.conversation());
    let history = shown(agent.conversation().messages());
    assert!(history[0].contains("We said hello."));
    assert_eq!(history[1..], ["user: still there?", "model: yes"]);
}

#[tokio::test]
async fn what_is_too_long_even_to_be_compacted_is_compacted_from_its_end() {
    let rig = Rig::new();
    // As llama.cpp refuses: with the size of its context.
    let too_long = json!({"error": {"kind": "context_too_long", "message": "exceeds", "context_window": 4096}});
    let model = scripted(&json!({"turns": [
        says("one", 0), says("two", 0),
        too_long, too_long, too_long, too_long,
        says("in short", 0), says("done", 0),
    ]}));
    let mut agent = agent(&rig, &model, 1_000_000).await;
    agent.run("first", &rig.ear).await;
    agent.run("second", &rig.ear).await;
    let ended = agent.run("third", &rig.ear).await;
    assert_eq!(ended.text, "done");
    assert_valid(agent.conversation());
    assert_eq!(
        agent.context_usage().1,
        4096,
        "the size is known from now on"
    );
    let requests = model.requests();
    let asked = |number: usize| shown(requests[number].history.messages()).join("\n");
    assert!(asked(4).contains("first") && !asked(6).contains("first"));
    let history = shown(agent.conversation().messages()).join("\n");
    assert!(
        history.contains("in short") && history.contains("third"),
        "{history}"
    );
}

#[tokio::test]
async fn a_refusal_is_never_silent() {
    let rig = Rig::new();
    let nothing = json!({"content": [], "stop_reason": "refusal"});
    let cut = json!({"content": [{"type": "text", "text": "I would"}], "stop_reason": "refusal"});
    let model = scripted(&json!({"turns": [nothing, cut]}));
    let mut agent = agent(&rig, &model, 1000).await;
    let ended = agent.run("go", &rig.ear).await;
    assert!(ended.text.contains("refused to answer"), "{}", ended.text);
    let ended = agent.run("go on", &rig.ear).await;
    assert_eq!(ended.text, "I would");
    let lines = rig.ear.lines();
    let told = lines
        .iter()
        .filter(|line| line.contains("refused to answer"));
    assert_eq!(told.count(), 2, "{lines:?}");
    assert_valid(agent.conversation());
}
