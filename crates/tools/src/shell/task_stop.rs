//! `TaskStop`: ends a background task.

use haft_contract::{
    Access, CallContext, Card, Check, Effects, Permission, Profile, Tool, ToolError, ToolOutput,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    Shell,
    tasks::{Stop, Tasks},
};

/// Ends a background task, with everything it started.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The id of the task, as Bash gave it.
    task_id: Option<String>,
    /// The same, by its old name.
    #[schemars(skip)]
    shell_id: Option<String>,
}

impl Input {
    fn id(&self) -> Option<&str> {
        self.task_id.as_deref().or(self.shell_id.as_deref())
    }
}

pub(crate) struct TaskStop;

impl Tool for TaskStop {
    type Input = Input;
    const NAME: &'static str = "TaskStop";

    fn profile(&self) -> Profile {
        Profile {
            aliases: vec!["KillShell".into(), "KillBash".into()],
            family: "shell".into(),
            search_hint: "stop kill end background task process server".into(),
            access: Access::Anything,
            ..Profile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        // Alone: a call before it may be about the same task.
        Effects {
            patches: false,
            ..Effects::EXCLUSIVE
        }
    }

    fn permission(&self, _: &Input, _: &CallContext) -> Permission {
        // Only what the session itself has started.
        Permission::Allow
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<Check, ToolError> {
        let shell = cx.services.get::<Shell>()?;
        let Some(id) = input.id() else {
            return Err(ToolError::Refused(
                "`task_id` is missing: name the task to stop.".to_owned(),
            ));
        };
        match shell.tasks().job(id) {
            Some(_) => Ok(Check::Pass),
            None => Err(ToolError::Refused(unknown(id, shell.tasks()))),
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let shell = cx.services.get::<Shell>()?;
        let id = input.id().unwrap_or_default();
        let stopped = shell.tasks().stop(id).await.map_err(|stop| {
            ToolError::Failed(match stop {
                Stop::Unknown => unknown(id, shell.tasks()),
                Stop::Over(info) => format!(
                    "Task {id} is not running: it is {} ({}).",
                    info.status.name(),
                    info.ended.unwrap_or_default()
                ),
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
            "task_type": "local_bash",
            "command": stopped.command,
        })))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new(Self::NAME, input.id().unwrap_or_default()))
    }
}

/// What is said of a task that is not there.
pub(crate) fn unknown(id: &str, tasks: &Tasks) -> String {
    let running: Vec<String> = tasks
        .running()
        .into_iter()
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
