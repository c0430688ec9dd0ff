//! A tool call that a hook deferred. It runs when the session is resumed.

use haft_contract::{Content, SessionState, StateSlot, ToolUse};
use haft_engine::CallResult;
use serde::{Deserialize, Serialize};

use crate::{
    Agent, AgentEvent, BlockedCall, InjectionSource, clock, hooks::RunContext, prompt::reminder,
    transcript::UserLineKind,
};

/// The deferred call, as stored in the session state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct DeferredCall(Option<ToolUse>);

impl StateSlot for DeferredCall {
    const KEY: &'static str = "deferred-call";

    fn reminder(&self) -> Option<String> {
        None
    }
}

/// The outcome of running the deferred call.
pub(crate) enum DeferredCallOutcome {
    /// The call is done, or no call was deferred.
    Done,
    /// A hook deferred the call again.
    DeferredAgain(BlockedCall),
    /// The tool no longer exists; contains its name.
    ToolMissing(String),
}

impl Agent {
    /// Stores a call that a hook deferred.
    pub(crate) fn defer_call(&self, call: &BlockedCall) {
        let call = ToolUse {
            id: call.tool_use_id.clone(),
            name: call.tool_name.clone(),
            input: call.tool_input.clone(),
        };
        self.store_deferred_call(Some(call));
    }

    /// Returns whether a deferred call is waiting.
    pub fn has_deferred_call(&self) -> bool {
        let state = self.scheduler.engine().services().get::<SessionState>();
        state.is_ok_and(|state| state.read::<DeferredCall>().0.is_some())
    }

    fn store_deferred_call(&self, call: Option<ToolUse>) {
        if let Ok(state) = self.scheduler.engine().services().get::<SessionState>() {
            let _ = state.change(|deferred: &mut DeferredCall| {
                deferred.0 = call;
                Ok::<_, ()>(())
            });
            self.conversation.transcript.write_state();
        }
    }

    /// Runs the deferred call. Hooks and rules check it again. Its result is the first thing that
    /// the model reads.
    pub(crate) async fn run_deferred_call(&mut self, cx: RunContext<'_>) -> DeferredCallOutcome {
        if !self.has_deferred_call() {
            return DeferredCallOutcome::Done;
        }
        let state = self.scheduler.engine().services().get::<SessionState>();
        let call = state.ok().and_then(|state| state.read::<DeferredCall>().0);
        let Some(call) = call else {
            return DeferredCallOutcome::Done;
        };
        // Removed before the call runs, so that an interrupted call is never run twice
        // automatically.
        self.store_deferred_call(None);
        if self.scheduler.engine().pool().find(&call.name).is_none() {
            return DeferredCallOutcome::ToolMissing(call.name);
        }
        let cancel = self.scheduler.cancel_token().child_token();
        let finished = {
            let mut batch = self.scheduler.start_batch_until(cancel.clone()).await;
            batch.push(call.clone());
            loop {
                tokio::select! {
                    biased;
                    next = batch.next() => break next,
                    () = cx.cancel.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                }
            }
        };
        let Some(finished) = finished else {
            return DeferredCallOutcome::Done;
        };
        let denial = BlockedCall {
            tool_name: finished.name.clone(),
            tool_use_id: call.id.clone(),
            tool_input: call.input.clone(),
        };
        if finished.metadata.deferred {
            self.store_deferred_call(Some(call));
            return DeferredCallOutcome::DeferredAgain(denial);
        }
        self.conversation.add_and_report(
            deferred_result_content(&finished),
            UserLineKind::Meta,
            InjectionSource::Tool,
            cx,
        );
        cx.sink.on_event(&AgentEvent::CallFinished {
            uuid: clock::random_id(),
            finished: Box::new(finished),
        });
        DeferredCallOutcome::Done
    }
}

/// Returns the message with the result for the model.
fn deferred_result_content(finished: &CallResult) -> Vec<Content> {
    let outcome = match finished.is_error {
        true => "has now run, and failed",
        false => "has now run",
    };
    let text = format!(
        "The deferred call of {} ({}) {outcome}. Its result:",
        finished.name, finished.id
    );
    let texts = finished.content.iter().filter_map(Content::as_text);
    let texts: Vec<&str> = texts.collect();
    let rest = finished
        .content
        .iter()
        .filter(|one| one.as_text().is_none());
    let text = Content::text(reminder(&format!("{text}\n{}", texts.join("\n"))));
    std::iter::once(text)
        .chain(rest.cloned())
        .chain(finished.messages.iter().flat_map(|one| one.content.clone()))
        .collect()
}
