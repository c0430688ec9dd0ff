//! The agent loop: runs turns until the model, a limit or the user ends the run.

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

/// The totals of a run.
#[derive(Debug, Default)]
pub(crate) struct RunTotals {
    /// The time spent waiting for the model.
    pub(crate) api: Duration,
    /// Whether a compaction failed or was blocked, so that it is not retried in this run.
    pub(crate) compaction_refused: bool,
    /// The time to the first block of the first reply.
    first_token: Option<Duration>,
    /// The tokens of this run's replies.
    usage: Usage,
    /// The number of replies.
    turns: u32,
    /// The calls that were denied.
    denials: Vec<BlockedCall>,
    /// The stop reason of the last reply.
    stop: Option<StopReason>,
}

/// The state of the loop between turns.
pub(crate) struct RunLoopState {
    /// The user's last message, which a compaction preserves.
    pub(crate) last: Vec<Content>,
    repeats: RepeatDetector,
    /// The number of turns with tool calls.
    tool_rounds: u32,
    /// The number of consecutive times that Stop hooks continued the run.
    pub(crate) stop_blocks: u32,
    /// The number of consecutive replies that the provider paused.
    pub(crate) pauses: u32,
    /// Whether the conversation was already summarized because it was too long for the model.
    pub(crate) shortened: bool,
}

impl Agent {
    /// Sends a prompt to the model and runs turns until the model is done or the run ends for
    /// another reason.
    ///
    /// To end it early, use [`AgentHandle::interrupt`](crate::AgentHandle::interrupt). Dropping the future
    /// also stops everything; the next run then begins by reloading the transcript.
    pub async fn run(
        &mut self,
        prompt: impl Into<Prompt> + Send,
        sink: &dyn AgentEventSink,
    ) -> RunResult {
        self.boxed_run(Some(prompt.into()), sink).await
    }

    /// Like [`run`](Self::run), but without a prompt: sends the notices of background tasks that
    /// have ended since the model last received any.
    pub async fn run_background_notices(&mut self, sink: &dyn AgentEventSink) -> RunResult {
        self.boxed_run(None, sink).await
    }

    /// Reports the start of a run that is answered without the model. [`answer`](Self::answer_without_model) ends
    /// it.
    pub fn announce_run(&self, sink: &dyn AgentEventSink) {
        sink.on_event(&AgentEvent::RunStarted(self.run_start()));
    }

    /// Returns the result of a run without the model. `Err` is an error in the user's input.
    pub fn answer_without_model(&self, answer: Result<String, String>) -> RunResult {
        let left = match answer {
            Ok(text) => RunEnd::success(EndReason::Completed, text),
            Err(what) => RunEnd::failure(ResultSubtype::DuringExecution, EndReason::Refused, what),
        };
        self.run_result(left, RunTotals::default(), Duration::ZERO)
    }

    /// Boxed, so that the code is compiled only once, in this crate, not in each crate that awaits
    /// it.
    fn boxed_run<'a>(
        &'a mut self,
        prompt: Option<Prompt>,
        sink: &'a dyn AgentEventSink,
    ) -> BoxFuture<'a, RunResult> {
        Box::pin(self.run_from(prompt, sink))
    }

    /// Executes a run with all its turns, and returns its result.
    async fn run_from(&mut self, prompt: Option<Prompt>, sink: &dyn AgentEventSink) -> RunResult {
        let running = self.control.start_run();
        let to = RunContext::new(sink, &running.cancel);
        let started = Instant::now();
        let mut tally = RunTotals::default();
        self.reload_after_dropped_run(to).await;
        self.session.is_behind = true;
        let left = self.run_loop(prompt, to, &mut tally).await;
        self.session.is_behind = false;
        self.take_changes();
        self.record_grants();
        self.warn_if_unrecorded(to);
        if let Some(subagents) = &self.subagents {
            tally.denials.extend(subagents.take_denials());
        }
        self.run_result(left, tally, started.elapsed())
    }

    /// Builds the result of a run.
    fn run_result(&self, left: RunEnd, tally: RunTotals, duration: Duration) -> RunResult {
        RunResult {
            subtype: left.subtype,
            text: left.text,
            stop_reason: tally.stop,
            reason: left.reason,
            num_turns: tally.turns,
            usage: tally.usage,
            ledger: self.client.ledger(),
            permission_denials: tally.denials,
            api_error: left.api_error,
            errors: left.errors,
            deferred: left.deferred,
            duration,
            duration_api: tally.api,
            first_token: tally.first_token,
        }
    }

    /// Starts the session if necessary, adds the prompt, and runs turns until the run ends.
    async fn run_loop(
        &mut self,
        prompt: Option<Prompt>,
        to: RunContext<'_>,
        tally: &mut RunTotals,
    ) -> RunEnd {
        self.take_changes();
        self.record_cwd();
        // An initial prompt from hooks is ignored here: the code that starts the session sends it.
        self.start_session_once(to).await;
        to.sink.on_event(&AgentEvent::RunStarted(self.run_start()));
        if let Some(why) = self.session.held_up.take() {
            to.notice(NoticeLevel::Warning, why.clone());
            return RunEnd::success(EndReason::HookStopped, why);
        }
        let was_deferred = self.has_deferred_call();
        match self.run_deferred_call(to).await {
            DeferredCallOutcome::Done => {}
            DeferredCallOutcome::DeferredAgain(call) => return RunEnd::deferred(call),
            DeferredCallOutcome::ToolMissing(tool) => {
                let what = format!(
                    "the call that was put off cannot be made: no tool is called {tool} here"
                );
                let reason = EndReason::ToolDeferredUnavailable;
                return RunEnd::failure(ResultSubtype::DuringExecution, reason, what);
            }
        }
        let mut last = Vec::new();
        if let Some(prompt) = prompt {
            let id = prompt.uuid.unwrap_or_else(clock::random_id);
            let effort = self.client.settings.effort.as_ref();
            self.hooks.set_prompt_context(id, effort);
            let words: Vec<&str> = prompt.content.iter().filter_map(Content::as_text).collect();
            let word = self.hooks.prompt(&words.join("\n"), to).await;
            if let Some(why) = word.block.or(word.stop) {
                to.notice(NoticeLevel::Warning, why.clone());
                return RunEnd::success(EndReason::HookStopped, why);
            }
            self.start_user_turn();
            self.instructions
                .reload_changed_skills(&self.hooks, to)
                .await;
            let window = self.client.settings.window;
            self.instructions
                .send_opening(window, &mut self.dialogue, &self.hooks, to)
                .await;
            self.dialogue
                .add(prompt.content.clone(), UserLineKind::Prompt, Some(id));
            self.dialogue.add_context(&word.context, to);
            last = prompt.content;
        } else if !was_deferred
            && !has_notices(self.scheduler.engine())
            && !self.hooks.has_wake_request()
        {
            return RunEnd::success(EndReason::Completed, "");
        }
        let mut course = RunLoopState {
            last,
            repeats: RepeatDetector::default(),
            tool_rounds: 0,
            stop_blocks: 0,
            pauses: 0,
            shortened: false,
        };
        loop {
            if let Some(left) = self.run_turn(&mut course, to, tally).await {
                return left;
            }
        }
    }

    /// Runs one turn and handles its outcome. Returns the end of the run, or `None` to continue.
    async fn run_turn(
        &mut self,
        course: &mut RunLoopState,
        to: RunContext<'_>,
        tally: &mut RunTotals,
    ) -> Option<RunEnd> {
        self.take_changes();
        for path in std::mem::take(&mut self.session.added) {
            let source = "register_repo_root";
            self.hooks.directory_added(&path, source, to).await;
        }
        if let Some(left) = self.check_budget() {
            return Some(left);
        }
        for prompt in self.control.take_queued() {
            let prompt = match &self.attach {
                Some(attach) if !prompt.mentions.is_empty() => {
                    attach(prompt, self.scheduler.nested_calls(), self.context().cwd).await
                }
                _ => prompt,
            };
            course.last.extend(prompt.content.iter().cloned());
            self.dialogue.add_steering(prompt, to);
        }
        let context = self.scheduler.context();
        self.plan
            .remind_if_changed(&context, &mut self.dialogue, to);
        add_task_notices(self.scheduler.engine(), &mut self.dialogue, to);
        let (scheduler, dialogue) = (&self.scheduler, &mut self.dialogue);
        self.instructions.list_deferred_tools(scheduler, dialogue);
        for late in self.hooks.take_async_context(to) {
            self.dialogue.add_context(&late, to);
        }
        self.record_grants();
        self.warn_if_unrecorded(to);
        self.compaction(to)
            .compact_if_needed(&course.last, tally)
            .await;
        if to.cancel.is_cancelled() {
            return Some(self.on_interrupt(false, to));
        }
        let conversation = &self.dialogue.conversation;
        let request = self.client.request(conversation, &self.scheduler);
        let round = ModelTurn {
            model: &*self.client.model,
            transcript: &self.dialogue.transcript,
            display: self.hooks.has_display_hooks().then_some(&self.hooks),
            sink: to.sink,
            cancel: to.cancel,
        };
        let mut done = round.run(&mut self.scheduler, request).await;
        self.record_cwd();
        let shown = done.shown.take();
        let RecordedReply {
            end,
            answers,
            text,
            stop,
        } = match self.record_reply(done, tally, to) {
            Ok(taken) => taken,
            Err(error) => {
                let what = format!("the reply could not be taken into the conversation: {error}");
                let (subtype, reason) = (ResultSubtype::DuringExecution, EndReason::EngineFault);
                return Some(RunEnd::failure(subtype, reason, what));
            }
        };
        match end {
            TurnEnd::Interrupted => return Some(self.on_interrupt(!answers.is_empty(), to)),
            TurnEnd::Failed(error) => return self.on_model_error(error, course, to, tally).await,
            TurnEnd::Fault(what) => {
                let (subtype, reason) = (ResultSubtype::DuringExecution, EndReason::EngineFault);
                return Some(RunEnd::failure(subtype, reason, what));
            }
            TurnEnd::Complete => {}
        }
        if answers.is_empty() {
            let said = text.clone();
            let mut left = self.on_final_reply(text, stop, course, to, tally).await?;
            if let Some(shown) = shown.filter(|_| left.text == said) {
                left.text = shown;
            }
            return Some(left);
        }
        course.stop_blocks = 0;
        course.pauses = 0;
        course.tool_rounds += 1;
        let window = self.client.settings.window;
        let (dialogue, scheduler) = (&mut self.dialogue, &mut self.scheduler);
        self.instructions
            .send_for_touched_files(window, dialogue, scheduler, &self.hooks, to)
            .await;
        self.after_tool_calls(&answers, course, to, tally).await
    }

    /// Adds a reply and the results of its calls to the conversation.
    fn record_reply(
        &mut self,
        done: TurnOutcome,
        tally: &mut RunTotals,
        to: RunContext<'_>,
    ) -> Result<RecordedReply, ConversationError> {
        let TurnOutcome {
            reply,
            answers,
            end,
            api,
            first_token,
            refused_images,
            shown: _,
        } = done;
        tally.api += api;
        tally.first_token = tally.first_token.or(first_token);
        for (messages, note) in refused_images {
            self.dialogue.conversation.drop_images(&messages, &note);
        }
        let spent = reply.usage != Usage::default();
        if spent || matches!(end, TurnEnd::Complete) || !reply.message.content.is_empty() {
            let name = reply
                .message
                .model
                .as_deref()
                .unwrap_or(&self.client.settings.name);
            self.client.record_usage(name, &reply.usage);
            tally.usage = cost::sum(&tally.usage, &reply.usage);
            tally.turns += 1;
            tally.stop.clone_from(&reply.stop);
        }
        let text = reply_text(&reply.message.content);
        let stop = reply.stop.clone();
        let results: Vec<_> = answers
            .iter()
            .map(|answer| result_of(&answer.finished))
            .collect();
        self.dialogue.window.record_reply(&reply, &results);
        self.dialogue
            .conversation
            .assistant(reply.message, results)?;
        for CompletedCall { input, finished } in &answers {
            let metadata = &finished.metadata;
            if metadata.denied.is_some() {
                tally.denials.push(BlockedCall {
                    tool_name: finished.name.clone(),
                    tool_use_id: finished.id.clone(),
                    tool_input: input.clone(),
                });
            }
            for notice in &metadata.notices {
                to.notice(NoticeLevel::Info, notice.clone());
            }
            self.plan
                .on_patches(&finished.patches, &self.scheduler.context());
            let messages = finished.messages.iter();
            let content: Vec<Content> = messages
                .flat_map(|message| message.content.iter().cloned())
                .collect();
            if !content.is_empty() {
                self.dialogue.add_and_report(
                    content,
                    UserLineKind::Meta,
                    InjectionSource::Tool,
                    to,
                );
            }
        }
        Ok(RecordedReply {
            end,
            answers,
            text,
            stop,
        })
    }

    /// Handles the results of a turn's calls. Returns the end of the run, or `None` to continue.
    async fn after_tool_calls(
        &mut self,
        answers: &[CompletedCall],
        course: &mut RunLoopState,
        to: RunContext<'_>,
        tally: &mut RunTotals,
    ) -> Option<RunEnd> {
        if let [CompletedCall { input, finished }] = answers
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
        if let Some(why) = answers
            .iter()
            .find_map(|answer| answer.finished.metadata.stop.clone())
        {
            to.notice(NoticeLevel::Info, why);
            return Some(RunEnd::success(EndReason::HookStopped, ""));
        }
        let word = self.hooks.tool_batch(answers, to).await;
        self.dialogue.add_context(&word.context, to);
        if let Some(why) = word.block.or(word.stop) {
            self.dialogue.add_context(std::slice::from_ref(&why), to);
            to.notice(NoticeLevel::Info, why);
            return Some(RunEnd::success(EndReason::HookStopped, ""));
        }
        self.add_call_follow_up(to).await;
        let services = self.scheduler.engine().services();
        if let Some(text) = services
            .get::<FinalAnswer>()
            .ok()
            .and_then(|own| own.final_text(answers))
        {
            return self.run_stop_hooks(text, course, to).await;
        }
        let calls = answers.iter().map(|CompletedCall { input, finished }| {
            (finished.name.as_str(), input, finished.content.as_slice())
        });
        let rounds = course.repeats.record_turn(calls);
        if rounds >= self.limits.stop_after_repeats {
            let times = rounds + 1;
            let what = format!(
                "Stopped: the model made the same calls with the same results {times} times"
            );
            return Some(RunEnd::failure(
                ResultSubtype::DuringExecution,
                EndReason::RepeatedCalls,
                what,
            ));
        }
        if rounds == self.limits.warn_after_repeats {
            let text = format!(
                "You have made the same calls {} times, and the results are always the same. Another \
                 try will change nothing. Do something else, or say what you are missing.",
                rounds + 1
            );
            self.dialogue
                .add_reminder(&text, InjectionSource::Repeats, to);
        }
        if let Some(most) = self
            .limits
            .max_turns
            .filter(|most| course.tool_rounds >= *most)
        {
            tally.turns += 1;
            let what = format!("Reached maximum number of turns ({most})");
            return Some(RunEnd::failure(
                ResultSubtype::MaxTurns,
                EndReason::MaxTurns,
                what,
            ));
        }
        None
    }

    /// Adds the follow-up report for the finished calls (for example new diagnostics) to the
    /// conversation.
    async fn add_call_follow_up(&mut self, to: RunContext<'_>) {
        let services = self.scheduler.engine().services().clone();
        let Ok(follower) = services.get::<CallFollowUpService>() else {
            return;
        };
        let report = tokio::select! {
            report = follower.0.report_after_calls(&services) => report,
            () = to.cancel.cancelled() => None,
        };
        if let Some(report) = report {
            self.dialogue
                .add_reminder(&report, InjectionSource::Tool, to);
        }
    }

    /// Recovers after a run was dropped in the middle: waits for its running calls, then reloads
    /// the conversation from the transcript.
    async fn reload_after_dropped_run(&mut self, to: RunContext<'_>) {
        if !self.session.is_behind {
            return;
        }
        drop(self.scheduler.turn().await);
        if let Err(what) = self.dialogue.reload_from_transcript() {
            to.notice(NoticeLevel::Warning, what);
        }
    }
}

/// A reply that was added to the conversation.
struct RecordedReply {
    end: TurnEnd,
    /// The calls of the reply with their results.
    answers: Vec<CompletedCall>,
    /// The text of the reply.
    text: String,
    /// The stop reason of the reply.
    stop: Option<StopReason>,
}
