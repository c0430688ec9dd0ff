//! Tasks in the background, as messages.

use haft::{BackgroundTask, TaskEvent, TaskKind, TaskNotice, TaskStatus, TaskUsage};
use serde_json::{Value, json};

pub(super) fn messages(event: &TaskEvent) -> Vec<Value> {
    match event {
        TaskEvent::Began(task) => vec![began(task)],
        TaskEvent::Progress {
            task,
            usage: used,
            last_tool,
        } => {
            let mut message = json!({
                "type": "system",
                "subtype": "task_progress",
                "task_id": task.id,
                "description": task.description,
                "usage": usage(used),
            });
            if let Some(id) = &task.tool_use_id {
                message["tool_use_id"] = json!(**id);
            }
            if let Some(tool) = last_tool {
                message["last_tool_name"] = json!(tool);
            }
            vec![message]
        }
        TaskEvent::MovedToBackground(task) => {
            vec![updated(&task.id, &json!({"is_backgrounded": true}))]
        }
        TaskEvent::Over(notice) => {
            let patch = json!({"status": notice.status.name(), "end_time": now()});
            vec![updated(&notice.id, &patch), over(notice)]
        }
        _ => Vec::new(),
    }
}

fn began(task: &BackgroundTask) -> Value {
    let mut message = json!({
        "type": "system",
        "subtype": "task_started",
        "task_id": task.id,
        "description": task.description,
        "task_type": task.kind.name(),
        "is_backgrounded": task.in_background,
    });
    if let Some(id) = &task.tool_use_id {
        message["tool_use_id"] = json!(**id);
    }
    if let Some(agent) = &task.agent_type {
        message["subagent_type"] = json!(agent);
    }
    if task.kind == TaskKind::Agent {
        message["prompt"] = json!(task.prompt);
    }
    message
}

fn updated(id: &str, patch: &Value) -> Value {
    json!({"type": "system", "subtype": "task_updated", "task_id": id, "patch": patch})
}

fn over(notice: &TaskNotice) -> Value {
    let status = match notice.status {
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Killed | TaskStatus::Running => "stopped",
    };
    let file = notice.output_file.as_deref();
    let mut message = json!({
        "type": "system",
        "subtype": "task_notification",
        "task_id": notice.id,
        "status": status,
        "output_file": file.map(|file| file.to_string_lossy()).unwrap_or_default(),
        "summary": notice.summary,
    });
    if let Some(id) = &notice.tool_use_id {
        message["tool_use_id"] = json!(**id);
    }
    if let Some(used) = &notice.usage {
        message["usage"] = usage(used);
    }
    message
}

fn usage(used: &TaskUsage) -> Value {
    json!({
        "total_tokens": used.total_tokens,
        "tool_uses": used.tool_uses,
        "duration_ms": used.duration_ms,
    })
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    super::messages::millis(since.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use haft::CancellationToken;

    use super::*;

    fn task() -> BackgroundTask {
        BackgroundTask {
            id: "a1b2".to_owned(),
            kind: TaskKind::Agent,
            description: "Looks around".to_owned(),
            prompt: "Look around.".to_owned(),
            agent_type: Some("Explore".to_owned()),
            tool_use_id: Some("toolu_1".into()),
            in_background: false,
            stop: CancellationToken::new(),
        }
    }

    fn notice() -> TaskNotice {
        TaskNotice {
            id: "a1b2".to_owned(),
            kind: TaskKind::Agent,
            status: TaskStatus::Killed,
            summary: "Agent \"Looks around\" was stopped".to_owned(),
            result: String::new(),
            notes: Vec::new(),
            output_file: None,
            tool_use_id: Some("toolu_1".into()),
            usage: Some(TaskUsage {
                total_tokens: 1200,
                tool_uses: 3,
                duration_ms: 4500,
            }),
        }
    }

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
        let mut told: Vec<Value> = steps.iter().flat_map(messages).collect();
        told[3]["patch"]["end_time"] = json!(0);
        let told: Vec<String> = told.iter().map(Value::to_string).collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}
