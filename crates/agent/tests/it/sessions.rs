//! Transcripts: resume, fork, damage.

use std::{fs, path::Path, sync::Arc};

use haft_agent::{Agent, ModelSettings, OpenTranscript, ProjectSessions, SessionError};
use haft_contract::{PermissionMode, SessionId};
use serde_json::{Value, json};

use crate::rig::{Rig, assert_valid, scripted, shown};

fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

async fn agent(rig: &Rig, session: OpenTranscript, turns: Value) -> Agent {
    let scheduler = rig
        .scheduler(PermissionMode::BypassPermissions, |builder| builder)
        .await;
    let model = Arc::new(scripted(&json!({"turns": turns})));
    Agent::builder(scheduler, model, ModelSettings::new("m"))
        .session(session)
        .build()
}

fn uuids(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter_map(|line| line["uuid"].as_str().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn a_session_is_taken_up_where_it_was_left() {
    let rig = Rig::new();
    let sessions = ProjectSessions::new(rig.project.path("sessions"));
    assert!(sessions.list().unwrap().is_empty());
    let id = SessionId::new();
    let calls = json!({"content": [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "a", "name": "Peek", "input": {"path": "a.txt"}},
        {"type": "tool_use", "id": "b", "name": "Peek", "input": {"path": "b.txt"}},
    ]});
    let mut first = agent(
        &rig,
        sessions.create(id).unwrap(),
        json!([calls, says("one")]),
    )
    .await;
    first.run("go", &rig.ear).await;
    let history = shown(first.conversation().messages());
    assert!(matches!(sessions.create(id), Err(SessionError::Taken(_))));
    drop(first);

    let session = sessions.resume(id, None).unwrap();
    assert_eq!(session.repairs(), Vec::<String>::new());
    let cwd = session.loaded().cwd.clone();
    let mut second = agent(&rig, session, json!([says("two")])).await;
    assert_eq!(shown(second.conversation().messages()), history);
    assert_eq!(cwd.as_deref(), Some(rig.project.path("work").as_path()));
    second.run("and?", &rig.ear).await;
    assert_eq!(
        shown(second.conversation().messages())[history.len()..],
        ["user: and?", "model: two"]
    );
    drop(second);

    // One chain from the first line to the last.
    let text = fs::read_to_string(sessions.path(id)).unwrap();
    let mut last = Value::Null;
    for line in text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
    {
        assert_eq!(line["sessionId"], id.to_string(), "{line}");
        if ["haft-started", "haft-reply"].contains(&line["type"].as_str().unwrap_or_default()) {
            continue;
        }
        assert_eq!(line["parentUuid"], last, "{line}");
        last = line["uuid"].clone();
    }
}

#[tokio::test]
async fn a_fork_leaves_the_original_alone() {
    let rig = Rig::new();
    let sessions = ProjectSessions::new(rig.project.path("sessions"));
    let (id, forked) = (SessionId::new(), SessionId::new());
    let session = sessions.create(id).unwrap();
    let mut first = agent(&rig, session, json!([says("one"), says("two")])).await;
    first.run("go", &rig.ear).await;
    first.run("on", &rig.ear).await;
    let before = fs::read_to_string(sessions.path(id)).unwrap();

    // Also while the original is in use; and only up to a message of it.
    let cut = uuids(&sessions.path(id))[1].clone();
    let session = sessions.fork(id, forked, Some(&cut)).unwrap();
    assert_eq!(session.id(), forked);
    let mut second = agent(&rig, session, json!([says("three")])).await;
    second.run("elsewhere", &rig.ear).await;
    let expected = ["user: go", "model: one", "user: elsewhere", "model: three"];
    assert_eq!(shown(second.conversation().messages()), expected);
    assert_eq!(fs::read_to_string(sessions.path(id)).unwrap(), before);
    drop(second);
    let session = sessions.resume(forked, None).unwrap();
    assert_eq!(shown(session.loaded().conversation.messages()), expected);
    let nowhere = sessions.fork(id, SessionId::new(), Some("nowhere"));
    assert!(matches!(nowhere, Err(SessionError::NoMessage { .. })));
}

#[tokio::test]
async fn sessions_are_found_by_id_and_by_name() {
    let rig = Rig::new();
    let sessions = ProjectSessions::new(rig.project.path("sessions"));
    let (old, new) = (SessionId::new(), SessionId::new());
    for (id, title) in [(old, "first one"), (new, "second one")] {
        let mut agent = agent(&rig, sessions.create(id).unwrap(), json!([says("yes")])).await;
        agent.run(format!("begin {title}"), &rig.ear).await;
        agent.transcript().set_title(title);
    }
    assert_eq!(sessions.newest().unwrap().unwrap().id, new);
    let listed = sessions.list().unwrap();
    let prompts: Vec<_> = listed
        .iter()
        .map(|one| one.first_prompt.as_deref().unwrap())
        .collect();
    assert_eq!(prompts, ["begin second one", "begin first one"]);
    assert_eq!(sessions.find(&old.to_string()).unwrap(), old);
    assert_eq!(sessions.find("first one").unwrap(), old);
    let all = ProjectSessions::all_projects(rig.project.root()).unwrap();
    let found: Vec<_> = all
        .iter()
        .filter_map(|one| one.find("first one").ok())
        .collect();
    assert_eq!(found, [old]);
    let unknown = sessions.find("third one").unwrap_err().to_string();
    assert_eq!(
        unknown,
        "no session third one in this project; list them to see which there are"
    );
}

#[tokio::test]
async fn a_damaged_session_is_repaired_and_says_so() {
    let rig = Rig::new();
    let sessions = ProjectSessions::new(rig.project.path("sessions"));
    let id = SessionId::new();
    let call = json!({"content": [{"type": "tool_use", "id": "a", "name": "Peek", "input": {"path": "a.txt"}}]});
    let mut first = agent(
        &rig,
        sessions.create(id).unwrap(),
        json!([call, says("one")]),
    )
    .await;
    first.run("go", &rig.ear).await;
    drop(first);
    // The line with the result is damaged, and the last one is cut off.
    let text = fs::read_to_string(sessions.path(id)).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let result = lines
        .iter()
        .position(|line| line.contains("alpha"))
        .unwrap();
    lines[result].truncate(50);
    let text = lines.join("\n");
    fs::write(sessions.path(id), format!("{text}\n{{\"type\":\"us")).unwrap();

    let session = sessions.resume(id, None).unwrap();
    let repairs = session.repairs().join("\n");
    assert!(
        repairs.contains(&format!("line {} cannot be read", result + 1)),
        "{repairs}"
    );
    assert!(
        repairs.contains("is missing; the message before it in the file is used"),
        "{repairs}"
    );
    assert!(
        repairs.contains("call a of Peek has no result"),
        "{repairs}"
    );
    let mut second = agent(&rig, session, json!([says("two")])).await;
    assert_valid(second.conversation());
    assert_eq!(second.run("on", &rig.ear).await.text, "two");
    assert_valid(second.conversation());
    drop(second);
    let session = sessions.resume(id, None).unwrap();
    assert_valid(&session.loaded().conversation);
    assert_eq!(
        shown(session.loaded().conversation.messages())
            .last()
            .unwrap(),
        "model: two"
    );
}
