//! Permissions that end after a time or with the result of a prompt, in whole sessions.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use haft_contract::{ApprovalAnswer, ApprovalRequest, GrantEnd};
use haft_host::{AgentSession, EarlierConversation, ManualClock, PromptDelivery, SessionInput};
use haft_testkit::{TempProject, until};
use serde_json::{Value, json};

use crate::rig::{Recorded, call, config, in_time, says, scripted};

const RULE: &str = "Bash(touch *)";

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
}

fn touches(file: &str) -> Value {
    json!({"content": [call("Bash", json!({"command": format!("touch {file}")}))]})
}

/// A session that records its questions, and answers the first one with a permission.
struct Asked {
    input: SessionInput,
    recorded: Recorded,
    running: tokio::task::JoinHandle<Result<haft_host::SessionEnd, haft_host::OpenError>>,
    questions: Arc<Mutex<Vec<ApprovalRequest>>>,
}

impl Asked {
    fn begin(
        project: &TempProject,
        clock: &Arc<ManualClock>,
        end: Option<GrantEnd>,
        turns: Value,
    ) -> Self {
        let questions: Arc<Mutex<Vec<ApprovalRequest>>> = Arc::default();
        let to = Arc::clone(&questions);
        let recorded = Recorded::default();
        let parts = recorded
            .parts()
            .clock(Arc::clone(clock) as _)
            .model(Arc::new(scripted(turns)))
            .questions(move |request: &ApprovalRequest| {
                let mut questions = to.lock().unwrap();
                questions.push(request.clone());
                match (questions.len(), end) {
                    (1, Some(end)) => ApprovalAnswer::allow_until(vec![RULE.to_owned()], end),
                    _ => ApprovalAnswer::Deny { reason: None },
                }
            });
        let mut config = config(project);
        config.conversation.from = end.is_none().then_some(EarlierConversation::Newest);
        let session = AgentSession::open(config, parts).unwrap();
        Self {
            input: session.input(),
            running: tokio::spawn(session.run()),
            recorded,
            questions,
        }
    }

    /// Sends a prompt and waits for its result. Returns the number of questions so far.
    async fn prompt(&self) -> usize {
        let count = self.recorded.answers().len() + 1;
        self.input.submit("go", PromptDelivery::AfterRun);
        until("the prompt is answered", || {
            self.recorded.answers().len() == count
        })
        .await;
        self.questions.lock().unwrap().len()
    }

    async fn end(self) {
        self.input.close();
        in_time(self.running).await.unwrap().unwrap();
    }
}

/// Vector R5.
#[tokio::test(flavor = "multi_thread")]
async fn a_permission_for_30_minutes_lasts_over_prompts_but_not_over_a_resume() {
    let project = TempProject::new([]);
    let clock = Arc::new(ManualClock::new(at(0)));
    let turns = json!([
        touches("a"),
        says("1"),
        touches("b"),
        says("2"),
        touches("c"),
        says("3"),
    ]);
    let first = Asked::begin(&project, &clock, Some(GrantEnd::HALF_HOUR), turns);
    assert_eq!(first.prompt().await, 1);
    let input = first.input.clone();
    let listed = tokio::task::spawn_blocking(move || input.rules()).await;
    let listed = listed.unwrap().unwrap();
    assert!(
        listed
            .iter()
            .any(|rule| rule.rule == RULE && rule.scope == "this session, 30 min left"),
        "{listed:?}"
    );
    clock.set(at(29 * 60 + 59));
    assert_eq!(first.prompt().await, 1);
    assert!(project.path("work/b").exists());
    clock.set(at(30 * 60 + 1));
    assert_eq!(first.prompt().await, 2);
    assert!(!project.path("work/c").exists());
    let ended = "the 30-minute permission for `touch *` has ended";
    assert_eq!(first.questions.lock().unwrap()[1].reasons[0], ended);
    first.end().await;
    assert!(
        !project.path("work/.claude").exists(),
        "it is saved in no file"
    );

    let project = TempProject::new([]);
    let turns = json!([touches("a"), says("1")]);
    let first = Asked::begin(&project, &clock, Some(GrantEnd::HALF_HOUR), turns);
    assert_eq!(first.prompt().await, 1);
    first.end().await;
    let turns = json!([touches("b"), says("2")]);
    let resumed = Asked::begin(&project, &clock, None, turns);
    assert_eq!(resumed.prompt().await, 1, "the resumed session asks");
    assert!(!project.path("work/b").exists());
    resumed.end().await;
}

/// Vector R5.
#[tokio::test(flavor = "multi_thread")]
async fn a_permission_for_a_task_ends_with_the_result_of_the_prompt() {
    let project = TempProject::new([]);
    let clock = Arc::new(ManualClock::new(at(0)));
    let turns = json!([
        touches("a"),
        touches("b"),
        says("1"),
        touches("c"),
        says("2"),
    ]);
    let session = Asked::begin(&project, &clock, Some(GrantEnd::Task), turns);
    assert_eq!(session.prompt().await, 1);
    assert!(project.path("work/b").exists());
    assert_eq!(session.prompt().await, 2);
    let ended = "the permission for `touch *` has ended with its task";
    assert_eq!(session.questions.lock().unwrap()[1].reasons[0], ended);
    assert!(!project.path("work/c").exists());
    session.end().await;
}
