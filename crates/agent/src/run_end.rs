//! The end of a run, and the conditions under which it continues instead.

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

/// The marker by which readers of transcripts recognise an interrupt by the user.
const INTERRUPTED: &str = "[Request interrupted by user]";

/// The maximum number of consecutive times that Stop hooks may continue the run.
const MOST_STOP_BLOCKS: u32 = 8;

/// The maximum number of consecutive times that a provider may pause a reply.
const MOST_PAUSES: u32 = 16;

/// The end of a run: how and why it ended.
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
        let most = self.limits.max_budget_usd?;
        let spent = self.client.total_cost();
        (spent >= most).then(|| {
            let what = format!("Reached maximum budget (${most}): ${spent:.4} spent");
            RunEnd::failure(ResultSubtype::MaxBudget, EndReason::BudgetExhausted, what)
        })
    }

    /// Handles a reply without calls. Returns the end of the run, or `None` to continue.
    pub(crate) async fn on_final_reply(
        &mut self,
        text: String,
        stop: Option<StopReason>,
        course: &mut RunLoopState,
        to: RunContext<'_>,
        tally: &mut RunTotals,
    ) -> Option<RunEnd> {
        if stop == Some(StopReason::PauseTurn) && course.pauses < MOST_PAUSES {
            course.pauses += 1;
            return None;
        }
        let may_compact = !self.client.settings.auto_compact.is_off;
        if stop == Some(StopReason::ContextWindow) && may_compact && !course.shortened {
            course.shortened = true;
            let mut compaction = self.compaction(to);
            let done = compaction
                .compact(CompactionTrigger::Auto, "", &course.last, tally)
                .await;
            if matches!(done, Ok(true)) {
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
            Some(StopReason::Refusal) => refusal_text(text, to),
            _ => text,
        };
        self.run_stop_hooks(text, course, to).await
    }

    /// Runs the Stop hooks, which may continue the run.
    pub(crate) async fn run_stop_hooks(
        &mut self,
        text: String,
        course: &mut RunLoopState,
        to: RunContext<'_>,
    ) -> Option<RunEnd> {
        let again = course.stop_blocks > 0;
        let word = self.hooks.stop(&text, again, to).await;
        if word.stop.is_some() || to.cancel.is_cancelled() {
            return Some(RunEnd::success(EndReason::Completed, text));
        }
        let feedback: Vec<String> = word.block.into_iter().chain(word.context).collect();
        if feedback.is_empty() || course.stop_blocks == MOST_STOP_BLOCKS {
            return Some(RunEnd::success(EndReason::Completed, text));
        }
        course.stop_blocks += 1;
        self.dialogue.add_context(&feedback, to);
        None
    }

    /// Handles a failed request. Summarizes the conversation if it was too long.
    pub(crate) async fn on_model_error(
        &mut self,
        error: ModelError,
        course: &mut RunLoopState,
        to: RunContext<'_>,
        tally: &mut RunTotals,
    ) -> Option<RunEnd> {
        let is_too_long = error.kind == ErrorKind::ContextTooLong;
        if let Some(window) = error.context_window {
            let known = &mut self.client.settings.window;
            *known = window.min(*known);
        }
        let is_off = self.client.settings.auto_compact.is_off;
        if is_too_long && is_off {
            let what = "the conversation no longer fits, and summarizing it unasked is switched off \
                        (autoCompactEnabled): summarize it with /compact";
            to.notice(NoticeLevel::Warning, what.to_owned());
        } else if is_too_long && !course.shortened {
            course.shortened = true;
            let mut compaction = self.compaction(to);
            match compaction
                .compact(CompactionTrigger::Auto, "", &course.last, tally)
                .await
            {
                Ok(true) => return None,
                Ok(false) => {}
                Err(error) => to.notice(NoticeLevel::Warning, error.to_string()),
            }
            if to.cancel.is_cancelled() {
                return Some(self.on_interrupt(false, to));
            }
        }
        let reason = if is_too_long {
            EndReason::PromptTooLong
        } else {
            EndReason::ApiError
        };
        to.sink.on_event(&AgentEvent::ModelFailed(error.clone()));
        self.hooks.failure(&error, to).await;
        Some(RunEnd {
            api_error: Some(error.clone()),
            errors: vec![error.to_string()],
            ..RunEnd::success(reason, format!("API Error: {error}"))
        })
    }

    /// Adds the interrupt marker to the conversation and returns the end of the run. `tools` is set
    /// if calls were running.
    pub(crate) fn on_interrupt(&mut self, tools: bool, to: RunContext<'_>) -> RunEnd {
        let (reason, marker) = match tools {
            true => (EndReason::AbortedTools, INTERRUPTED_TOOLS),
            false => (EndReason::AbortedStreaming, INTERRUPTED),
        };
        let content = vec![Content::text(marker)];
        self.dialogue.add_and_report(
            content,
            UserLineKind::Prompt,
            InjectionSource::Interrupt,
            to,
        );
        RunEnd::failure(ResultSubtype::DuringExecution, reason, marker)
    }
}

/// Returns the text that the user sees if the model or the provider's content filter refused: never
/// an empty one.
fn refusal_text(text: String, to: RunContext<'_>) -> String {
    let what = "The model refused to answer, or the provider's content filter cut the answer off (stop reason: \
                refusal). Say it in other words, or begin a new conversation without what led to it.";
    to.notice(NoticeLevel::Warning, what.to_owned());
    match text.trim().is_empty() {
        true => what.to_owned(),
        false => text,
    }
}
