//! Programs of the user's that have a say in the loop. The numbers are those of the vectors of hooks.md.

use std::sync::Arc;

use haft_agent::{
    Agent, EndReason, LoadedInstructions, ModelSettings, OpenTranscript, ResultSubtype,
    transcript::TranscriptStore,
};
use haft_contract::{PermissionMode, SessionId};
use haft_engine::{
    hook_conditions::read,
    hooks::Hooks,
    permissions::{PatternBases, SettingsScope},
};
use haft_models::ScriptedModel;
use serde_json::{Value, json};

use crate::rig::{Rig, assert_valid, scripted, shown};

fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "usage": {"input": 900}})
}

fn echo() -> Value {
    json!({"content": [{"type": "tool_use", "id": "a", "name": "Echo", "input": {"text": "hi"}}]})
}

/// An agent with one hook.
async fn agent(rig: &Rig, model: &ScriptedModel, event: &str, command: &str) -> Agent {
    agent_with(
        rig,
        model,
        event,
        json!({"type": "command", "command": command}),
    )
    .await
}

async fn agent_with(rig: &Rig, model: &ScriptedModel, event: &str, hook: Value) -> Agent {
    let work = rig.project.path("work");
    let bases = PatternBases {
        cwd: work.clone(),
        home: work.clone(),
        slash: work.clone(),
    };
    let hooks = json!({event: [{"hooks": [hook]}]});
    let (handlers, problems) = read(SettingsScope::User, None, &hooks, &bases);
    assert_eq!(problems, []);
    let hooks = Hooks::new(handlers, &work);
    let scheduler = rig.scheduler(PermissionMode::BypassPermissions, |builder| {
        builder.hooks(hooks)
    });
    let mut settings = ModelSettings::new("m");
    settings.window = 1000;
    let store = Arc::clone(&rig.store) as Arc<dyn TranscriptStore>;
    Agent::builder(scheduler.await, Arc::new(model.clone()), settings)
        .session(OpenTranscript::new(SessionId::new(), store))
        .build()
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
    assert_eq!(
        (ended.subtype, ended.num_turns),
        (ResultSubtype::Success, 0)
    );
    assert_eq!(
        (ended.text.as_str(), ended.reason),
        ("not today", EndReason::HookStopped)
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
    assert_eq!(
        (ended.subtype, ended.num_turns),
        (ResultSubtype::Success, 9)
    );
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
    assert_eq!(ended.reason, EndReason::HookStopped);
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
    let told = "info: the conversation is not summarized: keep it";
    assert!(lines.iter().any(|line| line == told), "{lines:?}");
}

#[tokio::test]
async fn they_are_told_of_the_end() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": []}));
    let mut agent = agent(&rig, &model, "SessionEnd", "cat > end.txt").await;
    agent.end_session("other", &rig.ear).await;
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
    assert_eq!(agent.run("go", &rig.ear).await.reason, EndReason::ApiError);
    let seen: Value = serde_json::from_str(&rig.project.read("work/failure.txt")).unwrap();
    assert_eq!(seen["error"], "overloaded");
}

#[tokio::test]
async fn v18_a_hook_ends_the_run_after_a_call() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [echo(), says("never")]}));
    let command = r#"echo '{"continue":false,"stopReason":"s"}'"#;
    let mut agent = agent(&rig, &model, "PostToolUse", command).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(ended.reason, EndReason::HookStopped);
    assert_eq!(model.requests().len(), 1);
    assert_valid(agent.conversation());
    assert!(rig.ear.lines().contains(&"info: s".to_owned()));
}

#[tokio::test]
async fn v24_whoever_refuses_a_call_may_end_the_run() {
    let rig = Rig::new();
    let call = json!({"content": [
        {"type": "tool_use", "id": "a", "name": "Work", "input": {"key": "k", "alone": true}},
    ]});
    let model = scripted(&json!({"turns": [call, says("never")]}));
    let decision = json!({"behavior": "deny", "message": "m", "interrupt": true});
    let said = json!({"hookSpecificOutput": {
        "hookEventName": "PermissionRequest", "decision": decision,
    }});
    let hook = json!({"type": "command", "command": format!("echo '{said}'")});
    let mut agent = agent_with(&rig, &model, "PermissionRequest", hook).await;
    agent.control().set_permission_mode(PermissionMode::Default);
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(ended.reason, EndReason::HookStopped);
    assert_eq!(ended.permission_denials.len(), 1);
    assert_eq!(model.requests().len(), 1);
    assert!(rig.stage.runs().is_empty());
    assert_valid(agent.conversation());
}

#[tokio::test]
async fn v23_hooks_may_bring_the_first_words_and_a_title() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [says("yes")]}));
    let said = json!({"hookSpecificOutput": {
        "hookEventName": "SessionStart", "initialUserMessage": "hi", "sessionTitle": "A title",
        "additionalContext": "c",
    }});
    let command = format!("echo x >> count; echo '{said}'");
    let mut agent = agent(&rig, &model, "SessionStart", &command).await;
    let words = agent.start_session(&rig.ear).await.unwrap();
    assert_eq!(words, "hi");
    agent.run(words, &rig.ear).await;
    assert_eq!(rig.project.read("work/count"), "x\n");
    let asked = shown(model.requests()[0].history.messages()).join("\n");
    assert!(
        asked.contains("<system-reminder>\nc") && asked.ends_with("user: hi"),
        "{asked}"
    );
    let written = rig.lines().join("\n");
    assert!(written.contains(r#""customTitle":"A title""#), "{written}");
}

#[tokio::test]
async fn a_session_that_hooks_do_not_let_begin_asks_nothing() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [says("yes")]}));
    let command = r#"echo '{"continue":false,"stopReason":"closed today"}'"#;
    let mut agent = agent(&rig, &model, "SessionStart", command).await;
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(
        (ended.text.as_str(), ended.reason),
        ("closed today", EndReason::HookStopped)
    );
    assert!(model.requests().is_empty());
}

#[tokio::test]
async fn an_objection_at_the_beginning_is_for_the_person() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [says("yes")]}));
    let mut agent = agent(&rig, &model, "SessionStart", "echo late >&2; exit 2").await;
    assert_eq!(agent.run("go", &rig.ear).await.reason, EndReason::Completed);
    assert!(rig.ear.lines().contains(&"info: late".to_owned()));
    let asked = shown(model.requests()[0].history.messages()).join("\n");
    assert!(!asked.contains("late"), "{asked}");
}

#[tokio::test]
async fn what_a_hook_says_later_is_told_with_the_next_request() {
    for (field, script, wakes) in [
        (
            "async",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"late words"}}'"#,
            false,
        ),
        ("asyncRewake", "echo late words >&2; exit 2", true),
    ] {
        let rig = Rig::new();
        let model = scripted(&json!({"turns": vec![echo_free("done"); 200]}));
        let hook = json!({"type": "command", field: true, "command": script});
        let mut agent = agent_with(&rig, &model, "UserPromptSubmit", hook).await;
        let told = || {
            let requests = model.requests();
            let last = requests.last().unwrap();
            let shown = shown(last.history.messages()).join("\n");
            shown.contains("<system-reminder>\nlate words")
        };
        agent.run("go", &rig.ear).await;
        // It may have ended while the model was at work; if not, it is told with a later run.
        if wakes && !told() {
            agent.wait_for_hook_wake().await;
            agent.run("on", &rig.ear).await;
            assert!(told());
        }
        for _ in 0..180 {
            if !told() {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                agent.run("on", &rig.ear).await;
            }
        }
        assert!(told());
        agent.end_session("other", &rig.ear).await;
    }
}

#[tokio::test]
async fn a_call_that_is_put_off_ends_the_run() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [echo(), says("never")]}));
    let said = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "defer",
    }});
    let work = rig.project.path("work");
    let bases = PatternBases {
        cwd: work.clone(),
        home: work.clone(),
        slash: work.clone(),
    };
    let hooks = json!({"PreToolUse": [{"hooks": [
        {"type": "command", "command": format!("echo '{said}'")},
    ]}]});
    let (handlers, _) = read(SettingsScope::User, None, &hooks, &bases);
    let scheduler = rig.scheduler(PermissionMode::BypassPermissions, |builder| {
        builder.hooks(Hooks::new(handlers, &work)).allow_deferral()
    });
    let settings = ModelSettings::new("m");
    let mut agent = Agent::builder(scheduler.await, Arc::new(model.clone()), settings).build();
    let ended = agent.run("go", &rig.ear).await;
    assert_eq!(ended.reason, EndReason::ToolDeferred);
    let deferred = ended.deferred.unwrap();
    assert_eq!(
        (deferred.tool_name.as_str(), deferred.tool_use_id.as_str()),
        ("Echo", "a")
    );
    assert_eq!(deferred.tool_input, json!({"text": "hi"}));
    assert!(ended.permission_denials.is_empty());
    assert_valid(agent.conversation());
}

#[tokio::test]
async fn they_are_told_of_setup_directories_and_instructions() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [says("yes")]}));
    let command = r#"cat > seen.json; echo '{"hookSpecificOutput":{"hookEventName":"Setup","additionalContext":"ready"}}'"#;
    let mut first = agent(&rig, &model, "Setup", command).await;
    first.setup("init", &rig.ear).await;
    first.run("go", &rig.ear).await;
    let seen = || -> Value { serde_json::from_str(&rig.project.read("work/seen.json")).unwrap() };
    assert_eq!(seen()["trigger"], "init");
    let asked = shown(model.requests()[0].history.messages()).join("\n");
    assert!(asked.contains("<system-reminder>\nready"), "{asked}");

    let mut second = agent(&rig, &model, "DirectoryAdded", "cat > seen.json").await;
    let path = rig.project.path("other");
    second
        .add_directory(path.clone(), "slash_command", &rig.ear)
        .await;
    assert_eq!(
        (&seen()["directory"], &seen()["source"]),
        (&json!(path), &json!("slash_command"))
    );
    assert!(second.context().directories.contains(&path));

    let third = agent(&rig, &model, "InstructionsLoaded", "cat > seen.json").await;
    let loaded = LoadedInstructions {
        path: "/p/CLAUDE.md".into(),
        kind: "Project",
        reason: "include",
        parent: Some("/p/AGENTS.md".into()),
        ..LoadedInstructions::default()
    };
    third.instructions_loaded(&loaded, &rig.ear).await;
    let seen = seen();
    assert_eq!(seen["file_path"], "/p/CLAUDE.md");
    assert_eq!(seen["memory_type"], "Project");
    assert_eq!(seen["load_reason"], "include");
    assert_eq!(seen["parent_file_path"], "/p/AGENTS.md");
    assert_eq!(seen.get("globs"), None);
}

#[tokio::test]
async fn what_others_spend_counts() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [says("yes")]}));
    let mut agent = agent(&rig, &model, "Notification", "true").await;
    let usage: haft_models::Usage =
        serde_json::from_value(json!({"input": 5, "output": 7})).unwrap();
    agent.control().spend("small", usage);
    let ended = agent.run("go", &rig.ear).await;
    let spent: Vec<_> = ended
        .ledger
        .models()
        .map(|(name, spent)| (name, spent.usage.output))
        .collect();
    assert!(spent.contains(&("small", 7)), "{spent:?}");
}

#[tokio::test]
async fn every_memory_file_is_told_of_with_why_it_was_read() {
    let rig = Rig::new();
    let write = |name: &str, text: &str| rig.project.write(&format!("work/{name}"), text);
    write("CLAUDE.md", "See @more.md");
    write("more.md", "More.");
    write(
        ".claude/rules/t.md",
        "---\npaths: '*.txt'\n---\nPlain words.",
    );
    let peek =
        json!({"content": [{"type": "tool_use", "name": "Peek", "input": {"path": "a.txt"}}]});
    let model = scripted(&json!({"turns": [peek, says("done")]}));
    let command = "cat >> seen.jsonl; echo >> seen.jsonl";
    let mut agent = agent(&rig, &model, "InstructionsLoaded", command).await;
    agent.run("go", &rig.ear).await;
    let seen = rig.project.read("work/seen.jsonl");
    let seen: Vec<(String, String)> = seen
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let told: Value = serde_json::from_str(line).unwrap();
            let path = told["file_path"].as_str().unwrap();
            let name = path.rsplit('/').next().unwrap().to_owned();
            (name, told["load_reason"].as_str().unwrap().to_owned())
        })
        .collect();
    let expected = [
        ("CLAUDE.md", "session_start"),
        ("more.md", "include"),
        ("t.md", "path_glob_match"),
    ];
    let expected = expected.map(|(name, why)| (name.to_owned(), why.to_owned()));
    assert_eq!(seen, expected);
}
