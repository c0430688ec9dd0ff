//! Permissions that end after a time or with a task.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, GrantEnd, PermissionMode, Services,
};
use haft_engine::{
    Engine, Scheduler, SessionContext, SubagentEngineParts, ToolRegistry, hooks::AgentIdentity,
};
use haft_testkit::TempProject;
use serde_json::json;

use crate::{always::Remote, rig::tool_use};

const RULE: &str = "mcp__toy__x";

/// Answers each question with the next answer, then with a denial.
#[derive(Default)]
struct Answers {
    answers: Mutex<Vec<ApprovalAnswer>>,
    asked: Mutex<Vec<ApprovalRequest>>,
}

impl Approver for Answers {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.asked.lock().unwrap().push(question);
        let next = self.answers.lock().unwrap().pop();
        Box::pin(async move { next.unwrap_or(ApprovalAnswer::Deny { reason: None }) })
    }
}

struct Rig {
    _project: TempProject,
    scheduler: Scheduler,
    answers: Arc<Answers>,
    now: Arc<Mutex<SystemTime>>,
}

impl Rig {
    async fn new(mode: PermissionMode, answer: ApprovalAnswer) -> Self {
        let project = TempProject::new([("work/a.txt", "alpha\n")]);
        let mut registry = ToolRegistry::new();
        registry.add(Remote).unwrap();
        let answers = Arc::new(Answers::default());
        answers.answers.lock().unwrap().push(answer);
        let now = Arc::new(Mutex::new(SystemTime::UNIX_EPOCH));
        let clock = Arc::clone(&now);
        let (engine, _) = Engine::builder(registry, project.path("session"))
            .services(Services::none().with_approver(Arc::clone(&answers) as Arc<dyn Approver>))
            .clock(Arc::new(move || *clock.lock().unwrap()))
            .build()
            .await;
        let context = SessionContext::new(project.path("work")).with_mode(mode);
        Self {
            scheduler: engine.scheduler(context),
            _project: project,
            answers,
            now,
        }
    }

    /// Runs a call at this second. Returns whether it ran.
    async fn runs_at(&mut self, second: u64) -> bool {
        *self.now.lock().unwrap() = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        let mut turn = self.scheduler.start_batch().await;
        turn.push(tool_use(RULE, json!({})));
        !turn.next().await.unwrap().is_error
    }

    fn asked(&self) -> usize {
        self.answers.asked.lock().unwrap().len()
    }

    /// Returns the reasons of the last question.
    fn reasons(&self) -> (String, Vec<String>) {
        let asked = self.answers.asked.lock().unwrap();
        let last = asked.last().unwrap();
        (last.reason.clone(), last.reasons.clone())
    }
}

fn until(end: GrantEnd) -> ApprovalAnswer {
    ApprovalAnswer::allow_until(vec![RULE.to_owned()], end)
}

/// Vector R5.
#[tokio::test]
async fn a_permission_for_30_minutes_ends_after_30_minutes_and_the_next_question_says_so() {
    let mut rig = Rig::new(PermissionMode::Default, until(GrantEnd::HALF_HOUR)).await;
    assert!(rig.runs_at(0).await);
    assert!(rig.runs_at(29 * 60 + 59).await);
    assert_eq!(rig.asked(), 1);
    let left = rig.scheduler.engine().grants().list();
    assert_eq!(left[0].left, Some(Duration::from_secs(1)));
    assert!(!rig.runs_at(30 * 60 + 1).await);
    let ended = format!("the 30-minute permission for `{RULE}` has ended");
    let (reason, reasons) = rig.reasons();
    assert_eq!(reasons[0], ended);
    assert!(reason.starts_with(&ended), "{reason}");
    assert!(!rig.runs_at(30 * 60 + 2).await);
    assert!(!rig.reasons().0.contains("ended"), "it is said once");
    assert_eq!(rig.scheduler.engine().grants().list(), []);
    // The context, from which transcripts and subagents get rules, never contains the rule.
    assert!(rig.scheduler.context().rules.is_empty());
}

#[tokio::test]
async fn a_permission_for_a_task_ends_with_it() {
    let mut rig = Rig::new(PermissionMode::Default, until(GrantEnd::Task)).await;
    assert!(rig.runs_at(0).await);
    assert!(rig.runs_at(100_000).await, "it has no time limit");
    rig.scheduler.engine().grants().end_task();
    assert!(!rig.runs_at(100_001).await);
    let ended = format!("the permission for `{RULE}` has ended with its task");
    assert_eq!(rig.reasons().1[0], ended);
}

#[tokio::test]
async fn subagents_share_permissions_that_end_and_lose_them_at_the_same_time() {
    let mut rig = Rig::new(PermissionMode::Default, until(GrantEnd::HALF_HOUR)).await;
    let engine = Arc::clone(rig.scheduler.engine());
    let part = SubagentEngineParts {
        pool: engine.pool().filtered(|_| true),
        services: engine.services().clone(),
        model: "m".into(),
        agent: AgentIdentity::default(),
        handlers: Vec::new(),
    };
    // It is started before the user answers.
    let subagent = engine.for_subagent(part);
    let mut subagent = subagent.scheduler(rig.scheduler.context());
    assert!(rig.runs_at(0).await);
    std::mem::swap(&mut rig.scheduler, &mut subagent);
    assert!(rig.runs_at(60).await);
    assert_eq!(rig.asked(), 1);
    assert!(!rig.runs_at(30 * 60 + 1).await);
}

#[tokio::test]
async fn a_clock_that_is_set_back_before_the_answer_ends_the_permission() {
    let mut rig = Rig::new(PermissionMode::Default, until(GrantEnd::HALF_HOUR)).await;
    assert!(rig.runs_at(1_000).await);
    assert!(!rig.runs_at(999).await);
}

#[tokio::test]
async fn a_permission_that_the_user_ends_is_not_mentioned_again() {
    let mut rig = Rig::new(PermissionMode::Default, until(GrantEnd::HALF_HOUR)).await;
    assert!(rig.runs_at(0).await);
    assert!(rig.scheduler.engine().grants().revoke(RULE));
    assert!(!rig.scheduler.engine().grants().revoke(RULE));
    assert!(!rig.runs_at(1).await);
    assert!(!rig.reasons().0.contains("ended"));
}

#[tokio::test]
async fn an_end_that_is_beyond_all_time_permits_only_this_call() {
    let mut rig = Rig::new(PermissionMode::Default, until(GrantEnd::Seconds(u64::MAX))).await;
    assert!(rig.runs_at(0).await);
    assert!(!rig.runs_at(1).await);
}

#[tokio::test]
async fn a_permission_loosens_no_mode_that_ignores_rules() {
    let mut rig = Rig::new(PermissionMode::Plan, until(GrantEnd::HALF_HOUR)).await;
    assert!(rig.runs_at(0).await, "the user agreed to this call");
    assert!(!rig.runs_at(1).await);
}
