//! A running subagent, from its prompt to its report.

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    panic::AssertUnwindSafe,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use haft_contract::{
    AgentReport, AgentStatus, BackgroundTasks, TaskKind, TaskNotice, TaskStatus, TokenCount,
};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    event_forwarder::EventForwarder,
    handle::{SubagentHandle, SubagentOutcome},
    server_tools::PendingServerTools,
    subagent_pool::SubagentShared,
    transcript_record,
};
use crate::{Agent, EndReason, Prompt, RunResult};

/// The maximum number of characters of the final text that the model receives automatically.
const MAX_REPORTED: usize = 30_000;

pub(super) struct SubagentTask {
    pub(super) shared: Arc<SubagentShared>,
    pub(super) member: Arc<SubagentHandle>,
    pub(super) notices: Option<Arc<BackgroundTasks>>,
    /// Released when the task is done.
    pub(super) permit: OwnedSemaphorePermit,
    /// Tools of its MCP servers that are still connecting.
    pub(super) tools: Option<PendingServerTools>,
}

impl SubagentTask {
    /// Runs the task. A panic ends it as failed, so that no call waits indefinitely.
    pub(super) async fn run_catching_panics(self, agent: Agent, prompt: Prompt) {
        let (member, notices) = (Arc::clone(&self.member), self.notices.clone());
        let worked = AssertUnwindSafe(self.run(agent, prompt)).catch_unwind();
        if worked.await.is_err() {
            let mut outcome = defect_outcome(&member);
            finish_worktree(&member, &mut outcome).await;
            if let Some(notices) = &notices {
                let relay = EventForwarder::new(Arc::clone(&member.tag), None, None);
                notices.push(notice(&member, &outcome, &relay));
            }
            member.finish(outcome);
        }
    }

    async fn run(self, mut agent: Agent, prompt: Prompt) {
        let Self {
            shared,
            member,
            notices,
            permit,
            tools,
        } = self;
        let relay = EventForwarder::new(
            Arc::clone(&member.tag),
            shared.sink.clone(),
            notices.clone(),
        );
        let started = Instant::now();
        let mut prompt = prompt;
        let servers = match tools {
            Some(tools) => tools.attach_tools(&member, &mut prompt).await,
            None => None,
        };
        let ended = loop {
            let ended = run_once(&mut agent, prompt, &relay, &member).await;
            shared.denied(ended.permission_denials.clone());
            match member.stop_accepting() {
                Some(late) => prompt = late,
                None => break ended,
            }
        };
        let mut outcome = outcome(&member, &ended, &relay, started);
        transcript_record::write_done(agent.transcript(), outcome.status.name());
        let (engine, cwd) = (
            Arc::clone(agent.scheduler.engine()),
            agent.scheduler.context().cwd,
        );
        // Closes the transcript, so that the subagent can be resumed.
        drop(agent);
        if let Some(servers) = servers {
            servers.await;
        }
        finish_worktree(&member, &mut outcome).await;
        drop(permit);
        if member.is_in_background()
            && let Err(error) =
                write_private_file(&member.output_file, &report_text(&outcome.report))
        {
            tracing::warn!(%error, "the final text of a subagent was not saved");
        }
        if let Some(notices) = &notices {
            let notice = notice(&member, &outcome, &relay);
            match member.is_in_background() {
                true => notices.push(notice),
                false => notices.finish_reported(notice),
            }
        }
        if member.is_in_background() {
            let summary = notice(&member, &outcome, &relay).summary;
            let (kind, title) = ("agent_completed", "An agent is done");
            engine.notify(kind, title, &summary, &cwd).await;
        }
        member.finish(outcome);
    }
}

/// Removes the worktree. Its changes are preserved as a branch.
async fn finish_worktree(member: &SubagentHandle, outcome: &mut SubagentOutcome) {
    if let Some(worktree) = &member.worktree {
        outcome.report.worktree = Some(worktree.finish().await);
    }
}

/// Executes one run, which is interrupted if the subagent is stopped.
async fn run_once(
    agent: &mut Agent,
    prompt: Prompt,
    relay: &EventForwarder,
    member: &SubagentHandle,
) -> RunResult {
    let run = agent.run(prompt, relay);
    tokio::pin!(run);
    tokio::select! {
        biased;
        ended = &mut run => ended,
        () = member.cancel.cancelled() => {
            member.control.interrupt();
            run.await
        }
    }
}

fn outcome(
    member: &SubagentHandle,
    ended: &RunResult,
    relay: &EventForwarder,
    started: Instant,
) -> SubagentOutcome {
    let heard = relay.totals().clone();
    let status = match ended.reason {
        EndReason::AbortedStreaming | EndReason::AbortedTools => TaskStatus::Killed,
        EndReason::MaxTurns => TaskStatus::Completed,
        _ if ended.is_error() => TaskStatus::Failed,
        _ => TaskStatus::Completed,
    };
    let problem = match (status, ended.reason) {
        (TaskStatus::Killed, _) => Some("it was stopped before it was done".to_owned()),
        (TaskStatus::Failed, _) => Some(ended.errors.join("; ")),
        (_, EndReason::MaxTurns) => Some(
            "it was stopped after as many rounds of tool use as it may have; the work may be unfinished"
                .to_owned(),
        ),
        _ => None,
    };
    let text = match ended.is_error() || ended.text.is_empty() {
        true => heard.text,
        false => ended.text.clone(),
    };
    SubagentOutcome {
        status,
        report: AgentReport {
            agent: member.tag.id.clone(),
            kind: member.tag.kind.clone(),
            text,
            failed: matches!(status, TaskStatus::Failed | TaskStatus::Killed),
            problem,
            model: member.model.clone(),
            models_used: heard.models,
            tool_uses: heard.tool_uses,
            duration: started.elapsed(),
            tokens: heard.tokens,
            worktree: None,
        },
    }
}

fn defect_outcome(member: &SubagentHandle) -> SubagentOutcome {
    SubagentOutcome {
        status: TaskStatus::Failed,
        report: AgentReport {
            agent: member.tag.id.clone(),
            kind: member.tag.kind.clone(),
            text: String::new(),
            failed: true,
            problem: Some("it broke, by a defect of the program it runs in".to_owned()),
            model: member.model.clone(),
            models_used: Vec::new(),
            tool_uses: 0,
            duration: Duration::ZERO,
            tokens: TokenCount::default(),
            worktree: None,
        },
    }
}

/// Returns the text of a report.
fn report_text(report: &AgentReport) -> String {
    let left = report.worktree.as_ref().map(|left| left.note.as_str());
    let notes = [report.problem.as_deref(), left];
    let notes = notes.into_iter().flatten().filter(|note| !note.is_empty());
    let notes = notes.map(|note| format!("[{note}]"));
    let text = Some(report.text.clone()).filter(|text| !text.is_empty());
    let parts: Vec<String> = text.into_iter().chain(notes).collect();
    parts.join("\n\n")
}

fn notice(
    member: &SubagentHandle,
    outcome: &SubagentOutcome,
    relay: &EventForwarder,
) -> TaskNotice {
    let what = match outcome.status {
        TaskStatus::Completed => "is done",
        TaskStatus::Failed => "failed",
        TaskStatus::Killed => "was stopped",
        TaskStatus::Running => "is running",
    };
    let mut result = report_text(&outcome.report);
    let mut notes = Vec::new();
    if let Some((cut, _)) = result.char_indices().nth(MAX_REPORTED) {
        result.truncate(cut);
        notes.push("the result is cut; all of it is in the output file".to_owned());
    }
    TaskNotice {
        id: member.tag.id.clone(),
        kind: TaskKind::Agent,
        status: outcome.status,
        summary: format!("Agent {:?} {what}", member.tag.description),
        result,
        notes,
        output_file: member
            .is_in_background()
            .then(|| member.output_file.clone()),
        tool_use_id: Some(Arc::clone(&member.tag.tool_use_id)).filter(|id| !id.is_empty()),
        usage: Some(relay.usage()),
    }
}

/// Returns the status of a subagent.
pub(super) fn status(member: &SubagentHandle) -> AgentStatus {
    let outcome = member.outcome();
    let status = outcome.as_ref().map(|outcome| outcome.status);
    AgentStatus {
        id: member.tag.id.clone(),
        status: status.unwrap_or(TaskStatus::Running),
        description: member.tag.description.clone(),
        output_file: member.output_file.clone(),
        text: outcome
            .map(|outcome| report_text(&outcome.report))
            .unwrap_or_default(),
    }
}

/// Writes a file that only its owner can read.
fn write_private_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}
