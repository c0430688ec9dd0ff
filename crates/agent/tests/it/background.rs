//! Tasks in the background: when the model hears of their end.

use std::sync::Arc;

use haft_agent::{Agent, EndReason, ModelSettings};
use haft_contract::{BackgroundTasks, PermissionMode, Services, TaskKind, TaskNotice, TaskStatus};
use haft_models::{ScriptedModel, StopReason};
use serde_json::json;

use crate::rig::{Rig, Steered, Step, assert_valid, call, scripted, shown, stop, text_reply};

fn notice(id: &str) -> TaskNotice {
    TaskNotice {
        id: id.to_owned(),
        kind: TaskKind::Shell,
        status: TaskStatus::Completed,
        summary: format!("{id} is over"),
        result: String::new(),
        notes: Vec::new(),
        output_file: None,
        tool_use_id: None,
        usage: None,
    }
}

async fn agent(
    rig: &Rig,
    model: impl haft_models::Model + 'static,
    notices: &Arc<BackgroundTasks>,
) -> Agent {
    let services = Services::none().with(Arc::clone(notices));
    let scheduler = rig.scheduler(PermissionMode::BypassPermissions, |builder| {
        builder.services(services)
    });
    Agent::builder(scheduler.await, Arc::new(model), ModelSettings::new("m")).build()
}

fn told(agent: &Agent) -> Vec<String> {
    let lines = shown(agent.conversation().messages());
    let first = |line: &String| line.lines().next().unwrap_or_default().to_owned();
    lines.iter().map(first).collect()
}

#[tokio::test]
async fn a_task_that_ends_during_a_run_is_told_before_the_next_request() {
    let rig = Rig::new();
    let notices = Arc::new(BackgroundTasks::default());
    let mut first = call(0, "a", &json!({"key": "a", "until": "told"}));
    first.push(stop(StopReason::ToolUse));
    let model = Steered::new(&rig.stage, [first, text_reply(0, "done")]);
    let mut agent = agent(&rig, model, &notices).await;
    let ending = async {
        while rig.stage.runs().is_empty() {
            tokio::task::yield_now().await;
        }
        notices.push(notice("bash_1"));
        rig.stage.flag("told");
    };
    let (ended, ()) = tokio::join!(agent.run("go", &rig.ear), ending);
    assert_eq!((ended.num_turns, ended.text.as_str()), (2, "done"));
    assert_valid(agent.conversation());
    assert_eq!(
        told(&agent)[2..],
        [
            "user: result a: a done",
            "user: <task_notification>",
            "model: done"
        ]
    );
}

#[tokio::test]
async fn a_task_that_ends_while_the_model_says_its_last_words_is_told_in_the_same_run() {
    let rig = Rig::new();
    let notices = Arc::new(BackgroundTasks::default());
    let mut first = vec![Step::Until("told")];
    first.extend(text_reply(0, "waiting"));
    let model = Steered::new(&rig.stage, [first, text_reply(0, "heard")]);
    let mut agent = agent(&rig, model, &notices).await;
    let ending = async {
        notices.push(notice("bash_1"));
        rig.stage.flag("told");
    };
    // The first request is made before the task ends: the loop is polled first.
    let (ended, ()) = tokio::join!(biased; agent.run("go", &rig.ear), ending);
    assert_eq!((ended.num_turns, ended.text.as_str()), (2, "heard"));
    assert_valid(agent.conversation());
}

#[tokio::test]
async fn between_runs_it_is_told_in_a_run_of_its_own() {
    let rig = Rig::new();
    let notices = Arc::new(BackgroundTasks::default());
    let says = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let model: ScriptedModel = scripted(&json!({"turns": [says("started"), says("heard")]}));
    let mut agent = agent(&rig, model, &notices).await;
    agent.run("go", &rig.ear).await;
    notices.push(notice("bash_1"));
    notices.push(notice("bash_2"));
    let ended = agent.run_background_notices(&rig.ear).await;
    assert_eq!(
        (ended.reason, ended.text.as_str()),
        (EndReason::Completed, "heard")
    );
    assert!(notices.take_notices().is_empty());
    assert_eq!(
        told(&agent),
        [
            "user: go",
            "model: started",
            "user: <task_notification>",
            "user: <task_notification>",
            "model: heard"
        ]
    );
}
