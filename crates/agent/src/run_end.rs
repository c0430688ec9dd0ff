//! The end of a run, and the cases in which the run continues instead.

use haft_contract::Content;
use haft_engine::pipeline::INTERRUPTED as INTERRUPTED_TOOLS;
use haft_models::{ErrorKind, ModelError, StopReason};

use crate::{
    Agent, AgentEvent, BlockedCall, CompactionTrigger, EndReason, InjectionSource, NoticeLevel,
    ResultSubtype,
    background_notices::has_notices,
    hooks::RunContext,
    run::{RunLoopState, RunTotals},
    transcript::UserLineKind,
};

/// The marker of an interrupt by the user. Programs that read transcripts recognise it.
const INTERRUPTED: &str = "[Request interrupted by user]";

/// The maximum number of consecutive times that Stop hooks may continue the run.
const MAX_STOP_BLOCKS: u32 = 8;

/// The maximum number of consecutive times that a provider may pause a reply.
const MAX_PAUSES: u32 = 16;

/// The end of a run: its kind, its reason and its text.
pub(crate) struct RunEnd {
    pub(crate) subtype: ResultSubtype,
    /// The reason why the loop ended.
    pub(crate) reason: EndReason,
    /// The final text.
    pub(crate) text: String,
    pub(crate) api_error: Option<ModelError>,
    /// Human-readable errors.
    pub(crate) errors: Vec<String>,
    /// The deferred call that ended the run.
    pub(crate) deferred: Option<BlockedCall>,
}

impl RunEnd {
    /// Returns a successful end.
    pub(crate) fn success(reason: EndReason, text: impl Into<String>) -> Self {
        Self {
            subtype: ResultSubtype::Success,
            reason,
            text: text.into(),
            api_error: None,
            errors: Vec::new(),
            deferred: None,
        }
    }

    /// Returns the end of a run whose last call was deferred.
    pub(crate) fn deferred(call: BlockedCall) -> Self {
        Self {
            deferred: Some(call),
            ..Self::success(EndReason::ToolDeferred, "")
        }
    }

    /// Returns the end of a failed run.
    pub(crate) fn failure(
        subtype: ResultSubtype,
        reason: EndReason,
        error: impl Into<String>,
    ) -> Self {
        Self {
            subtype,
            errors: vec![error.into()],
            ..Self::success(reason, "")
        }
    }
}

impl Agent {
    /// Returns the end of the run if the budget is exhausted.
    pub(crate) fn check_budget(&self) -> Option<RunEnd> {
        let max_cost = self.limits.max_budget_usd?;
        let cost = self.client.total_cost();
        (cost >= max_cost).then(|| {
            let message = format!("Reached maximum budget (${max_cost}): ${cost:.4} spent");
            RunEnd::failure(
                ResultSubtype::MaxBudget,
                EndReason::BudgetExhausted,
                message,
            )
        })
    }

    /// Handles a reply without calls. Returns the end of the run, or `None` to continue.
    pub(crate) async fn on_final_reply(
        &mut self,
        text: String,
        stop: Option<StopReason>,
        state: &mut RunLoopState,
        cx: RunContext<'_>,
        totals: &mut RunTotals,
    ) -> Option<RunEnd> {
        if stop == Some(StopReason::PauseTurn) && state.pauses < MAX_PAUSES {
            state.pauses += 1;
            return None;
        }
        let may_compact = !self.client.settings.auto_compact.is_off;
        if stop == Some(StopReason::ContextWindow) && may_compact && !state.was_compacted {
            state.was_compacted = true;
            let mut compaction = self.compaction(cx);
            let result = compaction
                .compact(CompactionTrigger::Auto, "", &state.last_messages, totals)
                .await;
            if matches!(result, Ok(true)) {
                return None;
            }
        }
        if self.control.has_queued()
            || has_notices(self.scheduler.engine())
            || self.hooks.has_wake_request()
        {
            return None;
        }
        let text = match stop {
            Some(StopReason::Refusal) => refusal_text(text, cx),
            _ => text,
        };
        self.run_stop_hooks(text, state, cx).await
    }

    /// Runs the Stop hooks. Returns the end of the run, or `None` if the hooks continue it.
    pub(crate) async fn run_stop_hooks(
        &mut self,
        text: String,
        state: &mut RunLoopState,
        cx: RunContext<'_>,
    ) -> Option<RunEnd> {
        let is_repeated = state.stop_blocks > 0;
        let verdict = self.hooks.stop(&text, is_repeated, cx).await;
        if verdict.stop.is_some() || cx.cancel.is_cancelled() {
            return Some(RunEnd::success(EndReason::Completed, text));
        }
        let feedback: Vec<String> = verdict.block.into_iter().chain(verdict.context).collect();
        if feedback.is_empty() || state.stop_blocks == MAX_STOP_BLOCKS {
            return Some(RunEnd::success(EndReason::Completed, text));
        }
        state.stop_blocks += 1;
        self.conversation.add_context(&feedback, cx);
        None
    }

    /// Handles a failed request. Summarizes the conversation if it was too long.
    pub(crate) async fn on_model_error(
        &mut self,
        error: ModelError,
        state: &mut RunLoopState,
        cx: RunContext<'_>,
        totals: &mut RunTotals,
    ) -> Option<RunEnd> {
        let is_too_long = error.kind == ErrorKind::ContextTooLong;
        if let Some(window) = error.context_window {
            let known = &mut self.client.settings.window;
            *known = window.min(*known);
        }
        let is_off = self.client.settings.auto_compact.is_off;
        if is_too_long && is_off {
            let message = "the conversation no longer fits, and automatic summaries are switched off \
                        (autoCompactEnabled): summarize it with /compact";
            cx.notice(NoticeLevel::Warning, message.to_owned());
        } else if is_too_long && !state.was_compacted {
            state.was_compacted = true;
            let mut compaction = self.compaction(cx);
            match compaction
                .compact(CompactionTrigger::Auto, "", &state.last_messages, totals)
                .await
            {
                Ok(true) => return None,
                Ok(false) => {}
                Err(error) => cx.notice(NoticeLevel::Warning, error.to_string()),
            }
            if cx.cancel.is_cancelled() {
                return Some(self.on_interrupt(false, cx));
            }
        }
        let reason = if is_too_long {
            EndReason::PromptTooLong
        } else {
            EndReason::ApiError
        };
        cx.sink.on_event(&AgentEvent::ModelFailed(error.clone()));
        self.hooks.failure(&error, cx).await;
        Some(RunEnd {
            api_error: Some(error.clone()),
            errors: vec![error.to_string()],
            ..RunEnd::success(reason, format!("API Error: {error}"))
        })
    }

    /// Adds the interrupt marker to the conversation and returns the end of the run.
    pub(crate) fn on_interrupt(&mut self, has_running_calls: bool, cx: RunContext<'_>) -> RunEnd {
        let (reason, marker) = match has_running_calls {
            true => (EndReason::AbortedTools, INTERRUPTED_TOOLS),
            false => (EndReason::AbortedStreaming, INTERRUPTED),
        };
        let content = vec![Content::text(marker)];
        self.conversation.add_and_report(
            content,
            UserLineKind::Prompt,
            InjectionSource::Interrupt,
            cx,
        );
        RunEnd::failure(ResultSubtype::DuringExecution, reason, marker)
    }
}

/// Returns the text that the user sees if the model or the provider's content filter refused: never
/// an empty one.
fn refusal_text(text: String, cx: RunContext<'_>) -> String {
    let message = "The model refused to answer, or the provider's content filter cut the answer off (stop reason: \
                refusal). Rephrase your message, or start a new conversation without the cause.";
    cx.notice(NoticeLevel::Warning, message.to_owned());
    match text.trim().is_empty() {
        true => message.to_owned(),
        false => text,
    }
}
