//! What can be done to a session while it runs.

use haft_contract::PermissionMode;
use haft_host::{
    AgentSession, PromptDelivery, SessionActivity, SessionEvent, SessionInput, SessionParts,
    StopKind,
    agent::{AgentEvent, Prompt},
};
use haft_testkit::TempProject;
use serde_json::json;
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;

use crate::rig::{Recorded, call, config, in_time, says, scripted};

#[tokio::test]
async fn messages_are_answered_in_their_order_and_the_end_comes_when_the_input_is_closed() {
    let project = TempProject::new([]);
    let recorded = Recorded::default();
    let parts = recorded.parts();
    let parts = parts.model(Arc::new(scripted(json!([says("one"), says("two")]))));
    let session = AgentSession::open(config(&project), parts).unwrap();
    let input = session.input();
    input.prompt("first");
    input.prompt("second");
    input.close();
    let end = in_time(session.run()).await.unwrap();
    assert!(!end.has_failed);
    assert_eq!(recorded.answers(), ["one", "two"]);
    let kinds: Vec<&str> = recorded
        .all()
        .iter()
        .filter_map(|event| match event {
            SessionEvent::Ready(_) => Some("ready"),
            SessionEvent::Servers(_) => Some("servers"),
            SessionEvent::Activity(SessionActivity::Running) => Some("running"),
            SessionEvent::Activity(SessionActivity::Idle) => Some("idle"),
            SessionEvent::Agent(AgentEvent::RunStarted(_)) => Some("began"),
            SessionEvent::Agent(AgentEvent::BlockCompleted(_)) => Some("said"),
            SessionEvent::Result(_) => Some("result"),
            SessionEvent::Ended => Some("over"),
            _ => None,
        })
        .collect();
    assert_eq!(
        kinds.join(" "),
        "ready running servers running began said result running began said result idle over"
    );
}

#[tokio::test]
async fn a_session_that_is_stopped_ends_its_run_with_a_result_or_without() {
    for (kind, results) in [(StopKind::Interrupt, 1), (StopKind::Terminate, 0)] {
        let project = TempProject::new([]);
        let hangs = json!([{"content": [{"type": "text", "text": "hm"}], "hangs": true}]);
        let recorded = Recorded::default();
        let (began, mut begins) = mpsc::unbounded_channel();
        let to = recorded.clone();
        let parts = SessionParts::new(move |event: &SessionEvent| {
            to.push(event);
            if event.reply_text().is_some() {
                let _ = began.send(());
            }
        });
        let parts = parts.model(Arc::new(scripted(hangs)));
        let session = AgentSession::open(config(&project), parts).unwrap();
        let input = session.input();
        input.prompt("go");
        let running = tokio::spawn(session.run());
        in_time(begins.recv()).await.unwrap();
        input.stop(kind);
        let end = in_time(running).await.unwrap().unwrap();
        assert_eq!(end.stopped, Some(kind));
        assert_eq!(recorded.answers().len(), results, "{kind:?}");
    }
}

#[tokio::test]
async fn mode_model_and_directories_change_for_the_next_message() {
    let project = TempProject::new([("other/there.txt", "found there")]);
    let there = project.path("other/there.txt");
    let model = scripted(json!([
        {"content": [call("Read", json!({"file_path": there}))]},
        says("done"),
    ]));
    let recorded = Recorded::default();
    let parts = recorded.parts().model(Arc::new(model));
    let session = AgentSession::open(config(&project), parts).unwrap();
    let input = session.input();
    input.set_model(Some("another")).await.unwrap();
    input.set_permission_mode(PermissionMode::DontAsk).unwrap();
    input.add_directory(project.path("other")).unwrap();
    assert!(input.add_directory("relative").is_err());
    assert!(
        input
            .set_permission_mode(PermissionMode::BypassPermissions)
            .is_err()
    );
    in_time(session.answer("go")).await.unwrap();
    let began = recorded.all().into_iter().find_map(|event| match event {
        SessionEvent::Agent(AgentEvent::RunStarted(began)) => Some(began),
        _ => None,
    });
    let began = began.unwrap();
    assert_eq!(began.model, "another");
    assert_eq!(began.mode, PermissionMode::DontAsk);
    assert!(
        recorded.results()[0].contains("found there"),
        "{:?}",
        recorded.results()
    );
}

#[tokio::test]
async fn an_answer_must_fit_its_schema_and_the_value_is_in_the_result() {
    let project = TempProject::new([]);
    let mut config = config(&project);
    let schema = json!({"type": "object", "required": ["n"]});
    config.output_schema = Some(schema.to_string());
    let recorded = Recorded::default();
    let model = scripted(json!([says("no JSON"), says("{\"n\": 1}")]));
    let parts = recorded.parts().model(Arc::new(model));
    let session = AgentSession::open(config, parts).unwrap();
    in_time(session.answer("go")).await.unwrap();
    let structured = recorded.all().into_iter().find_map(|event| match event {
        SessionEvent::Result(result) => result.structured,
        _ => None,
    });
    assert_eq!(structured, Some(Ok(json!({"n": 1}))));
}

#[tokio::test]
async fn a_directory_that_is_not_absolute_is_refused() {
    let config = haft_host::SessionConfig::new("relative");
    let parts = Recorded::default().parts();
    let error = AgentSession::open(config, parts).err().unwrap();
    assert_eq!(
        error.to_string(),
        "relative: the directory of a session must be an absolute path"
    );
}

#[tokio::test]
async fn events_may_be_taken_as_a_stream_that_ends_with_the_session() {
    let project = TempProject::new([]);
    let (parts, mut events) = SessionParts::stream();
    let parts = parts.model(Arc::new(scripted(json!([says("hello")]))));
    let session = AgentSession::open(config(&project), parts).unwrap();
    let input = session.input();
    let running = tokio::spawn(session.run());
    input.prompt("go");
    let (mut text, mut answer) = (String::new(), None);
    while let Some(event) = in_time(events.next()).await {
        text += event.reply_text().unwrap_or_default();
        if let SessionEvent::Result(result) = event {
            answer = Some(result.run.text);
            input.close();
        }
    }
    assert_eq!((text.as_str(), answer.as_deref()), ("hello", Some("hello")));
    in_time(running).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_a_message_names_comes_with_it_also_during_a_run() {
    let project = TempProject::new([
        ("work/a.txt", "first"),
        ("work/notes.txt", "the answer is 42"),
    ]);
    let read = call("Read", json!({"file_path": project.path("work/a.txt")}));
    let model = scripted(json!([{"content": [read]}, says("Seen.")]));
    let to: Arc<OnceLock<SessionInput>> = Arc::default();
    let input = Arc::clone(&to);
    let parts = SessionParts::new(move |event: &SessionEvent| {
        // The run is under way: a call was made.
        if let SessionEvent::Agent(AgentEvent::CallBound { .. }) = event
            && let Some(input) = input.get()
        {
            input.submit(Prompt::typed("see @notes.txt, too"), PromptDelivery::Steer);
        }
    });
    let parts = parts.model(Arc::new(model.clone()));
    let session = AgentSession::open(config(&project), parts).unwrap();
    let input = session.input();
    to.set(input.clone()).ok();
    input.prompt("go");
    input.close();
    in_time(session.run()).await.unwrap();
    let requests = model.requests();
    let said = format!("{:?}", requests[1].history.messages().last());
    assert!(said.contains("see @notes.txt, too"), "{said}");
    assert!(said.contains("the answer is 42"), "{said}");
}
