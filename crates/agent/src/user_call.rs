//! Tool calls that the user makes, such as a typed command line.

use haft_contract::ToolUse;
use haft_engine::{
    CallObserver, CallResult,
    pipeline::{AdmittedCall, PreparedCall},
};

use crate::{Agent, AgentEvent, AgentEventSink};

impl Agent {
    /// Runs a call that the user made. It needs no approval, but deny rules apply. It is reported
    /// like a call of the model; the caller decides what the model reads of it.
    pub async fn run_user_call(
        &mut self,
        tool_use: ToolUse,
        sink: &dyn AgentEventSink,
    ) -> CallResult {
        let running = self.control.start_run();
        self.take_changes();
        let reports = CallReporter(sink);
        let cancel = running.cancel.clone();
        let finished = self
            .scheduler
            .run_user_call(tool_use, cancel, &reports)
            .await;
        self.record_cwd();
        finished
    }
}

/// Reports the call when its input is validated.
struct CallReporter<'a>(&'a dyn AgentEventSink);

impl CallObserver for CallReporter<'_> {
    fn on_bound(&self, call: &PreparedCall) {
        let (id, tool_use_id) = call.ids();
        self.0.on_event(&AgentEvent::CallBound {
            call: id,
            tool_use_id,
            tool_name: call.name().to_owned(),
            card: call.card(),
        });
    }

    // The caller records the call in the transcript.
    fn on_started(&self, _: &AdmittedCall) {}

    fn on_ended(&self, _: &CallResult) {}
}
