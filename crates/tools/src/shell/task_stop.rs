//! `TaskStop`: ends a background task.

use haft_contract::{
    Access, CallContext, Card, Check, Effects, Permission, Profile, Tool, ToolError, ToolOutput,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Shell,
    tasks::{Stop, Tasks},
};

/// Ends a background task, with everything it started.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The id of the task, as Bash gave it.
    task_id: String,
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

    fn backfill(&self, input: &mut Value) {
        old_name(input, &["shell_id"]);
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
        let id = &input.task_id;
        match shell.tasks().job(id) {
            Some(_) => Ok(Check::Pass),
            None => Err(ToolError::Refused(unknown(id, shell.tasks()))),
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let shell = cx.services.get::<Shell>()?;
        let id = &input.task_id;
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
        Some(Card::new(Self::NAME, &*input.task_id))
    }

    fn render_result(&self, input: &Input, _: &ToolOutput) -> Option<Card> {
        Some(self.render_use(input)?.with_summary("stopped"))
    }
}

/// Takes an id that came under an old name.
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
