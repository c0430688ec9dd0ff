//! `TaskStop`: ends a background task.

use std::sync::Arc;

use haft_contract::{
    AgentStatus, BackgroundTask, BackgroundTasks, CallContext, Card, CheckOutcome, Effects,
    ServiceNeed, Services, Subagents, TaskKind, TaskStatus, Tool, ToolAccess, ToolError,
    ToolOutput, ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ShellProgram, ShellService, tasks::StopTaskError};

/// Ends a background task, with everything it started.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The id of the task, from the result of Bash or Agent, or the name of an agent.
    task_id: String,
}

pub(crate) struct TaskStop;

impl Tool for TaskStop {
    type Input = Input;
    const NAME: &'static str = "TaskStop";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            aliases: vec!["KillShell".into(), "KillBash".into()],
            family: "shell".into(),
            search_hint: "stop kill end background task process server".into(),
            access: ToolAccess::Anything,
            needs: const { &[ServiceNeed::either::<ShellProgram, Subagents>()] },
            ..ToolProfile::default()
        }
    }

    fn backfill(&self, input: &mut Value) {
        old_name(input, &["shell_id"]);
    }

    fn effects(&self, _: &Input) -> Effects {
        // Exclusive, because an earlier call may refer to the same task.
        Effects {
            patches: false,
            ..Effects::EXCLUSIVE
        }
    }

    fn permission(&self, _: &Input, _: &CallContext) -> ToolPermission {
        // Only tasks of this session can be stopped.
        ToolPermission::Allow
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        find(&input.task_id, &cx.services).map(|_| CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let id = &input.task_id;
        let shell = match find(id, &cx.services)? {
            FoundTask::Command(shell) => shell,
            FoundTask::Agent(subagents, looked) => return stop_agent(&subagents, looked, cx).await,
            FoundTask::Watch(notices, task) => return stop_watch(&notices, &task).await,
        };
        let stopped = shell.tasks().stop(id).await.map_err(|stop| {
            ToolError::Failed(match stop {
                StopTaskError::Unknown => unknown(id, &cx.services),
                StopTaskError::AlreadyEnded(info) => {
                    let ended = info.ended.unwrap_or_default();
                    format!(
                        "Task {id} is not running: it is {} ({ended}).",
                        info.status.name()
                    )
                }
            })
        })?;
        let message = format!(
            "Stopped task {id} ({}). Its output is in {}",
            stopped.description,
            stopped.output_file.display()
        );
        Ok(ToolOutput::text(message.clone()).with_structured(json!({
            "message": message,
            "task_id": stopped.id,
            "task_type": stopped.kind.name(),
            "command": stopped.command,
        })))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new(Self::NAME, &*input.task_id))
    }

    fn render_result(&self, input: &Input, _: &ToolOutput) -> Option<Card> {
        Some(self.render_use(input)?.with_summary("stopped"))
    }
}

/// Accepts an id under its former parameter name.
pub(crate) fn old_name(input: &mut Value, names: &[&str]) {
    let Some(input) = input.as_object_mut() else {
        return;
    };
    for name in names {
        if let Some(id) = input.shift_remove(*name)
            && !id.is_null()
        {
            input.entry("task_id").or_insert(id);
        }
    }
}

/// A background task.
pub(crate) enum FoundTask {
    Command(Arc<ShellService>),
    Agent(Arc<Subagents>, AgentStatus),
    /// A monitor that does not run a command.
    Watch(Arc<BackgroundTasks>, BackgroundTask),
}

/// Returns the task with this id.
pub(crate) fn find(id: &str, services: &Services) -> Result<FoundTask, ToolError> {
    if let Ok(shell) = services.get::<ShellService>()
        && shell.tasks().job(id).is_some()
    {
        return Ok(FoundTask::Command(shell));
    }
    if let Ok(subagents) = services.get::<Subagents>()
        && let Some(looked) = subagents.0.status(id)
    {
        return Ok(FoundTask::Agent(subagents, looked));
    }
    if let Ok(notices) = services.get::<BackgroundTasks>() {
        let is_meant = |task: &BackgroundTask| task.id == id && task.kind == TaskKind::Monitor;
        if let Some(task) = notices.running().into_iter().find(is_meant) {
            return Ok(FoundTask::Watch(notices, task));
        }
    }
    Err(ToolError::Refused(unknown(id, services)))
}

/// Ends a monitor that does not run a command.
async fn stop_watch(
    notices: &BackgroundTasks,
    task: &BackgroundTask,
) -> Result<ToolOutput, ToolError> {
    let id = &task.id;
    task.stop.cancel();
    notices.wait_until_finished(id).await;
    // The result informs the model, so the notice is withdrawn.
    notices.drop_notice(id);
    let message = format!("Stopped task {id} ({}).", task.description);
    Ok(ToolOutput::text(message.clone()).with_structured(json!({
        "message": message,
        "task_id": id,
        "task_type": task.kind.name(),
        "command": task.prompt,
    })))
}

async fn stop_agent(
    subagents: &Subagents,
    looked: AgentStatus,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let id = &looked.id;
    if looked.status != TaskStatus::Running {
        let status = looked.status.name();
        return Err(ToolError::Failed(format!(
            "Task {id} is not running: it is {status}."
        )));
    }
    subagents.0.stop(id);
    subagents.0.wait(id).await;
    // The result informs the model, so the notice is withdrawn.
    if let Ok(notices) = cx.services.get::<BackgroundTasks>() {
        notices.drop_notice(id);
    }
    let message = format!("Stopped task {id} ({}).", looked.description);
    Ok(ToolOutput::text(message.clone()).with_structured(json!({
        "message": message,
        "task_id": id,
        "task_type": TaskKind::Agent.name(),
    })))
}

/// Returns the error text for an unknown task.
fn unknown(id: &str, services: &Services) -> String {
    let running = services
        .get::<BackgroundTasks>()
        .map(|notices| notices.running());
    let running: Vec<String> = running
        .into_iter()
        .flatten()
        .filter(|task| task.in_background)
        .map(|task| format!("\n{}: {}", task.id, task.description))
        .collect();
    match running.is_empty() {
        true => format!("There is no task {id:?}. No background task is running."),
        false => format!(
            "There is no task {id:?}. Running background tasks:{}",
            running.concat()
        ),
    }
}
