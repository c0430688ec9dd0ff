//! Calls that a person makes themselves, such as a command line they typed.

use haft_contract::ToolUse;
use haft_engine::{
    CallObserver, CallResult,
    pipeline::{Admitted, Prepared},
};

use crate::{Agent, AgentEvent, Sink};

impl Agent {
    /// Runs a call that a person made themselves: they are not asked whether it may run, and deny rules hold.
    /// It is reported like a call of the model's; what the model reads of it is the caller's business.
    pub async fn run_for_person(&mut self, tool_use: ToolUse, sink: &dyn Sink) -> CallResult {
        let running = self.control.begin();
        self.take_changes();
        let reports = Reports(sink);
        let cancel = running.cancel.clone();
        let finished = self
            .scheduler
            .run_for_person(tool_use, cancel, &reports)
            .await;
        self.note_place();
        finished
    }
}

/// Reports the call as it is bound.
struct Reports<'a>(&'a dyn Sink);

impl CallObserver for Reports<'_> {
    fn bound(&self, call: &Prepared) {
        let (id, tool_use_id) = call.ids();
        self.0.on_event(&AgentEvent::Calling {
            call: id,
            tool_use_id,
            tool_name: call.name().to_owned(),
            card: call.card(),
        });
    }

    // Its lines stand where the model reads of it.
    fn started(&self, _: &Admitted) {}

    fn ended(&self, _: &CallResult) {}
}
