//! A call that waits for a subagent, and need not.

use std::sync::{Arc, Mutex};

use haft_contract::TaskEvent;
use serde_json::json;

use super::team::{Setup, aside, call, errand, say};
use crate::rig::{Rig, scripted};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_waits_goes_on_without_its_subagent_when_a_person_wants_that() {
    let rig = Rig::new();
    let model = scripted(&json!({
        "turns": [call("Agent", errand("errand")), say("main done")],
        "conversations": [aside("errand", &[json!({"hangs": true})])],
    }));
    let mut team = Setup::default().team(&rig, &model).await;
    let (crew, moved) = (team.crew.clone(), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&moved);
    team.notices.set_listener(move |event| match event {
        TaskEvent::Began(_) => assert_eq!(crew.move_to_background(Some("another")), 0),
        TaskEvent::MovedToBackground(task) => kept.lock().unwrap().push(task.id.clone()),
        _ => {}
    });
    let crew = team.crew.clone();
    let wish = tokio::spawn(async move {
        haft_testkit::until("it is waited for", || crew.move_to_background(None) == 1).await;
    });
    let ended = team.agent.run("go", &rig.ear).await;
    wish.await.unwrap();
    assert_eq!(ended.text, "main done");
    assert_eq!(moved.lock().unwrap().len(), 1);
    // It still works, though the turn of its call is over, and ends with the session.
    assert_eq!(team.crew.running_count(), 1);
    assert!(team.notices.running()[0].in_background);
    team.crew.close().await;
    assert_eq!(team.crew.running_count(), 0);
}
