//! `TaskOutput`: the new output of a background task.

use std::time::Duration;

use haft_contract::{
    AgentAccess, BackgroundTasks, CallContext, Card, CardSection, CheckOutcome, Effects,
    ServiceNeed, Subagents, TaskKind, TaskStatus, Tool, ToolAccess, ToolError, ToolOutput,
    ToolPermission, ToolProfile,
};
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    ShellProgram, command_output,
    job::JobStage,
    ports,
    task_stop::{FoundTask, find, old_name},
    tasks::TaskOutputChunk,
};
use crate::blocking::blocking;

/// The default and the maximum time to wait, in milliseconds.
const WAIT: f64 = 30_000.0;
const MAX_WAIT: f64 = 600_000.0;
/// The maximum output of one result, in bytes. The newest bytes are returned.
const MAX_BYTES: usize = 30_000;

/// Returns the output of a background task since your last call, and its state.
///
/// Waits for its end, up to `timeout`, unless `block` is false. You will be notified when a task ends, and
/// you can read its output file at any time, so there is no need to call this repeatedly.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The id of the task, from the result of Bash or Agent.
    task_id: String,
    /// Wait until it has ended (default true).
    block: Option<bool>,
    /// The maximum time to wait, in milliseconds (default 30000, at most 600000).
    timeout: Option<f64>,
    /// Show only new lines that match this regular expression; the others are treated as read.
    filter: Option<String>,
}

impl Input {
    fn filter(&self) -> Result<Option<Regex>, ToolError> {
        let filter = self.filter.as_deref().filter(|filter| !filter.is_empty());
        filter.map(Regex::new).transpose().map_err(|error| {
            ToolError::Refused(format!(
                "`filter` is not a valid regular expression: {error}"
            ))
        })
    }

    fn wait(&self) -> Option<Duration> {
        let asked = self.timeout.unwrap_or(WAIT).clamp(0.0, MAX_WAIT);
        self.block
            .unwrap_or(true)
            .then(|| Duration::from_secs_f64(asked / 1000.0))
    }
}

pub(crate) struct TaskOutput;

impl Tool for TaskOutput {
    type Input = Input;
    const NAME: &'static str = "TaskOutput";

    fn profile(&self) -> ToolProfile {
        let aliases = [
            "BashOutput",
            "AgentOutput",
            "AgentOutputTool",
            "BashOutputTool",
        ];
        ToolProfile {
            aliases: aliases.map(Into::into).into(),
            family: "shell".into(),
            deferred: true,
            search_hint: "output result status of a background task wait".into(),
            access: ToolAccess::Reads,
            agents: AgentAccess::Main,
            // The background task may be a subagent.
            needs: const { &[ServiceNeed::either::<ShellProgram, Subagents>()] },
            ..ToolProfile::default()
        }
    }

    fn backfill(&self, input: &mut Value) {
        old_name(input, &["bash_id", "agentId"]);
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects {
            in_order: true,
            ..Effects::READS
        }
    }

    fn permission(&self, _: &Input, _: &CallContext) -> ToolPermission {
        ToolPermission::Allow
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        input.filter()?;
        find(&input.task_id, &cx.services).map(|_| CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let id = input.task_id.clone();
        let filter = input.filter()?;
        let shell = match find(&id, &cx.services)? {
            FoundTask::Command(shell) => shell,
            FoundTask::Agent(subagents, _) => return agent_output(&subagents, input, cx).await,
            FoundTask::Watch(..) => {
                return Err(ToolError::Refused(format!(
                    "{id} is running, and its events are sent to you automatically: there is no other output to read."
                )));
            }
        };
        let gone = || ToolError::Failed(format!("Task {id} is no longer stored."));
        let job = shell.tasks().job(&id).ok_or_else(gone)?;
        let mut waited = false;
        if let Some(longest) = input.wait() {
            waited = true;
            tokio::select! {
                _ = job.wait_until_gone() => job.drain_output().await,
                () = sleep(longest) => {}
                () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            }
        }
        let mut listening = Vec::new();
        if !matches!(job.stage(), JobStage::Gone(_)) {
            let pids: Vec<u32> = job.processes().await.iter().map(|one| one.pid).collect();
            listening = blocking(move || ports::listening(pids))
                .await?
                .into_iter()
                .collect();
        }
        let (tasks, asked) = (shell.tasks().clone(), id.clone());
        let news = blocking(move || tasks.take_output(&asked, MAX_BYTES)).await?;
        let news = news.ok_or_else(gone)?;
        let status = match (news.info.status, waited) {
            (TaskStatus::Running, true) => "timeout",
            (TaskStatus::Running, false) => "not_ready",
            _ => "success",
        };
        Ok(output(&news, status, filter.as_ref(), &listening))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new(Self::NAME, &*input.task_id))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let status = output
            .structured
            .as_ref()?
            .pointer("/task/status")?
            .as_str()?;
        let card = Card::new(Self::NAME, &*input.task_id).with_summary(status);
        Some(match printed(output) {
            Some(text) => card.with(CardSection::Text(text)),
            None => card,
        })
    }
}

/// Returns the state of a subagent, and its last message.
async fn agent_output(
    subagents: &Subagents,
    input: &Input,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let id = &input.task_id;
    let wait = input.wait();
    if let Some(longest) = wait {
        tokio::select! {
            () = subagents.0.wait(id) => {}
            () = sleep(longest) => {}
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
        }
    }
    let gone = || ToolError::Failed(format!("Task {id} is no longer stored."));
    let looked = subagents.0.status(id).ok_or_else(gone)?;
    let is_over = looked.status != TaskStatus::Running;
    if is_over && let Ok(notices) = cx.services.get::<BackgroundTasks>() {
        notices.drop_notice(&looked.id);
    }
    let retrieval = match (is_over, wait.is_some()) {
        (true, _) => "success",
        (false, true) => "timeout",
        (false, false) => "not_ready",
    };
    let kind = TaskKind::Agent.name();
    let status = looked.status.name();
    let text = looked.text.replace("</output>", "<\\/output>");
    let lines = [
        format!("<retrieval_status>{retrieval}</retrieval_status>"),
        format!("<task_id>{}</task_id>", looked.id),
        format!("<task_type>{kind}</task_type>"),
        format!("<status>{status}</status>"),
        match text.is_empty() {
            true => "<output></output>".to_owned(),
            false => format!("<output>\n{text}\n</output>"),
        },
    ];
    Ok(ToolOutput::text(lines.join("\n")).with_structured(json!({
        "task": {
            "task_id": looked.id,
            "task_type": kind,
            "status": status,
            "description": looked.description,
            "output_file": looked.output_file,
        },
        "retrieval_status": retrieval,
    })))
}

/// Returns the part of a result that is shown to the user: only the output.
fn printed(output: &ToolOutput) -> Option<String> {
    let text = output.content.first()?.as_text()?;
    let (_, printed) = text.split_once("<output>\n")?;
    let printed = printed.strip_suffix("\n</output>")?;
    Some(printed.to_owned())
}

fn output(
    news: &TaskOutputChunk,
    status: &str,
    filter: Option<&Regex>,
    listening: &[u16],
) -> ToolOutput {
    let info = &news.info;
    let mut text = command_output::plain(&news.bytes);
    if let Some(filter) = filter {
        let lines: Vec<&str> = text.lines().filter(|line| filter.is_match(line)).collect();
        text = lines.join("\n");
    }
    let mut lines = vec![
        format!("<retrieval_status>{status}</retrieval_status>"),
        format!("<task_id>{}</task_id>", info.id),
        format!("<task_type>{}</task_type>", info.kind.name()),
        format!("<status>{}</status>", info.status.name()),
    ];
    if let Some(code) = info.exit_code {
        lines.push(format!("<exit_code>{code}</exit_code>"));
    }
    if let Some(ended) = info.ended.as_ref().filter(|_| info.exit_code.is_none()) {
        lines.push(format!("<ended>{ended}</ended>"));
    }
    if !listening.is_empty() {
        let ports: Vec<String> = listening.iter().map(u16::to_string).collect();
        lines.push(format!("<listening_on>{}</listening_on>", ports.join(", ")));
    }
    lines.push(format!(
        "<output_file>{}</output_file>",
        info.output_file.display()
    ));
    if news.skipped > 0 {
        lines.push(format!(
            "<left_out>{} bytes before these; they are in the output file</left_out>",
            news.skipped
        ));
    }
    for note in news.file_error.iter().chain(&info.notes) {
        lines.push(format!("<note>{note}</note>"));
    }
    // A delimiter in the output must not end the block.
    let text = text.replace("</output>", "<\\/output>");
    lines.push(match text.is_empty() {
        true => "<output></output>".to_owned(),
        false => format!("<output>\n{text}\n</output>"),
    });
    let mut structured = json!({
        "task": {
            "task_id": info.id,
            "task_type": info.kind.name(),
            "status": info.status.name(),
            "description": info.description,
            "output_file": info.output_file,
        },
        "retrieval_status": status,
    });
    if let Some(code) = info.exit_code {
        structured["exit_code"] = code.into();
    }
    ToolOutput::text(lines.join("\n")).with_structured(structured)
}
