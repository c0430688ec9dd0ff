//! The process is killed in the middle of a call.

use std::{env, fs, path::Path, process::Stdio, sync::Arc, time::Duration};

use haft_agent::{Agent, ModelSettings, ProjectSessions};
use haft_contract::{PermissionMode, SessionId};
use haft_engine::{Engine, SessionContext, ToolRegistry};
use serde_json::json;

use crate::rig::{Rig, Stage, Work, assert_valid, scripted, shown};

const FOLDER: &str = "HAFT_TEST_CRASH_FOLDER";
const SESSION: &str = "HAFT_TEST_CRASH_SESSION";

/// An agent in this folder whose sessions are files.
async fn agent(
    folder: &Path,
    session: haft_agent::OpenTranscript,
    script: serde_json::Value,
) -> Agent {
    let stage = Arc::new(Stage::default());
    let mut registry = ToolRegistry::new();
    registry.add(Work(stage)).unwrap();
    let (engine, _) = Engine::builder(registry, folder.join("kept")).build().await;
    let context = SessionContext::new(folder).with_mode(PermissionMode::BypassPermissions);
    let model = Arc::new(scripted(&script));
    let settings = ModelSettings::new("m");
    Agent::builder(engine.scheduler(context), model, settings)
        .session(session)
        .build()
}

/// Not a test: the process that `killed_in_the_middle_of_a_call` starts and kills.
#[tokio::test]
#[ignore = "run by the test below, as a process of its own"]
async fn child() {
    let (Some(folder), Ok(session)) = (env::var_os(FOLDER), env::var(SESSION)) else {
        return;
    };
    let folder = Path::new(&folder);
    let session = SessionId(session.parse().unwrap());
    let session = ProjectSessions::new(folder.join("sessions"))
        .create(session)
        .unwrap();
    let script = json!({"turns": [{"content": [
        {"type": "text", "text": "I begin."},
        {"type": "tool_use", "id": "quick", "name": "Work", "input": {"key": "quick"}},
        {"type": "tool_use", "id": "hangs", "name": "Work",
         "input": {"key": "hangs", "alone": true, "hangs_after": "ran.txt"}},
        {"type": "tool_use", "id": "waits", "name": "Work", "input": {"key": "waits"}},
    ]}]});
    agent(folder, session, script)
        .await
        .run("go", &|_: &_| {})
        .await;
}

#[tokio::test]
async fn killed_in_the_middle_of_a_call() {
    let rig = Rig::new();
    let folder = rig.project.path("work");
    let id = SessionId::new();
    let mut child = haft_testkit::command(env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--ignored", "--nocapture"])
        .env(FOLDER, &folder)
        .env(SESSION, id.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ran = folder.join("ran.txt");
    let mut patience = 6000;
    while fs::read_to_string(&ran).unwrap_or_default().is_empty() && patience > 0 {
        patience -= 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // While it lives, no one else can have its session.
    let sessions = ProjectSessions::new(folder.join("sessions"));
    let in_use = sessions.resume(id, None).unwrap_err().to_string();
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(patience > 0, "the call was never begun");
    assert!(in_use.contains("is in use by another process"), "{in_use}");

    let session = sessions.resume(id, None).unwrap();
    insta::assert_snapshot!("what_was_repaired", session.repairs().join("\n"));
    let script = json!({"turns": [{"content": [{"type": "text", "text": "I see."}]}]});
    let mut agent = agent(&folder, session, script).await;
    assert_valid(agent.conversation());
    assert_eq!(
        agent.run("what happened?", &|_: &_| {}).await.text,
        "I see."
    );
    assert_valid(agent.conversation());
    let history = shown(agent.conversation().messages()).join("\n");
    insta::assert_snapshot!("what_the_model_is_told", history);
    // Nothing ran twice.
    assert_eq!(fs::read_to_string(&ran).unwrap(), "hangs\n");
    // What was made up is recorded: the second time there is nothing to repair.
    drop(agent);
    let session = sessions.resume(id, None).unwrap();
    assert_eq!(session.repairs(), Vec::<String>::new());
}
