//! Handles session events: decides what the user interface shows of them.

use std::{path::Path, time::Instant};

use haft::{
    CallResult, Content, TaskEvent,
    engine::hooks::{HookRunEvent, HookStage},
};
use haft_agent::{AgentEvent, EndReason, NoticeLevel, RunStart};
use haft_host::{RewindKind, SessionActivity, SessionEvent, TurnResult};
use haft_models::ModelEvent;

use super::{
    app::{App, AppEffect, AppOverlay, RunState},
    ask::QuestionId,
    cards::{self, CardMark},
    hook_sequence, notify, number_format,
};

/// The maximum number of lines shown of the output of a monitor or of a scheduled prompt.
const SHOWN_LINES: usize = 5;

impl App {
    pub(super) fn on_session(&mut self, event: SessionEvent, now: Instant) {
        if let Some(AppOverlay::Other(view)) = &mut self.overlay {
            view.on_event(&event);
        }
        match event {
            SessionEvent::Warning(text) => self.warn(&format!("! {text}")),
            SessionEvent::Notice { level, text } => self.notice(level, &text),
            SessionEvent::Hook(HookRunEvent {
                stage: HookStage::Ended { stdout, .. },
                ..
            }) => {
                let controls = hook_sequence::parse_output(&stdout, self.capabilities.in_tmux);
                if !controls.is_empty() {
                    self.effect(AppEffect::Terminal(controls));
                }
            }
            // The card of the call shows the text if this window has the focus.
            SessionEvent::Notification { text, .. } => drop(self.notify_user(&text, now)),
            SessionEvent::RulesKept { file, problem } => match problem {
                None => self.remark(&format!("- saved in {}", file.display())),
                Some(problem) => self.warn(&format!(
                    "! {}: the rule could not be saved ({problem}); it applies to this session only",
                    file.display()
                )),
            },
            SessionEvent::Ready(facts) => {
                self.status.session = Some(facts.id.to_string());
                if let Some(warning) = &facts.sandbox_warning {
                    self.warn(&format!("! {warning}"));
                }
            }
            SessionEvent::Reset(next) => {
                self.status.session = Some(next.to_string());
                self.status.context = None;
                self.remark("- a new conversation begins");
            }
            SessionEvent::Activity(SessionActivity::Running) => self.on_run_started(now),
            SessionEvent::Activity(SessionActivity::Idle) => {
                self.run = None;
                self.set_title();
            }
            SessionEvent::Agent(event) => self.on_agent(event, now),
            SessionEvent::Question { id, request } => {
                let (timeout, last_key) = (self.question_timeout, self.last_key);
                self.questions
                    .ask(id, *request, timeout, last_key, now, &self.cwd);
                match self.overlay.is_some() {
                    true => self.bell(),
                    false => drop(self.notify_user("haft has a question", now)),
                }
            }
            SessionEvent::QuestionOver { id } => {
                self.questions
                    .remove(QuestionId::Session(id), self.last_key);
            }
            SessionEvent::Delivered(message) => self.delivered(message.uuid),
            SessionEvent::Scheduled { prompt, .. } => {
                self.remark(&format!("- scheduled {}, {}", prompt.id, prompt.words));
                for line in prompt.prompt.lines().take(SHOWN_LINES) {
                    self.remark(&format!("  {line}"));
                }
            }
            SessionEvent::Task(TaskEvent::Reported(notice)) => {
                let lines: Vec<&str> = notice.result.lines().collect();
                for line in lines.iter().take(SHOWN_LINES) {
                    self.remark(&format!("- {}: {line}", notice.id));
                }
                if lines.len() > SHOWN_LINES {
                    let more = lines.len() - SHOWN_LINES;
                    self.remark(&format!("  … and {more} more (/tasks {})", notice.id));
                }
            }
            SessionEvent::CommandAnswered { answer, .. } => {
                self.has_answered = true;
                self.command_answered(answer);
            }
            SessionEvent::Rewound { kind, .. } => {
                let what = match kind {
                    RewindKind::Both => "Rewound conversation and files.",
                    RewindKind::Conversation => "Rewound the conversation.",
                    RewindKind::Files => "Rewound files.",
                    RewindKind::Summary => "Replaced the messages by a summary.",
                };
                self.remark(&format!("- {what}"));
            }
            SessionEvent::Result(result) => self.on_result(&result, now),
            _ => {}
        }
    }

    fn bell(&mut self) {
        let bell = vec![haft_terminal::paint::TerminalControl::Bell];
        self.effect(AppEffect::Terminal(bell));
    }

    fn on_run_started(&mut self, now: Instant) {
        self.run.get_or_insert(RunState {
            since: now,
            tokens: 0,
            compacting: false,
            is_stopping: false,
        });
        self.set_title();
    }

    fn notice(&mut self, level: NoticeLevel, text: &str) {
        match level {
            NoticeLevel::Info => self.remark(&format!("- {text}")),
            _ => self.warn(&format!("! {text}")),
        }
    }

    fn on_agent(&mut self, event: AgentEvent, now: Instant) {
        match event {
            AgentEvent::RunStarted(RunStart { model, mode, .. }) => {
                self.status.model = model;
                self.status.mode = mode;
            }
            AgentEvent::Model(event) => {
                if let ModelEvent::Usage { usage } = &event
                    && let Some(run) = &mut self.run
                {
                    run.tokens = usage.output;
                }
                let done = self.reply.on_event(&event, &self.look);
                self.print(done);
            }
            AgentEvent::CallBound {
                tool_use_id, card, ..
            } => self.calls.begin(&tool_use_id, card, now),
            AgentEvent::Progress {
                tool_use_id,
                update,
                ..
            } => self.calls.progress(&tool_use_id, &update),
            AgentEvent::CallFinished { finished, .. } => self.answered(&finished),
            AgentEvent::Subagent { agent, event } => match *event {
                AgentEvent::CallBound { card, .. } => {
                    self.calls.agent_calls(&agent.tool_use_id, card);
                }
                AgentEvent::BlockCompleted(block) => {
                    let usage = &block.usage;
                    let tokens = usage.input + usage.cache_read + usage.cache_write + usage.output;
                    self.calls.agent_spent(&agent.tool_use_id, tokens);
                }
                _ => {}
            },
            AgentEvent::MessageInjected {
                by: haft_agent::InjectionSource::Steering,
                uuid,
                ..
            } => self.delivered(uuid),
            AgentEvent::ModelFailed(error) => {
                let done = self.reply.finish();
                self.print(done);
                self.warn(&format!("! {error}"));
            }
            AgentEvent::Compacting { .. } => {
                if let Some(run) = &mut self.run {
                    run.compacting = true;
                }
            }
            AgentEvent::Compacted {
                pre_tokens,
                post_tokens,
                ..
            } => {
                if let Some(run) = &mut self.run {
                    run.compacting = false;
                }
                let (before, after) = (
                    number_format::thousands(pre_tokens),
                    number_format::thousands(post_tokens),
                );
                self.remark(&format!("- summarized: {before} tokens became {after}"));
                self.effect(AppEffect::Status);
            }
            AgentEvent::Notice { level, text } => self.notice(level, &text),
            _ => {}
        }
    }

    fn answered(&mut self, finished: &CallResult) {
        let done = self.reply.finish();
        self.print(done);
        self.calls.end(&finished.id);
        if let Some(structured) = &finished.structured {
            self.todos.update_from_result(structured);
        }
        let mark = match finished.is_error {
            true => CardMark::Failed,
            false => CardMark::Worked,
        };
        let items = cards::history(&finished.card, mark, self.cwd(), &self.look);
        self.print(items);
        let subject = Path::new(&finished.card.subject);
        let name = subject.file_name().map(|name| name.to_string_lossy());
        let name = name.as_deref().unwrap_or("picture");
        for content in &finished.content {
            self.show_picture(name, content);
        }
    }

    fn on_result(&mut self, result: &TurnResult, now: Instant) {
        let done = self.reply.finish();
        self.print(done);
        let run = &result.run;
        self.status.cost = run.ledger.total_cost();
        let finished = self.calls.finished;
        let stopped = self.calls.clear();
        match run.reason {
            EndReason::AbortedStreaming | EndReason::AbortedTools => {
                let text = match finished + stopped {
                    0 => "- interrupted. What now?".to_owned(),
                    _ => format!(
                        "- interrupted: {} finished, {stopped} stopped. What now?",
                        number_format::counted(finished as u64, "call"),
                    ),
                };
                self.remark(&text);
            }
            EndReason::Completed | EndReason::ApiError => {}
            _ if result.is_error() && !self.has_answered => {
                let why = match run.errors.is_empty() {
                    true => run.text.clone(),
                    false => run.errors.join("; "),
                };
                self.warn(&format!("! {}: {why}", run.reason.name().replace('_', " ")));
            }
            _ => {}
        }
        self.has_answered = false;
        self.on_run_ended(now);
        self.set_title();
        self.effect(AppEffect::Status);
    }

    /// Ends the run state. After a long run, notifies the user if another window has the focus, and
    /// runs notification hooks.
    pub(super) fn on_run_ended(&mut self, now: Instant) {
        let took = self
            .run
            .take()
            .map(|run| now.saturating_duration_since(run.since));
        if took.is_some_and(|took| took >= notify::LONG_RUN)
            && self.notify_user("haft is done", now)
        {
            // For questions the engine runs these hooks.
            self.effect(AppEffect::NotifyHooks(
                "The run is done; haft waits for you".to_owned(),
            ));
        }
    }
}

/// Returns the text of a message without its images.
pub(crate) fn text_of(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
    texts.join("\n")
}
