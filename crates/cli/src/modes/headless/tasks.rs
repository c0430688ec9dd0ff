//! Converts events of background tasks to messages.

use std::borrow::Cow;

use haft::{BackgroundTask, TaskEvent, TaskKind, TaskNotice, TaskStatus, TaskUsage};
use haft_protocol::{
    SystemMessage, TaskNotificationMessage, TaskPatch, TaskProgressMessage, TaskStartedMessage,
    TaskUpdatedMessage, TaskUsageReport,
};

pub(super) fn messages(event: &TaskEvent) -> Vec<SystemMessage<'_>> {
    match event {
        TaskEvent::Began(task) => vec![task_started(task)],
        TaskEvent::Progress {
            task,
            usage: used,
            last_tool,
        } => {
            vec![SystemMessage::TaskProgress(TaskProgressMessage {
                task_id: (&task.id).into(),
                description: (&task.description).into(),
                usage: usage(used),
                tool_use_id: task.tool_use_id.as_deref().map(Cow::Borrowed),
                last_tool_name: last_tool.as_deref().map(Cow::Borrowed),
                ..TaskProgressMessage::default()
            })]
        }
        TaskEvent::MovedToBackground(task) => {
            let patch = TaskPatch {
                is_backgrounded: Some(true),
                ..TaskPatch::default()
            };
            vec![task_updated(&task.id, patch)]
        }
        TaskEvent::Reported(notice) => {
            vec![SystemMessage::TaskProgress(TaskProgressMessage {
                task_id: (&notice.id).into(),
                description: (&notice.summary).into(),
                tool_use_id: notice.tool_use_id.as_deref().map(Cow::Borrowed),
                summary: Some((&notice.result).into()),
                ..TaskProgressMessage::default()
            })]
        }
        TaskEvent::Over(notice) => {
            let patch = TaskPatch {
                status: Some(notice.status.name().into()),
                end_time: Some(now()),
                ..TaskPatch::default()
            };
            vec![task_updated(&notice.id, patch), task_ended(notice)]
        }
        _ => Vec::new(),
    }
}

fn task_started(task: &BackgroundTask) -> SystemMessage<'_> {
    let is_agent = task.kind == TaskKind::Agent;
    SystemMessage::TaskStarted(TaskStartedMessage {
        task_id: (&task.id).into(),
        description: (&task.description).into(),
        task_type: Some(task.kind.name().into()),
        is_backgrounded: Some(task.in_background),
        tool_use_id: task.tool_use_id.as_deref().map(Cow::Borrowed),
        subagent_type: task.agent_type.as_deref().map(Cow::Borrowed),
        prompt: is_agent.then(|| (&task.prompt).into()),
        ..TaskStartedMessage::default()
    })
}

fn task_updated<'a>(id: &'a str, patch: TaskPatch<'a>) -> SystemMessage<'a> {
    SystemMessage::TaskUpdated(TaskUpdatedMessage {
        task_id: id.into(),
        patch,
        ..TaskUpdatedMessage::default()
    })
}

fn task_ended(notice: &TaskNotice) -> SystemMessage<'_> {
    let status = match notice.status {
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Killed | TaskStatus::Running => "stopped",
    };
    let file = notice.output_file.as_deref();
    SystemMessage::TaskNotification(TaskNotificationMessage {
        task_id: (&notice.id).into(),
        status: status.into(),
        output_file: file.map(|file| file.to_string_lossy()).unwrap_or_default(),
        summary: (&notice.summary).into(),
        tool_use_id: notice.tool_use_id.as_deref().map(Cow::Borrowed),
        usage: notice.usage.as_ref().map(usage),
        ..TaskNotificationMessage::default()
    })
}

fn usage(used: &TaskUsage) -> TaskUsageReport {
    TaskUsageReport {
        total_tokens: used.total_tokens,
        tool_uses: used.tool_uses,
        duration_ms: used.duration_ms,
    }
}

/// Returns the current time in milliseconds since 1970.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    super::messages::millis(since.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use haft_protocol::SessionMessage;
    use haft_testkit::tasks::{notice, task};

    use super::*;

    #[test]
    fn each_step_of_a_task_is_a_message() {
        let (task, notice) = (task(), notice());
        let used = notice.usage.unwrap();
        let steps = [
            TaskEvent::Began(task.clone()),
            TaskEvent::Progress {
                task: task.clone(),
                usage: used,
                last_tool: Some("Read".to_owned()),
            },
            TaskEvent::MovedToBackground(task),
            TaskEvent::Over(notice),
        ];
        let mut told: Vec<_> = steps.iter().flat_map(messages).collect();
        if let SystemMessage::TaskUpdated(message) = &mut told[3] {
            message.patch.end_time = Some(0);
        }
        let told = told.into_iter().map(SessionMessage::from);
        let told: Vec<_> = told.flat_map(|told| serde_json::to_string(&told)).collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}
