//! Who is asked, and as what.

use std::sync::{Arc, Mutex};

use haft_contract::{ApprovalAnswer, ApprovalRequest, BoxFuture, PermissionMode};
use haft_host::{AgentSession, QuestionHandler, SessionEvent, SessionParts, UserQuestions};
use haft_testkit::TempProject;
use serde_json::{Map, json};
use tokio::sync::mpsc;

use crate::rig::{Recorded, call, config, in_time, says, scripted};

/// Notes as what it is asked, and says yes.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl QuestionHandler for Notes {
    fn permission(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.note(format!("permission for {}", request.tool));
        Box::pin(async { ApprovalAnswer::Allow })
    }

    fn question(&self, asked: UserQuestions) -> BoxFuture<'_, ApprovalAnswer> {
        let question = &asked.questions[0];
        let labels: Vec<&str> = question.options.iter().map(|one| &*one.label).collect();
        self.note(format!(
            "question {} {}",
            question.question,
            labels.join("/")
        ));
        let mut answers = Map::new();
        answers.insert(question.question.clone(), json!("Left"));
        let answer = asked.answered(answers);
        Box::pin(async { answer })
    }

    fn plan(&self, _: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.note("plan".to_owned());
        Box::pin(async { ApprovalAnswer::Allow })
    }
}

#[tokio::test]
async fn each_question_comes_as_what_it_is() {
    let project = TempProject::new([]);
    let ask = json!({"questions": [{
        "question": "Which way?",
        "header": "Way",
        "options": [
            {"label": "Left", "description": "by the river"},
            {"label": "Right", "description": "over the hill"},
        ],
        "multiSelect": false,
    }]});
    let model = scripted(json!([
        {"content": [call("AskUserQuestion", ask)]},
        {"content": [call("ExitPlanMode", json!({"plan": "Go left."}))]},
        {"content": [call("Write", json!({"file_path": "way.txt", "content": "left"}))]},
        says("done"),
    ]));
    let mut config = config(&project);
    config.permission_mode = Some(PermissionMode::Plan);
    let (recorded, notes) = (Recorded::default(), Notes::default());
    let parts = recorded.parts().model(Arc::new(model));
    let session = AgentSession::open(config, parts.questions(notes.clone())).unwrap();
    in_time(session.answer("go")).await.unwrap();
    assert_eq!(
        *notes.0.lock().unwrap(),
        [
            "question Which way? Left/Right",
            "plan",
            "permission for Write"
        ],
        "{:?}",
        recorded.results()
    );
    assert!(
        recorded.results()[0].contains("Left"),
        "{:?}",
        recorded.results()
    );
    assert_eq!(project.read("work/way.txt"), "left");
}

#[tokio::test]
async fn questions_may_be_events_and_are_answered_by_their_ids() {
    let project = TempProject::new([]);
    let write = |name: &str| call("Write", json!({"file_path": name, "content": "x"}));
    let model = scripted(json!([
        {"content": [write("yes.txt"), write("no.txt")]},
        says("done"),
    ]));
    let (asked, mut questions) = mpsc::unbounded_channel();
    let parts = SessionParts::new(move |event: &SessionEvent| {
        if let SessionEvent::Question { id, request } = event {
            let _ = asked.send((*id, request.asked.clone()));
        }
    });
    let parts = parts.model(Arc::new(model)).questions_as_events();
    let session = AgentSession::open(config(&project), parts).unwrap();
    let input = session.input();
    let running = tokio::spawn(session.answer("go"));
    for _ in 0..2 {
        let (id, call) = in_time(questions.recv()).await.unwrap();
        let answer = match call.unwrap().input.to_string().contains("yes.txt") {
            true => ApprovalAnswer::Allow,
            false => ApprovalAnswer::Deny { reason: None },
        };
        assert!(input.answer(id, answer.clone()));
        assert!(!input.answer(id, answer), "it was answered already");
    }
    let end = in_time(running).await.unwrap().unwrap();
    assert!(end.has_denials);
    assert!(project.path("work/yes.txt").exists());
    assert!(!project.path("work/no.txt").exists());
}
