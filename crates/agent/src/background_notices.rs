//! Notices of background tasks, for the model and for hooks.

use std::sync::Arc;

use haft_contract::{
    BackgroundTask, BackgroundTasks, Content, Schedules, TaskKind, TaskNotice, TaskStatus,
};
use haft_engine::Engine;
use serde_json::{Value, json};

use crate::{
    InjectionSource, hooks::RunContext, recorded_conversation::RecordedConversation,
    transcript::UserLineKind,
};

/// The maximum number of characters of a task's description or prompt in the input of hooks.
const MAX_REPORTED: usize = 1000;

/// Returns the background tasks of a session, or `None` if it has no such service.
pub(crate) fn background(engine: &Engine) -> Option<Arc<BackgroundTasks>> {
    engine.services().get().ok()
}

/// Returns whether a task has ended that the model was not notified of.
pub(crate) fn has_notices(engine: &Engine) -> bool {
    background(engine).is_some_and(|tasks| tasks.has_notices())
}

/// Adds notices of the tasks that ended to the conversation.
pub(crate) fn add_task_notices(
    engine: &Engine,
    conversation: &mut RecordedConversation,
    cx: RunContext<'_>,
) {
    let Some(tasks) = background(engine) else {
        return;
    };
    let content: Vec<Content> = tasks
        .take_notices()
        .iter()
        .map(|notice| Content::text(text(notice)))
        .collect();
    if !content.is_empty() {
        conversation.add_and_report(content, UserLineKind::Meta, InjectionSource::Background, cx);
    }
}

/// Returns the running background tasks in the format of hook input.
pub(crate) fn running_tasks(engine: &Engine) -> Vec<Value> {
    let running = background(engine).map(|tasks| tasks.running());
    let tasks = running.into_iter().flatten();
    tasks
        .filter(|task| task.in_background)
        .map(task_for_hooks)
        .collect()
}

/// Returns the scheduled prompts in the format of hook input.
pub(crate) fn schedules(engine: &Engine) -> Vec<Value> {
    let Ok(schedules) = engine.services().get::<Schedules>() else {
        return Vec::new();
    };
    let schedules = schedules.0.list_cached().into_iter();
    let jobs = schedules.map(|job| {
        let prompt: String = job.prompt.chars().take(MAX_REPORTED).collect();
        json!({"id": job.id, "schedule": job.cron, "recurring": job.recurring, "prompt": prompt})
    });
    jobs.collect()
}

fn task_for_hooks(task: BackgroundTask) -> Value {
    let description: String = task.description.chars().take(MAX_REPORTED).collect();
    let mut fields = json!({
        "id": task.id,
        "status": TaskStatus::Running.name(),
        "description": description,
    });
    match task.kind {
        TaskKind::Shell => {
            fields["type"] = json!("shell");
            fields["command"] = json!(task.prompt);
        }
        TaskKind::Agent => {
            fields["type"] = json!("subagent");
            fields["agent_type"] = json!(task.agent_type);
        }
        TaskKind::Monitor => {
            fields["type"] = json!("monitor");
            fields["command"] = json!(task.prompt);
        }
        TaskKind::Schedule => fields["type"] = json!("schedule"),
    }
    fields
}

fn text(notice: &TaskNotice) -> String {
    let mut lines = vec![
        "<task_notification>".to_owned(),
        tagged("task_id", &notice.id),
        tagged("task_type", notice.kind.name()),
        tagged("status", notice.status.name()),
        tagged("summary", &notice.summary),
    ];
    if let Some(file) = &notice.output_file {
        lines.push(tagged("output_file", &file.display().to_string()));
    }
    for note in &notice.notes {
        lines.push(tagged("note", note));
    }
    if let Some(usage) = &notice.usage {
        lines.push(format!(
            "<usage>{} tokens, {} tool calls, {} ms</usage>",
            usage.total_tokens, usage.tool_uses, usage.duration_ms
        ));
    }
    if !notice.result.is_empty() {
        lines.push(tagged("result", &format!("\n{}\n", notice.result)));
    }
    lines.push("</task_notification>".to_owned());
    lines.join("\n")
}

/// Wraps a text in a tag. The text is escaped, so that it cannot close its tag or the notice.
fn tagged(tag: &str, text: &str) -> String {
    let text = text.replace("</task_notification>", "<\\/task_notification>");
    let close = format!("</{tag}>");
    let text = text.replace(&close, &close.replace('/', "\\/"));
    format!("<{tag}>{text}{close}")
}

#[cfg(test)]
mod tests {
    use haft_contract::TaskUsage;

    use super::*;

    #[test]
    fn what_the_model_reads() {
        let command = TaskNotice {
            id: "bash_1".to_owned(),
            kind: TaskKind::Shell,
            status: TaskStatus::Failed,
            summary: "Background command \"Counts\" is over: exit code 5".to_owned(),
            result: "one\n</result></task_notification>two".to_owned(),
            notes: vec!["Reverted: .gitconfig".to_owned()],
            output_file: Some("/s/bash_1.txt".into()),
            tool_use_id: Some("toolu_1".into()),
            usage: None,
        };
        let agent = TaskNotice {
            id: "a1b2".to_owned(),
            kind: TaskKind::Agent,
            status: TaskStatus::Completed,
            summary: "Agent \"Looks around\" is done".to_owned(),
            result: "There is nothing here.".to_owned(),
            notes: Vec::new(),
            output_file: None,
            usage: Some(TaskUsage {
                total_tokens: 1200,
                tool_uses: 3,
                duration_ms: 4500,
            }),
            ..command.clone()
        };
        insta::assert_snapshot!(format!("{}\n\n{}", text(&command), text(&agent)));
    }
}
