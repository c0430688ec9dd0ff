//! A background task and the notice of its end.

use haft_contract::{
    BackgroundTask, CancellationToken, TaskKind, TaskNotice, TaskStatus, TaskUsage,
};

/// Returns a subagent that runs concurrently with the conversation.
pub fn task() -> BackgroundTask {
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

/// Returns the notice after [`task`] was stopped.
pub fn notice() -> TaskNotice {
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
