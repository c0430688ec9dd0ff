//! A call that a hook has put off, and that is made when the session is taken up again.

use haft_contract::{Content, SessionState, StateSlot, ToolUse};
use haft_engine::CallResult;
use serde::{Deserialize, Serialize};

use crate::{
    Added, Agent, AgentEvent, Denial, clock, hooks::RunContext, prompt::reminder, transcript::Kind,
};

/// The call, as the session keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct DeferredCall(Option<ToolUse>);

impl StateSlot for DeferredCall {
    const KEY: &'static str = "deferred-call";

    fn told(&self) -> Option<String> {
        None
    }
}

/// What became of the call that was put off.
pub(crate) enum TakenUp {
    /// There was none, or it is answered.
    Done,
    /// A hook has put it off again.
    Again(Denial),
    /// There is no such tool any more: which.
    Gone(String),
}

impl Agent {
    /// A hook has put this call off.
    pub(crate) fn put_off(&self, call: &Denial) {
        let call = ToolUse {
            id: call.tool_use_id.clone(),
            name: call.tool_name.clone(),
            input: call.tool_input.clone(),
        };
        self.keep_deferred(Some(call));
    }

    /// Is there a call that waits to be made?
    pub fn has_deferred_call(&self) -> bool {
        let state = self.scheduler.engine().services().get::<SessionState>();
        state.is_ok_and(|state| state.read::<DeferredCall>().0.is_some())
    }

    fn keep_deferred(&self, call: Option<ToolUse>) {
        if let Ok(state) = self.scheduler.engine().services().get::<SessionState>() {
            let _ = state.change(|kept: &mut DeferredCall| {
                kept.0 = call;
                Ok::<_, ()>(())
            });
            self.dialogue.transcript.keep();
        }
    }

    /// Makes the call that was put off: hooks and rules judge it as they did the first time. The model reads what
    /// came of it before anything else.
    pub(crate) async fn take_up_deferred(&mut self, to: RunContext<'_>) -> TakenUp {
        if !self.has_deferred_call() {
            return TakenUp::Done;
        }
        let state = self.scheduler.engine().services().get::<SessionState>();
        let call = state.ok().and_then(|state| state.read::<DeferredCall>().0);
        let Some(call) = call else {
            return TakenUp::Done;
        };
        // Before it runs: one that was cut off in the middle is not made a second time unasked.
        self.keep_deferred(None);
        if self.scheduler.engine().pool().find(&call.name).is_none() {
            return TakenUp::Gone(call.name);
        }
        let cancel = self.scheduler.cancel_token().child_token();
        let finished = {
            let mut turn = self.scheduler.turn_until(cancel.clone()).await;
            turn.push(call.clone());
            loop {
                tokio::select! {
                    biased;
                    next = turn.next() => break next,
                    () = to.cancel.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                }
            }
        };
        let Some(finished) = finished else {
            return TakenUp::Done;
        };
        let denial = Denial {
            tool_name: finished.name.clone(),
            tool_use_id: call.id.clone(),
            tool_input: call.input.clone(),
        };
        if finished.metadata.deferred {
            self.keep_deferred(Some(call));
            return TakenUp::Again(denial);
        }
        self.dialogue
            .add_reported(told(&finished), Kind::Meta, Added::Tool, to);
        to.sink.on_event(&AgentEvent::Answered {
            uuid: clock::random_id(),
            finished: Box::new(finished),
        });
        TakenUp::Done
    }
}

/// What the model reads of it.
fn told(finished: &CallResult) -> Vec<Content> {
    let what = match finished.is_error {
        true => "has been made now, and failed",
        false => "has been made now",
    };
    let text = format!(
        "The call of {} that was put off ({}) {what}. Its result:",
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
