//! The agent loop.
//!
//! A run answers one prompt. It consists of turns: each turn sends the conversation to the model
//! and runs the tool calls in its reply. The run ends with a reply without calls, at a limit, on an
//! error, or when the user or a hook stops it.

use std::time::{Duration, Instant};

use haft_contract::{BoxFuture, CallFollowUpService, Content};
use haft_models::{ConversationError, StopReason, Usage};

use crate::{
    Agent, AgentEvent, AgentEventSink, BlockedCall, EndReason, FinalAnswer, InjectionSource,
    NoticeLevel, ResultSubtype, RunResult,
    background_notices::{add_task_notices, has_notices},
    clock,
    compaction::reply_text,
    cost,
    deferred_call::DeferredCallOutcome,
    hooks::RunContext,
    model_turn::{CompletedCall, ModelTurn, TurnEnd, TurnOutcome},
    repeat_detector::RepeatDetector,
    run_end::RunEnd,
    transcript::{UserLineKind, result_of},
    user_message::Prompt,
};

/// The totals of a run, for its [`RunResult`].
#[derive(Debug, Default)]
pub(crate) struct RunTotals {
    /// The time spent waiting for the model.
    pub(crate) model_time: Duration,
    /// Whether automatic compaction failed, was blocked, or freed too little space. It is not
    /// retried in this run.
    pub(crate) skips_compaction: bool,
    /// The time to the first block of the first reply.
    first_token: Option<Duration>,
    /// The tokens of this run's replies.
    usage: Usage,
    /// The number of replies.
    turns: u32,
    /// The calls that were denied.
    denials: Vec<BlockedCall>,
    /// The stop reason of the last reply.
    stop_reason: Option<StopReason>,
}

/// The state of the loop between turns.
pub(crate) struct RunLoopState {
    /// The user's last message and the messages since, which a compaction preserves.
    pub(crate) last_messages: Vec<Content>,
    /// Detects a model that repeats the same calls.
    repeat_detector: RepeatDetector,
    /// The number of turns with tool calls so far.
    tool_turns: u32,
    /// The number of consecutive times that Stop hooks continued the run.
    pub(crate) stop_blocks: u32,
    /// The number of consecutive replies that the provider paused.
    pub(crate) pauses: u32,
    /// Whether the conversation was already summarized because it was too long for the model.
    pub(crate) was_compacted: bool,
}

impl Agent {
    /// Answers a prompt: runs turns until the model is done or the run ends for another reason.
    ///
    /// To end the run early, use [`AgentHandle::interrupt`](crate::AgentHandle::interrupt). Dropping the
    /// future also stops the run; the next run then reloads the conversation from the transcript first.
    pub async fn run(
        &mut self,
        prompt: impl Into<Prompt> + Send,
        sink: &dyn AgentEventSink,
    ) -> RunResult {
        self.run_boxed(Some(prompt.into()), sink).await
    }

    /// Like [`run`](Self::run), but without a prompt: sends the notices of background tasks that
    /// have ended since the model last received any.
    pub async fn run_background_notices(&mut self, sink: &dyn AgentEventSink) -> RunResult {
        self.run_boxed(None, sink).await
    }

    /// Reports the start of a run that is answered without the model.
    /// [`answer_without_model`](Self::answer_without_model) ends it.
    pub fn announce_run(&self, sink: &dyn AgentEventSink) {
        sink.on_event(&AgentEvent::RunStarted(self.run_start()));
    }

    /// Returns the result of a run without the model. `Err` is an error in the user's input.
    pub fn answer_without_model(&self, answer: Result<String, String>) -> RunResult {
        let run_end = match answer {
            Ok(text) => RunEnd::success(EndReason::Completed, text),
            Err(message) => {
                RunEnd::failure(ResultSubtype::DuringExecution, EndReason::Refused, message)
            }
        };
        self.run_result(run_end, RunTotals::default(), Duration::ZERO)
    }

    /// Boxes the future of a run, so that its code is compiled only in this crate and not in each
    /// crate that awaits it.
    fn run_boxed<'a>(
        &'a mut self,
        prompt: Option<Prompt>,
        sink: &'a dyn AgentEventSink,
    ) -> BoxFuture<'a, RunResult> {
        Box::pin(self.execute_run(prompt, sink))
    }

    /// Executes a run with all its turns. `prompt` is `None` if only notices are sent.
    async fn execute_run(
        &mut self,
        prompt: Option<Prompt>,
        sink: &dyn AgentEventSink,
    ) -> RunResult {
        let run_guard = self.control.start_run();
        let cx = RunContext::new(sink, &run_guard.cancel);
        let started = Instant::now();
        let mut totals = RunTotals::default();
        self.reload_after_dropped_run(cx).await;
        // Stays set if this future is dropped before the run has ended.
        self.session.needs_reload = true;
        let run_end = self.run_loop(prompt, cx, &mut totals).await;
        self.session.needs_reload = false;
        self.take_changes();
        self.record_grants();
        self.warn_if_unrecorded(cx);
        if let Some(subagents) = &self.subagents {
            totals.denials.extend(subagents.take_denials());
        }
        self.run_result(run_end, totals, started.elapsed())
    }

    /// Builds the result of a run.
    fn run_result(&self, run_end: RunEnd, totals: RunTotals, duration: Duration) -> RunResult {
        RunResult {
            subtype: run_end.subtype,
            text: run_end.text,
            stop_reason: totals.stop_reason,
            reason: run_end.reason,
            num_turns: totals.turns,
            usage: totals.usage,
            ledger: self.client.ledger(),
            permission_denials: totals.denials,
            api_error: run_end.api_error,
            errors: run_end.errors,
            deferred: run_end.deferred,
            duration,
            duration_api: totals.model_time,
            first_token: totals.first_token,
        }
    }

    /// Starts the session if necessary, adds the prompt, and runs turns until the run ends.
    async fn run_loop(
        &mut self,
        prompt: Option<Prompt>,
        cx: RunContext<'_>,
        totals: &mut RunTotals,
    ) -> RunEnd {
        self.take_changes();
        self.record_cwd();
        // Hooks may return an initial prompt, but only callers of `start_session` send it.
        self.start_session_once(cx).await;
        cx.sink.on_event(&AgentEvent::RunStarted(self.run_start()));
        if let Some(reason) = self.session.start_blocked.take() {
            cx.notice(NoticeLevel::Warning, reason.clone());
            return RunEnd::success(EndReason::HookStopped, reason);
        }
        let was_deferred = self.has_deferred_call();
        match self.run_deferred_call(cx).await {
            DeferredCallOutcome::Done => {}
            DeferredCallOutcome::DeferredAgain(call) => return RunEnd::deferred(call),
            DeferredCallOutcome::ToolMissing(tool) => {
                let message =
                    format!("the deferred call cannot run: this session has no tool {tool}");
                let reason = EndReason::ToolDeferredUnavailable;
                return RunEnd::failure(ResultSubtype::DuringExecution, reason, message);
            }
        }
        let mut last = Vec::new();
        if let Some(prompt) = prompt {
            let id = prompt.uuid.unwrap_or_else(clock::random_id);
            let effort = self.client.settings.effort.as_ref();
            self.hooks.set_prompt_context(id, effort);
            let texts: Vec<&str> = prompt.content.iter().filter_map(Content::as_text).collect();
            let verdict = self.hooks.prompt(&texts.join("\n"), cx).await;
            if let Some(reason) = verdict.block.or(verdict.stop) {
                cx.notice(NoticeLevel::Warning, reason.clone());
                return RunEnd::success(EndReason::HookStopped, reason);
            }
            self.start_user_turn();
            self.instructions
                .reload_changed_skills(&self.hooks, cx)
                .await;
            let window = self.client.settings.window;
            self.instructions
                .send_opening(window, &mut self.conversation, &self.hooks, cx)
                .await;
            self.conversation
                .add(prompt.content.clone(), UserLineKind::Prompt, Some(id));
            self.conversation.add_context(&verdict.context, cx);
            last = prompt.content;
        } else if !was_deferred
            && !has_notices(self.scheduler.engine())
            && !self.hooks.has_wake_request()
        {
            return RunEnd::success(EndReason::Completed, "");
        }
        let mut state = RunLoopState {
            last_messages: last,
            repeat_detector: RepeatDetector::default(),
            tool_turns: 0,
            stop_blocks: 0,
            pauses: 0,
            was_compacted: false,
        };
        loop {
            if let Some(run_end) = self.run_turn(&mut state, cx, totals).await {
                return run_end;
            }
        }
    }

    /// Runs one turn: adds pending messages to the conversation, frees space in the context window
    /// if necessary, sends the request, and handles the reply. Returns the end of the run, or `None`
    /// to continue.
    async fn run_turn(
        &mut self,
        state: &mut RunLoopState,
        cx: RunContext<'_>,
        totals: &mut RunTotals,
    ) -> Option<RunEnd> {
        self.take_changes();
        for path in std::mem::take(&mut self.session.unreported_directories) {
            let source = "register_repo_root";
            self.hooks.directory_added(&path, source, cx).await;
        }
        if let Some(run_end) = self.check_budget() {
            return Some(run_end);
        }
        for prompt in self.control.take_queued() {
            let prompt = match &self.mention_expander {
                Some(attach) if !prompt.mentions.is_empty() => {
                    attach(prompt, self.scheduler.nested_calls(), self.context().cwd).await
                }
                _ => prompt,
            };
            state.last_messages.extend(prompt.content.iter().cloned());
            self.conversation.add_steering(prompt, cx);
        }
        let context = self.scheduler.context();
        self.plan_reminder
            .remind_if_changed(&context, &mut self.conversation, cx);
        add_task_notices(self.scheduler.engine(), &mut self.conversation, cx);
        let (scheduler, conversation) = (&self.scheduler, &mut self.conversation);
        self.instructions
            .list_deferred_tools(scheduler, conversation);
        for context in self.hooks.take_async_context(cx) {
            self.conversation.add_context(&context, cx);
        }
        self.record_grants();
        self.warn_if_unrecorded(cx);
        self.compaction(cx)
            .compact_if_needed(&state.last_messages, totals)
            .await;
        if cx.cancel.is_cancelled() {
            return Some(self.on_interrupt(false, cx));
        }
        let conversation = &self.conversation.conversation;
        let request = self.client.request(conversation, &self.scheduler);
        let turn = ModelTurn {
            model: &*self.client.model,
            transcript: &self.conversation.transcript,
            display: self.hooks.has_display_hooks().then_some(&self.hooks),
            sink: cx.sink,
            cancel: cx.cancel,
        };
        let mut outcome = turn.run(&mut self.scheduler, request).await;
        self.record_cwd();
        let displayed_text = outcome.displayed_text.take();
        let RecordedReply {
            end,
            calls: answers,
            text,
            stop_reason: stop,
        } = match self.record_reply(outcome, totals, cx) {
            Ok(reply) => reply,
            Err(error) => {
                let message = format!("the reply could not be added to the conversation: {error}");
                let (subtype, reason) = (ResultSubtype::DuringExecution, EndReason::EngineFault);
                return Some(RunEnd::failure(subtype, reason, message));
            }
        };
        match end {
            TurnEnd::Interrupted => return Some(self.on_interrupt(!answers.is_empty(), cx)),
            TurnEnd::Failed(error) => return self.on_model_error(error, state, cx, totals).await,
            TurnEnd::Fault(message) => {
                let (subtype, reason) = (ResultSubtype::DuringExecution, EndReason::EngineFault);
                return Some(RunEnd::failure(subtype, reason, message));
            }
            TurnEnd::Complete => {}
        }
        if answers.is_empty() {
            // The user may see a different text than the model wrote: display hooks can replace it.
            let final_text = text.clone();
            let mut run_end = self.on_final_reply(text, stop, state, cx, totals).await?;
            if let Some(displayed_text) = displayed_text.filter(|_| run_end.text == final_text) {
                run_end.text = displayed_text;
            }
            return Some(run_end);
        }
        state.stop_blocks = 0;
        state.pauses = 0;
        state.tool_turns += 1;
        let window = self.client.settings.window;
        let (conversation, scheduler) = (&mut self.conversation, &mut self.scheduler);
        self.instructions
            .send_for_touched_files(window, conversation, scheduler, &self.hooks, cx)
            .await;
        self.after_tool_calls(&answers, state, cx, totals).await
    }

    /// Adds a reply and the results of its calls to the conversation.
    fn record_reply(
        &mut self,
        outcome: TurnOutcome,
        totals: &mut RunTotals,
        cx: RunContext<'_>,
    ) -> Result<RecordedReply, ConversationError> {
        let TurnOutcome {
            reply,
            calls: answers,
            end,
            model_time: api,
            first_token,
            refused_images,
            displayed_text: _,
        } = outcome;
        totals.model_time += api;
        totals.first_token = totals.first_token.or(first_token);
        for (messages, note) in refused_images {
            self.conversation.conversation.drop_images(&messages, &note);
        }
        let has_usage = reply.usage != Usage::default();
        if has_usage || matches!(end, TurnEnd::Complete) || !reply.message.content.is_empty() {
            let name = reply
                .message
                .model
                .as_deref()
                .unwrap_or(&self.client.settings.name);
            self.client.record_usage(name, &reply.usage);
            totals.usage = cost::sum(&totals.usage, &reply.usage);
            totals.turns += 1;
            totals.stop_reason.clone_from(&reply.stop);
        }
        let text = reply_text(&reply.message.content);
        let stop = reply.stop.clone();
        let results: Vec<_> = answers
            .iter()
            .map(|answer| result_of(&answer.result))
            .collect();
        self.conversation.window.record_reply(&reply, &results);
        self.conversation
            .conversation
            .assistant(reply.message, results)?;
        for CompletedCall {
            input,
            result: finished,
        } in &answers
        {
            let metadata = &finished.metadata;
            if metadata.denied.is_some() {
                totals.denials.push(BlockedCall {
                    tool_name: finished.name.clone(),
                    tool_use_id: finished.id.clone(),
                    tool_input: input.clone(),
                });
            }
            for notice in &metadata.notices {
                cx.notice(NoticeLevel::Info, notice.clone());
            }
            self.plan_reminder
                .on_patches_applied(&finished.patches, &self.scheduler.context());
            let messages = finished.messages.iter();
            let content: Vec<Content> = messages
                .flat_map(|message| message.content.iter().cloned())
                .collect();
            if !content.is_empty() {
                self.conversation.add_and_report(
                    content,
                    UserLineKind::Meta,
                    InjectionSource::Tool,
                    cx,
                );
            }
        }
        Ok(RecordedReply {
            end,
            calls: answers,
            text,
            stop_reason: stop,
        })
    }

    /// Handles the results of a turn's calls. Returns the end of the run, or `None` to continue.
    async fn after_tool_calls(
        &mut self,
        answers: &[CompletedCall],
        state: &mut RunLoopState,
        cx: RunContext<'_>,
        totals: &mut RunTotals,
    ) -> Option<RunEnd> {
        if let [
            CompletedCall {
                input,
                result: finished,
            },
        ] = answers
            && finished.metadata.deferred
        {
            let deferred = BlockedCall {
                tool_name: finished.name.clone(),
                tool_use_id: finished.id.clone(),
                tool_input: input.clone(),
            };
            self.defer_call(&deferred);
            return Some(RunEnd::deferred(deferred));
        }
        if let Some(reason) = answers
            .iter()
            .find_map(|answer| answer.result.metadata.stop.clone())
        {
            cx.notice(NoticeLevel::Info, reason);
            return Some(RunEnd::success(EndReason::HookStopped, ""));
        }
        let verdict = self.hooks.tool_batch(answers, cx).await;
        self.conversation.add_context(&verdict.context, cx);
        if let Some(reason) = verdict.block.or(verdict.stop) {
            self.conversation
                .add_context(std::slice::from_ref(&reason), cx);
            cx.notice(NoticeLevel::Info, reason);
            return Some(RunEnd::success(EndReason::HookStopped, ""));
        }
        self.add_call_follow_up(cx).await;
        let services = self.scheduler.engine().services();
        if let Some(text) = services
            .get::<FinalAnswer>()
            .ok()
            .and_then(|final_answer| final_answer.final_text(answers))
        {
            return self.run_stop_hooks(text, state, cx).await;
        }
        let calls = answers.iter().map(
            |CompletedCall {
                 input,
                 result: finished,
             }| { (finished.name.as_str(), input, finished.content.as_slice()) },
        );
        let repeats = state.repeat_detector.record_turn(calls);
        if repeats >= self.limits.stop_after_repeats {
            let count = repeats + 1;
            let message = format!(
                "Stopped: the model made the same calls with the same results {count} times"
            );
            return Some(RunEnd::failure(
                ResultSubtype::DuringExecution,
                EndReason::RepeatedCalls,
                message,
            ));
        }
        if repeats == self.limits.warn_after_repeats {
            let text = format!(
                "You have made the same calls {} times, always with the same results. Repeating them \
                 again will not help. Try a different approach, or ask the user for what you are missing.",
                repeats + 1
            );
            self.conversation
                .add_reminder(&text, InjectionSource::Repeats, cx);
        }
        if let Some(max_turns) = self
            .limits
            .max_turns
            .filter(|max_turns| state.tool_turns >= *max_turns)
        {
            totals.turns += 1;
            let message = format!("Reached maximum number of turns ({max_turns})");
            return Some(RunEnd::failure(
                ResultSubtype::MaxTurns,
                EndReason::MaxTurns,
                message,
            ));
        }
        None
    }

    /// Adds the follow-up report for the finished calls (for example new diagnostics) to the
    /// conversation.
    async fn add_call_follow_up(&mut self, cx: RunContext<'_>) {
        let services = self.scheduler.engine().services().clone();
        let Ok(follow_up) = services.get::<CallFollowUpService>() else {
            return;
        };
        let report = tokio::select! {
            report = follow_up.0.report_after_calls(&services) => report,
            () = cx.cancel.cancelled() => None,
        };
        if let Some(report) = report {
            self.conversation
                .add_reminder(&report, InjectionSource::Tool, cx);
        }
    }

    /// Recovers after a run was dropped in the middle: waits for its running calls, then reloads
    /// the conversation from the transcript.
    async fn reload_after_dropped_run(&mut self, cx: RunContext<'_>) {
        if !self.session.needs_reload {
            return;
        }
        drop(self.scheduler.start_batch().await);
        if let Err(message) = self.conversation.reload_from_transcript() {
            cx.notice(NoticeLevel::Warning, message);
        }
    }
}

/// A reply that was added to the conversation.
struct RecordedReply {
    end: TurnEnd,
    /// The calls of the reply with their results.
    calls: Vec<CompletedCall>,
    /// The text of the reply.
    text: String,
    /// The stop reason of the reply.
    stop_reason: Option<StopReason>,
}
